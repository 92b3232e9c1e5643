// Where the time and the memory go: over the steps of the run, inside one step, and by module.
import { useMemo, useState } from "preact/hooks";
import { ofRun, useApi } from "../api";
import type { Frame } from "../draw/flame";
import { sortedBy } from "../draw/sorting";
import { digits, withUnit } from "../format";
import { Await, Empty } from "../parts/states";
import { hrefTo } from "../state";
import type { SeriesAnswer } from "../types";
import { Breakdown } from "./breakdown";
import { Flame } from "./flame";
import type { ViewProps } from "./view";
import "./views.css";

export interface ModuleTime {
  module: string;
  class?: string;
  calls?: number;
  forward?: number;
  backward?: number;
  self?: number;
  memory?: number;
  flops?: number;
}

interface Profile {
  steps?: [number, number];
  flame?: { unit: string; root: Frame };
  memory?: { unit: string; root: Frame };
  modules?: ModuleTime[];
  recommendations?: { text: string; gain?: number }[];
}

interface Answer {
  steps?: { unit: string; parts: { name: string; key: string | null }[]; total: string | null };
  profile?: Profile | null;
  missing?: string | null;
}

export function ProfileView({ id, version }: ViewProps) {
  const answer = useApi<Answer>(ofRun(id, "profile"), {}, version);
  return (
    <div class="stack">
      <Await of={answer} what="the profile">
        {(data) => (
          <>
            <Steps id={id} data={data} version={version} />
            {data.profile ? <Recorded id={id} profile={data.profile} /> : <NoProfile how={data.missing} />}
          </>
        )}
      </Await>
    </div>
  );
}

function NoProfile({ how }: { how: string | null | undefined }) {
  return (
    <section class="panel">
      <Empty title="No step was profiled in detail">
        <p>{how ?? "The times above are recorded in every run."}</p>
      </Empty>
    </section>
  );
}

function Steps({ id, data, version }: { id: string; data: Answer; version: number }) {
  const parts = (data.steps?.parts ?? []).filter((p): p is { name: string; key: string } => Boolean(p.key));
  const [range, setRange] = useState<[number, number] | null>(null);
  const query = { keys: parts.map((p) => p.key).join(), points: 400, from: range?.[0], to: range?.[1] };
  const series = useApi<SeriesAnswer>(parts.length ? ofRun(id, "series") : null, query, version);
  if (!parts.length) return <Empty title="No step was timed yet" />;
  return (
    <section class="panel">
      <header>
        <h3>Time of a step</h3>
        <span class="soft">stacked, over the run</span>
        <span class="grow" />
        {range && (
          <button type="button" onClick={() => setRange(null)}>
            Whole run
          </button>
        )}
        {data.steps?.total && <a href={hrefTo(id, "charts", { keys: data.steps.total })}>as a chart</a>}
      </header>
      <div class="inside">
        <Await of={series} what="the times">
          {(answer) => <Breakdown parts={parts} answer={answer} onZoom={setRange} />}
        </Await>
      </div>
    </section>
  );
}

function Recorded({ id, profile }: { id: string; profile: Profile }) {
  const [first, last] = profile.steps ?? [null, null];
  return (
    <>
      {(profile.recommendations ?? []).map((r) => (
        <div class="notice">
          <span>{r.text}</span>
          {r.gain !== undefined && <span class="num">{withUnit(r.gain, "share")} faster</span>}
        </div>
      ))}
      {profile.flame && <Flame name="time" title="Time inside a step" note={first === null ? "" : `mean of steps ${digits(first)} to ${digits(last)}`} root={profile.flame.root} unit={profile.flame.unit} id={id} />}
      {profile.memory && <Flame name="memory" title="Memory at the peak" note="" root={profile.memory.root} unit={profile.memory.unit} id={id} />}
      {profile.modules && profile.modules.length > 0 && <Modules id={id} rows={profile.modules} />}
    </>
  );
}

const COLUMNS: { name: keyof ModuleTime; title: string; unit: string }[] = [
  { name: "calls", title: "calls", unit: "count" },
  { name: "forward", title: "forward", unit: "s" },
  { name: "backward", title: "backward", unit: "s" },
  { name: "self", title: "own time", unit: "s" },
  { name: "memory", title: "memory", unit: "B" },
  { name: "flops", title: "FLOPs", unit: "FLOPs" },
];

function Modules({ id, rows }: { id: string; rows: ModuleTime[] }) {
  const columns = COLUMNS.filter((c) => rows.some((row) => row[c.name] !== undefined && row[c.name] !== null));
  const [by, setBy] = useState<keyof ModuleTime>(columns.some((c) => c.name === "self") ? "self" : (columns[0]?.name ?? "module"));
  const [down, setDown] = useState(true);
  const [most, setMost] = useState(100);
  const sorted = useMemo(() => sortedBy(rows, by, down), [rows, by, down]);
  const top = Math.max(...rows.map((row) => Number(row[by]) || 0), 1e-30);
  const pick = (name: keyof ModuleTime) => (name === by ? setDown(!down) : (setBy(name), setDown(name !== "module")));
  return (
    <section class="panel">
      <header>
        <h3>By module</h3>
      </header>
      <div class="scroll-x">
        <table class="list" id="modules">
          <thead>
            <tr>
              <Head name="module" title="module" by={by} down={down} pick={pick} />
              {columns.map((c) => (
                <Head name={c.name} title={c.title} by={by} down={down} pick={pick} right />
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, most).map((row) => (
              <tr>
                <td>
                  <a class="mono" href={hrefTo(id, "graph", { module: row.module })}>
                    {row.module || "(model)"}
                  </a>{" "}
                  <span class="faint">{row.class}</span>
                </td>
                {columns.map((c) => (
                  <td class="right bar-cell">
                    {c.name === by && <i style={{ width: `${(100 * (Number(row[by]) || 0)) / top}%` }} />}
                    <span class="num">{withUnit(row[c.name] as number | undefined, c.unit)}</span>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > most && (
        <div class="inside">
          <button type="button" onClick={() => setMost(most + 500)}>
            More ({digits(rows.length - most)})
          </button>
        </div>
      )}
    </section>
  );
}

interface HeadProps {
  name: keyof ModuleTime;
  title: string;
  by: keyof ModuleTime;
  down: boolean;
  pick: (name: keyof ModuleTime) => void;
  right?: boolean;
}

function Head({ name, title, by, down, pick, right }: HeadProps) {
  const sort = name === by ? (down ? "descending" : "ascending") : "none";
  return (
    <th class={right ? "sorts right" : "sorts"} aria-sort={sort} onClick={() => pick(name)}>
      {title} {name === by ? (down ? "\u2193" : "\u2191") : ""}
    </th>
  );
}
