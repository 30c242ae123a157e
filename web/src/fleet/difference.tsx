// SPDX-License-Identifier: Apache-2.0
// What changed against another version or an earlier time, with an interval for each change.
import { useMemo } from "preact/hooks";
import { plural, points } from "../format";
import { SortableTable } from "../sortable";
import { Change, Difference, useAnswer } from "./ask";
import { ViewProps, Waiting } from "./parts";
import { choice, seconds } from "./state";

const changed = (c: Change) => c.verdict === "more" || c.verdict === "less";
const interval = (c: Change) =>
  c.verdict === "too few readings" ? "too few readings" : `${points(c.low)} to ${points(c.high)}`;

/** What was compared, as `jvmscope fleet diff` names it. */
const side = (s: Difference["base"]) =>
  [s.selection, plural(s.samples, "sample")].filter(Boolean).join(", ");

export function DifferenceView({ state, change, known }: ViewProps) {
  const versions = useMemo(
    () =>
      known
        .filter((s) => s.service === state.service && s.version && s.version !== state.version)
        .map((s) => s.version),
    [known, state.service, state.version],
  );
  const base = state.base || (state.version && versions.length ? `version=${versions[0]}` : "");
  const before =
    base === "before" && state.range
      ? [`from=${(2 * seconds(state.range)) / 60}m`, `to=${seconds(state.range) / 60}m`]
      : undefined;
  const asked = base && (base !== "before" || before);
  const { data, error } = useAnswer<Difference>(
    "diff",
    asked ? { ...choice(state), metric: state.metric, base: before ?? base } : null,
  );
  const rows = data?.methods.filter((m) => changed(m.self) || changed(m.total)) ?? [];
  const few = data?.methods.filter((m) => m.total.verdict === "too few readings").length ?? 0;
  return (
    <>
      <div class="tools">
        <label class="field">
          Compared with
          <select value={base} onChange={(e) => change({ base: e.currentTarget.value })}>
            <option value="">…</option>
            {versions.map((v) => (
              <option key={v} value={`version=${v}`}>
                version {v}
              </option>
            ))}
            {state.range && <option value="before">the preceding period of the same length</option>}
          </select>
        </label>
        {data && (
          <b role="status">
            {data.verdict === "changed"
              ? `${plural(rows.length, "method")} changed`
              : data.verdict === "no change"
                ? "No change"
                : "Too few profiles were sent to compare"}
          </b>
        )}
        {data && (
          <span class="dim">
            Base: {side(data.base)}; new: {side(data.new)}
            {few > 0 && `, ${plural(few, "method")} with too few readings or samples to compare`}
          </span>
        )}
      </div>
      <main>
        {!asked ? (
          <p class="empty">
            Choose a service, and then what to compare: one of its versions with another one, or a
            period with the one before it.
          </p>
        ) : !data ? (
          <Waiting error={error} />
        ) : rows.length ? (
          <section class="columns" aria-label="Methods that changed">
            <SortableTable
              cards
              caption="Methods that changed, with an interval that holds the change with 95 % for all of them together"
              by={0}
              selected={new Set()}
              onSelect={(s) => {
                const row = rows[[...s][0]];
                if (row) change({ view: "profile", search: row.method });
              }}
              rows={rows.map((m, key) => ({
                key,
                cells: [
                  m.self.change,
                  interval(m.self),
                  m.total.change,
                  interval(m.total),
                  m.method,
                ],
              }))}
              columns={[
                { title: "Self, change in points", numeric: true, format: points },
                { title: "between", minor: true },
                { title: "Total, change in points", numeric: true, format: points },
                { title: "between ", minor: true },
                { title: "Method", name: true, code: "method" },
              ]}
            />
          </section>
        ) : (
          <p class="empty">
            {data.verdict === "no data"
              ? "Both sides need several periods or several instances."
              : "No change is larger than chance explains."}
          </p>
        )}
      </main>
    </>
  );
}
