// What is wrong with the run, on what evidence, how to fix it; what follows, what was ruled out, what was not judged.
import type { ComponentChildren } from "preact";
import { inlined, isReport, ofRun, useApi } from "../api";
import { plural, seconds, whole } from "../format";
import { groupsOf } from "../draw/roots";
import { FindingCard, FindingLine } from "../parts/finding_card";
import { Notes } from "../parts/notes";
import { ReportNote } from "../parts/report_note";
import { Empty, Loading } from "../parts/states";
import { usePlace } from "../state";
import type { ReportInfo, RunDetail, SignalList, Verdict, ViewProps } from "../types";
import { ChartCard } from "./chart_card";
import { RunFacts } from "./run_facts";
import "./charts.css";
import "./verdict.css";

const NEEDS_EXPERIMENT = "needs an experiment"; // how the reason begins if only `clew check` runs the check
const NEEDS_COMMAND = /^needs clew (profile|data)$/; // the reason if another command runs it

export function VerdictView({ id, run, version }: ViewProps) {
  return (
    <div class="verdict">
      <div class="stack verdict-main">
        {isReport && <ReportNote report={inlined?.["report"] as ReportInfo} />}
        <Headline run={run} />
        <Judgement id={id} run={run} version={version} />
        <Damage run={run} />
      </div>
      <aside class="stack">
        <RunFacts run={run} />
        <Notes id={id} />
      </aside>
    </div>
  );
}

/** State, length, and a summary in one sentence. */
function Headline({ run }: { run: RunDetail }) {
  const { state, steps, duration, error } = run.run;
  const words: Record<string, string> = { running: "Running", finished: "Finished", failed: "Failed", killed: "Killed", empty: "Empty", unreadable: "Unreadable" };
  return (
    <header class="headline">
      <h1>{sentence(run)}</h1>
      <p class="soft">
        {words[state] ?? state} after {plural(steps ?? 0, "step")}
        {duration !== null && ` in ${seconds(duration)}`}
        {run.verdict && `; ${plural(run.verdict.run.checks - run.verdict.not_judged.length, "check")} ran`}
        {run.verdict_state === "pending" && run.verdict_steps !== null && ` at step ${whole(run.verdict_steps)}, checking again…`}
      </p>
      {error && <p class="error-text">{error}</p>}
      {run.events.filter((event) => event.kind === "exception").slice(-1).map((event) => <p class="error-text mono">{exception(event.data)}</p>)}
    </header>
  );
}

function exception(data: Record<string, unknown>): string {
  const said = [data["type"] ?? data["error"], data["message"]].filter((part) => typeof part === "string" && part);
  return said.length ? said.join(": ") : "the script ended with an exception";
}

function sentence(run: RunDetail): string {
  const findings = run.verdict?.findings;
  if (!findings) return run.verdict_state === "failed" ? "The checks failed on this run" : run.verdict_state === "none" ? "Nothing to check" : "Checking…";
  const groups = groupsOf(findings);
  if (groups.length === 0) return run.verdict!.run.idle ? "Nothing to check" : "No problems found";
  const many = (severity: string) => groups.filter(({ root }) => findings[root]!.severity === severity).length;
  const counts = [many("error") && plural(many("error"), "problem"), many("warning") && plural(many("warning"), "possible problem")];
  return counts.filter(Boolean).join(" and ") || "No problems found, but there is advice";
}

function Judgement({ id, run, version }: ViewProps) {
  const { verdict } = run;
  const asked = Number(usePlace().params["finding"] ?? -1);
  if (!verdict) {
    if (run.verdict_state === "pending") return <Loading what="the evidence" />;
    return <Empty title="No verdict">{run.verdict_error && <p>{run.verdict_error}</p>}</Empty>;
  }
  const groups = groupsOf(verdict.findings);
  return (
    <>
      {verdict.run.idle && <p class="card">{verdict.run.idle}</p>}
      {groups.length === 0 && run.has.series && <LossCard id={id} version={version} />}
      {groups.map(({ root, effects }, i) => (
        <section class="group" aria-label={i === 0 ? "Root cause" : "Further finding"}>
          <FindingCard id={id} run={run} index={root} version={version} lead={i === 0} asked={asked === root} />
          {effects.length > 0 && (
            <div class="effects">
              <h3>Consequences</h3>
              {effects.map((effect) => (
                <FindingLine id={id} run={run} index={effect} version={version} asked={asked === effect} />
              ))}
            </div>
          )}
        </section>
      ))}
      <Remainder verdict={verdict} />
    </>
  );
}

