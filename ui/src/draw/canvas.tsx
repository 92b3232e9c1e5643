// A canvas as sharp as the screen, drawn again when its size, the theme or the data change.
import type { CanvasHTMLAttributes } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useTheme } from "../theme";

export const MONO = '11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'; // for numbers along axes

export type Paint = (context: CanvasRenderingContext2D, width: number, height: number) => void;

interface Props extends Omit<CanvasHTMLAttributes<HTMLCanvasElement>, "ref" | "height"> {
  paint: Paint; // a new function means: draw again
  height?: number; // CSS pixels; without it the canvas fills its box
  label: string; // what a screen reader says
}

export function Canvas({ paint, height, label, ...rest }: Props) {
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(paint);
  const theme = useTheme();
  latest.current = paint;
  useEffect(() => {
    const canvas = ref.current;
    if (!canvas) return;
    const observer = new ResizeObserver(() => draw(canvas, latest.current));
    observer.observe(canvas);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const frame = requestAnimationFrame(() => ref.current && draw(ref.current, latest.current));
    return () => cancelAnimationFrame(frame);
  }, [paint, theme, height]);
  const style = height === undefined ? { width: "100%", height: "100%" } : { width: "100%", height: `${height}px` };
  return <canvas ref={ref} role="img" aria-label={label} style={{ display: "block", ...style }} {...rest} />;
}

function draw(canvas: HTMLCanvasElement, paint: Paint): void {
  const box = canvas.getBoundingClientRect();
  if (!box.width || !box.height) return;
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, box.width, box.height);
  paint(context, box.width, box.height);
}

/** Where on the canvas the pointer is, in CSS pixels. */
export function pointOn(event: MouseEvent): [number, number] {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** Text cut to a width, with an ellipsis: the middle is cut, or the beginning where the end says most. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number, cutting: "middle" | "beginning" = "middle"): string {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  const cut = (keep: number) => cutting === "beginning" ? `\u2026${text.slice(text.length - keep)}` : `${text.slice(0, Math.ceil(keep / 2))}\u2026${text.slice(text.length - Math.floor(keep / 2))}`;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (context.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? cut(low) : "";
}
