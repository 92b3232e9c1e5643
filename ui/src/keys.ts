// Keys are declared where they act; the help overlay lists those in force.
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Binding {
  keys: string[]; // as in KeyboardEvent.key; or the name of a mouse gesture, only for the list
  says: string;
  act: (event: KeyboardEvent) => void;
  typing?: boolean; // also while a text field has the focus
}

const inForce: Binding[][] = [];

/** Bind while the component is shown; of several, the one mounted last acts. */
export function useKeys(bindings: Binding[]): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  // Before the paint, so that the keys work as soon as the component is visible.
  useLayoutEffect(() => {
    const group = bindings.map((binding, i) => ({ ...binding, act: (event: KeyboardEvent) => latest.current[i]?.act(event) }));
    inForce.push(group);
    return () => void inForce.splice(inForce.indexOf(group), 1);
  }, []);
}

export function bindingsInForce(): Binding[] {
  const seen = new Set<string>();
  const result: Binding[] = [];
  for (const group of [...inForce].reverse())
    for (const binding of group) {
      const name = binding.keys.join();
      if (!seen.has(name)) result.push(binding);
      seen.add(name);
    }
  return result;
}

export function listenToKeys(): void {
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = isTyping(event.target);
    const found = bindingsInForce().find((b) => b.keys.includes(event.key) && (!typing || b.typing));
    if (!found) return;
    event.preventDefault();
    found.act(event);
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const choosing = target instanceof HTMLInputElement && ["checkbox", "radio", "button"].includes(target.type);
  return !choosing && (["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) || target.isContentEditable);
}
