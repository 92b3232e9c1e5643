// What the model was fed: loaders, labels, batches and samples, as far as the run recorded them.
import { useState } from "preact/hooks";
import { ofRun, useApi } from "../api";
import type { BatchRow, DataAnswer, LabelsFact, LoaderFact, SampleRow, TensorNote } from "../answers";
import { safeImage } from "../draw/images";
import { digits, plural, shapeText, withUnit } from "../format";
import { Wave } from "../parts/exhibits";
import { Await, Empty } from "../parts/states";
import { hrefTo } from "../state";
import type { ViewProps } from "../types";
import "./views.css";

/** A file may be of an older Clew: any part of the answer may be absent. */
type Answer = Partial<DataAnswer>;

export function DataView({ id, version }: ViewProps) {
  const answer = useApi<Answer>(ofRun(id, "data"), {}, version);
  return (
    <div class="stack">
      <Await of={answer} what="the data">
        {(data) => <Everything id={id} data={data} />}
      </Await>
    </div>
  );
}

function Everything({ id, data }: { id: string; data: Answer }) {
  const samples = (data.files ?? []).flatMap((f) => f.content.samples ?? []);
  const batches = (data.files ?? []).flatMap((f) => f.content.batches ?? []);
  const nothing = !samples.length && !batches.length;
  return (
    <>
      <div class="columns">
        {(data.loaders ?? []).map((loader) => (
          <LoaderCard loader={loader} />
        ))}
        {(data.labels ?? []).map((labels) => (
          <LabelCard labels={labels} />
        ))}
      </div>
      {data.inputs && data.inputs.length > 0 && (
        <p>
          <a href={hrefTo(id, "charts", { keys: data.inputs.slice(0, 6).join() })}>Statistics of the inputs over the run</a>
        </p>
      )}
      {batches.length > 0 && <Batches batches={batches} />}
      {samples.length > 0 && <Samples samples={samples} />}
      {nothing && (
        <section class="panel">
          <Empty title="No samples in this run">
            <p>{data.missing ?? "No batches were recorded."}</p>
          </Empty>
        </section>
      )}
    </>
  );
}

const yesNo = (value: boolean | null | undefined) => (value === null || value === undefined ? "unknown" : value ? "yes" : "no");

function LoaderCard({ loader }: { loader: LoaderFact }) {
  const facts: [string, string][] = [
    ["dataset", `${loader.dataset ?? "unknown"}${loader.length ? `, ${plural(loader.length, "sample")}` : ""}`],
    ["batch size", loader.batch_size ? plural(loader.batch_size, "sample") : "unknown"],
    ["shuffled", yesNo(loader.shuffle)],
    ["sampler", loader.sampler ?? "unknown"],
    ["workers", digits(loader.num_workers)],
    ["last batch dropped", yesNo(loader.drop_last)],
  ];
  return (
    <section class="panel">
      <header>
        <h3>{loader.names?.length ? loader.names.join(", ") : `loader ${loader.index ?? ""}`}</h3>
        <span class="where">{loader.file ? `${loader.file}:${loader.line}` : ""}</span>
      </header>
      <div class="inside">
        <dl class="facts">
          {facts.map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd class="num">{value}</dd>
            </>
          ))}
        </dl>
      </div>
    </section>
  );
}

const MOST_CLASSES = 30;

function LabelCard({ labels }: { labels: LabelsFact }) {
  const [all, setAll] = useState(false);
  const counts = labels.counts ?? [];
  const most = Math.max(...counts.map(([, n]) => n), 1);
  const total = counts.reduce((sum, [, n]) => sum + n, 0);
  const right = counts.reduce((sum, [, , n]) => sum + (n > 0 ? n : 0), 0);
  return (
    <section class="panel" id="labels">
      <header>
        <h3>Labels of {labels.kind ?? "a loss"}</h3>
        <span class="soft">
          {plural(total, "sample")} of sampled steps, {withUnit(total ? right / total : 0, "share")} predicted correctly
        </span>
        <span class="where">{labels.file ? `${labels.file}:${labels.line}` : ""}</span>
      </header>
      <div class="inside">
        <div class="bars">
          {counts.slice(0, all ? counts.length : MOST_CLASSES).map(([name, n, correct]) => (
            <>
              <span class="num">class {name}</span>
              <span class="track" title={`${n} samples, ${correct} predicted correctly`}>
                <i style={{ width: `${(100 * n) / most}%` }}>
                  <i class="right" style={{ width: `${n ? (100 * Math.max(correct, 0)) / n : 0}%` }} />
                </i>
              </span>
              <span class="num">{digits(n)}</span>
            </>
          ))}
        </div>
        <p class="key-list">
          <span>
            <i style={{ background: "var(--series-2)" }} />
            predicted correctly
          </span>
          <span>
            <i style={{ background: "var(--series-0)" }} />
            wrong
          </span>
        </p>
        {counts.length > MOST_CLASSES && !all && (
          <button type="button" onClick={() => setAll(true)}>
            All {counts.length} classes
          </button>
        )}
      </div>
    </section>
  );
}

