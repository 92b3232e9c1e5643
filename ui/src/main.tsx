import { render } from "preact";
import "./theme.css";
import "uplot/dist/uPlot.min.css";
import { inlined } from "./api";
import type { RawGraph } from "./draw/graph_model";
import { listenToKeys } from "./keys";
import { Help } from "./parts/help";
import { go, listenToAddress, usePlace } from "./state";
import { startTheme } from "./theme";
import type { PageInfo, RunList } from "./types";
import { ComparePage } from "./views/compare_page";
import { FlamePage } from "./views/flame_page";
import { GraphPage } from "./views/graph_page";
import { RunPage } from "./views/run_page";
import { RunsPage } from "./views/runs";

function App() {
  const place = usePlace();
  const page = inlined?.["page"] as PageInfo | undefined;
  if (page) return <OnlyPage page={page} />;
  return (
    <>
      {place.at === "runs" && <RunsPage />}
      {place.at === "run" && <RunPage key={place.run} id={place.run} tab={place.tab} />}
      {place.at === "compare" && <ComparePage key={place.params["runs"]} runs={(place.params["runs"] ?? "").split(",").filter(Boolean)} />}
      <Help />
    </>
  );
}

/** A file that shows one thing, and no runs. */
function OnlyPage({ page }: { page: PageInfo }) {
  return (
    <>
      {page.shows === "graph" ? <GraphPage page={page} raw={inlined?.["graph"] as RawGraph} /> : <FlamePage page={page} raw={inlined?.["profile"]} />}
      <Help />
    </>
  );
}

/** A report of one run opens at its verdict. */
function openTheOnlyRun(): void {
  const runs = (inlined?.["api/v1/runs"] as RunList | undefined)?.runs ?? [];
  const only = runs.length === 1 ? runs[0] : undefined;
  if (only && window.location.hash.length < 3) go({ at: "run", run: only.id, tab: "verdict", params: {} }, { replace: true });
}

function start(): void {
  startTheme();
  openTheOnlyRun();
  listenToAddress();
  listenToKeys();
  const root = document.getElementById("app");
  if (!root) return;
  root.textContent = "";
  render(<App />, root);
}

start();
