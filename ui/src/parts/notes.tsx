// The author's notes on a run: Markdown, kept beside the run, drawn as nodes.
import { useState } from "preact/hooks";
import { asError, isReport, ofRun, put, useApi } from "../api";
import type { NotesAnswer } from "../answers";
import { Markdown } from "./markdown";

export function Notes({ id }: { id: string }) {
  const notes = useApi<NotesAnswer>(ofRun(id, "notes"));
  const [draft, setDraft] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const text = notes.data?.markdown ?? "";
  if (isReport && !text) return null;
  const save = async () => {
    try {
      await put<NotesAnswer>(ofRun(id, "notes"), { markdown: draft ?? "" });
      setDraft(null);
      setProblem("");
      notes.reload();
    } catch (e) {
      setProblem(asError(e).message);
    }
  };
  return (
    <section class="card stack notes" aria-label="Notes">
      <h3 class="bar">
        <b class="grow">Notes</b>
        {!isReport && draft === null && notes.data && (
          <button type="button" onClick={() => setDraft(text)}>
            {text ? "Edit" : "Write"}
          </button>
        )}
      </h3>
      {draft === null ? (
        text ? (
          <Markdown text={text} />
        ) : (
          <p class="faint">{notes.error ? notes.error.message : "Your notes on this run, in Markdown."}</p>
        )
      ) : (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <textarea rows={8} value={draft} aria-label="Notes in Markdown" onInput={(e) => setDraft(e.currentTarget.value)} />
          {problem && <p class="error-text">{problem}</p>}
          <div class="bar">
            <button type="submit" class="primary">
              Save
            </button>
            <button type="button" onClick={() => setDraft(null)}>
              Discard
            </button>
          </div>
        </form>
      )}
    </section>
  );
}
