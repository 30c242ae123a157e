// SPDX-License-Identifier: Apache-2.0
// What the VMs themselves did: collections, safepoints, memory, CPU.
import { bytes, count, duration } from "../format";
import { SortableTable } from "../sortable";
import { Figure, useAnswer, VmRow } from "./ask";
import { Nothing, ViewProps, Waiting } from "./parts";
import { choice } from "./state";

const columns: {
  title: string;
  figure: string;
  member: keyof Figure;
  format: (v: number) => string;
  minor?: boolean;
}[] = [
  { title: "Pauses", figure: "pauses", member: "count", format: count },
  { title: "Paused", figure: "pauses", member: "total_ns", format: duration },
  { title: "p99", figure: "pauses", member: "p99_ns", format: duration, minor: true },
  { title: "Longest", figure: "pauses", member: "most_ns", format: duration },
  { title: "Stopped", figure: "safepoints", member: "total_ns", format: duration },
  { title: "Throttled", figure: "throttled", member: "total_ns", format: duration },
  { title: "CPU", figure: "cpu", member: "total_ns", format: duration },
  { title: "Heap", figure: "heap", member: "mean_bytes", format: bytes },
  { title: "Most heap", figure: "heap", member: "most_bytes", format: bytes, minor: true },
  { title: "RSS", figure: "rss", member: "mean_bytes", format: bytes },
  { title: "Most RSS", figure: "rss", member: "most_bytes", format: bytes, minor: true },
  { title: "Threads", figure: "threads", member: "most", format: count },
];

/** Of a figure that the recordings of a service do not hold; below all that they could. */
const UNKNOWN = -1;

export function VmView({ state, change }: ViewProps) {
  const { data, error, nothing } = useAnswer<{ services: VmRow[] }>("vm", {
    ...choice(state),
    request: undefined,
  });
  if (!data)
    return (
      <main>
        <Waiting error={error} />
      </main>
    );
  if (!data.services.length)
    return (
      <main>
        <Nothing why={nothing} otherwise="" />
      </main>
    );
  const value = (s: VmRow, c: (typeof columns)[number]) =>
    Number((s[c.figure] as Figure | undefined)?.[c.member] ?? UNKNOWN);
  return (
    <main>
      <section class="columns stay" aria-label="What the VMs did">
        <SortableTable
          cards
          caption="Pauses for collections, stops at safepoints, the heap after collections, and the process. Enter chooses a service."
          by={3}
          selected={new Set()}
          onSelect={(s) => {
            const row = data.services[[...s][0]];
            if (row) change({ service: row.service, version: row.version });
          }}
          rows={data.services.map((s, key) => ({
            key,
            cells: [s.service, s.version, ...columns.map((c) => value(s, c))],
          }))}
          columns={[
            { title: "Service", name: true },
            { title: "Version" },
            ...columns.map((c) => ({
              title: c.title,
              numeric: true,
              format: (v: number) => (v === UNKNOWN ? "-" : c.format(v)),
              minor: c.minor,
            })),
          ]}
        />
      </section>
    </main>
  );
}
