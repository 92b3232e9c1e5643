// The drawing of one model: pan, zoom, expand, search, colour; and what is known of the chosen node.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Canvas, pointOn } from "../draw/canvas";
import { boxAt, layout as laidOut, LINE, type Line, lineAt, type Placed } from "../draw/graph_layout";
import { everything, type GraphNode, isModule, levelOf, type Model, revealing, searched, type Sight, TOP } from "../draw/graph_model";
import { type By, findingsBelow, readSight, toggled, unfolding, valueBy, writtenSight } from "../draw/graph_sight";
import { type Camera, centred, fitting, type Look, paintGraph, zoomed } from "../draw/graph_paint";
import { css, inkOn, type Scale, scaleOver } from "../draw/scale";
import { plural, withUnit } from "../format";
import { useKeys } from "../keys";
import { type FindingHere, findingsByModule, worst } from "../draw/findings_at";
import { Legend } from "../parts/legend";
import { Mark } from "../parts/mark";
import { Tip, type TipAt } from "../parts/tip";
import { setParams, useParam, usePlace } from "../state";
import { colour, useTheme } from "../theme";
import type { ViewProps } from "../types";
import { NodePanel } from "./graph_node";

const MOST_LISTED = 500;
const UNITS: Record<By, string> = { health: "", time: "s", memory: "B", parameters: "count", flops: "FLOPs", kind: "" };

interface Props {
  model: Model;
  time?: Record<string, number> | null; // of each module, where it was profiled
  run?: ViewProps; // that the model is of; without one there is nothing but the graph
  colour?: By; // at first
  first: Sight; // what is open at first
}

type Under = { box: Placed; line: null } | { box: null; line: Line };

