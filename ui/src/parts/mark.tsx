// Severity and state: by colour, shape and word, so that none of them alone has to carry it.
import type { Severity } from "../types";

const SHAPES: Record<Severity, string> = {
  error: "M8 1 15 15 1 15Z", // triangle
  warning: "M8 1 15 8 8 15 1 8Z", // diamond
  advice: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12Z", // disc
};

export function Mark({ severity, word = false }: { severity: Severity; word?: boolean }) {
  return (
    <span class={`mark ${severity}`} role="img" aria-label={severity} title={severity}>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d={SHAPES[severity] ?? SHAPES.advice} />
      </svg>
      {word && <span class="word">{severity}</span>}
    </span>
  );
}

export function isSeverity(value: unknown): value is Severity {
  return value === "error" || value === "warning" || value === "advice";
}

export function RunState({ state }: { state: string }) {
  return <span class={`run-state ${/^[a-z]+$/.test(state) ? state : "unknown"}`}>{state}</span>;
}
