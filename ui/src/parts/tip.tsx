// What is under the pointer, beside the pointer.
import type { ComponentChildren } from "preact";

export interface TipAt {
  x: number; // of the window
  y: number;
}

/** Kept inside the window: on the side of the pointer where there is room. */
export function Tip({ at, children }: { at: TipAt; children: ComponentChildren }) {
  const right = at.x > window.innerWidth - 300;
  const low = at.y > window.innerHeight - 180;
  const style = {
    left: right ? "auto" : `${at.x + 14}px`,
    right: right ? `${window.innerWidth - at.x + 14}px` : "auto",
    top: low ? "auto" : `${at.y + 14}px`,
    bottom: low ? `${window.innerHeight - at.y + 14}px` : "auto",
  };
  return (
    <div class="tip" role="tooltip" style={style}>
      {children}
    </div>
  );
}
