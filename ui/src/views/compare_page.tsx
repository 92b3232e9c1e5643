import { useLive } from "../live";
import { Frame } from "../parts/frame";
import { CompareView } from "./compare";

export function ComparePage({ runs }: { runs: string[] }) {
  const live = useLive("events");
  return (
    <Frame crumb={`Compare ${runs.length} runs`}>
      <CompareView runs={runs} version={live.version} />
    </Frame>
  );
}
