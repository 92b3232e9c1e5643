// The flames of a profile: time, Python's stacks or memory, one at a time, as the address says.
import type { FlameFrame } from "../answers";
import type { Profile } from "../draw/profile";
import { digits, plural } from "../format";
import { Choices } from "../parts/choices";
import { useParam } from "../state";
import { Flame } from "./flame";

const NAMES: Record<string, string> = { time: "Time", python: "Python", memory: "Memory" };

/** `id` is the run's, whose graph the frames lead to; null where there is none. */
export function Flames({ id, profile }: { id: string | null; profile: Profile }) {
  const steps = profile.steps ? `mean of ${profile.detailed === null ? "some steps" : plural(profile.detailed, "step")} between ${digits(profile.steps[0])} and ${digits(profile.steps[1])}` : "";
  const kinds: { value: string; title: string; note: string; unit: string; root: FlameFrame | null }[] = [
    { value: "time", title: "Time inside a step", note: steps, unit: "s", root: profile.flame },
    { value: "python", title: "Python inside a step", note: "sampled stacks", unit: "s", root: profile.python },
    { value: "memory", title: "Memory at the peak", note: "", unit: "B", root: profile.held },
  ];
  const there = kinds.filter((kind): kind is (typeof kinds)[number] & { root: FlameFrame } => kind.root !== null);
  const [asked, setAsked] = useParam("flame", "time");
  const shown = there.find((kind) => kind.value === asked) ?? there[0];
  if (!shown) return null;
  const tabs = there.length > 1 && <Choices label="flame graph of" value={shown.value} options={there.map((kind) => ({ value: kind.value, title: NAMES[kind.value] ?? kind.value }))} set={setAsked} />;
  return <Flame key={shown.value} name={shown.value} title={shown.title} note={shown.note} root={shown.root} unit={shown.unit} id={id} tabs={tabs} />;
}
