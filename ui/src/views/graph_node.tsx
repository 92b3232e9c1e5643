// What is known of one node: shapes, sizes, statistics, its line, and what was found there.
import { ofRun, useApi } from "../api";
import type { GraphNode } from "../draw/graph_model";
import { shapeText, withUnit } from "../format";
import type { FindingHere } from "../draw/findings_at";
import { Mark } from "../parts/mark";
import { Num } from "../parts/num";
import { hrefTo } from "../state";
import type { SignalList } from "../types";

interface Props {
  id: string | null; // of the run that has more to say of it
  version: number;
  node: GraphNode;
  found: FindingHere[];
  time: number | null;
  open: boolean;
  unfolded: boolean;
  onToggle: () => void;
  onUnfold: () => void;
}

export function NodePanel({ node, id, version, found, time, open, unfolded, onToggle, onUnfold }: Props) {
  return (
    <>
      <header>
        <h3 class="mono">{node.path && node.kind === "module" ? node.path : node.label}</h3>
        <span class="soft">{node.type}</span>
      </header>
      <div class="inside">
        <div class="bar">
          {node.children.length > 0 && (
            <button type="button" onClick={onToggle}>
              {open ? "Collapse" : "Expand"}
            </button>
          )}
          {(node.repeat ?? 1) > 1 && (
            <button type="button" onClick={onUnfold}>
              {unfolded ? "Fold again" : `Show all ${node.repeat} separately`}
            </button>
          )}
        </div>
        {id !== null && found.length > 0 && (
          <div class="section">
            <h4>Findings</h4>
            {found.map((f) => (
              <p>
                <a href={hrefTo(id, "verdict", { finding: String(f.index) })}>
                  <Mark severity={f.severity} /> {f.message}
                </a>
              </p>
            ))}
          </div>
        )}
        <div class="section">
          <dl class="facts">
            {node.outputs.map((t, i) => (
              <>
                <dt>{node.outputs.length > 1 ? `output ${i}` : "output"}</dt>
                <dd class="num">
                  {shapeText(t.shape)} {t.dtype}
                </dd>
              </>
            ))}
            {(node.repeat ?? 1) > 1 && <Fact name="repeated" value={`${node.repeat} identical blocks`} />}
            {node.parameters ? <Fact name="parameters" value={withUnit(node.parameters, "count")} /> : null}
            {node.flops ? <Fact name="FLOPs" value={withUnit(node.flops, "FLOPs")} /> : null}
            {node.saved ? <Fact name="kept for backward" value={withUnit(node.saved, "B")} /> : null}
            {time !== null ? <Fact name="time" value={withUnit(time, "s")} /> : null}
            {node.feeds_result === false && <Fact name="result" value="not used" />}
            {node.file && (
              <>
                <dt>line</dt>
                <dd class="where">
                  {node.file}:{node.line}
                </dd>
              </>
            )}
          </dl>
        </div>
        {id !== null && node.kind === "module" && node.path !== "" && <Statistics id={id} path={node.path} version={version} />}
      </div>
    </>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd class="num">{value}</dd>
    </>
  );
}

interface LastValues {
  series: { key: string; mean: (number | null)[] }[];
}

/** The module's own signals with their newest values, each a link to its chart. */
function Statistics({ id, path, version }: { id: string; path: string; version: number }) {
  const list = useApi<SignalList>(ofRun(id, "signals"), { search: path, limit: 400 }, version);
  const rows = (list.data?.signals ?? []).filter((s) => s.site.module === path && s.glance).slice(0, 24);
  const keys = rows.map((r) => r.key).join();
  const values = useApi<LastValues>(rows.length ? ofRun(id, "series") : null, { keys, points: 200 }, version);
  if (!rows.length) return null;
  const last = new Map((values.data?.series ?? []).map((s) => [s.key, s.mean?.[s.mean.length - 1]]));
  return (
    <div class="section">
      <h4>Latest statistics</h4>
      <dl class="facts">
        {rows.map((row) => (
          <>
            <dt>
              <a href={hrefTo(id, "charts", { keys: row.key })}>{row.site.param ? `${row.site.param} ${row.signal}` : row.site.op ? `${row.site.op} ${row.signal}` : row.signal}</a>
            </dt>
            <dd>
              <Num value={last.get(row.key)} unit={row.unit} />
            </dd>
          </>
        ))}
      </dl>
      <p>
        <a href={hrefTo(id, "layers", { find: path })}>In the heat map</a>
      </p>
    </div>
  );
}
