// Results of all runs on one line each: how far they are apart, and how much of that is the noise of each.
import { type Metric, noisy, placesOf } from "../draw/compared";
import { digits, plural } from "../format";
import { RunHeads, type Shared } from "./compare";

export function Spread({ data, names, pass, chosen, pick }: Shared) {
  const rows = data.metrics.filter((m) => m.spread !== null);
  if (!rows.length) return null;
  return (
    <section class="panel" id="spread">
      <header>
        <h3>Results with standard deviation</h3>
        <span class="soft">mean of the last tenth of each run, ± its standard deviation</span>
      </header>
      <div class="scroll-x">
        <table class="list">
          <thead>
            <tr>
              <th>result</th>
              <th>runs</th>
              <RunHeads names={names} right />
              <th class="right">between runs</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((m) => (
              <tr>
                <td>{m.name}</td>
                <td>
                  <Dots metric={m} pass={pass} ids={data.runs.map((r) => r.id)} chosen={chosen} pick={pick} />
                </td>
                {m.values.map((cell, i) => (
                  <td class="right num" style={{ opacity: pass[i] ? 1 : 0.35 }} title={cell ? `last ${cell.last} at step ${cell.step}; lowest ${cell.min}, highest ${cell.max}; mean of ${plural(cell.tail, "point")}` : ""}>
                    {cell ? noisy(cell) : "\u2013"}
                  </td>
                ))}
                <td class="right num">{m.spread && m.spread.n > 1 ? `${digits(m.spread.mean)} ± ${digits(m.spread.std)}` : "\u2013"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Dots({ metric, pass, ids, chosen, pick }: { metric: Metric; pass: boolean[]; ids: string[]; chosen: string; pick: (id: string) => void }) {
  const x = (place: number) => 6 + place * 118;
  return (
    <div class="spread">
      <svg viewBox="0 0 130 16" role="img" aria-label={`position of the runs between the lowest and the highest ${metric.name}`}>
        <line x1="6" x2="124" y1="8" y2="8" stroke="var(--line)" />
        {placesOf(metric).map(
          (p, i) =>
            p && (
              <g opacity={pass[i] ? 1 : 0.25} onClick={() => pick(ids[i]!)}>
                <line x1={x(p.from)} x2={x(p.to)} y1="8" y2="8" stroke={`var(--series-${i % 8})`} stroke-width="3" opacity="0.45" />
                <circle cx={x(p.at)} cy="8" r={ids[i] === chosen ? 5.5 : 4} fill={`var(--series-${i % 8})`} />
              </g>
            ),
        )}
      </svg>
    </div>
  );
}
