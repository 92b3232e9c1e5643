// Memory: what the tensors are for, how they come and go in a step, and what the processes hold.
import { useCallback } from "preact/hooks";
import { Canvas, MONO } from "../draw/canvas";
import type { Process, Profile } from "../draw/profile";
import { ticks } from "../draw/scale";
import { withUnit } from "../format";
import { SortedTable, type TableColumn } from "../parts/sorted_table";
import { colour } from "../theme";

export function ProfileMemory({ profile }: { profile: Profile }) {
  return (
    <>
      {(profile.kinds.length > 0 || profile.timeline.length > 1) && (
        <section class="panel" id="memory">
          <header>
            <h3>Tensor memory</h3>
            {profile.peak !== null && (
              <span class="soft">
                <b class="num">{withUnit(profile.peak, "B")}</b> at the peak of a step
              </span>
            )}
          </header>
          <div class="inside columns">
            {profile.kinds.length > 0 && <Kinds profile={profile} />}
            {profile.timeline.length > 1 && <Timeline points={profile.timeline} />}
          </div>
        </section>
      )}
      {profile.growth && <div class="notice growth">Memory grows in every step: {profile.growth}</div>}
      <SortedTable id="processes" title="Processes" note="PSS counts shared pages in part, USS not at all" rows={profile.processes} columns={PROCESSES} by="rss" />
    </>
  );
}

function Kinds({ profile }: { profile: Profile }) {
  const whole = Math.max(profile.peak ?? 0, profile.kinds.reduce((sum, kind) => sum + kind.size, 0));
  return (
    <div class="bars">
      {profile.kinds.map(({ name, size }) => (
        <>
          <span>{name}</span>
          <span class="track">
            <i style={{ width: `${(100 * size) / whole}%` }} />
          </span>
          <span class="num">
            {withUnit(size, "B")}, {withUnit(size / whole, "share")}
          </span>
        </>
      ))}
    </div>
  );
}

const LEFT = 66;
const BELOW = 20;

function Timeline({ points }: { points: [number, number][] }) {
  const paint = useCallback((context: CanvasRenderingContext2D, width: number, height: number) => draw(context, width, height, points), [points]);
  return <Canvas paint={paint} height={150} label="tensor memory over one step" />;
}

function draw(context: CanvasRenderingContext2D, width: number, height: number, points: [number, number][]): void {
  const tall = height - BELOW;
  const [first, last] = [points[0]![0], points[points.length - 1]![0]];
  const top = Math.max(...points.map(([, held]) => held), 1);
  const x = (at: number) => LEFT + ((width - LEFT - 4) * (at - first)) / Math.max(last - first, 1e-12);
  const y = (held: number) => tall - (Math.max(held, 0) / top) * (tall - 8);
  context.font = MONO;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of ticks("linear", 0, top, 3)) {
    context.fillStyle = colour("grid");
    context.fillRect(LEFT, y(tick), width - LEFT, 1);
    context.fillStyle = colour("soft");
    context.fillText(withUnit(tick, "B"), LEFT - 6, Math.max(y(tick), 7));
  }
  context.beginPath();
  context.moveTo(x(first), tall);
  points.forEach(([at, held], i) => {
    if (i) context.lineTo(x(at), y(points[i - 1]![1])); // it holds until it changes
    context.lineTo(x(at), y(held));
  });
  context.strokeStyle = colour("series-0");
  context.stroke();
  context.lineTo(x(last), tall);
  context.globalAlpha = 0.18;
  context.fillStyle = colour("series-0");
  context.fill();
  context.globalAlpha = 1;
  context.fillStyle = colour("soft");
  context.textBaseline = "alphabetic";
  context.fillText(withUnit(last - first, "s"), width - 4, height - 4);
  context.textAlign = "left";
  context.fillText("a step", LEFT, height - 4);
}

const PROCESSES: TableColumn<Process>[] = [
  { name: "role", title: "process" },
  { name: "pid", title: "pid", draw: (row) => <span class="num faint">{row.pid}</span> },
  { name: "rss", title: "RSS", unit: "B" },
  { name: "pss", title: "PSS", unit: "B" },
  { name: "uss", title: "USS", unit: "B" },
  { name: "slope", title: "growth per step", unit: "B" },
  { name: "readings", title: "over the run", draw: (row) => <Spark points={row.readings} /> },
];

/** A line of what was held at each reading, from nothing to the most. */
function Spark({ points }: { points: [number, number][] }) {
  if (points.length < 2) return null;
  const held = points.map(([, value]) => value);
  const [low, high] = [Math.min(...held), Math.max(...held)];
  const [first, last] = [points[0]![0], points[points.length - 1]![0]];
  const place = ([step, value]: [number, number]) => `${((100 * (step - first)) / Math.max(last - first, 1)).toFixed(1)},${(20 - (18 * (value - low)) / Math.max(high - low, 1)).toFixed(1)}`;
  return (
    <svg class="spark" viewBox="0 0 100 22" preserveAspectRatio="none" role="img" aria-label={`from ${withUnit(held[0], "B")} to ${withUnit(held[held.length - 1], "B")}`}>
      <polyline points={points.map(place).join(" ")} />
    </svg>
  );
}
