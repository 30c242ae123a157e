// SPDX-License-Identifier: Apache-2.0
// What the recording lost, shown above every view, with the losses of the current view first.
import type { Loss, PageJson } from "./data";
import { duration, plural } from "./format";
import type { View } from "./link";

/** Names of captures by view; for the profile, by metric. */
const captures: Record<string, RegExp> = {
  threads: /^(threads|locks|monitors|io|recording)$/,
  monitors: /^(threads|locks|monitors|io|recording)$/,
  trace: /^(trace|log|recording)$/,
  coverage: /^(coverage|recording)$/,
  heap: /^(heap|recording)$/,
};

const captureOf = (view: View, metric: string) => captures[view] ?? (/alloc/.test(metric) ? /^(alloc|recording)$/ : /lock/.test(metric) ? /^(locks|monitors|recording)$/ : /^(cpu|times|recording)$/);

const sentence = (l: Loss) =>
  `${l.capture}: ${plural(l.amount, l.what, l.what)} ${l.amount === 1 ? "was" : "were"} lost between ${duration(l.from_ns)} and ${duration(l.to_ns)}: ${l.reason}`;

export function Losses({ page, view, metric }: { page: PageJson; view: View; metric: string }) {
  const losses = page.losses ?? [];
  const mine = losses.filter((l) => captureOf(view, metric).test(l.capture));
  const others = losses.filter((l) => !mine.includes(l));
  return (
    <>
      {page.unended && <p class="note lost">This recording was never ended: what came after {duration(page.duration_ns)} is missing.</p>}
      {mine.map((l) => (
        <p class="note lost">Lost here: {sentence(l)}.</p>
      ))}
      {others.length > 0 && (
        <details class="note lost">
          <summary>Lost of other captures: {others.map((l) => `${l.capture} ${plural(l.amount, l.what, l.what)}`).join(", ")}</summary>
          {others.map((l) => (
            <p>{sentence(l)}.</p>
          ))}
        </details>
      )}
    </>
  );
}