export function GraphField({ model, time = null, run: of, colour: firstColour = "health", first }: Props) {
  const { id, version } = of ?? { id: null, version: 0 };
  const run = of?.run ?? null;
  const [by, setBy] = useParam("colour", firstColour);
  const [find, setFind] = useParam("find");
  const [sight, setSight] = useSight(first);
  const [chosen, choose] = useChosen(model, sight, setSight);
  const [camera, setCamera] = useState<Camera | null>(null);
  const [over, setOver] = useState<{ at: TipAt; under: Under } | null>(null);
  const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const field = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const theme = useTheme();
  const layout = useMemo(() => laidOut(model, sight), [model, sight]);
  const findings = useMemo(() => (run ? findingsBelow(model, findingsByModule(run)) : new Map<number, FindingHere[]>()), [model, run?.verdict, run?.links]);
  const scale = useMemo(() => scaleFor(model, by as By, time), [model, by, time]);
  const look = useMemo(() => lookOf(by as By, scale, findings, time), [by, scale, findings, theme]);

  useEffect(() => {
    const element = field.current!;
    const observer = new ResizeObserver(() => setSize([element.clientWidth, element.clientHeight]));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const seen: Camera | null = camera ?? (size[0] ? startCamera(chosen) : null);

  function startCamera(node: number | null): Camera {
    const box = node === null ? undefined : layout.boxes.find((b) => b.id === node);
    const whole = fitting(layout, size[0], size[1]);
    return box && layout.height * whole.zoom > size[1] ? centred(box, Math.max(whole.zoom, 0.7), size[0], size[1]) : whole;
  }
  const paint = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      if (seen) paintGraph(context, width, height, model, layout, seen, look, chosen);
    },
    [model, layout, seen?.x, seen?.y, seen?.zoom, look, chosen, size],
  );
  const reveal = (node: GraphNode) => {
    setSight(revealing(model, node.id, sight));
    choose(node.id);
    setCamera(null);
  };
  /** The box that is toggled stays under the pointer. */
  const toggle = (node: number) => {
    const before = layout.boxes.find((b) => b.id === node);
    const next = toggled(sight, node);
    const after = laidOut(model, next).boxes.find((b) => b.id === node);
    if (seen && before && after) setCamera({ ...seen, x: seen.x + after.x - before.x + (after.width - before.width) / 2, y: seen.y + after.y - before.y });
    setSight(next);
  };
  const down = (e: PointerEvent) => {
    (e.currentTarget as HTMLElement).setPointerCapture(e.pointerId);
    drag.current = { x: e.clientX, y: e.clientY, moved: false };
  };
  const move = (e: PointerEvent) => {
    if (!seen) return;
    const [x, y] = pointOn(e);
    if (!drag.current) return point(e, seen.x + x / seen.zoom, seen.y + y / seen.zoom, seen.zoom);
    setOver(null);
    const [dx, dy] = [e.clientX - drag.current.x, e.clientY - drag.current.y];
    if (!drag.current.moved && Math.hypot(dx, dy) < 4) return;
    drag.current = { x: e.clientX, y: e.clientY, moved: true };
    setCamera({ ...seen, x: seen.x - dx / seen.zoom, y: seen.y - dy / seen.zoom });
  };
  /** The tip of a closed box, of an open one at its title, or of a line between boxes. */
  const point = (e: PointerEvent, x: number, y: number, zoom: number) => {
    const box = boxAt(layout, x, y);
    const line = !box || box.open ? lineAt(layout, x, y, 5 / zoom) : null;
    const under: Under | null = line ? { box: null, line } : box && (!box.open || y < box.y + 2 * LINE) ? { box, line: null } : null;
    setOver(under && { under, at: { x: e.clientX, y: e.clientY } });
  };
  const up = (e: PointerEvent) => {
    const was = drag.current;
    drag.current = null;
    if (!was || was.moved || !seen) return;
    const [x, y] = pointOn(e);
    const box = boxAt(layout, seen.x + x / seen.zoom, seen.y + y / seen.zoom);
    if (camera === null) setCamera(seen);
    choose(box ? box.id : null);
    if (box && onSign(box, seen.x + x / seen.zoom)) toggle(box.id);
  };
  /** A click on the sign before the name expands; elsewhere on the box it takes two. */
  const onSign = (box: Placed, x: number) => isModule(model.nodes.get(box.id)!) && x < box.x + 24;
  const double = (e: MouseEvent) => {
    if (!seen) return;
    const [x, y] = pointOn(e);
    const box = boxAt(layout, seen.x + x / seen.zoom, seen.y + y / seen.zoom);
    if (box && isModule(model.nodes.get(box.id)!) && !onSign(box, seen.x + x / seen.zoom)) toggle(box.id);
  };
  const wheel = (e: WheelEvent) => {
    if (!seen) return;
    e.preventDefault();
    const [x, y] = pointOn(e);
    setCamera(zoomed(seen, Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), x, y));
  };
  const zoomBy = (factor: number) => seen && setCamera(zoomed(seen, factor, size[0] / 2, size[1] / 2));
  useKeys([
    { keys: ["/"], says: "search the graph", act: () => document.querySelector<HTMLInputElement>("#find-node")?.focus() },
    { keys: ["+", "="], says: "zoom in", act: () => zoomBy(1.25) },
    { keys: ["-"], says: "zoom out", act: () => zoomBy(0.8) },
    { keys: ["0"], says: "whole graph", act: () => setCamera(fitting(layout, size[0], size[1])) },
    { keys: ["Enter"], says: "expand or collapse the selected module", act: () => chosen !== null && toggle(chosen) },
    { keys: ["ArrowUp", "ArrowDown"], says: "previous or next node", act: (e) => reveal(neighbour(model, layout.boxes.map((b) => b.id), chosen, e.key === "ArrowDown" ? 1 : -1)) },
  ]);
  const nodes = useMemo(() => [...model.nodes.values()].filter((n) => !n.port), [model]);
  const shown = layout.boxes.filter((box) => box.id >= 0); // the ports of modules are no nodes
  const node = chosen === null ? null : (model.nodes.get(chosen) ?? null);
  const matches = useMemo(() => searched(model, find), [model, find]);
  return (
    <>
      <div class="tool">
        <input id="find-node" type="search" placeholder="Find a module or operation" aria-label="Find a module or operation" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        <label>
          Colour
          <select id="colour" value={by} onChange={(e) => setBy(e.currentTarget.value)}>
            {run && <option value="health">health</option>}
            <option value="parameters">parameters</option>
            {model.traced && <option value="memory">memory for backward</option>}
            {model.traced && <option value="flops">FLOPs</option>}
            {time && <option value="time">time</option>}
            <option value="kind">kind</option>
          </select>
        </label>
        <button type="button" onClick={() => (setSight(everything(model)), setCamera(null))}>
          Expand all
        </button>
        <button type="button" onClick={() => (setSight(first), setCamera(null))}>
          Collapse
        </button>
        <span class="says">
          {plural(nodes.length, "node")}, {shown.length} in view
        </span>
      </div>
      <div class="graph">
        <div class="field" ref={field} data-boxes={shown.length} data-zoom={seen?.zoom.toFixed(3)}>
          <Canvas paint={paint} label={`graph of ${model.name}, ${plural(layout.boxes.length, "box", "boxes")}`} class={over?.under.box ? "over" : ""} onPointerLeave={() => setOver(null)} onPointerDown={down} onPointerMove={move} onPointerUp={up} onDblClick={double} onWheel={wheel} />
          <div class="key">
            {scale && scale.values ? <Legend scale={scale.scale} unit={UNITS[by as By]} /> : by === "health" ? <Health /> : <span class="soft">{by === "kind" ? "modules, operations, inputs" : "nothing recorded"}</span>}
          </div>
          <div class="corner">
            <button type="button" aria-label="Zoom in" onClick={() => zoomBy(1.25)}>
              +
            </button>
            <button type="button" aria-label="Zoom out" onClick={() => zoomBy(0.8)}>
              −
            </button>
            <button type="button" onClick={() => setCamera(fitting(layout, size[0], size[1]))}>
              Fit
            </button>
          </div>
        </div>
        <aside class="panel">
          {find ? (
            <Found matches={matches} pick={(n) => reveal(n)} />
          ) : node ? (
            <NodePanel node={node} id={id} version={version} found={findings.get(node.id) ?? []} time={time?.[node.path] ?? null} open={sight.open.has(node.id)} unfolded={!levelOf(model, node.parent ?? TOP, sight).folded} onToggle={() => toggle(node.id)} onUnfold={() => setSight(unfolding(model, sight, node.id))} />
          ) : (
            <div class="inside soft">
              <p>Click a box to see its shapes{run ? ", statistics and findings" : " and its line"}. A double click, or a click on + before its name, expands a module. Drag to move, scroll to zoom.</p>
            </div>
          )}
        </aside>
      </div>
      <BoxList boxes={layout.boxes} model={model} toggle={toggle} choose={choose} />
      {over && <GraphTip at={over.at} under={over.under} node={over.under.box ? model.nodes.get(over.under.box.id)! : null} />}
    </>
  );
}

