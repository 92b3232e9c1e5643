// The samples that a finding is about, drawn as what they are.
import { useEffect, useRef } from "preact/hooks";
import { digits } from "../format";
import { colour, useTheme } from "../theme";
import type { Exhibit } from "../types";

const LARGEST = 128; // px of a picture's longer side on screen
const MOST_PIXELS = 1 << 20;

export function Exhibits({ exhibits }: { exhibits: Exhibit[] }) {
  if (exhibits.length === 0) return null;
  return (
    <section>
      <h3>Samples</h3>
      <div class="exhibits">
        {exhibits.map((exhibit) => (
          <figure>
            <Sample exhibit={exhibit} />
            <figcaption>{exhibit.caption}</figcaption>
          </figure>
        ))}
      </div>
    </section>
  );
}

function Sample({ exhibit: { kind, data } }: { exhibit: Exhibit }) {
  if (kind === "image" && isPicture(data)) return <Picture rows={data} />;
  if (kind === "wave" && isNumbers(data)) return <Wave values={data} />;
  if (isNumbers(data)) return <pre class="num">{data.slice(0, 64).map((value) => digits(value)).join("  ")}</pre>;
  return <pre>{typeof data === "string" ? data : JSON.stringify(data)}</pre>;
}

type Pixel = number | number[];

function isPicture(data: unknown): data is Pixel[][] {
  return Array.isArray(data) && data.length > 0 && data.every(Array.isArray) && data.length * (data[0] as unknown[]).length <= MOST_PIXELS;
}

function isNumbers(data: unknown): data is number[] {
  return Array.isArray(data) && data.every((value) => typeof value === "number");
}

function Picture({ rows }: { rows: Pixel[][] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [height, width] = [rows.length, rows[0]!.length];
  const scale = LARGEST / Math.max(width, height, 1);
  useEffect(() => {
    const ctx = canvas.current?.getContext("2d");
    if (!ctx || !width) return;
    const image = ctx.createImageData(width, height);
    rows.flat().forEach((pixel, i) => {
      const [r, g, b] = Array.isArray(pixel) ? pixel : [pixel, pixel, pixel];
      image.data.set([Number(r), Number(g ?? r), Number(b ?? r), 255], 4 * i);
    });
    ctx.putImageData(image, 0, 0);
  }, [rows]);
  return <canvas ref={canvas} width={width} height={height} style={{ width: `${width * scale}px`, height: `${height * scale}px` }} />;
}

function Wave({ values }: { values: number[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const ctx = canvas.current?.getContext("2d");
    if (!ctx) return;
    const { width, height } = ctx.canvas;
    const most = values.reduce((a, v) => Math.max(a, Math.abs(v)), 0) || 1;
    ctx.clearRect(0, 0, width, height);
    ctx.strokeStyle = colour("series-0");
    ctx.beginPath();
    values.forEach((value, i) => ctx.lineTo((i / Math.max(1, values.length - 1)) * width, height / 2 - (value / most) * (height / 2 - 2)));
    ctx.stroke();
  }, [values, theme]);
  return <canvas ref={canvas} width={200} height={60} />;
}
