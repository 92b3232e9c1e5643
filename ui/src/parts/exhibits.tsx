// The samples that a finding is about, drawn as what they are.
import { useEffect, useRef } from "preact/hooks";
import { digits } from "../format";
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

export function Wave({ values }: { values: number[] }) {
  const most = values.reduce((a, v) => Math.max(a, Math.abs(v)), 1e-12);
  const points = values.map((v, n) => `${((200 * n) / Math.max(values.length - 1, 1)).toFixed(1)},${(30 - (28 * v) / most).toFixed(1)}`);
  return (
    <svg class="wave" viewBox="0 0 200 60" width="100%" height="60" preserveAspectRatio="none" role="img" aria-label={`waveform, peak ${digits(most)}`}>
      <polyline points={points.join(" ")} fill="none" stroke="var(--series-0)" stroke-width="1" />
    </svg>
  );
}
