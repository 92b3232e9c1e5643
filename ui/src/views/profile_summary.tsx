// A profile in a few numbers: how long a step is, what it consists of, and what would help.
import { adviceOf, type Part, PART_NAMES, type Profile } from "../draw/profile";
import { digits, withUnit } from "../format";
import { Mark } from "../parts/mark";
import { hrefTo } from "../state";
import type { Finding } from "../types";

/** The findings about costs, each a link to all that is known of it. */
export function Advice({ id, findings }: { id: string; findings: Finding[] }) {
  return (
    <>
      {adviceOf(findings).map(({ finding, index }) => (
        <a class="notice advice" href={hrefTo(id, "verdict", { finding: String(index) })} data-check={finding.check}>
          <Mark severity={finding.severity} />
          <span>
            <b>{finding.check}</b> {finding.message}
          </span>
        </a>
      ))}
    </>
  );
}

export function StepSummary({ profile }: { profile: Profile }) {
  if (profile.median === null && !profile.parts.length) return null;
  return (
    <section class="panel" id="summary">
      <header>
        <h3>A step</h3>
        {profile.median !== null && <b class="num">{withUnit(profile.median, "s")}</b>}
        {profile.p95 !== null && <span class="soft">p95 <span class="num">{withUnit(profile.p95, "s")}</span></span>}
        {profile.speed !== null && <span class="soft"><span class="num">{digits(profile.speed)}</span> samples/s</span>}
        <span class="grow" />
        <span class="faint">{profile.about}</span>
      </header>
      <div class="inside">
        <Parts parts={profile.parts} left={profile.unattributed} step={profile.median} />
        {profile.notes.map((note) => (
          <p class="hint">{note}</p>
        ))}
      </div>
    </section>
  );
}

/** Adds up to the whole; what no part accounts for is a line of its own. */
function Parts({ parts, left, step }: { parts: Part[]; left: number | null; step: number | null }) {
  const rest: Part[] = left !== null && step !== null ? [{ name: "left over", median: left, p95: null, share: left / step }] : [];
  return (
    <table class="parts">
      <thead>
        <tr>
          <th />
          <th class="right">median</th>
          <th class="right">p95</th>
          <th class="right">share</th>
          <th class="wide" />
        </tr>
      </thead>
      <tbody>
        {[...parts, ...rest].filter((part) => part.share > 0 || part.median > 0).map((part) => (
          <tr>
            <td>{PART_NAMES[part.name] ?? part.name}</td>
            <td class="right num">{withUnit(part.median, "s")}</td>
            <td class="right num soft">{part.p95 === null ? "" : withUnit(part.p95, "s")}</td>
            <td class="right num">{withUnit(part.share, "share")}</td>
            <td>
              <i style={{ width: `${100 * Math.min(Math.max(part.share, 0), 1)}%` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
