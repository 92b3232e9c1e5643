// Where the time and the memory go: over the steps of the run, inside one step, and by module.
import { useMemo, useState } from "preact/hooks";
import { ofRun, useApi } from "../api";
import type { ProfileAnswer } from "../answers";
import { readProfile } from "../draw/profile";
import { Await, Empty } from "../parts/states";
import { hrefTo } from "../state";
import type { RunDetail, SeriesAnswer, ViewProps } from "../types";
import { Breakdown } from "./breakdown";
import { Flames } from "./flames";
import { ProfileMemory } from "./profile_memory";
import { Advice, StepSummary } from "./profile_summary";
import { ProfileTables } from "./profile_tables";
import "./views.css";

type Answer = Partial<ProfileAnswer>;

export function ProfileView({ id, run, version }: ViewProps) {
  const answer = useApi<Answer>(ofRun(id, "profile"), {}, version);
  return (
    <div class="stack">
      <Await of={answer} what="the profile">
        {(data) => (
          <>
            <Steps id={id} data={data} version={version} />
            {data.profile ? <Recorded id={id} raw={data.profile} run={run} /> : <NoProfile how={data.missing} />}
          </>
        )}
      </Await>
    </div>
  );
}

function NoProfile({ how }: { how: string | null | undefined }) {
  return (
    <section class="panel">
      <Empty title="No step was profiled in detail">
        <p>{how ?? "The times above are recorded in every run."}</p>
      </Empty>
    </section>
  );
}

function Steps({ id, data, version }: { id: string; data: Answer; version: number }) {
  const parts = (data.steps?.parts ?? []).filter((p): p is { name: string; key: string } => Boolean(p.key));
  const [range, setRange] = useState<[number, number] | null>(null);
  const query = { keys: parts.map((p) => p.key).join(), points: 400, from: range?.[0], to: range?.[1] };
  const series = useApi<SeriesAnswer>(parts.length ? ofRun(id, "series") : null, query, version);
  if (!parts.length) return <Empty title="No step was timed yet" />;
  return (
    <section class="panel times">
      <header>
        <h3>Step time</h3>
        <span class="soft">stacked, over the run</span>
        <span class="grow" />
        {range && (
          <button type="button" onClick={() => setRange(null)}>
            Whole run
          </button>
        )}
        {data.steps?.total && <a href={hrefTo(id, "charts", { keys: data.steps.total })}>as a chart</a>}
      </header>
      <div class="inside">
        <Await of={series} what="the times">
          {(answer) => <Breakdown parts={parts} answer={answer} onZoom={setRange} />}
        </Await>
      </div>
    </section>
  );
}

function Recorded({ id, raw, run }: { id: string; raw: unknown; run: RunDetail }) {
  const profile = useMemo(() => readProfile(raw), [raw]);
  return (
    <>
      <Advice id={id} findings={run.verdict?.findings ?? []} />
      <StepSummary profile={profile} />
      <Flames id={id} profile={profile} />
      <ProfileTables id={id} profile={profile} home={String(run.meta["cwd"] ?? "")} />
      <ProfileMemory profile={profile} />
    </>
  );
}