function tensorText(t: TensorNote): string {
  const shape = t.shape ? shapeText(t.shape) : "";
  const range = t.min !== undefined && t.min !== null ? `, ${digits(t.min)} to ${digits(t.max)}` : "";
  const values = t.values?.length ? `: ${t.values.slice(0, 12).map(String).join(", ")}${t.values.length > 12 ? "\u2026" : ""}` : "";
  return `${shape} ${t.dtype ?? ""}${range}${values}`;
}

function Batches({ batches }: { batches: BatchRow[] }) {
  return (
    <section class="panel">
      <header>
        <h3>Batches</h3>
        <span class="soft">{plural(batches.length, "batch", "batches")} recorded</span>
      </header>
      <div class="scroll-x">
        <table class="list" id="batches">
          <thead>
            <tr>
              <th class="right">step</th>
              <th>phase</th>
              <th>source</th>
              <th>inputs</th>
              <th>targets</th>
            </tr>
          </thead>
          <tbody>
            {batches.slice(0, 300).map((b) => (
              <tr>
                <td class="right num">{digits(b.step)}</td>
                <td>{b.phase}</td>
                <td>{[b.name, b.source].filter(Boolean).join(", ")}</td>
                <td class="num">{(b.inputs ?? []).map((t) => <div>{tensorText(t)}</div>)}</td>
                <td class="num">{(b.targets ?? []).map((t) => <div>{tensorText(t)}</div>)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Samples({ samples }: { samples: SampleRow[] }) {
  const [wrong, setWrong] = useState(false);
  const [most, setMost] = useState(60);
  const isWrong = (s: SampleRow) => s.prediction !== undefined && s.label !== undefined && s.prediction !== s.label;
  const shown = wrong ? samples.filter(isWrong) : samples;
  return (
    <section class="panel">
      <header>
        <h3>Samples</h3>
        <span class="soft">{plural(shown.length, "sample")}</span>
        {samples.some(isWrong) && (
          <label>
            <input type="checkbox" checked={wrong} onChange={(e) => setWrong(e.currentTarget.checked)} /> only wrong predictions
          </label>
        )}
      </header>
      <div class="inside samples">
        {shown.slice(0, most).map((s) => (
          <SampleCard sample={s} wrong={isWrong(s)} />
        ))}
      </div>
      {shown.length > most && (
        <div class="inside">
          <button type="button" onClick={() => setMost(most + 120)}>
            More
          </button>
        </div>
      )}
    </section>
  );
}

const SOURCES: Record<string, string> = {
  dataset: "from the dataset",
  batch: "in the batch",
  model: "as the model gets it",
};

function SampleCard({ sample, wrong }: { sample: SampleRow; wrong: boolean }) {
  const image = safeImage(sample.image);
  return (
    <div class={wrong ? "sample wrong" : "sample"} title={sample.about}>
      {image && <img src={image} alt={`sample ${sample.id ?? ""}`} />}
      {sample.text !== undefined && <pre>{sample.text}</pre>}
      {sample.source && (
        <div class="soft">
          {sample.id}, {SOURCES[sample.source] ?? sample.source}
        </div>
      )}
      {!image && sample.kind === "audio" && sample.values && <Wave values={sample.values} />}
      {!image && sample.kind !== "audio" && sample.values && <pre class="num">{sample.values.slice(0, 24).map(digits).join(" ")}</pre>}
      <dl class="facts">
        <dt>label</dt>
        <dd class="num">{String(sample.label ?? "\u2013")}</dd>
        {sample.prediction !== undefined && (
          <>
            <dt>predicted</dt>
            <dd class="num">
              {String(sample.prediction)}
              {wrong ? ", wrong" : ""}
            </dd>
          </>
        )}
        {sample.loss !== undefined && sample.loss !== null && (
          <>
            <dt>loss</dt>
            <dd class="num">{digits(sample.loss)}</dd>
          </>
        )}
        <dt>step</dt>
        <dd class="num">{digits(sample.step)}</dd>
      </dl>
    </div>
  );
}
