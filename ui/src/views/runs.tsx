// All runs: what state each is in, what is wrong with it, and which to look at or to compare.
import { useEffect, useRef, useState } from "preact/hooks";
import { inlined, isReport, useApi } from "../api";
import { ago, moment, plural, seconds, whole } from "../format";
import { useKeys } from "../keys";
import { rowsAreKnown, useLive } from "../live";
import { Frame } from "../parts/frame";
import { Mark, RunState } from "../parts/mark";
import { Num } from "../parts/num";
import { ReportNote } from "../parts/report_note";
import { Await, Empty } from "../parts/states";
import { go, hrefTo, useParam } from "../state";
import type { ReportInfo, RunList, RunRow } from "../types";
import { type Column, COLUMNS, differing, matches, sorted } from "./runs_table";
import "./runs.css";

const MOST = 300; // rows drawn at first

export function RunsPage() {
  const known = useRef<RunList | undefined>(undefined);
  const live = useLive("events", (news) => rowsAreKnown(news, known.current?.runs));
  const list = useApi<RunList>("runs", {}, live.version);
  known.current = list.data;
  useEffect(() => {
    document.title = "Runs \u2013 Clew";
  }, []);
  return (
    <Frame crumb={list.data && <span class="faint mono">{list.data.dir}</span>}>
      {!live.connected && <p class="offline">The server does not respond; this is the last known state.</p>}
      {isReport && <ReportNote report={inlined?.["report"] as ReportInfo} />}
      <Await of={list} what="the runs">
        {(data) => (data.runs.length ? <Runs list={data} /> : <NoRuns dir={data.dir} />)}
      </Await>
    </Frame>
  );
}

function NoRuns({ dir }: { dir: string }) {
  return (
    <Empty title="No runs yet">
      <p>
        Record one, and it appears here while it trains: <code>clew run train.py</code>
      </p>
      <p class="faint">
        Looking in <code>{dir}</code>
      </p>
    </Empty>
  );
}

