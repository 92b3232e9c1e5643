// What a tab of a run is given.
import type { RunDetail } from "../types";

export interface ViewProps {
  id: string; // of the run, as the API has it
  run: RunDetail;
  version: number; // grows when the run has new data: pass it to useApi
}
