// A flame graph of time or memory: click to zoom in, the bars above lead back out.
import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { Canvas, fitted, pointOn } from "../draw/canvas";
import { type Bar, bars, type Frame, frameAt, hueOf, selfOf } from "../draw/flame";
import { withUnit } from "../format";
import { Tip, type TipAt } from "../parts/tip";
import { hrefTo, useParam } from "../state";
import { colour, useTheme } from "../theme";

interface Props {
  name: string;
  title: string;
  note: string;
  root: Frame;
  unit: string;
  id: string;
  tabs?: ComponentChildren; // beside the title: which flame is shown
}

const TALL = 20;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export function Flame({ name, title, note, root, unit, id, tabs }: Props) {
  const [text, setText] = useParam(`${name}Frame`);
  const [find, setFind] = useState("");
  const [over, setOver] = useState<{ at: TipAt; bar: Bar } | null>(null);
  const theme = useTheme();
  const zoom = useMemo(() => text.split(".").filter(Boolean).map(Number), [text]);
  const shown = useMemo(() => bars(root, zoom), [root, zoom]);
  const depth = Math.max(...shown.map((b) => b.depth)) + 1;
  const here = frameAt(root, zoom);
  const found = find.toLowerCase();
  const paint = useCallback(
    (context: CanvasRenderingContext2D, width: number) => draw(context, width, shown, over?.bar ?? null, found, theme === "dark"),
    [shown, over?.bar, found, theme],
  );
  const barAt = (event: MouseEvent): Bar | null => {
    const [x, y] = pointOn(event);
    const share = x / (event.currentTarget as HTMLElement).getBoundingClientRect().width;
    return shown.find((b) => b.depth === Math.floor(y / TALL) && share >= b.left && share <= b.left + b.width) ?? null;
  };
  const chosen = here[here.length - 1]!;
  return (
    <section class="panel flame" id={`flame-${name}`}>
      <header>
        <h3>{title}</h3>
        {tabs}
        <span class="soft">{note}</span>
        <span class="grow" />
        <input type="search" placeholder="Find a function" aria-label="Find a function" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        {zoom.length > 0 && (
          <button type="button" onClick={() => setText("")}>
            All
          </button>
        )}
      </header>
      <div class="inside">
        <p class="says">
          <b>{chosen.name}</b> <span class="num">{withUnit(chosen.value, unit)}</span>, <span class="num">{withUnit(root.value ? chosen.value / root.value : 0, "share")}</span> of all, itself{" "}
          <span class="num">{withUnit(selfOf(chosen), unit)}</span>{" "}
          {chosen.file && (
            <span class="where">
              {chosen.file}:{chosen.line}
            </span>
          )}{" "}
          {chosen.module && <a href={hrefTo(id, "graph", { module: chosen.module })}>in the graph</a>}
        </p>
        <Canvas
          paint={paint}
          height={depth * TALL}
          label={`flame graph: ${title}`}
          onMouseMove={(e) => {
            const bar = barAt(e);
            setOver(bar ? { bar, at: { x: e.clientX, y: e.clientY } } : null);
          }}
          onMouseLeave={() => setOver(null)}
          onClick={(e) => {
            const bar = barAt(e);
            if (bar) setText(bar.path.join("."));
          }}
        />
      </div>
      {over && (
        <Tip at={over.at}>
          <b>{over.bar.frame.name}</b>
          <dl>
            <dt>total</dt>
            <dd class="num">
              {withUnit(over.bar.frame.value, unit)}, {withUnit(root.value ? over.bar.frame.value / root.value : 0, "share")}
            </dd>
            <dt>self</dt>
            <dd class="num">{withUnit(selfOf(over.bar.frame), unit)}</dd>
          </dl>
          {over.bar.frame.file && (
            <div class="where">
              {over.bar.frame.file}:{over.bar.frame.line}
            </div>
          )}
        </Tip>
      )}
    </section>
  );
}

function draw(context: CanvasRenderingContext2D, width: number, shown: Bar[], over: Bar | null, found: string, dark: boolean): void {
  context.font = FONT;
  context.textBaseline = "middle";
  for (const bar of shown) {
    const [x, wide, y] = [bar.left * width, bar.width * width, bar.depth * TALL];
    const hit = found !== "" && bar.frame.name.toLowerCase().includes(found);
    // Between yellow and blue by name, evenly light: told apart by position and word, not by colour alone.
    const hue = 40 + (hueOf(bar.frame.name) % 190);
    context.fillStyle = hit ? colour("accent") : `hsl(${hue} ${dark ? "32% 34%" : "52% 78%"})`;
    context.globalAlpha = found !== "" && !hit ? 0.35 : 1;
    context.fillRect(x, y, Math.max(wide - 1, 0.6), TALL - 1);
    if (wide > 26) {
      context.fillStyle = hit ? colour("paper") : colour("ink");
      context.fillText(fitted(context, bar.frame.name, wide - 10), x + 5, y + TALL / 2);
    }
    context.globalAlpha = 1;
    if (bar === over) {
      context.strokeStyle = colour("ink");
      context.strokeRect(x + 0.5, y + 0.5, Math.max(wide - 2, 1), TALL - 2);
    }
  }
}
