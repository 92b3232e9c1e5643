// Where the time of a step goes: modules, operations, lines, and waits for values.
import type { LineTime, ModuleTime, OpTime, Profile, SyncTime } from "../draw/profile";
import { shortPath } from "../format";
import { SortedTable, type TableColumn } from "../parts/sorted_table";
import { hrefTo } from "../state";

export function ProfileTables({ id, profile, home }: { id: string; profile: Profile; home: string }) {
  return (
    <>
      <SortedTable id="modules" title="By module" note="seconds per step, including submodules; own time excludes them" rows={profile.modules} columns={moduleColumns(id)} by={profile.modules.some((m) => m.self !== null) ? "self" : "total"} most={25} />
      <SortedTable id="ops" title="By operation" note="including its backward" rows={profile.ops} columns={opColumns(id)} by="total" />
      <SortedTable id="lines" title="By line of source" note="sampled: the line or something it called was running" rows={profile.lines} columns={lineColumns(home)} by="total" />
      <SortedTable id="syncs" title="Host synchronisations" note="the host waits until a value is available" rows={profile.syncs} columns={syncColumns(home)} by="seconds" />
    </>
  );
}

function moduleColumns(id: string): TableColumn<ModuleTime>[] {
  const name = (row: ModuleTime) => (
    <>
      <ModuleLink id={id} module={row.module} /> <span class="faint">{row.class}</span>
    </>
  );
  return [
    { name: "module", title: "module", draw: name },
    { name: "calls", title: "calls", unit: "" },
    { name: "total", title: "total", unit: "s" },
    { name: "forward", title: "forward", unit: "s" },
    { name: "backward", title: "backward", unit: "s" },
    { name: "spread", title: "\u00b1", unit: "s", says: "standard deviation over the steps" },
    { name: "self", title: "own time", unit: "s" },
    { name: "rate", title: "achieved", unit: "FLOP/s" },
    { name: "roof", title: "of roof", unit: "share", says: "share of the best speed measured on this machine" },
    { name: "memory", title: "memory", unit: "B", says: "its own parameters, and what it keeps for backward" },
    { name: "flops", title: "FLOPs", unit: "FLOPs" },
  ];
}

function opColumns(id: string): TableColumn<OpTime>[] {
  return [
    { name: "op", title: "operation", draw: (row) => <span class="mono">{row.op}</span> },
    { name: "module", title: "module", draw: (row) => <ModuleLink id={id} module={row.module} /> },
    { name: "shapes", title: "input shapes", draw: (row) => <span class="mono faint">{row.shapes}</span> },
    { name: "calls", title: "calls", unit: "" },
    { name: "forward", title: "forward", unit: "s" },
    { name: "backward", title: "backward", unit: "s" },
    { name: "total", title: "total", unit: "s" },
    { name: "roof", title: "of roof", unit: "share" },
  ];
}

/** What is outside all modules, or the optimizer's, has no place in the graph. */
function ModuleLink({ id, module }: { id: string; module: string }) {
  if (module.startsWith("(")) return <span class="soft">{module}</span>;
  return (
    <a class="mono" href={hrefTo(id, "graph", { module })}>
      {module || "(model)"}
    </a>
  );
}

const lineColumns = (home: string): TableColumn<LineTime>[] => [
  { name: "where", title: "line", draw: (row) => <span class="where">{shortPath(row.where, home)}</span> },
  { name: "code", title: "code", draw: (row) => <code>{row.code}</code> },
  { name: "kind", title: "kind", draw: (row) => <span class="soft">{row.kind}</span> },
  { name: "self", title: "itself", unit: "s" },
  { name: "total", title: "total time", unit: "s" },
];

const syncColumns = (home: string): TableColumn<SyncTime>[] => [
  { name: "op", title: "operation", draw: (row) => <span class="mono">{row.op}</span> },
  { name: "where", title: "line", draw: (row) => <span class="where">{shortPath(row.where, home)}</span> },
  { name: "code", title: "code", draw: (row) => <code>{row.code}</code> },
  { name: "calls", title: "calls", unit: "" },
  { name: "seconds", title: "time", unit: "s" },
];
