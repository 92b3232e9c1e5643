// A number with its unit.
import { withUnit } from "../format";

/** A number with its unit, in tabular figures; the exact value on hover. */
export function Num({ value, unit = "", title }: { value: number | null | undefined; unit?: string | null; title?: string }) {
  const bad = typeof value === "number" && !Number.isFinite(value);
  const exact = title ?? (typeof value === "number" ? `${value}${unit ? ` ${unit}` : ""}` : undefined);
  return (
    <span class={bad ? "num bad" : "num"} title={exact}>
      {withUnit(value, unit)}
    </span>
  );
}
