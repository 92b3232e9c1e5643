// The parts of each step, stacked over the run.
import { useCallback, useMemo, useState } from "preact/hooks";
import { Canvas, MONO, pointOn } from "../draw/canvas";
import { PART_NAMES } from "../draw/profile";
import { ticks } from "../draw/scale";
import { robustTop, shares, type Stack, stacked } from "../draw/stack";
import { digits, withUnit } from "../format";
import { Tip, type TipAt } from "../parts/tip";
import { colour } from "../theme";
import type { SeriesAnswer } from "../types";

const COLOURS: Record<string, string> = { data: "series-1", forward: "series-0", backward: "series-5", optimizer: "series-2", rest: "faint", clew: "series-3" };
const LEFT = 62;
const BELOW = 24;

interface Props {
  parts: { name: string; key: string }[];
  answer: SeriesAnswer;
  onZoom: (range: [number, number]) => void;
}

export function Breakdown({ parts, answer, onZoom }: Props) {
  const stack = useMemo(() => stacked(parts.map((p) => ({ name: p.name, part: answer.series.find((s) => s.key === p.key && !s.missing) }))), [answer]);
  const [over, setOver] = useState<{ at: TipAt; index: number } | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const top = useMemo(() => robustTop(stack.total), [stack]);
  const paint = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => draw(context, width, height, stack, top, over?.index ?? null, drag),
    [stack, top, over?.index, drag],
  );
  const place = (event: MouseEvent): number => {
    const [x] = pointOn(event);
    const width = (event.currentTarget as HTMLElement).getBoundingClientRect().width;
    return Math.min(stack.x.length - 1, Math.max(0, Math.floor(((x - LEFT) / (width - LEFT)) * stack.x.length)));
  };
  const up = () => {
    if (drag && drag[0] !== drag[1]) onZoom([stack.x[Math.min(...drag)]!, stack.x[Math.max(...drag)]!]);
    setDrag(null);
  };
  const whole = shares(stack);
  return (
    <>
      <p class="key-list" id="shares">
        {whole.map(({ name, share, mean }) => (
          <span>
            <i style={{ background: `var(--${COLOURS[name] ?? "series-4"})` }} />
            {PART_NAMES[name] ?? name} <b class="num">{withUnit(share, "share")}</b> <span class="num faint">{withUnit(mean, "s")}</span>
          </span>
        ))}
      </p>
      <Canvas
        paint={paint}
        height={230}
        label="time of each part of a step, over the run"
        onMouseDown={(e) => setDrag([place(e), place(e)])}
        onMouseMove={(e) => {
          setOver({ at: { x: e.clientX, y: e.clientY }, index: place(e) });
          if (drag) setDrag([drag[0], place(e)]);
        }}
        onMouseUp={up}
        onMouseLeave={() => (setOver(null), setDrag(null))}
      />
      {over && <Reading stack={stack} {...over} />}
    </>
  );
}

function Reading({ stack, at, index }: { stack: Stack; at: TipAt; index: number }) {
  return (
    <Tip at={at}>
      <dl>
        <dt>step</dt>
        <dd class="num">{digits(stack.x[index])}</dd>
        {stack.parts.map((p) => (
          <>
            <dt>{PART_NAMES[p.name] ?? p.name}</dt>
            <dd class="num">{withUnit(p.values[index], "s")}</dd>
          </>
        ))}
        <dt>total</dt>
        <dd class="num">{withUnit(stack.total[index], "s")}</dd>
      </dl>
    </Tip>
  );
}

function draw(context: CanvasRenderingContext2D, width: number, height: number, stack: Stack, top: number, over: number | null, drag: [number, number] | null): void {
  const tall = height - BELOW;
  const wide = (width - LEFT) / Math.max(stack.x.length, 1);
  const y = (value: number) => tall - (Math.min(value, top) / top) * (tall - 6);
  paintGrid(context, width, tall, top, y);
  const base = new Array<number>(stack.x.length).fill(0);
  for (const { name, values } of stack.parts) {
    context.fillStyle = colour(COLOURS[name] ?? "series-4");
    values.forEach((value, i) => {
      const from = base[i]!;
      base[i] = from + value;
      if (value > 0 && from < top) context.fillRect(LEFT + i * wide, y(from + value), Math.max(wide - (wide > 3 ? 0.5 : -0.3), 0.5), y(from) - y(from + value));
    });
  }
  paintCut(context, stack, top, wide);
  if (over !== null) {
    context.strokeStyle = colour("ink");
    context.strokeRect(LEFT + over * wide, 1, Math.max(wide, 1), tall - 1);
  }
  if (drag && drag[0] !== drag[1]) {
    context.globalAlpha = 0.25;
    context.fillStyle = colour("accent");
    context.fillRect(LEFT + Math.min(...drag) * wide, 0, (Math.abs(drag[1] - drag[0]) + 1) * wide, tall);
    context.globalAlpha = 1;
  }
  paintSteps(context, stack, wide, width, height);
}

/** Steps that are higher than the axis get a mark at the top: they are cut off. */
function paintCut(context: CanvasRenderingContext2D, stack: Stack, top: number, wide: number): void {
  context.fillStyle = colour("ink");
  stack.total.forEach((value, i) => {
    if (value <= top * 1.0001) return;
    const x = LEFT + (i + 0.5) * wide;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x + 4, 6);
    context.lineTo(x - 4, 6);
    context.fill();
  });
}

function paintGrid(context: CanvasRenderingContext2D, width: number, tall: number, top: number, y: (value: number) => number): void {
  context.font = MONO;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of ticks("linear", 0, top, 4)) {
    context.fillStyle = colour("grid");
    context.fillRect(LEFT, y(tick), width - LEFT, 1);
    context.fillStyle = colour("soft");
    context.fillText(withUnit(tick, "s"), LEFT - 8, Math.min(Math.max(y(tick), 7), tall));
  }
  context.textAlign = "left";
}

function paintSteps(context: CanvasRenderingContext2D, stack: Stack, wide: number, width: number, height: number): void {
  context.font = MONO;
  context.fillStyle = colour("soft");
  context.textBaseline = "alphabetic";
  context.fillText("step", 4, height - 6);
  const every = Math.max(1, Math.ceil(80 / wide));
  for (let i = 0; i < stack.x.length; i += every) {
    const x = LEFT + (i + 0.5) * wide;
    context.textAlign = x > width - 30 ? "right" : i ? "center" : "left";
    context.fillText(digits(stack.x[i]), i ? x : LEFT, height - 6);
  }
  context.textAlign = "left";
}
