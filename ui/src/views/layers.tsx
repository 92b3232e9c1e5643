// Layers × steps for one statistic: a gradient that vanishes on its way is a dark band, a dying layer a dark row.
import { useEffect, useMemo, useState } from "preact/hooks";
import { ofRun, useApi } from "../api";
import type { LayerMap } from "../answers";
import { clipped, matching } from "../draw/heat";
import { scaleOver } from "../draw/scale";
import { digits, plural, withUnit } from "../format";
import { useKeys } from "../keys";
import { findingsByModule } from "../draw/findings_at";
import { HeatMap } from "../parts/heat_map";
import { Legend } from "../parts/legend";
import { Await, Empty, Missing } from "../parts/states";
import { setParams, useParam, usePlace } from "../state";
import type { ViewProps } from "../types";
import { Histograms } from "./histograms";
import "./views.css";

/** The map, or why there is none. */
export type Layers = LayerMap & { missing?: string };

export function LayersView({ id, run, version }: ViewProps) {
  const [stat, setStat] = useParam("stat");
  const [from] = useParam("from");
  const [to] = useParam("to");
  const [search, setSearch] = useParam("find");
  const answer = useApi<Layers>(ofRun(id, "layers"), { stat, from, to, columns: 300 }, version);
  useKeys([{ keys: ["/"], says: "search for a layer", act: () => document.querySelector<HTMLInputElement>("#find-layer")?.focus() }]);
  return (
    <div>
      <Await of={answer} what="the layers">
        {(whole) => {
          const data = whole.layers?.length ? clipped(whole, from === "" ? null : Number(from), to === "" ? null : Number(to)) : whole;
          return data.missing || !data.layers?.length ? (
            <Missing title="No layer statistics in this run" how={data.missing ?? "They start with the first training steps."} />
          ) : (
            <>
              <div class="tool">
                <label>
                  Statistic
                  <select id="stat" value={data.stat} onChange={(e) => setStat(e.currentTarget.value)}>
                    {data.stats.map((s) => (
                      <option value={s.stat}>{s.label}</option>
                    ))}
                  </select>
                </label>
                <input id="find-layer" type="search" placeholder="Find layers" aria-label="Find layers" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
                <Range data={data} zoomed={from !== "" || to !== ""} />
              </div>
              <Map id={id} run={run} data={data} search={search} version={version} />
            </>
          );
        }}
      </Await>
    </div>
  );
}

function Range({ data, zoomed }: { data: Layers; zoomed: boolean }) {
  const [first, last] = [data.columns[0], data.columns[data.columns.length - 1]];
  return (
    <span class="says">
      steps <span class="num">{digits(first)}</span> to <span class="num">{digits(last)}</span>,{" "}
      {data.exact ? `${plural(data.columns.length, "recorded step")}` : "several recorded steps per column"}{" "}
      {zoomed ? (
        <button type="button" onClick={() => setParams({ from: "", to: "" })}>
          Whole run
        </button>
      ) : (
        <span class="hint">drag to zoom</span>
      )}
    </span>
  );
}

function Map({ id, run, data, search, version }: Pick<ViewProps, "id" | "run" | "version"> & { data: Layers; search: string }) {
  const [site, setSite] = useParam("site");
  const [roomy, setRoomy] = useState(false);
  const rows = useMemo(() => matching(data.layers, search), [data, search]);
  const scale = useMemo(() => scaleOver(data.scale, data.mean.flat()), [data]);
  const findings = useMemo(() => findingsByModule(run), [run.verdict, run.links]);
  const { params } = usePlace();
  const asked = params["layer"];
  useEffect(() => {
    if (asked === undefined) return;
    const found = data.layers.find((layer) => layer.module === asked) ?? data.layers.find((layer) => layer.module?.startsWith(`${asked}.`));
    setParams({ layer: "", site: found?.site ?? site });
  }, [asked, data]);
  const chosen = data.layers.find((layer) => layer.site === site);
  return (
    <>
      <div class="tool">
        <Legend scale={scale} unit={data.unit} />
        <span class="says">{rows.length === data.layers.length ? plural(rows.length, "layer") : `${rows.length} of ${plural(data.layers.length, "layer")}`}</span>
        {rows.length > 30 && (
          <label>
            <input type="checkbox" checked={roomy} onChange={(e) => setRoomy(e.currentTarget.checked)} /> every name
          </label>
        )}
        <Extremes data={data} rows={rows} />
      </div>
      {rows.length === 0 ? (
        <Empty title="No matching layer" />
      ) : (
        <HeatMap
          data={data}
          rows={rows}
          scale={scale}
          findings={findings}
          chosen={site}
          step={params["step"] ? Number(params["step"]) : null}
          roomy={roomy}
          onChoose={(layer) => setSite(layer.site === site ? "" : layer.site)}
          onZoom={(a, b) => setParams({ from: String(a), to: String(b) }, {})}
        />
      )}
      {site && (
        <Histograms id={id} site={site} layer={chosen} found={findings.get(chosen?.module ?? "\u0000") ?? []} version={version} onClose={() => setSite("")} />
      )}
    </>
  );
}

/** The lowest and the highest at the last recorded step, in words: what the colours say at their ends. */
function Extremes({ data, rows }: { data: Layers; rows: number[] }) {
  const last = rows.flatMap((row) => {
    const value = data.mean[row]?.[data.columns.length - 1];
    return typeof value === "number" ? [{ label: data.layers[row]!.label, value }] : [];
  });
  if (last.length < 2) return null;
  const low = last.reduce((a, b) => (b.value < a.value ? b : a));
  const high = last.reduce((a, b) => (b.value > a.value ? b : a));
  if (low.value === high.value) return <span class="says wide-only">all at {withUnit(low.value, data.unit)} now</span>;
  return (
    <span class="says wide-only">
      now from <span class="num">{withUnit(low.value, data.unit)}</span> (<span class="mono">{low.label}</span>) to{" "}
      <span class="num">{withUnit(high.value, data.unit)}</span> (<span class="mono">{high.label}</span>)
    </span>
  );
}
