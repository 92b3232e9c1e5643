// Runs side by side: curves, settings, results with their noise, findings. A selection applies to all of them.
import { useMemo } from "preact/hooks";
import { useApi } from "../api";
import { type Compared, namesOf, plain, sortedRuns, tableOf } from "../draw/compared";
import { axisOver, type Brushes, passing, readBrushes, type Value, valueText, writeBrushes } from "../draw/parallel";
import { plural } from "../format";
import { useLive } from "../live";
import { Frame } from "../parts/frame";
import { isSeverity, Mark, RunState } from "../parts/mark";
import { Await, Empty } from "../parts/states";
import { hrefTo, setParams, usePlace, useParam } from "../state";
import { Overlays } from "./compare_curves";
import { Parallel } from "./parallel";
import { Spread } from "./spread";
import "./views.css";

export function ComparePage({ runs }: { runs: string[] }) {
  const live = useLive("events");
  return (
    <Frame crumb={`Compare ${plural(runs.length, "run")}`}>
      <CompareView runs={runs} version={live.version} />
    </Frame>
  );
}

function CompareView({ runs, version }: { runs: string[]; version: number }) {
  const answer = useApi<Compared>(runs.length > 1 ? "compare" : null, { runs: runs.join(",") }, version);
  if (runs.length < 2)
    return (
      <Empty title="Choose two or more runs to compare">
        <p>
          <a href="#/">All runs</a>: select those you want to compare.
        </p>
      </Empty>
    );
  return (
    <Await of={answer} what="the runs">
      {(data) => <Side data={data} version={version} />}
    </Await>
  );
}

function Side({ data, version }: { data: Compared; version: number }) {
  const { params } = usePlace();
  const [chosen, setChosen] = useParam("pick");
  const names = useMemo(() => namesOf(data.runs), [data]);
  const table = useMemo(() => tableOf(data), [data]);
  const axes = useMemo(() => table.columns.map((name) => axisOver(name, table.rows.map((row) => row[name] ?? null))), [table]);
  const brushes = useMemo(() => readBrushes(params["brush"] ?? ""), [params["brush"]]);
  const pass = useMemo(() => passing(axes, table.rows, brushes), [axes, table, brushes]);
  const setBrushes = (next: Brushes) => setParams({ brush: writeBrushes(next) });
  const pick = (id: string) => setChosen(id === chosen ? "" : id);
  const kept = pass.filter(Boolean).length;
  const shared = { data, names, pass, chosen, pick };
  return (
    <div class="compare stack">
      {kept < data.runs.length && (
        <div class="notice">
          <span>
            {kept} of {plural(data.runs.length, "run")} in the selected ranges
          </span>
          <button type="button" onClick={() => setBrushes({})}>
            All runs
          </button>
        </div>
      )}
      <Overlays {...shared} version={version} />
      {axes.length > 1 && <Parallel axes={axes} rows={table.rows} results={table.results} brushes={brushes} setBrushes={setBrushes} {...shared} />}
      <Settings {...shared} columns={table.columns} rows={table.rows} results={table.results} />
      <Spread {...shared} />
      <Findings {...shared} />
      <Rest data={data} names={names} />
    </div>
  );
}

export interface Shared {
  data: Compared;
  names: string[];
  pass: boolean[];
  chosen: string;
  pick: (id: string) => void;
}

function Swatch({ at }: { at: number }) {
  return <i class="swatch" style={{ background: `var(--series-${at % 8})` }} />;
}

/** A heading for each run, with its colour. */
export function RunHeads({ names, right = false }: { names: string[]; right?: boolean }) {
  return (
    <>
      {names.map((name, i) => (
        <th class={right ? "right" : undefined}>
          <Swatch at={i} />
          {name}
        </th>
      ))}
    </>
  );
}

function Settings({ data, names, pass, chosen, pick, columns, rows, results }: Shared & { columns: string[]; rows: Record<string, Value>[]; results: Set<string> }) {
  const [by, setBy] = useParam("sort");
  const column = by.replace(/^-/, "");
  const order = useMemo(() => sortedRuns(rows, by), [rows, by]);
  return (
    <section class="panel" id="settings">
      <header>
        <h3>Settings and results</h3>
        <span class="soft">settings that differ, and the last values of results</span>
      </header>
      <div class="scroll-x">
        <table class="list">
          <thead>
            <tr>
              <th>run</th>
              <th>state</th>
              {columns.map((name) => (
                <th class="sorts right" aria-sort={name !== column ? "none" : by.startsWith("-") ? "descending" : "ascending"} onClick={() => setBy(by === name ? `-${name}` : name)}>
                  {name} {results.has(name) ? "" : "(set)"} {name === column ? (by.startsWith("-") ? "\u2193" : "\u2191") : ""}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.map((i) => {
              const run = data.runs[i]!;
              return (
                <tr data-dim={pass[i] ? "0" : "1"} data-chosen={run.id === chosen ? "1" : "0"} onClick={() => pick(run.id)}>
                  <td>
                    <Swatch at={i} />
                    <a href={hrefTo(run.id, "verdict")} onClick={(e) => e.stopPropagation()}>
                      {names[i]}
                    </a>
                  </td>
                  <td>
                    <RunState state={run.state} />
                  </td>
                  {columns.map((name) => (
                    <td class="right num">{valueText(rows[i]![name])}</td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Findings({ data, names, pass }: Shared) {
  if (!data.findings.length)
    return (
      <section class="panel">
        <Empty title="No findings in any of these runs" />
      </section>
    );
  return (
    <section class="panel" id="findings">
      <header>
        <h3>Findings</h3>
      </header>
      <div class="scroll-x">
        <table class="list">
          <thead>
            <tr>
              <th>check</th>
              <RunHeads names={names} />
            </tr>
          </thead>
          <tbody>
            {data.findings.map((row) => (
              <tr>
                <td class="mono">{row.check}</td>
                {row.runs.map((cell, i) => (
                  <td style={{ opacity: pass[i] ? 1 : 0.35 }}>
                    {cell ? (
                      <a href={hrefTo(data.runs[i]!.id, "verdict", { finding: String(cell.index) })}>
                        {isSeverity(cell.severity) && <Mark severity={cell.severity} word />} {cell.message}
                      </a>
                    ) : (
                      <span class="faint">not found</span>
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Everything that was set, and the versions: those that differ are marked, equal ones can be shown too. */
function Rest({ data, names }: { data: Compared; names: string[] }) {
  const [all, setAll] = useParam("same");
  const rows = [...data.config, ...data.versions].filter((row) => all === "1" || !row.same);
  const alike = [...data.config, ...data.versions].filter((row) => row.same).length;
  return (
    <section class="panel" id="configuration">
      <header>
        <h3>Configuration</h3>
        <span class="soft">{plural(rows.filter((r) => !r.same).length, "difference")}</span>
        {alike > 0 && (
          <label>
            <input type="checkbox" checked={all === "1"} onChange={(e) => setAll(e.currentTarget.checked ? "1" : "")} /> also show the {alike} that are equal
          </label>
        )}
      </header>
      {rows.length === 0 ? (
        <Empty title="These runs have the same configuration" />
      ) : (
        <div class="scroll-x">
          <table class="list">
            <thead>
              <tr>
                <th>name</th>
                <RunHeads names={names} />
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  <td class="mono">{row.name}</td>
                  {row.values.map((value) => (
                    <td class={row.same ? "num" : "num differs"}>{valueText(plain(value))}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
