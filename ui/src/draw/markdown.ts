// Markdown as a tree, so that notes become nodes and never HTML. Raw HTML in the text stays text.

export type Inline =
  | string
  | { is: "code"; text: string }
  | { is: "strong" | "em" | "del"; inner: Inline[] }
  | { is: "link"; href: string; inner: Inline[] };

export type Block =
  | { is: "heading"; level: number; inner: Inline[] }
  | { is: "paragraph"; inner: Inline[] }
  | { is: "code"; text: string; language: string }
  | { is: "quote"; blocks: Block[] }
  | { is: "list"; ordered: boolean; items: Block[][] }
  | { is: "table"; head: Inline[][]; rows: Inline[][][] }
  | { is: "rule" };

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^ *\|? *:?-+:? *(\| *:?-+:? *)*\|? *$/;
const DEEPEST = 8; // levels of nesting: text from a run may be made to be costly

export function blocks(text: string, depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const result: Block[] = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i]!;
    if (!line.trim()) {
      i += 1;
      continue;
    }
    const [block, next] = depth < DEEPEST ? blockAt(lines, i, depth) : paragraphAt(lines, i);
    result.push(block);
    i = next;
  }
  return result;
}

function blockAt(lines: string[], i: number, depth: number): [Block, number] {
  const line = lines[i]!;
  if (FENCE.test(line)) return fenceAt(lines, i);
  const heading = HEADING.exec(line);
  if (heading) return [{ is: "heading", level: heading[1]!.length, inner: inline(heading[2]!) }, i + 1];
  if (RULE.test(line)) return [{ is: "rule" }, i + 1];
  if (QUOTE.test(line)) return quoteAt(lines, i, depth);
  if (ITEM.test(line)) return listAt(lines, i, depth);
  if (line.includes("|") && TABLE_RULE.test(lines[i + 1] ?? "") && (lines[i + 1] ?? "").includes("-")) return tableAt(lines, i);
  return paragraphAt(lines, i);
}

function fenceAt(lines: string[], i: number): [Block, number] {
  const [, fence, language] = FENCE.exec(lines[i]!)!;
  let end = i + 1;
  while (end < lines.length && !lines[end]!.trim().startsWith(fence!)) end += 1;
  return [{ is: "code", language: language ?? "", text: lines.slice(i + 1, end).join("\n") }, end + 1];
}

function quoteAt(lines: string[], i: number, depth: number): [Block, number] {
  const inner: string[] = [];
  while (i < lines.length && QUOTE.test(lines[i]!)) inner.push(QUOTE.exec(lines[i++]!)![1]!);
  return [{ is: "quote", blocks: blocks(inner.join("\n"), depth + 1) }, i];
}

function listAt(lines: string[], i: number, depth: number): [Block, number] {
  const ordered = /\d/.test(ITEM.exec(lines[i]!)![2]!);
  const items: string[][] = [];
  while (i < lines.length) {
    const line = lines[i]!;
    const item = ITEM.exec(line);
    if (item && /\d/.test(item[2]!) === ordered) items.push([item[3]!]);
    else if (items.length && /^\s{2,}\S/.test(line)) items[items.length - 1]!.push(line.replace(/^\s{2,4}/, ""));
    else if (items.length && !line.trim() && /^\s{2,}\S|^ {0,3}([-*+]|\d+[.)])\s/.test(lines[i + 1] ?? "")) items[items.length - 1]!.push("");
    else break;
    i += 1;
  }
  return [{ is: "list", ordered, items: items.map((item) => blocks(item.join("\n"), depth + 1)) }, i];
}

function tableAt(lines: string[], i: number): [Block, number] {
  const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim()));
  const head = cells(lines[i]!);
  const rows: Inline[][][] = [];
  i += 2;
  while (i < lines.length && lines[i]!.includes("|")) rows.push(cells(lines[i++]!));
  return [{ is: "table", head, rows }, i];
}

function paragraphAt(lines: string[], i: number): [Block, number] {
  const start = i;
  const begins = (line: string) => FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line) || RULE.test(line);
  do i += 1;
  while (i < lines.length && lines[i]!.trim() && !begins(lines[i]!));
  return [{ is: "paragraph", inner: inline(lines.slice(start, i).join("\n")) }, i];
}

const TOKEN = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|~~([^~]+)~~|\*([^*\s][^*]*)\*|(?<!\w)_([^_\s][^_]*)_(?!\w)|\[([^\]]*)\]\(([^()\s]*)\)|<(https?:\/\/[^<>\s]+)>/;

export function inline(text: string, depth = 0): Inline[] {
  const result: Inline[] = [];
  while (text) {
    const found = depth < DEEPEST ? TOKEN.exec(text) : null;
    if (!found) {
      result.push(text);
      break;
    }
    if (found.index) result.push(text.slice(0, found.index));
    result.push(token(found, depth + 1));
    text = text.slice(found.index + found[0].length);
  }
  return result;
}

function token(found: RegExpExecArray, depth: number): Inline {
  const [whole, code, bold, bold2, struck, slanted, slanted2, label, target, bare] = found;
  if (code !== undefined) return { is: "code", text: code };
  if (bold ?? bold2) return { is: "strong", inner: inline((bold ?? bold2)!, depth) };
  if (struck) return { is: "del", inner: inline(struck, depth) };
  if (slanted ?? slanted2) return { is: "em", inner: inline((slanted ?? slanted2)!, depth) };
  if (bare) return { is: "link", href: bare, inner: [bare] };
  const href = safeAddress(target ?? "");
  return href ? { is: "link", href, inner: inline(label!, depth) } : whole;
}

/** Web, mail and places within the page; nothing that could run. */
export function safeAddress(target: string): string | null {
  return /^(https?:\/\/|mailto:|#)/i.test(target) ? target : null;
}