function Runs({ list }: { list: RunList }) {
  const [search, setSearch] = useParam("search");
  const [order, setOrder] = useParam("sort", "-started");
  const [picked, setPicked] = useParam("select");
  const [all, setAll] = useState(false);
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const selected = new Set(picked.split(",").filter(Boolean));
  const found = sorted(list.runs.filter((run) => matches(run, search)), order);
  const shown = all ? found : found.slice(0, MOST);
  const current = Math.min(at, shown.length - 1);
  const toggle = (id: string) => {
    if (!selected.delete(id)) selected.add(id);
    setPicked([...selected].join(","));
  };
  const compare = () => {
    if (selected.size > 1) go({ at: "compare", params: { runs: [...selected].join(",") } });
  };
  const move = (by: number) => setAt(Math.max(0, Math.min(shown.length - 1, current + by)));
  useKeys([
    { keys: ["/"], says: "filter the runs", act: () => field.current?.focus() },
    { keys: ["Escape"], says: "clear the filter and leave the field", typing: true, act: () => (field.current?.blur(), setSearch("")) },
    { keys: ["ArrowDown", "j"], says: "next run", act: () => move(1) },
    { keys: ["ArrowUp", "k"], says: "previous run", act: () => move(-1) },
    { keys: ["Enter"], says: "open the run", act: () => shown[current] && go({ at: "run", run: shown[current].id, tab: "verdict", params: {} }) },
    { keys: ["x"], says: "select the run for comparison", act: () => shown[current] && toggle(shown[current].id) },
    { keys: ["c"], says: "compare the selected runs", act: compare },
  ]);
  return (
    <div class="runs stack">
      <div class="bar">
        <input ref={field} class="grow" type="search" placeholder="Filter by name, script, state, finding or setting ( / )" value={search} onInput={(e) => setSearch(e.currentTarget.value)} aria-label="Filter the runs" />
        <span class="soft" role="status">
          {search ? `${whole(found.length)} of ` : ""}
          {plural(list.runs.length, "run")}
        </span>
        {selected.size > 0 && (
          <button type="button" class="plain" onClick={() => setPicked("")}>
            Clear selection
          </button>
        )}
        <button type="button" class={selected.size > 1 ? "primary" : ""} disabled={selected.size < 2} onClick={compare} title="Select two or more runs">
          Compare{selected.size ? ` ${selected.size}` : ""}
        </button>
      </div>
      {shown.length === 0 ? (
        <Empty title="No matching run">
          <button type="button" onClick={() => setSearch("")}>
            Show all
          </button>
        </Empty>
      ) : (
        <div class="card flush scroll-x">
          <table class="list">
            <thead>
              <tr>
                <th aria-label="Selected" />
                {COLUMNS.map((column) => (
                  <Head column={column} order={order} set={setOrder} />
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((run, i) => (
                <Row key={run.id} run={run} now={list.now} current={i === current} selected={selected.has(run.id)} toggle={toggle} settings={differing(run, list.runs)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown.length < found.length && (
        <button type="button" onClick={() => setAll(true)}>
          Show {whole(found.length - shown.length)} more
        </button>
      )}
    </div>
  );
}

function Head({ column, order, set }: { column: Column; order: string; set: (order: string) => void }) {
  const mine = order.replace(/^-/, "") === column.name;
  const falling = order.startsWith("-");
  const next = mine ? (falling ? column.name : `-${column.name}`) : column.falling ? `-${column.name}` : column.name;
  return (
    <th class={column.class} aria-sort={mine ? (falling ? "descending" : "ascending") : "none"}>
      <button type="button" class="plain" onClick={() => set(next)}>
        {column.title}
        <span aria-hidden="true">{mine ? (falling ? " \u2193" : " \u2191") : ""}</span>
      </button>
    </th>
  );
}

function Row({ run, now, current, selected, toggle, settings }: { run: RunRow; now: number; current: boolean; selected: boolean; toggle: (id: string) => void; settings: [string, unknown][] }) {
  const line = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (current && document.activeElement === document.body) line.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <tr ref={line} class={current ? "current" : ""} data-run={run.id}>
      <td>
        <input type="checkbox" checked={selected} onChange={() => toggle(run.id)} aria-label={`Select ${run.id}`} />
      </td>
      <td class="name">
        <a href={hrefTo(run.id, "verdict")}>{run.name || run.script || run.id}</a>
        <div class="faint mono id">{run.id}</div>
        {settings.length > 0 && (
          <div class="settings">
            {settings.map(([name, value]) => (
              <span>
                {name} <b class="num">{String(value)}</b>
              </span>
            ))}
          </div>
        )}
      </td>
      <td>
        <RunState state={run.state} />
        {!!run.damage?.length && (
          <div class="damaged" title={run.damage.join("\n")}>
            damaged
          </div>
        )}
      </td>
      <td class="cause">
        <Cause run={run} />
      </td>
      <td class="right">
        <span class="num">{whole(run.steps)}</span>
      </td>
      <td class="right">
        <Num value={run.last_loss} />
      </td>
      <td class="right wide-only metrics">
        {Object.entries(run.metrics ?? {}).slice(0, 2).map(([name, value]) => (
          <div>
            <span class="faint">{name}</span> <Num value={value} />
          </div>
        ))}
      </td>
      <td class="right wide-only">
        <span class="num">{run.duration === null ? "\u2013" : seconds(run.duration)}</span>
      </td>
      <td class="wide-only when" title={moment(run.started)}>
        {ago(run.started, now)}
      </td>
    </tr>
  );
}

function Cause({ run }: { run: RunRow }) {
  if (run.error) return <span class="error-text">{run.error}</span>;
  if (run.root_cause)
    return (
      <a class="plain-link" href={hrefTo(run.id, "verdict")}>
        <Mark severity={run.root_cause.severity} /> <b>{run.root_cause.check}</b> <span class="soft">{run.root_cause.message}</span>
      </a>
    );
  if (run.verdict === "pending") return <span class="faint">checking…</span>;
  if (run.verdict === "failed") return <span class="faint">checks failed</span>;
  if (run.verdict === "none") return <span class="faint">nothing to check yet</span>;
  return <span class="nothing">nothing found</span>;
}

