// Every signal: thousands, searched by the server, drawn only where they are seen.
import { useEffect, useRef, useState } from "preact/hooks";
import { ofRun, useApi } from "../api";
import { whole } from "../format";
import { Empty } from "../parts/states";
import { useParam } from "../state";
import type { SignalList, SignalRow } from "../types";
import { ChartCard, type Frame } from "./chart_card";

const ROW = 232; // px, gap included: the height of a row of charts is fixed, so that the list knows its length
const PAGE = 200; // signals asked for at once
const BEYOND = 300; // px drawn above and below what is seen

export function AllSignals({ id, frame, search, version }: { id: string; frame: Frame; search: string; version: number }) {
  const [group, setGroup] = useParam("group");
  const box = useRef<HTMLDivElement>(null);
  const view = useWindow(box);
  const rows = useSignals(id, search, group, view.first * view.columns, view.last * view.columns, version);
  const count = Math.ceil(rows.total / view.columns);
  return (
    <section aria-label="All signals">
      <h2 class="chapter">
        {search ? "Found" : "All signals"} <span class="num faint">{rows.known ? whole(rows.total) : ""}</span>
      </h2>
      <div class="bar chips">
        {rows.groups.length > 1 || group ? (
          <button type="button" aria-pressed={group === ""} onClick={() => setGroup("")}>
            all
          </button>
        ) : null}
        {rows.groups.map(({ name, count: many }) => (
          <button type="button" aria-pressed={group === name} onClick={() => setGroup(group === name ? "" : name)}>
            {name} <span class="faint num">{whole(many)}</span>
          </button>
        ))}
      </div>
      {rows.known && rows.total === 0 && <Empty title="No signal matches">{search && <p>All words must occur in the signal's name or location.</p>}</Empty>}
      <div ref={box} class="signals" style={{ height: `${count * ROW}px` }}>
        <div class="signal-rows" style={{ transform: `translateY(${view.first * ROW}px)`, gridTemplateColumns: `repeat(${view.columns}, minmax(0, 1fr))` }}>
          {range(view.first * view.columns, Math.min(rows.total, view.last * view.columns)).map((i) => {
            const row = rows.at(i);
            return row ? <ChartCard key={row.key} frame={frame} keys={[row.key]} title={row.label} about={row.about} robust={row.unit === "s"} height={140} /> : <div key={i} class="card chart-card" />;
          })}
        </div>
      </div>
    </section>
  );
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}

/** Which rows of the list are on screen, or nearly. */
function useWindow(box: { current: HTMLDivElement | null }): { first: number; last: number; columns: number } {
  const [view, set] = useState({ first: 0, last: 0, columns: 2 });
  useEffect(() => {
    const look = () => {
      const host = box.current;
      if (!host) return;
      const { top, width } = host.getBoundingClientRect();
      const columns = Math.max(1, Math.min(4, Math.round(width / 420)));
      const first = Math.max(0, Math.floor((-top - BEYOND) / ROW));
      const last = Math.max(first, Math.ceil((window.innerHeight - top + BEYOND) / ROW));
      set((old) => (old.first === first && old.last === last && old.columns === columns ? old : { first, last, columns }));
    };
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(document.body);
    window.addEventListener("scroll", look, { passive: true });
    return () => {
      watcher.disconnect();
      window.removeEventListener("scroll", look);
    };
  }, []);
  return view;
}

/** The pages of the list that are on screen; each page is asked for once, and again when the run has grown. */
function useSignals(id: string, search: string, group: string, from: number, to: number, version: number) {
  const first = Math.floor(from / PAGE);
  const path = ofRun(id, "signals");
  const ask = (page: number) => ({ search, group, offset: page * PAGE, limit: PAGE });
  const one = useApi<SignalList>(path, ask(first), version);
  const two = useApi<SignalList>(to > (first + 1) * PAGE ? path : null, ask(first + 1), version);
  const pages = [one.data, two.data];
  const at = (i: number): SignalRow | undefined => {
    const page = pages.find((p) => p && i >= p.offset && i < p.offset + p.signals.length);
    return page?.signals[i - page.offset];
  };
  return { at, total: one.data?.total ?? 0, groups: one.data?.groups ?? [], known: one.data !== undefined };
}
