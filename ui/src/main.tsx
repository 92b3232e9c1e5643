// Start, and which page the address asks for.
import { render } from "preact";
import "./theme.css";
import "uplot/dist/uPlot.min.css";
import type { SingleFile } from "./answers";
import { inlined } from "./api";
import { listenToKeys } from "./keys";
import { Help } from "./parts/help";
import { go, listenToAddress, usePlace } from "./state";
import { startTheme } from "./theme";
import type { RunList } from "./types";
import { ComparePage } from "./views/compare";
import { RunPage } from "./views/run_page";
import { RunsPage } from "./views/runs";
import { SinglePage } from "./views/single_page";

function App() {
  const file = inlined && "page" in inlined ? (inlined as unknown as SingleFile) : undefined;
  return (
    <>
      {file ? <SinglePage {...file} /> : <AskedPage />}
      <Help />
    </>
  );
}

/** The page that the address asks for. */
function AskedPage() {
  const place = usePlace();
  if (place.at === "run") return <RunPage key={place.run} id={place.run} tab={place.tab} />;
  if (place.at === "compare") return <ComparePage key={place.params["runs"]} runs={(place.params["runs"] ?? "").split(",").filter(Boolean)} />;
  return <RunsPage />;
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
