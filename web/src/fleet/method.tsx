// SPDX-License-Identifier: Apache-2.0
// Who calls a method, in the whole fleet, and at what cost.
import { percent, weight } from "../format";
import { Column, SortableTable } from "../sortable";
import { metricIn, QueryRow, useAnswer } from "./ask";
import { Nothing, ViewProps, Waiting } from "./parts";
import { choice, priceFault } from "./state";

export function MethodView({ state, change }: ViewProps) {
  const asked = state.search.trim();
  const method = /[*?]/.test(asked) ? asked : `*${asked}*`;
  const { data, error, nothing } = useAnswer<
    { services: QueryRow[]; callers: QueryRow[] } & Record<string, number>
  >(
    "query",
    asked
      ? {
          ...choice(state),
          metric: state.metric,
          method,
          price: priceFault(state.price) ? "" : state.price,
        }
      : null,
  );
  const m = metricIn(state.metric, data);
  const whole = data?.[`${m.name}_${m.unit === "samples" ? "samples" : m.sum}`] ?? 0;
  const share = { numeric: true, format: (v: number) => percent(v, 1) };
  const sum = { numeric: true, format: (v: number) => weight(m.unit, v), minor: true };
  const cost: Column[] = data?.services.some((r) => r.cost !== undefined)
    ? [{ title: "Cost", numeric: true, format: (v: number) => v.toFixed(2) }]
    : [];
  // Figures from too few readings of a clock, or samples, are marked. (The collector ranks them
  // last.)
  const known =
    data?.services.some((r) => r.few_readings || r.few_readings_of_total) ||
    data?.callers.some((r) => r.few_readings_of_total)
      ? [{ title: "Known", minor: true }]
      : [];
  const knows = (r: QueryRow) =>
    known.map(() =>
      r.few_readings_of_total ? "too few readings" : r.few_readings ? "self: too few readings" : "",
    );
  const costs = (r: QueryRow) => cost.map(() => r.cost ?? 0);
  return (
    <>
      <div class="tools">
        <div class="search">
          <input
            type="search"
            autofocus
            placeholder="java.util.regex.*"
            aria-label="Method, a part of its name, a pattern, or = and the name"
            value={state.search}
            onChange={(e) => change({ search: e.currentTarget.value })}
          />
        </div>
        <span class="dim">
          A part of a method's name, a pattern with * and ?, or = and the name
        </span>
      </div>
      <main>
        {!asked ? null : !data ? (
          <Waiting error={error} />
        ) : data.services.length ? (
          <>
            <section class="columns" aria-label="Services that call it">
              <SortableTable
                cards
                caption="Services that call it. Enter shows the profile of one."
                by={3}
                selected={new Set()}
                onSelect={(s) => {
                  const row = data.services[[...s][0]];
                  if (row)
                    change({
                      view: "profile",
                      service: row.service,
                      version: row.version,
                      search: row.method,
                    });
                }}
                rows={data.services.map((r, key) => ({
                  key,
                  cells: [
                    `${r.service} ${r.version}`,
                    r.share,
                    r.self,
                    r.total,
                    ...knows(r),
                    ...costs(r),
                    r.method,
                  ],
                }))}
                columns={[
                  { title: "Service" },
                  { title: "Share of it", ...share },
                  { title: "Self", ...sum },
                  { title: "Total", ...sum, minor: false },
                  ...known,
                  ...cost,
                  { title: "Method", name: true, code: "method" },
                ]}
              />
            </section>
            <section class="columns" aria-label="Callers">
              <SortableTable
                cards
                caption="Callers of the method in all selected services."
                by={1}
                selected={new Set()}
                onSelect={() => {}}
                rows={data.callers.map((r, key) => ({
                  key,
                  cells: [
                    r.caller || "(none)",
                    r.total,
                    whole ? r.total / whole : 0,
                    ...knows(r),
                    ...costs(r),
                    r.method,
                  ],
                }))}
                columns={[
                  { title: "Caller", name: true, code: "method" },
                  { title: "Total", ...sum, minor: false },
                  { title: "Share of all", ...share },
                  ...known,
                  ...cost,
                  { title: "Method", name: true, code: "method" },
                ]}
              />
            </section>
          </>
        ) : (
          <Nothing why={nothing} otherwise="No service ran a method of this name in that time." />
        )}
      </main>
    </>
  );
}
