// A table that is sorted by the column clicked; the sorted one has a bar behind its numbers.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { sortedBy } from "../draw/sorting";
import { digits, withUnit } from "../format";

export interface TableColumn<T> {
  name: keyof T & string;
  title: string;
  unit?: string; // of a number; without it the column is text
  says?: string; // what it means, on hover
  draw?: (row: T) => ComponentChildren;
}

interface Props<T> {
  id: string;
  title: string;
  note?: string;
  rows: T[];
  columns: TableColumn<T>[];
  by: keyof T & string; // sorted at first
  most?: number; // rows at first
}

export function SortedTable<T extends object>({ id, title, note, rows, columns, by: first, most: few = 12 }: Props<T>) {
  const known = columns.filter((c) => c.unit === undefined || rows.some((row) => row[c.name] !== null && row[c.name] !== undefined));
  const [by, setBy] = useState<keyof T & string>(first);
  const [down, setDown] = useState(true);
  const [most, setMost] = useState(few);
  const sorted = useMemo(() => sortedBy(rows, by, down), [rows, by, down]);
  const top = Math.max(...rows.map((row) => Number(row[by]) || 0), 1e-30);
  const pick = (name: keyof T & string, numeric: boolean) => (name === by ? setDown(!down) : (setBy(name), setDown(numeric)));
  if (!rows.length) return null;
  return (
    <section class="panel">
      <header>
        <h3>{title}</h3>
        {note && <span class="soft">{note}</span>}
      </header>
      <div class="scroll-x">
        <table class="list" id={id}>
          <thead>
            <tr>
              {known.map((c) => (
                <th class={c.unit === undefined ? "sorts" : "sorts right"} title={c.says} aria-sort={c.name === by ? (down ? "descending" : "ascending") : "none"} onClick={() => pick(c.name, c.unit !== undefined)}>
                  {c.title} {c.name === by ? (down ? "\u2193" : "\u2191") : ""}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, most).map((row) => (
              <tr>
                {known.map((c) => (
                  <Cell row={row} column={c} share={c.name === by && c.unit !== undefined ? (Number(row[by]) || 0) / top : 0} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > most && (
        <div class="inside">
          <button type="button" onClick={() => setMost(most + 500)}>
            More ({digits(rows.length - most)})
          </button>
        </div>
      )}
    </section>
  );
}

function Cell<T extends object>({ row, column, share }: { row: T; column: TableColumn<T>; share: number }) {
  if (column.unit === undefined) return <td>{column.draw ? column.draw(row) : <span>{String(row[column.name] ?? "")}</span>}</td>;
  const value = row[column.name] as number | null;
  return (
    <td class={share > 0 ? "right bar-cell" : "right"}>
      {share > 0 && <i style={{ width: `${100 * share}%` }} />}
      <span class="num">{value === null ? "" : withUnit(value, column.unit)}</span>
    </td>
  );
}
