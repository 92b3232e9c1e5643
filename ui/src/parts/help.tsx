// The list of keys that act on this page.
import { useEffect, useState } from "preact/hooks";
import { bindingsInForce, useKeys } from "../keys";
import { switchTheme } from "../theme";
import { HELP } from "./frame";

const NAMES: Record<string, string> = { ArrowLeft: "\u2190", ArrowRight: "\u2192", ArrowUp: "\u2191", ArrowDown: "\u2193", Escape: "Esc", " ": "Space" };

/** `?` shows which keys act here; Esc closes. */
export function Help() {
  const [open, set] = useState(false);
  useKeys([
    { keys: ["?"], says: "show or hide this list", act: () => set((was) => !was) },
    { keys: ["t"], says: "switch between light and dark", act: switchTheme },
  ]);
  useEffect(() => {
    const show = () => set(true);
    window.addEventListener(HELP, show);
    return () => window.removeEventListener(HELP, show);
  }, []);
  return open ? <Sheet close={() => set(false)} /> : null;
}

function Sheet({ close }: { close: () => void }) {
  useKeys([{ keys: ["Escape"], says: "close, or leave a field", act: close, typing: true }]);
  return (
    <div class="veil" onClick={(event) => event.target === event.currentTarget && close()}>
      <div class="sheet" role="dialog" aria-modal="true" aria-label="Keys">
        <h2>Keys</h2>
        <dl>
          {bindingsInForce().map((binding) => (
            <>
              <dt>
                {binding.keys.map((key) => (
                  <>
                    <kbd>{NAMES[key] ?? key}</kbd>{" "}
                  </>
                ))}
              </dt>
              <dd>{binding.says}</dd>
            </>
          ))}
        </dl>
      </div>
    </div>
  );
}
