// One run: its name and state above, a tab for each way to look at it.
import { useEffect, useRef } from "preact/hooks";
import { isReport, ofRun, useApi } from "../api";
import { useKeys } from "../keys";
import { useLive } from "../live";
import { Frame } from "../parts/frame";
import { isSeverity, Mark, RunState } from "../parts/mark";
import { Await } from "../parts/states";
import { format, here, hrefTo, TABS, type Tab } from "../state";
import type { RunDetail, ViewProps } from "../types";
import { ChartsView } from "./charts";
import { DataView } from "./data";
import { GraphView } from "./graph";
import { LayersView } from "./layers";
import { ProfileView } from "./profile";
import { VerdictView } from "./verdict";

const VIEWS: Record<Exclude<Tab, "charts">, (props: ViewProps) => preact.ComponentChild> = {
  verdict: VerdictView,
  layers: LayersView,
  graph: GraphView,
  profile: ProfileView,
  data: DataView,
};
const TITLES: Record<Tab, string> = { verdict: "Verdict", charts: "Charts", layers: "Layers", graph: "Graph", profile: "Profile", data: "Data" };

export function RunPage({ id, tab }: { id: string; tab: Tab }) {
  const known = useRef<RunDetail | undefined>(undefined);
  const live = useLive(ofRun(id, "events"), (news) => isKnown(news, known.current));
  const detail = useApi<RunDetail>(ofRun(id), {}, live.version);
  const run = detail.data;
  known.current = run;
  const row = run?.run;
  const View = VIEWS[tab === "charts" ? "verdict" : tab];
  useKeys([
    {
      keys: TABS.map((_, i) => String(i + 1)),
      says: "open a tab",
      act: (event) => {
        const wanted = TABS[Number(event.key) - 1];
        if (wanted) window.location.hash = hrefTo(id, wanted, carried());
      },
    },
  ]);
  useEffect(() => {
    document.title = `${row?.name || row?.script || id} \u2013 ${TITLES[tab]} \u2013 Clew`;
  }, [row?.name, tab]);
  return (
    <Frame
      crumb={<Crumb id={id} name={row?.name || row?.script || ""} />}
      right={row && <Right id={id} state={row.state} />}
      tabs={<Tabs id={id} tab={tab} run={run} />}
    >
      {!live.connected && !isReport && !detail.error?.status && <p class="offline">The server does not respond; this is the last known state.</p>}
      {run && !!detail.error?.status && <p class="offline">{detail.error.message}</p>}
      {tab === "charts" ? (
        <ChartsView id={id} run={run} version={live.version} />
      ) : (
        <Await of={detail} what="the run">
          {(data) => <View id={id} run={data} version={live.version} />}
        </Await>
      )}
    </Frame>
  );
}

/** Whether an event says nothing that is not on screen. */
function isKnown(data: unknown, run: RunDetail | undefined): boolean {
  const news = data as { version?: number; verdict?: string } | null;
  return !!news && !!run && news.version === run.run.version && news.verdict === run.verdict_state;
}

function Right({ id, state }: { id: string; state: string }) {
  return (
    <>
      <a class="wide-only" href={format({ at: "runs", params: { select: id } })} title="Choose runs to compare with">
        Compare
      </a>
      <RunState state={state} />
    </>
  );
}

/** Step and layer stay selected when the view changes. */
function carried(): Record<string, string> {
  const { params } = here();
  return { step: params["step"] ?? "", layer: params["layer"] ?? "" };
}

function Crumb({ id, name }: { id: string; name: string }) {
  return (
    <span title={id}>
      {name} <span class="faint mono">{id}</span>
    </span>
  );
}

function Tabs({ id, tab, run }: { id: string; tab: Tab; run: RunDetail | undefined }) {
  const findings = run?.verdict?.findings ?? [];
  const worst = findings[0]?.severity;
  return (
    <nav class="tabs" aria-label="Views of the run">
      {TABS.map((name) => (
        <a href={hrefTo(id, name, carried())} aria-current={name === tab ? "page" : undefined}>
          {TITLES[name]}
          {name === "verdict" && findings.length > 0 && isSeverity(worst) && (
            <span class="count">
              <Mark severity={worst} /> {findings.length}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}
