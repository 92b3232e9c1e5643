// A file that shows one graph and nothing else.
import { useMemo } from "preact/hooks";
import { modelOf, type RawGraph, type Sight } from "../draw/graph_model";
import type { By } from "../draw/graph_sight";
import { Frame } from "../parts/frame";
import type { PageInfo } from "../types";
import { GraphField } from "./graph_field";
import "./views.css";

export function GraphPage({ page, raw }: { page: PageInfo; raw: RawGraph }) {
  const model = useMemo(() => modelOf(raw), [raw]);
  const first: Sight = useMemo(() => ({ open: new Set(model.first), unfolded: new Set() }), [model]);
  return (
    <Frame alone crumb={<h1>{page.title}</h1>}>
      <GraphField model={model} colour={page.colour as By} first={first} />
    </Frame>
  );
}
