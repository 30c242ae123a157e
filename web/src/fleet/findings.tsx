// SPDX-License-Identifier: Apache-2.0
// What got slower with new versions, and what recordings reported.
import { count, duration, percent, weight } from "../format";
import { SortableTable } from "../sortable";
import { Finding, metricIn, Reported, useAnswer } from "./ask";
import { ViewProps, Waiting } from "./parts";
import { choice } from "./state";

const points = (v: number) => `${v > 0 ? "+" : ""}${percent(v, 1)}`;

export function FindingsView({ state, change }: ViewProps) {
  const { data, error } = useAnswer<{
    findings: Finding[];
    compared: object[];
    reported: Reported[];
    false_alarm: number;
  }>("findings", { ...choice(state), metric: state.metric });
  const m = metricIn(state.metric, data);
  if (!data)
    return (
      <main>
        <Waiting error={error} />
      </main>
    );
  const n = data.compared.length;
  const slower = data.findings.filter((f) => f.method !== undefined);
  const share = { numeric: true, format: points };
  return (
    <main>
      {n > 0 && (
        <p class="note">
          {n === 1 ? "One new version was" : `${n} new versions were`} compared with the one before{" "}
          {n === 1 ? "it" : "each"}. Where nothing got slower, a comparison names a method in at
          most {percent(data.false_alarm, 1)} of the cases.
        </p>
      )}
      {slower.length ? (
        <section class="columns" aria-label="What got slower">
          <SortableTable
            cards
            caption="Methods whose share has grown since a version appeared. Enter shows the difference."
            by={1}
            selected={new Set()}
            onSelect={(s) => {
              const f = slower[[...s][0]];
              if (f)
                change({
                  view: "difference",
                  service: f.service,
                  version: f.version,
                  base: `version=${f.base}`,
                  search: f.method!,
                });
            }}
            rows={slower.map((f, key) => ({
              key,
              cells: [
                `${f.service} ${f.version} (after ${f.base})`,
                f.extra_ns ?? f.extra_bytes ?? 0,
                f.self!.change,
                f.total!.change,
                f.method!,
              ],
            }))}
            columns={[
              { title: "Service" },
              {
                title: "Costs more",
                numeric: true,
                format: (v: number) =>
                  v ? weight(m.sum === "bytes" ? "bytes" : "ns", v) : "unknown",
              },
              { title: "Self", ...share },
              { title: "Total", ...share, minor: true },
              { title: "Method", name: true, code: "method" },
            ]}
          />
        </section>
      ) : (
        <p class={data.reported.length ? "note" : "empty"}>
          {n
            ? "Nothing got slower."
            : "Nothing was compared: no version of a service began after another one in this period. Versions that began in the same interval have no order."}
        </p>
      )}
      {data.reported.length > 0 && (
        <section class="columns" aria-label="What recordings report">
          <SortableTable
            cards
            caption="What recordings report. Enter shows the requests, or the VMs."
            by={3}
            selected={new Set()}
            onSelect={(s) => {
              const f = data.reported[[...s][0]];
              if (f)
                change({
                  view: f.kind === "slow requests" ? "requests" : "vm",
                  service: f.service,
                  version: f.version,
                });
            }}
            rows={data.reported.map((f, key) => ({
              key,
              cells: [
                `${f.service} ${f.version}`.trim(),
                f.kind,
                f.text,
                f.weight_ns,
                f.count,
                f.instances,
              ],
            }))}
            columns={[
              { title: "Service" },
              { title: "What", minor: true },
              { title: "Where or why", name: true },
              {
                title: "Costs",
                numeric: true,
                format: (v: number) => (v ? duration(v) : "unknown"),
              },
              { title: "Count", numeric: true, format: count },
              { title: "VMs", numeric: true, format: count },
            ]}
          />
        </section>
      )}
    </main>
  );
}