/** What the canvas shows, for those who can't see it: in order, each box to choose or to open. */
function BoxList({ boxes, model, toggle, choose }: { boxes: Placed[]; model: Model; toggle: (id: number) => void; choose: (id: number) => void }) {
  return (
    <ul class="hidden" aria-label="Boxes of the graph">
      {boxes.slice(0, MOST_LISTED).map((box) => {
        const opens = isModule(model.nodes.get(box.id)!);
        const place = [box.x, box.y, box.width, box.height].map((n) => n.toFixed(1)).join();
        return (
          <li>
            <button type="button" tabIndex={-1} aria-expanded={opens ? box.open : undefined} data-node={box.id} data-module={box.module} data-place={place} onClick={() => (opens ? toggle(box.id) : choose(box.id))}>
              {box.first}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** What is under the pointer: for a box, what is known of its node; for a line, the tensor that it carries. */
function GraphTip({ at, under, node }: { at: TipAt; under: Under; node: GraphNode | null }) {
  if (!node) return under.line?.tensor ? <Tip at={at}>{under.line.tensor}</Tip> : null;
  return (
    <Tip at={at}>
      <b>{node.path || node.label}</b> <span class="soft">{node.type}</span>
      {under.box?.second && <div>{under.box.second}</div>}
      {node.saved ? <div>{withUnit(node.saved, "B")} kept for backward</div> : null}
      {node.feeds_result === false && <div>its result is not used</div>}
      {node.file && (
        <div class="where">
          {node.file}:{node.line}
        </div>
      )}
    </Tip>
  );
}

function neighbour(model: Model, order: number[], chosen: number | null, by: number): GraphNode {
  const at = chosen === null ? (by > 0 ? -1 : 0) : order.indexOf(chosen);
  return model.nodes.get(order[Math.min(Math.max(at + by, 0), order.length - 1)]!)!;
}

/** What is expanded is part of the address, unless it is the initial state or too long. */
function useSight(first: Sight): [Sight, (sight: Sight) => void] {
  const [text, setText] = useParam("open");
  const [big, setBig] = useState<Sight | null>(null);
  const sight = useMemo(() => big ?? (text ? readSight(text) : first), [text, first, big]);
  const set = (next: Sight) => {
    const written = writtenSight(next);
    const long = written.length > 1500;
    setBig(long ? next : null);
    setText(long || written === writtenSight(first) ? "" : written);
  };
  return [sight, set];
}

/** The chosen node is in the address, by number, or by module path in links from elsewhere. */
function useChosen(model: Model, sight: Sight, setSight: (sight: Sight) => void): [number | null, (id: number | null) => void] {
  const { params } = usePlace();
  const asked = params["layer"] ?? params["module"];
  useEffect(() => {
    if (asked === undefined) return;
    const node = [...model.nodes.values()].find((n) => n.kind === "module" && n.path === asked);
    if (node) setSight(revealing(model, node.id, sight));
    setParams({ layer: "", module: "", node: node ? String(node.id) : "" });
  }, [asked, model]);
  const number = params["node"] ? Number(params["node"]) : NaN;
  const id = model.nodes.has(number) ? number : null;
  return [id, (next) => setParams({ node: next === null ? "" : String(next) })];
}

function scaleFor(model: Model, by: By, time: Record<string, number> | null): { scale: Scale; values: boolean } | null {
  if (by === "health" || by === "kind") return null;
  const values = [...model.nodes.values()].filter((n) => n.depth > 0).map((n) => valueBy(by, n, time));
  return { scale: scaleOver("log", values), values: values.some((v) => v !== null) };
}

function lookOf(by: By, scaled: { scale: Scale } | null, findings: Map<number, FindingHere[]>, time: Record<string, number> | null): Look {
  const mark = (node: GraphNode) => worst(findings.get(node.id) ?? []);
  const rgb = (node: GraphNode) => {
    const value = valueBy(by, node, time);
    return value === null || !scaled ? null : scaled.scale.rgb(value);
  };
  if (by === "health") return { mark, ink: () => null, fill: (node) => healthFill(node, mark(node)) };
  if (by === "kind") return { mark, ink: () => null, fill: () => null };
  return {
    mark,
    fill: (node) => (rgb(node) ? css(rgb(node)!) : colour("card")),
    ink: (node) => (rgb(node) ? inkOn(rgb(node)!) : null),
  };
}

function healthFill(node: GraphNode, severity: string | null): string | null {
  if (severity) return colour(`${severity}-soft`);
  return node.kind === "module" ? colour("good-soft") : node.kind === "op" ? colour("card") : colour("sunken");
}

function Health() {
  return (
    <span class="key-list">
      <Mark severity="error" word />
      <Mark severity="warning" word />
      <Mark severity="advice" word />
      <span>
        <i style={{ background: "var(--good-soft)", border: "1px solid var(--good)" }} />
        nothing found
      </span>
    </span>
  );
}

function Found({ matches, pick }: { matches: GraphNode[]; pick: (node: GraphNode) => void }) {
  if (!matches.length) return <div class="inside soft">No match in the graph.</div>;
  return (
    <ul class="found-list" aria-label="Found in the graph">
      {matches.map((node) => (
        <li>
          <button type="button" onClick={() => pick(node)}>
            <span class="mono">{node.kind === "module" ? node.path || node.label : `${node.path ? `${node.path} \u203a ` : ""}${node.label}`}</span> <span class="faint">{node.type}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
