// Severity and state: by colour, shape and word, so that none of them alone has to carry it.
import { SHAPES } from "../draw/severity_shapes";
import type { Severity } from "../types";

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
