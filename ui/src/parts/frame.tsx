// What stays while the views change: name, tabs, the switches at the right.
import type { ComponentChildren } from "preact";
import { switchTheme, useTheme } from "../theme";

interface Props {
  crumb?: ComponentChildren;
  tabs?: ComponentChildren;
  right?: ComponentChildren;
  alone?: boolean; // the file shows one thing: there are no runs to go back to
  children: ComponentChildren;
}

export function Frame({ crumb, tabs, right, alone, children }: Props) {
  return (
    <>
      <header class="top">
        <div class="inner">
          <div class="line">
            {alone ? <Brand /> : <Brand href="#/" title="All runs" />}
            <div class="crumb grow">{crumb}</div>
            {right}
            <ThemeSwitch />
            <button type="button" class="plain" title="Keys (?)" aria-label="Keys" onClick={askForHelp}>
              ?
            </button>
          </div>
          {tabs}
        </div>
      </header>
      <main class="page">{children}</main>
    </>
  );
}

function Brand(link: { href?: string; title?: string }) {
  return (
    <a class="brand" {...link}>
      <Ball /> Clew
    </a>
  );
}

export const HELP = "clew-help";

function askForHelp(): void {
  window.dispatchEvent(new Event(HELP));
}

function ThemeSwitch() {
  const dark = useTheme() === "dark";
  const to = dark ? "light" : "dark";
  return (
    <button type="button" class="plain" title={`Switch to ${to} (t)`} aria-label={`Switch to ${to}`} onClick={switchTheme}>
      <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true">
        <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.4" />
        <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4Z" fill="currentColor" />
      </svg>
    </button>
  );
}

/** A ball of thread, with its end hanging out. */
function Ball() {
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" aria-hidden="true">
      <circle cx="9" cy="9" r="6.5" />
      <path d="M4 6.5c4-1.500 7-.5 10.500 3M3.200 10.500c3.500-1 6.300.3 8.300 3.900M8 2.700c3.500 1.800 5.600 3.600 7.200 6.300M11 15.200c2.500 1.500 4.500 2.200 7 2.300" />
    </svg>
  );
}
