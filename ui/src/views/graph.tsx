// The graph of a run's model, or its modules if no graph was recorded.
import { useMemo } from "preact/hooks";
import { ofRun, useApi } from "../api";
import { choicesOf, firstSight, type GraphAnswer, type Model, modelOf } from "../draw/graph_model";
import { modelOfModules } from "../draw/graph_modules";
import { Await, Missing } from "../parts/states";
import { useParam } from "../state";
import type { ViewProps } from "../types";
import { GraphField } from "./graph_field";
import "./views.css";

const HOW = "clew run --graph train.py";

export function GraphView({ id, run, version }: ViewProps) {
  const answer = useApi<GraphAnswer>(ofRun(id, "graph"), {}, version);
  return (
    <div>
      <Await of={answer} what="the graph">
        {(data) =>
          data.models?.length || data.graphs?.length ? <Choose data={data} id={id} run={run} version={version} /> : <Missing title="No model in this run" how={data.missing ?? `Record one with ${HOW}`} />
        }
      </Await>
    </div>
  );
}

function Choose({ data, id, run, version }: ViewProps & { data: GraphAnswer }) {
  const [root, setRoot] = useParam("root");
  const choices = useMemo(() => choicesOf(data), [data]);
  const chosen = choices.find((c) => c.root === root) ?? choices.find((c) => c.graph) ?? choices[0]!;
  const stamp = `${chosen.root}:${chosen.graph?.nodes.length ?? 0}:${chosen.rows.length}`;
  const model: Model = useMemo(() => (chosen.graph ? modelOf(chosen.graph) : modelOfModules(chosen.root, chosen.rows)), [stamp]);
  const first = useMemo(() => firstSight(model), [model]);
  return (
    <>
      {choices.length > 1 && (
        <div class="tool">
          <label>
            Model
            <select value={chosen.root} onChange={(e) => setRoot(e.currentTarget.value)}>
              {choices.map((c) => (
                <option value={c.root}>{c.root}</option>
              ))}
            </select>
          </label>
        </div>
      )}
      {!chosen.graph && (
        <div class="notice" role="note">
          <span>
            These are the modules in the order they ran, without the operations and tensors between them: {data.missing ?? `record with ${HOW}`}
          </span>
        </div>
      )}
      <GraphField key={chosen.root} model={model} time={data.time} run={{ id, run, version }} first={first} />
    </>
  );
}
