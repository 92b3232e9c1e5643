// A choice of one of a few.
/** One of a few, side by side; one that can't be chosen says why. */
export function Choices<T extends string>({ label, value, options, set }: { label: string; value: T; options: { value: T; title: string; why?: string }[]; set: (value: T) => void }) {
  return (
    <span class="choices" role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <button type="button" role="radio" aria-checked={option.value === value} disabled={option.why !== undefined} title={option.why} onClick={() => set(option.value)}>
          {option.title}
        </button>
      ))}
    </span>
  );
}
