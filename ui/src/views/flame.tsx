// A flame graph of time or memory: click to zoom in, the bars above lead back out.
import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import type { FlameFrame } from "../answers";
import { Canvas, fitted, pointOn } from "../draw/canvas";
import { type Bar, bars, beside, frameAt, hueOf, samePath, selfOf, type Way } from "../draw/flame";
import { plural, withUnit } from "../format";
import { useKeys } from "../keys";
import { Tip, type TipAt } from "../parts/tip";
import { hrefTo, useParam } from "../state";
import { colour, useTheme } from "../theme";

interface Props {
  name: string;
  title: string;
  note: string;
  root: FlameFrame;
  unit: string;
  id: string | null; // of the run whose graph has the frames' modules
  tabs?: ComponentChildren; // beside the title: which flame is shown
}

const TALL = 20;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export function Flame({ name, title, note, root, unit, id, tabs }: Props) {
  const [text, setText] = useParam(`${name}Frame`);
  const [find, setFind] = useState("");
  const [over, setOver] = useState<{ at: TipAt; bar: Bar } | null>(null);
  const [walked, setWalked] = useState<number[] | null>(null); // where the arrow keys have led to
  const search = useRef<HTMLInputElement>(null);
  const theme = useTheme();
  const zoom = useMemo(() => text.split(".").filter(Boolean).map(Number), [text]);
  const shown = useMemo(() => bars(root, zoom), [root, zoom]);
  const depth = Math.max(...shown.map((b) => b.depth)) + 1;
  const here = frameAt(root, zoom);
  const found = find.trim().toLowerCase();
  const hits = found ? shown.filter((b) => isHit(b, found)).length : 0;
  const cursor = walked && (shown.find((b) => samePath(b.path, walked)) ?? null);
  const paint = useCallback(
    (context: CanvasRenderingContext2D, width: number) => draw(context, width, shown, over?.bar ?? cursor, found, theme === "dark"),
    [shown, over?.bar, cursor, found, theme],
  );
  const barAt = (event: MouseEvent): Bar | null => {
    const [x, y] = pointOn(event);
    const share = x / (event.currentTarget as HTMLElement).getBoundingClientRect().width;
    return shown.find((b) => b.depth === Math.floor(y / TALL) && share >= b.left && share <= b.left + b.width) ?? null;
  };
  const zoomTo = (path: number[]) => {
    setText(path.join("."));
    setWalked(null);
  };
  const zoomed = () => shown.find((b) => samePath(b.path, zoom.slice(0, here.length - 1)))!;
  const walk = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === " ") zoomTo((cursor ?? zoomed()).path);
    else if (event.key.startsWith("Arrow")) setWalked((beside(shown, cursor ?? zoomed(), event.key as Way) ?? cursor ?? zoomed()).path);
    else return;
    event.preventDefault();
  };
  const leave = () => {
    if (find || document.activeElement === search.current) {
      setFind("");
      search.current?.blur();
    } else if (zoom.length) zoomTo(zoom.slice(0, -1));
  };
  useKeys([
    { keys: ["/"], says: "search the flame graph", act: () => search.current?.focus() },
    { keys: ["Escape"], says: "zoom out of the frame, or end the search", act: leave, typing: true },
  ]);
  const said = cursor?.frame ?? here[here.length - 1]!;
  return (
    <section class="panel flame" id={`flame-${name}`} data-bars={shown.length}>
      <header>
        <h3>{title}</h3>
        {tabs}
        <span class="soft">{note}</span>
        <span class="grow" />
        {found && (
          <span class="soft found" aria-live="polite">
            {plural(hits, "frame")} found
          </span>
        )}
        <input ref={search} type="search" placeholder="Find a function" aria-label="Find a function" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        {zoom.length > 0 && (
          <button type="button" onClick={() => zoomTo([])}>
            All
          </button>
        )}
      </header>
      <div class="inside">
        <Said frame={said} of={root.value} unit={unit} id={id} />
        <Canvas
          paint={paint}
          height={depth * TALL}
          label={`flame graph: ${title}`}
          tabIndex={0}
          onKeyDown={walk}
          onMouseMove={(e) => {
            const bar = barAt(e);
            setOver(bar ? { bar, at: { x: e.clientX, y: e.clientY } } : null);
          }}
          onMouseLeave={() => setOver(null)}
          onClick={(e) => {
            const bar = barAt(e);
            if (bar) zoomTo(bar.path);
          }}
        />
        <p class="hint">Click a frame or press Enter to zoom in, Esc to zoom out; the arrow keys move between frames. Width is the share; a frame's calls are below it.</p>
      </div>
      {over && <FrameTip at={over.at} frame={over.bar.frame} of={root.value} unit={unit} />}
    </section>
  );
}

/** The frame that is zoomed to, or that the arrow keys have led to. */
function Said({ frame, of, unit, id }: { frame: FlameFrame; of: number; unit: string; id: string | null }) {
  return (
    <p class="says" aria-live="polite">
      <b>{frame.name}</b> <span class="num">{withUnit(frame.value, unit)}</span>, <span class="num">{withUnit(of ? frame.value / of : 0, "share")}</span> of the total,{" "}
      <span class="num">{withUnit(selfOf(frame), unit)}</span> in the frame itself <Where frame={frame} />{" "}
      {frame.module && id !== null && <a href={hrefTo(id, "graph", { module: frame.module })}>in the graph</a>}
    </p>
  );
}

function FrameTip({ at, frame, of, unit }: { at: TipAt; frame: FlameFrame; of: number; unit: string }) {
  return (
    <Tip at={at}>
      <b>{frame.name}</b>
      <dl>
        <dt>total</dt>
        <dd class="num">
          {withUnit(frame.value, unit)}, {withUnit(of ? frame.value / of : 0, "share")}
        </dd>
        <dt>self</dt>
        <dd class="num">{withUnit(selfOf(frame), unit)}</dd>
      </dl>
      <Where frame={frame} />
    </Tip>
  );
}

function Where({ frame }: { frame: FlameFrame }) {
  if (!frame.file) return null;
  return <span class="where">{typeof frame.line === "number" ? `${frame.file}:${frame.line}` : frame.file}</span>;
}

function isHit(bar: Bar, found: string): boolean {
  return bar.frame.name.toLowerCase().includes(found);
}

function draw(context: CanvasRenderingContext2D, width: number, shown: Bar[], over: Bar | null, found: string, dark: boolean): void {
  context.font = FONT;
  context.textBaseline = "middle";
  for (const bar of shown) {
    const [x, wide, y] = [bar.left * width, bar.width * width, bar.depth * TALL];
    const hit = found !== "" && isHit(bar, found);
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
