// Which series share a chart at the top of the charts page: the server says so of each.
import type { SignalRow } from "../types";

const MOST_LINES = 8; // in one chart
const MOST_ALONE = 12; // charts of one series each, for each group of signals

/** The series of each chart, in the order of the list. */
export function chaptersOf(rows: SignalRow[]): SignalRow[][] {
  const found: SignalRow[][] = [];
  const shared = new Map<string, SignalRow[]>();
  const alone = new Map<string, number>();
  for (const row of rows) {
    if (!row.chart) continue;
    const beside = row.chart.together ? shared.get(row.chart.title) : undefined;
    if (beside) {
      if (beside.length < MOST_LINES) beside.push(row);
      continue;
    }
    const before = alone.get(row.group) ?? 0;
    if (!row.chart.together && before >= MOST_ALONE) continue;
    const chapter = [row];
    found.push(chapter);
    if (row.chart.together) shared.set(row.chart.title, chapter);
    else alone.set(row.group, before + 1);
  }
  return found;
}
