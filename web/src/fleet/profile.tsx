// SPDX-License-Identifier: Apache-2.0
// The flame graph and the methods of whatever is chosen.
import { useMemo, useState } from "preact/hooks";
import { Flame, flameHeight } from "../flame";
import { percent, plural, weightLong } from "../format";
import { MethodTable } from "../table";
import { matched, rank, search, unattributed } from "../tree";
import { metricFor, metricIn, readingsOf, StackNode, treeOf, useAnswer } from "./ask";
import { Nothing, ViewProps, Waiting } from "./parts";
import { choice } from "./state";

type Stacks = { root: StackNode } & Record<string, number>;

export function ProfileView({ state, change }: ViewProps) {
  const { data, error, nothing } = useAnswer<Stacks>("flame", {
    ...choice(state),
    metric: state.metric,
  });
  const built = useMemo(() => {
    if (!data) return null;
    const { tree, labels } = treeOf(data.root);
    const m = metricIn(state.metric, data);
    const samples =
      (data[`${m.name}_samples`] ?? 0) - (data[`${m.name}_samples_without_time`] ?? 0);
    const mean = m.unit === "samples" && samples ? (data[`${m.name}_ns`] ?? 0) / samples : 0;
    const interval = data[`${m.name}_samples_without_time`] ? 0 : mean;
    const rows = rank(tree, labels.length);
    const [readings, read] = [
      data[`${m.name}_readings`] ?? 0,
      data[`${m.name}_${m.sum}_read`] ?? 0,
    ];
    const all = readings && read === data[`${m.name}_${m.sum}`];
    const rest = all ? readingsOf(rows, Math.floor(read / readings)) : null;
    return {
      tree,
      labels,
      metric: metricFor(m.name, tree, interval, rest),
      rows,
      lost: unattributed(tree, labels),
    };
  }, [data]);
  const [selected, setSelected] = useState("");
  const match = useMemo(() => built && search(built.labels, state.search), [built, state.search]);
  if (!built) return <Waiting error={error} />;
  const { tree, labels, metric } = built;
  const whole = tree.total[0];
  if (!whole)
    return <Nothing why={nothing} otherwise="Nothing of this kind was sent in that time." />;
  const shown = match ? built.rows.filter((r) => match[r.label]) : built.rows;
  const at = labels.indexOf(selected);
  const onSelect = (l: number) => setSelected(l < 0 ? "" : labels[l]);
  const onOpen = (l: number) => change({ view: "method", search: labels[l] });
  return (
    <>
      <div class="tools">
        <b>{weightLong(metric, whole)}</b>
        {built.lost > 0 && (
          <span class="warn" title="Samples whose stack could not be walked to a method">
            {percent(built.lost, whole)} without a method
          </span>
        )}
        <div class="search">
          <input
            type="search"
            placeholder="Search methods"
            aria-label="Search methods"
            value={state.search}
            onInput={(e) => change({ search: e.currentTarget.value })}
          />
          <output aria-live="polite">
            {match
              ? `${percent(matched(tree, match), whole)} in ${plural(shown.length, "method")}`
              : ""}
          </output>
        </div>
      </div>
      <main class="split">
        <section aria-label="Flame graph" style={{ maxHeight: flameHeight(tree) }}>
          <Flame
            tree={tree}
            labels={labels}
            metric={metric}
            whole={whole}
            upwards={false}
            match={match}
            selected={at}
            title="Flame graph"
            onSelect={onSelect}
            onOpen={onOpen}
          />
        </section>
        <section aria-label="Ranked methods">
          <MethodTable
            rows={shown}
            labels={labels}
            metric={metric}
            whole={whole}
            selected={at}
            onSelect={onSelect}
            onOpen={onOpen}
          />
        </section>
      </main>
    </>
  );
}
