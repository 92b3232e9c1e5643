// Untrusted Markdown as nodes: no HTML is ever parsed.
import { h, type ComponentChildren } from "preact";
import { type Block, blocks, type Inline } from "../draw/markdown";

export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(text).map(drawBlock)}</div>;
}

function drawBlock(block: Block): ComponentChildren {
  switch (block.is) {
    case "heading":
      return h(`h${Math.min(block.level + 2, 6)}`, { class: "title" }, drawInline(block.inner));
    case "paragraph":
      return <p>{drawInline(block.inner)}</p>;
    case "code":
      return (
        <pre class="code">
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return <blockquote>{block.blocks.map(drawBlock)}</blockquote>;
    case "list":
      return h(block.ordered ? "ol" : "ul", null, block.items.map((item) => <li>{drawItem(item)}</li>));
    case "table":
      return (
        <table class="list">
          <thead>
            <tr>{block.head.map((cell) => <th>{drawInline(cell)}</th>)}</tr>
          </thead>
          <tbody>
            {block.rows.map((row) => (
              <tr>{row.map((cell) => <td>{drawInline(cell)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      );
    case "rule":
      return <hr />;
  }
}

/** A short item needs no paragraph of its own. */
function drawItem(item: Block[]): ComponentChildren {
  return item.length === 1 && item[0]!.is === "paragraph" ? drawInline(item[0]!.inner) : item.map(drawBlock);
}

function drawInline(parts: Inline[]): ComponentChildren {
  return parts.map((part) => {
    if (typeof part === "string") return part;
    if (part.is === "code") return <code>{part.text}</code>;
    if (part.is === "link")
      return (
        <a href={part.href} rel="noopener noreferrer nofollow" target={part.href.startsWith("#") ? undefined : "_blank"}>
          {drawInline(part.inner)}
        </a>
      );
    return h(part.is, null, drawInline(part.inner));
  });
}
