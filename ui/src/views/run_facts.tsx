// Who, what, when, with which settings.
import type { ComponentChildren } from "preact";
import { moment, plural, whole } from "../format";
import type { RunDetail } from "../types";

export function RunFacts({ run }: { run: RunDetail }) {
  const row = run.run;
  const git = run.git && `${run.git.commit.slice(0, 10)}${run.git.branch ? ` on ${run.git.branch}` : ""}${run.git.dirty ? ", with uncommitted changes" : ""}`;
  const settings = Object.entries(row.hparams ?? {});
  return (
    <section class="card run-facts stack" aria-label="About the run">
      <dl class="facts">
        <Fact name="command">{row.command && <code>{row.command}</code>}</Fact>
        <Fact name="started">{moment(row.started)}</Fact>
        <Fact name="on">{[row.user, row.host].filter(Boolean).join(" at ")}</Fact>
        <Fact name="git">{git}</Fact>
        <Fact name="model">{run.models.length > 0 && run.models.map((model) => `${model.class}: ${whole(model.parameters)} parameters in ${plural(model.modules, "module")}`).join("; ")}</Fact>
        <Fact name="ranks">{(row.ranks ?? 1) > 1 && whole(row.ranks)}</Fact>
        <Fact name="versions">{Object.entries(run.versions).map(([name, version]) => `${name} ${version}`).join(", ")}</Fact>
      </dl>
      {settings.length > 0 && (
        <>
          <h3>Settings</h3>
          <dl class="facts">
            {settings.map(([name, value]) => (
              <Fact name={name}>
                <span class="num">{value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value)}</span>
              </Fact>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (!children) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
