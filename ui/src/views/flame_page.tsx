// A file that shows the flames of one profile and nothing else.
import { useMemo } from "preact/hooks";
import { readProfile } from "../draw/profile";
import { Frame } from "../parts/frame";
import type { PageInfo } from "../types";
import { Flames } from "./flames";
import "./views.css";

export function FlamePage({ page, raw }: { page: PageInfo; raw: unknown }) {
  const profile = useMemo(() => readProfile(raw), [raw]);
  return (
    <Frame alone crumb={<h1>{page.title}</h1>}>
      <div class="stack">
        {page.about && <p class="soft">{page.about}</p>}
        <Flames id={null} profile={profile} />
      </div>
    </Frame>
  );
}
