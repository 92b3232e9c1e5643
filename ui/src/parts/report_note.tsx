// What a report says about itself.
import { moment } from "../format";
import type { ReportInfo } from "../types";
import { Markdown } from "./markdown";

/** What a report says about itself: when it was created, what was left out, and the author's words. */
export function ReportNote({ report }: { report: ReportInfo | undefined }) {
  if (!report) return null;
  return (
    <section class="card report-note stack" aria-label="About this report">
      <h2>
        <b>{report.title}</b> <span class="faint">report of {moment(report.made)}, Clew {report.version}</span>
      </h2>
      {report.notes && <Markdown text={report.notes} />}
      {report.says && <p class="soft">{report.says}</p>}
    </section>
  );
}
