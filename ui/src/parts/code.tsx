// Source code: the user's lines around a finding, and a fix as a diff.
import { dedented } from "../format";
import type { DiffLine, FindingLinks } from "../types";

const CONTEXT = 3; // lines

/** The user's lines, the one in question marked. */
export function Code({ code: whole }: { code: NonNullable<FindingLinks["code"]> }) {
  const code = around(whole);
  const lines = dedented(code.lines);
  return (
    <figure class="code-block">
      <figcaption>
        {code.file}:{code.line}
      </figcaption>
      <pre>
        {lines.map((text, i) => (
          <CodeLine number={code.first + i} text={text} kind={code.first + i === code.line ? "here" : ""} mark={code.first + i === code.line ? "\u25b8" : " "} />
        ))}
      </pre>
    </figure>
  );
}

/** A few lines before and after, for context. */
function around(code: NonNullable<FindingLinks["code"]>): NonNullable<FindingLinks["code"]> {
  const start = Math.max(0, code.line - code.first - CONTEXT);
  return { ...code, first: code.first + start, lines: code.lines.slice(start, code.line - code.first + CONTEXT + 1) };
}

/** A change, as `diff` writes it. */
export function Diff({ diff, file }: { diff: DiffLine[]; file?: string | null }) {
  const lines = dedented(diff.map((line) => line.text));
  const kinds = { "+": "added", "-": "removed", " ": "" } as const;
  return (
    <figure class="code-block diff">
      {file && <figcaption>{file}</figcaption>}
      <pre>
        {diff.map((line, i) => (
          <CodeLine number={line.line} text={lines[i]!} kind={kinds[line.mark]} mark={line.mark} />
        ))}
      </pre>
    </figure>
  );
}

function CodeLine({ number, text, kind, mark }: { number: number | null; text: string; kind: string; mark: string }) {
  return (
    <div class={`code-line ${kind}`}>
      <span class="number">{number ?? ""}</span>
      <span class="sign">{mark}</span>
      <code>{text || " "}</code>
    </div>
  );
}
