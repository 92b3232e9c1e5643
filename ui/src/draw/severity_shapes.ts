// The shape of each severity: told apart without colour, the same in SVG and on a canvas.
import type { Severity } from "../types";

/** In a box of 16 × 16. */
export const SHAPES: Record<Severity, string> = {
  error: "M8 1 15 15 1 15Z", // triangle
  warning: "M8 1 15 8 8 15 1 8Z", // diamond
  advice: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12Z", // disc
};

/** The shape around a place of a canvas, to be filled or stroked. */
export function severityPath(severity: Severity, x: number, y: number, radius: number): Path2D {
  const scale = radius / 7;
  const path = new Path2D();
  path.addPath(new Path2D(SHAPES[severity]), { a: scale, d: scale, e: x - 8 * scale, f: y - 8 * scale });
  return path;
}
