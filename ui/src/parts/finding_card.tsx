// One finding: what, where, on what evidence, how to fix it, and where else to look at it.
import { useEffect, useRef, useState } from "preact/hooks";
import { digits, fromJson, plural, shortPath, whole } from "../format";
import { hrefTo } from "../state";
import type { Finding, FindingLinks, Proof, RunDetail } from "../types";
import { Code, Diff } from "./code";
import { EvidenceItem } from "./evidence";
import { Exhibits } from "./exhibits";
import { Mark } from "./mark";
import { Markdown } from "./markdown";
import { Num } from "./num";
import "./finding.css";

export interface FindingProps {
  id: string; // of the run
  run: RunDetail;
  index: number; // in the verdict's list
  version: number;
  lead?: boolean; // the root cause, drawn large
  asked?: boolean; // a link leads to this one
}

export function FindingCard({ id, run, index, version, lead = false, asked = false }: FindingProps) {
  const finding = run.verdict!.findings[index]!;
  const links = run.links[index];
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (asked) box.current?.scrollIntoView({ block: "start" });
  }, [asked]);
  return (
    <article ref={box} class={`card finding ${finding.severity} ${lead ? "lead" : ""} ${asked ? "asked" : ""}`} data-check={finding.check}>
      <Head finding={finding} />
      <h2>{finding.message}</h2>
      <Where finding={finding} home={String(run.meta["cwd"] ?? "")} />
      <Evidences id={id} finding={finding} links={links} version={version} />
      <Exhibits exhibits={finding.exhibits ?? []} />
      <Fix finding={finding} links={links} home={String(run.meta["cwd"] ?? "")} />
      <Places id={id} finding={finding} links={links} run={run} />
      <About page={run.pages[finding.check]} />
    </article>
  );
}

/** The same in a line, for what follows from another. */
export function FindingLine({ id, run, index, version, asked = false }: FindingProps) {
  const finding = run.verdict!.findings[index]!;
  const [open, setOpen] = useState(asked);
  return (
    <details class="finding-line" open={open} data-check={finding.check} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Mark severity={finding.severity} /> <b>{finding.check}</b> <span class="soft">{finding.message}</span>
      </summary>
      {open && <FindingCard id={id} run={run} index={index} version={version} asked={asked} />}
    </details>
  );
}

function Head({ finding }: { finding: Finding }) {
  return (
    <p class="finding-head">
      <Mark severity={finding.severity} word /> <b class="mono">{finding.check}</b>
      <span class="faint mono">{finding.id}</span>
      <span class="soft" title="certain: observed directly; likely: measured; possible: one of several explanations">
        {finding.confidence}
      </span>
      {!!finding.step && (
        <span class="soft">
          from step <span class="num">{whole(finding.step)}</span>
        </span>
      )}
    </p>
  );
}

function Where({ finding, home }: { finding: Finding; home: string }) {
  const { file, line, module, phase } = finding.site;
  if (!file && !module) return null;
  return (
    <dl class="facts">
      {file && (
        <>
          <dt>where</dt>
          <dd class="mono" title={file}>
            {shortPath(file, home)}
            {line ? `:${line}` : ""}
          </dd>
        </>
      )}
      {module && (
        <>
          <dt>layer</dt>
          <dd class="mono">
            {module}
            {phase === "eval" ? " in evaluation" : ""}
          </dd>
        </>
      )}
    </dl>
  );
}

function Evidences({ id, finding, links, version }: { id: string; finding: Finding; links: FindingLinks | undefined; version: number }) {
  if (finding.evidence.length === 0) return null;
  return (
    <section class="evidence">
      <h3>Evidence</h3>
      <ul>
        {finding.evidence.map((evidence, i) => (
          <EvidenceItem key={i} id={id} evidence={evidence} seriesKey={links?.evidence[i]?.key ?? null} finding={finding} version={version} />
        ))}
      </ul>
    </section>
  );
}

/** As a diff where it can be written as one; else the user's line and what to write, apart. */
function Fix({ finding, links, home }: { finding: Finding; links: FindingLinks | undefined; home: string }) {
  const diff = links?.diff;
  const code = links?.code && { ...links.code, file: shortPath(links.code.file, home) };
  const file = code ? `${code.file}:${code.line}` : finding.site.file;
  return (
    <section class="fix">
      <h3>Fix</h3>
      {diff && diff.length > 0 ? (
        <Diff diff={diff} file={file} />
      ) : (
        <>
          {code && <Code code={code} />}
          <pre class="fix-text">{finding.fix.trim()}</pre>
        </>
      )}
      {finding.proof && <Trial proof={finding.proof} />}
    </section>
  );
}

/** The result of a trial of the fix, with its noise. */
function Trial({ proof }: { proof: Proof }) {
  const spread = (values: (number | string)[]) => values.map((value) => digits(fromJson(value))).join(" … ");
  return (
    <p class="trial">
      {proof.helped ? "Tested on a snapshot: with this fix" : "Tested on a snapshot: the fix did not help:"} the loss after {plural(proof.steps, "step")} is{" "}
      <Num value={fromJson(proof.after)} /> <span class="faint num">({spread(proof.after_spread)})</span> instead of <Num value={fromJson(proof.before)} />{" "}
      <span class="faint num">({spread(proof.before_spread)})</span>, over {plural(proof.seeds, "seed")}.
    </p>
  );
}

function Places({ id, finding, links, run }: { id: string; finding: Finding; links: FindingLinks | undefined; run: RunDetail }) {
  const keys = (links?.evidence ?? []).flatMap((entry) => (entry.key ? [entry.key] : []));
  const step = finding.step === null ? "" : String(finding.step);
  const module = links?.module ?? finding.site.module ?? "";
  const stat = finding.evidence.find((e) => e.signal && e.site?.module)?.signal ?? "";
  return (
    <p class="places">
      <span class="soft">See it in</span>
      <a href={hrefTo(id, "charts", { keys: [...new Set(keys)].join(","), step })}>charts</a>
      {module && run.has.layers && <a href={hrefTo(id, "layers", { layer: module, stat, step })}>layers</a>}
      {module && <a href={hrefTo(id, "graph", { layer: module })}>graph</a>}
    </p>
  );
}

function About({ page }: { page: { title: string; text: string } | undefined }) {
  if (!page) return null;
  return (
    <details class="about">
      <summary>About this check</summary>
      <Markdown text={page.text} />
    </details>
  );
}
