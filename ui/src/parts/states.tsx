// What a view shows when it has nothing to show: designed, never a blank page.
import type { ComponentChildren } from "preact";
import type { ApiError, Loaded } from "../api";

export function Loading({ what }: { what: string }) {
  return (
    <div class="state" role="status" aria-live="polite">
      <span class="pulse" aria-hidden="true" />
      <p>Reading {what}…</p>
    </div>
  );
}

/** There is nothing to show, and this is how to get something. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

export function Failed({ error, retry }: { error: ApiError | Error; retry?: () => void }) {
  return (
    <div class="state failed" role="alert">
      <h3>Loading failed</h3>
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Old data stays on screen while newer loads; an error shows only where there is no data. */
export function Await<T>({ of, what, children }: { of: Loaded<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error) return <Failed error={of.error} retry={of.reload} />;
  return <Loading what={what} />;
}

/** The API's `{"missing": "how to get it"}`. */
export function Missing({ title, how }: { title: string; how: string }) {
  return (
    <Empty title={title}>
      <p>{how}</p>
    </Empty>
  );
}
