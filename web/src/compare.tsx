// SPDX-License-Identifier: Apache-2.0
// Compares this recording with another by shares of the whole, so that runs of different lengths
// can be compared.
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, decodeMetric, Metric, PageJson } from "./data";
import { Flame, flameHeight } from "./flame";
import { percent, points } from "./format";
import { SortableTable } from "./sortable";
import { useDark } from "./theme";
import { rank, search, select, Tree } from "./tree";

export interface Side {
  labels: string[];
  tree: Tree;
}

function sideOf(page: PageJson, name: string, aside: boolean): Side | null {
  const json = page.metrics.find((m) => m.name === name);
  if (!json) return null;
  const whole = decodeMetric(json);
  const m = aside ? whole : (whole.plain ?? whole);
  return { labels: page.labels, tree: select(m.shape, m.cells, { threads: null, window: null }) };
}

/** The other recording's weight at each node of `now`, where the same methods call each other. */
function matchPaths(now: Side, other: Side): Float64Array {
  const numbers = new Map(now.labels.map((l, i) => [l, i]));
  const index = new Map<number, number>();
  const n = now.labels.length + 1;
  for (let i = 1; i < now.tree.n; i++) index.set(now.tree.parent[i] * n + now.tree.label[i], i);
  const at = new Int32Array(other.tree.n).fill(-1);
  const weight = new Float64Array(now.tree.n);
  at[0] = 0;
  for (let i = 1; i < other.tree.n; i++) {
    const parent = at[other.tree.parent[i]];
    const label = numbers.get(other.labels[other.tree.label[i]]);
    const node = parent >= 0 && label !== undefined ? index.get(parent * n + label) : undefined;
    if (node === undefined) continue;
    at[i] = node;
    weight[node] = other.tree.total[i];
  }
  return weight;
}

// Orange means more than in the other recording, blue less; colour-blind readers can tell these
// apart.
function tintOf(change: number, dark: boolean): string {
  const strength = Math.min(1, Math.abs(change) * 12);
  return `hsl(${change > 0 ? 28 : 212} ${(85 * strength).toFixed(0)}% ${((dark ? 26 : 90) + (dark ? 16 : -26) * strength).toFixed(0)}%)`;
}

/** `than`: what this is compared with. */
export function CompareLegend({ than }: { than: string }) {
  const dark = useDark();
  return (
    <div class="legend">
      <span>
        <i style={{ background: tintOf(1, dark) }} /> a larger share than in {than}
      </span>
      <span>
        <i style={{ background: tintOf(0, dark) }} /> the same share
      </span>
      <span>
        <i style={{ background: tintOf(-1, dark) }} /> a smaller share than in {than}
      </span>
    </div>
  );
}

interface Common {
  metric: Metric;
  text: string; // of the search
  match: Uint8Array | null; // of the page's labels
  selected: number;
  onSelect: (label: number) => void;
}

interface CompareProps extends Common {
  page: PageJson;
  aside: boolean;
  at: number;
  onLacking: () => void; // the other recording does not have the metric
}

/** This recording beside another one, which the server has. */
export function Compare({ page, aside, at, onLacking, ...common }: CompareProps) {
  const { metric } = common;
  const [other, setOther] = useState<PageJson | string | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    setOther(null);
    ask(`../${at}/`, true, stop.signal)
      .then(setOther)
      .catch((e: Error) => !stop.signal.aborted && setOther(e.message));
    return () => stop.abort();
  }, [at]);
  const now = useMemo(() => sideOf(page, metric.name, aside)!, [page, metric]);
  const base = useMemo(
    () => (other && typeof other !== "string" ? sideOf(other, metric.name, aside) : null),
    [other, metric],
  );
  useEffect(() => {
    if (other && typeof other !== "string" && !base) onLacking();
  }, [other, base]);
  if (typeof other === "string") return <p class="note">{other}</p>;
  if (!other) return <p class="note">Reading the other recording …</p>;
  return base && <Difference {...common} now={now} base={base} than="the other recording" />;
}

/** The difference of one side's shares from another's, as a flame graph and a table. */
export function Difference({
  now,
  base,
  than,
  metric,
  text,
  match,
  onSelect,
  selected,
}: Common & { now: Side; base: Side; than: string }) {
  const isDark = useDark();
  const before = useMemo(() => matchPaths(now, base), [now, base]);
  const rows = useMemo(() => {
    const shares = new Map<string, number[]>();
    const add = (side: Side, k: number) => {
      const whole = side.tree.total[0] || 1;
      for (const r of rank(side.tree, side.labels.length)) {
        const row = shares.get(side.labels[r.label]) ?? [0, 0, 0, 0];
        row[k] = r.self / whole;
        row[k + 2] = r.total / whole;
        shares.set(side.labels[r.label], row);
      }
    };
    add(base, 0);
    add(now, 1);
    return [...shares]
      .map(([name, [b, a, bt, t]]) => [a - b, b, a, t - bt, name] as const)
      .sort((x, y) => Math.abs(y[0]) - Math.abs(x[0]))
      .map((cells, key) => ({ key, cells: [...cells] }));
  }, [now, base]);
  const shown = useMemo(() => {
    const found = search(
      rows.map((r) => String(r.cells[4])),
      text,
    );
    return found ? rows.filter((r) => found[r.key]) : rows;
  }, [rows, text]);
  const whole = now.tree.total[0] || 1;
  const wholeBase = base.tree.total[0] || 1;
  const tint = (node: number) =>
    tintOf(now.tree.total[node] / whole - before[node] / wholeBase, isDark);
  const change = { numeric: true, format: points };
  const share = { numeric: true, format: (v: number) => percent(v, 1) };
  return (
    <main class="split">
      <section aria-label="Differential flame graph" style={{ maxHeight: flameHeight(now.tree) }}>
        <Flame
          tree={now.tree}
          labels={now.labels}
          metric={metric}
          whole={whole}
          upwards={false}
          match={match}
          selected={selected}
          title={`Differential flame graph: orange is more than in ${than}, blue is less`}
          onSelect={onSelect}
          onOpen={() => {}}
          tint={tint}
        />
      </section>
      <section class="compared" aria-label="Methods by change">
        <SortableTable
          caption="Methods by change of their share"
          rows={shown}
          selected={new Set()}
          onSelect={(s) => onSelect(now.labels.indexOf(String(rows[[...s][0]]?.cells[4] ?? "")))}
          limit={500}
          by={0}
          columns={[
            { title: "Self, change in points", ...change },
            { title: "Self there", ...share, minor: true },
            { title: "Self here", ...share, minor: true },
            { title: "Total, change in points", ...change, minor: true },
            { title: "Method", name: true, code: "method" },
          ]}
        />
      </section>
    </main>
  );
}
