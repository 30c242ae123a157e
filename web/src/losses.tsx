// SPDX-License-Identifier: Apache-2.0
// What the recording lost, shown above every view, with the losses of the current view first.
import type { Loss, PageJson } from "./data";
import { count, duration, plural, sentence } from "./format";
import { views } from "./views";

/** The captures whose losses make the view incomplete; for the profile, by metric. */
const captureOf = (view: string, metric: string) =>
  views.find((v) => v.name === view)?.losses ??
  (/alloc|live/.test(metric)
    ? /^(alloc|recording)$/
    : /lock/.test(metric)
      ? /^(locks|monitors|recording)$/
      : /^(cpu|times|recording)$/);

const amountOf = (l: Loss) =>
  [
    plural(l.amount, l.what, l.what),
    ...(l.with ?? []).map((w, i) => `${i ? "and" : "with"} ${plural(w.amount, w.what, w.what)}`),
  ].join(" ");

const list = (names: string[]) => names.join(", ").replace(/, ([^,]*)$/, " and $1");

/** "; the counts of alloc and times are those of 7.5 s" */
function counts(page: PageJson) {
  const of = new Map<number, string[]>();
  for (const c of page.counted ?? [])
    of.set(c.until_ns, [...(of.get(c.until_ns) ?? []), c.capture]);
  return [...of]
    .map(([ns, names], i) =>
      i
        ? `, of ${list(names)} those of ${duration(ns)}`
        : `; the counts of ${list(names)} are those of ${duration(ns)}`,
    )
    .join("");
}

export function Losses({ page, view, metric }: { page: PageJson; view: string; metric: string }) {
  const losses = page.losses ?? [];
  const mine = losses.filter((l) => captureOf(view, metric).test(l.capture));
  const others = losses.filter((l) => !mine.includes(l));
  return (
    <>
      {page.unended && (
        <p class="note lost">
          This recording was not ended: everything after {duration(page.duration_ns)} is missing
          {counts(page)}.
        </p>
      )}
      {(page.before ?? []).map((b) => (
        <p class="note lost">
          {b.capture}: some was recorded up to {duration(b.ns)} before the recording began, while
          classes were changed.
        </p>
      ))}
      {(page.missing ?? [])
        .filter((m) => captureOf(view, metric).test(m.capture))
        .map((m) => (
          <p class="note lost">
            {m.capture}: {m.what}: {m.reason}.
          </p>
        ))}
      {(page.left_out ?? []).length > 0 && (
        <p class="note">
          Left out of what the VM's own recorder wrote, because jvmscope recorded the same itself:{" "}
          {list((page.left_out ?? []).map((e) => `${count(e.events)} ${e.type}`))}.
        </p>
      )}
      {mine.map((l) => (
        <p class="note lost">Lost here: {sentence(l.sentence)}.</p>
      ))}
      {others.length > 0 && (
        <details class="note lost">
          <summary>
            Losses of other captures: {others.map((l) => `${l.capture} ${amountOf(l)}`).join(", ")}
          </summary>
          {others.map((l) => (
            <p>{sentence(l.sentence)}.</p>
          ))}
        </details>
      )}
    </>
  );
}
