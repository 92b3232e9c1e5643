// A file that shows one graph, or the flames of one profile, and no runs.
import { useMemo } from "preact/hooks";
import type { DrawnGraph, SingleFile } from "../answers";
import { modelOf, type Sight } from "../draw/graph_model";
import type { By } from "../draw/graph_sight";
import { readProfile } from "../draw/profile";
import { Frame } from "../parts/frame";
import type { PageInfo } from "../types";
import { Flames } from "./flames";
import { GraphField } from "./graph_field";
import "./views.css";

export function SinglePage({ page, graph, profile }: SingleFile) {
  return (
    <Frame alone crumb={<h1>{page.title}</h1>}>
      {page.shows === "graph" ? <OnlyGraph page={page} raw={graph!} /> : <OnlyFlames page={page} raw={profile} />}
    </Frame>
  );
}

function OnlyGraph({ page, raw }: { page: PageInfo; raw: DrawnGraph }) {
  const model = useMemo(() => modelOf(raw), [raw]);
  const first: Sight = useMemo(() => ({ open: new Set(model.first), unfolded: new Set() }), [model]);
  return <GraphField model={model} colour={page.colour as By} first={first} />;
}

function OnlyFlames({ page, raw }: { page: PageInfo; raw: unknown }) {
  const profile = useMemo(() => readProfile(raw), [raw]);
  return (
    <div class="stack">
      {page.about && <p class="soft">{page.about}</p>}
      <Flames id={null} profile={profile} />
    </div>
  );
}