/** Where nothing is wrong, the curve that shows it. */
function LossCard({ id, version }: { id: string; version: number }) {
  const signals = useApi<SignalList>(ofRun(id, "signals"), { group: "loss", limit: 8 }, version);
  const keys = (signals.data?.signals ?? []).map((row) => row.key);
  if (keys.length === 0) return null;
  const nothing = () => undefined;
  const frame = { id, axis: "step" as const, smooth: 0, log: false, markers: [], version, range: null, step: null, zoom: nothing, pin: nothing };
  return <ChartCard frame={frame} keys={keys} title="Loss" height={190} />;
}

/** The checks that found nothing and those that could not run: silence must not look like health. */
function Remainder({ verdict }: { verdict: Verdict }) {
  const untried = verdict.not_judged.filter(({ reason }) => reason.startsWith(NEEDS_EXPERIMENT));
  const elsewhere = verdict.not_judged.filter(({ reason }) => NEEDS_COMMAND.test(reason));
  const unjudged = verdict.not_judged.filter((entry) => !untried.includes(entry) && !elsewhere.includes(entry));
  return (
    <section class="card stack remainder">
      {verdict.ruled_out.length > 0 && (
        <Fold title="Ruled out" about={`${plural(verdict.ruled_out.length, "check")} found nothing`} open={verdict.findings.length === 0}>
          <Names of={verdict.ruled_out} />
        </Fold>
      )}
      {unjudged.length > 0 && (
        <Fold title="Skipped" about={`${plural(unjudged.length, "check")} could not run`}>
          <Reasons of={unjudged.map(({ check, reason }) => [check, reason])} />
        </Fold>
      )}
      {untried.length > 0 && (
        <Fold
          title="Experiments"
          about={
            <>
              run <code>clew check</code> for {plural(untried.length, "more check")}
            </>
          }
        >
          <Names of={untried.map(({ check }) => check)} />
        </Fold>
      )}
      {elsewhere.length > 0 && (
        <Fold
          title="Speed and data"
          about={
            <>
              run <code>clew profile</code> or <code>clew data</code> for {plural(elsewhere.length, "more check")}
            </>
          }
        >
          <Names of={elsewhere.map(({ check }) => check)} />
        </Fold>
      )}
      {verdict.ignored.length > 0 && (
        <Fold title="Ignored" about={`${plural(verdict.ignored.length, "finding")} ignored by your settings`}>
          <Reasons of={verdict.ignored.map(({ check, why }) => [check, why])} />
        </Fold>
      )}
    </section>
  );
}

function Fold({ title, about, open, children }: { title: string; about: ComponentChildren; open?: boolean; children: ComponentChildren }) {
  return (
    <details class="fold" open={open}>
      <summary>
        <b>{title}</b> <span class="soft">{about}</span>
      </summary>
      {children}
    </details>
  );
}

function Names({ of }: { of: string[] }) {
  return (
    <ul class="names">
      {of.map((name) => (
        <li class="mono">{name}</li>
      ))}
    </ul>
  );
}

function Reasons({ of }: { of: [check: string, reason: string][] }) {
  return (
    <dl class="reasons">
      {of.map(([check, reason]) => (
        <>
          <dt class="mono">{check}</dt>
          <dd class="soft">{reason}</dd>
        </>
      ))}
    </dl>
  );
}

function Damage({ run }: { run: RunDetail }) {
  const lines = [...run.damage, ...run.incidents];
  if (lines.length === 0) return null;
  return (
    <section class="card damage">
      <h3>
        <b>Some data could not be recorded or read</b>
      </h3>
      <ul>
        {lines.map((line) => (
          <li>{line}</li>
        ))}
      </ul>
    </section>
  );
}
