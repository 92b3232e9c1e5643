// What the server says has changed, as a number that grows: views put it into `useApi` and read again.
import { useEffect, useRef, useState } from "preact/hooks";
import type { RunBrief } from "./answers";
import { isReport, listen } from "./api";

const PAUSE = 1000; // ms: often enough to feel live, seldom enough to read

export interface Live {
  version: number;
  connected: boolean;
}

/**
 * Follow `events` (all runs) or `runs/<id>/events`. A hidden page rests and catches up when it is seen again.
 * `isKnown`: whether an event describes what is already on screen, as the first one of a stream may.
 */
export function useLive(path: string, isKnown: (data: unknown) => boolean = () => false): Live {
  const [live, set] = useState<Live>({ version: 0, connected: true });
  const known = useRef(isKnown);
  known.current = isKnown;
  useEffect(() => {
    if (isReport) return;
    let waiting: number | undefined;
    let latest: unknown;
    const bump = () => {
      waiting = undefined;
      if (!document.hidden && !known.current(latest)) set((old) => ({ ...old, version: old.version + 1 }));
    };
    const soon = () => {
      waiting ??= window.setTimeout(bump, PAUSE);
    };
    const heard = (event: string, data: unknown) => {
      latest = event === "gone" ? null : data;
      soon();
    };
    const seen = () => {
      if (!document.hidden && latest !== undefined) soon();
    };
    const stop = listen(path, heard, (connected) => set((old) => (old.connected === connected ? old : { ...old, connected })));
    document.addEventListener("visibilitychange", seen);
    return () => {
      stop();
      window.clearTimeout(waiting);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path]);
  return live;
}

type RowNews = Pick<RunBrief, "id" | "version" | "verdict">;

/** Whether an event of `events` says nothing that these rows don't. */
export function rowsAreKnown(data: unknown, rows: RowNews[] | undefined): boolean {
  const news = data as { runs?: RowNews[]; gone?: string[] } | null;
  if (!news || !rows || news.gone?.some((id) => rows.some((row) => row.id === id))) return false;
  return (news.runs ?? []).every((told) => rows.some((row) => row.id === told.id && row.version === told.version && row.verdict === told.verdict));
}
