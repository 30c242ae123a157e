// SPDX-License-Identifier: Apache-2.0
// Questions to the collector that serves this page, and the forms of its answers (doc/fleet.md).
import { useEffect, useState } from "preact/hooks";
import { Cells, MARK, Metric, Readings, Shape, Unit } from "../data";
import { Row, select, Tree } from "../tree";

export type Params = Record<string, string | string[] | undefined>;

export interface ServiceRow {
  service: string;
  version: string;
  hosts: number;
  instances: number;
  from?: number; // seconds since 1970, as is `to`; neither is known of recordings that hold nothing
  to?: number;
}

/** A row of `top`; its other members are named after the metric: cpu_samples, cpu_ns. */
export interface CostRow {
  service: string;
  version: string;
  cost?: number;
  [sum: string]: string | number | undefined;
}

export interface MethodRow {
  method: string;
  self: number;
  total: number;
}

/** A row of `query`: a version of a service, or a caller. */
export interface QueryRow extends MethodRow {
  few_readings?: boolean; // its own figure rests on too few readings of a clock, or samples, to be known
  few_readings_of_total?: boolean;
  service: string;
  version: string;
  share: number;
  caller: string;
  cost?: number;
}

/** A figure of the VM in a row of `vm`: how often it was read, and the sums in its unit. */
export interface Figure {
  count: number;
  total_ns?: number;
  p99_ns?: number;
  mean_bytes?: number;
  mean?: number;
  most_ns?: number;
  most_bytes?: number;
  most?: number;
}

export interface VmRow {
  service: string;
  version: string;
  [figure: string]: string | Figure | undefined;
}

/** What recordings reported. */
export interface Reported {
  kind: string;
  service: string;
  version: string;
  text: string;
  count: number;
  weight_ns: number; // 0: unknown
  instances: number;
  last: number;
}

/** A row of `findings`. */
export interface Finding {
  kind: string;
  service: string;
  version: string;
  base?: string;
  since: number;
  method?: string;
  self?: Change;
  total?: Change;
  extra_ns?: number;
  extra_bytes?: number;
}

export interface StackNode {
  name: string;
  self: number;
  total: number;
  children: StackNode[];
}

export interface Change {
  base: number;
  new: number;
  change: number;
  low: number;
  high: number;
  verdict: "more" | "less" | "no change" | "too few readings";
}

export interface Difference {
  metric: string;
  verdict: "changed" | "no change" | "no data";
  base: { selection: string; samples: number; weight: number };
  new: { selection: string; samples: number; weight: number };
  methods: { method: string; self: Change; total: Change }[];
}

export interface RequestRow {
  service: string;
  request: string;
  count: number;
  errors: number;
  mean_ns: number;
  p50_ns: number;
  p99_ns: number;
  p999_ns: number;
  upper_bounds: string[]; // percentiles that are only upper bounds
  max_ns: number;
  with_causes: number; // the number of requests that they describe; the details of the others were not kept, or only because they were slow
  without_causes: number;
  causes: { cause: string; ns: number; share: number; slow_ns: number; typical_ns: number }[]; // the largest first
  slow: { count: number; mean_ns: number }; // the slowest hundredth in each upload
  typical: { count: number; mean_ns: number }; // the middle half
  why_slow: { cause: string; more_ns: number } | null; // what the slow ones have more of
  histogram: [number, number][]; // least latency of a bucket in ns, and how many requests are in it
}

/** A slow request whose recording the collector kept. */
export interface SlowRow {
  service: string;
  version: string;
  host: string;
  instance: string;
  request: string;
  id: string;
  at: number;
  duration_ns: number;
  recording: string | null; // null: it is not there any more
}

/** Asks; an answer that is not a success is thrown as an Error with its text. */
export async function question<T>(verb: string, params: Params, signal?: AbortSignal): Promise<T> {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(params))
    for (const v of Array.isArray(value) ? value : [value]) if (v) q.append(key, v);
  const r = await fetch(`v1/fleet/${verb}?${q}`, { signal });
  if (!r.ok) throw new Error((await r.text()).trim());
  return r.json();
}

export interface Answer<T> {
  nothing: string; // why the answer holds nothing
  data: T | null; // of the question that was asked last; null until it is there
  error: string;
}

/** The answer to a question, asked anew when it changes; null asks nothing. */
export function useAnswer<T>(verb: string, params: Params | null): Answer<T> {
  const none = { data: null, error: "", nothing: "" };
  const [answer, set] = useState<Answer<T>>(none);
  const key = params && verb + JSON.stringify(params);
  useEffect(() => {
    set(none);
    if (!params) return;
    const stop = new AbortController();
    question<T>(verb, params, stop.signal).then(
      (data) => set({ ...none, data, nothing: (data as { nothing?: string }).nothing ?? "" }),
      (e: Error) => !stop.signal.aborted && set({ ...none, error: e.message }),
    );
    return () => stop.abort();
  }, [key]);
  return answer;
}

export const metrics: { name: string; title: string; unit: Unit; sum: string }[] = [
  { name: "cpu", title: "CPU samples", unit: "samples", sum: "ns" },
  { name: "wall", title: "Wall clock", unit: "samples", sum: "ns" },
  { name: "allocations", title: "Allocations", unit: "bytes", sum: "bytes" },
  { name: "live", title: "Live objects", unit: "bytes", sum: "bytes" },
  { name: "locks", title: "Contended locks", unit: "ns", sum: "ns" },
  { name: "times", title: "Exact times", unit: "ns", sum: "ns" },
  { name: "latency", title: "Latency of requests", unit: "ns", sum: "ns" },
];

export const metricOf = (name: string) => metrics.find((m) => m.name === name) ?? metrics[0];

/** The metric that an answer is about: the one asked for, or the one that the collector chose. */
export const metricIn = (asked: string, data: unknown) =>
  metricOf(asked || ((data as { metric?: string } | null)?.metric ?? ""));

/** A tree of stacks for the flame graph and the table of methods. */
export function treeOf(root: StackNode): { tree: Tree; labels: string[] } {
  const labels: string[] = [];
  const numbers = new Map<string, number>();
  const parent = [0];
  const label = [-1];
  const self = [0];
  const open: [StackNode, number][] = [[root, 0]];
  while (open.length) {
    const [node, at] = open.pop()!;
    for (const c of node.children) {
      let l = numbers.get(c.name);
      if (l === undefined) {
        numbers.set(c.name, (l = labels.length));
        labels.push(c.name);
      }
      open.push([c, parent.length]);
      parent.push(at);
      label.push(l);
      self.push(c.self);
    }
  }
  const n = parent.length;
  const shape: Shape = {
    n,
    parent: Int32Array.from(parent),
    label: Int32Array.from(label),
    kind: Uint8Array.from(label, (l) => (l >= 0 && labels[l].startsWith("[") ? MARK : 0)),
  };
  const cells: Cells = {
    n,
    bucket: new Int32Array(n),
    thread: new Int32Array(n),
    node: Int32Array.from(parent, (_, i) => i),
    weight: Float64Array.from(self),
    buckets: 1,
  };
  return { tree: select(shape, cells, { threads: null, window: null }), labels };
}

/** The readings of a clock on which the times of each label rest, if all times rest on readings and each reading stands for `each` ns. */
export function readingsOf(rows: Row[], each: number): Map<number, Readings> {
  return new Map(
    rows.map((r) => [
      r.label,
      { of: [Math.floor(r.self / each), Math.floor(r.total / each)], known: [true, true] },
    ]),
  );
}

/** What the flame graph has to know of what is counted. `intervalNs`: the time that a sample stands for, 0 if that differs. */
export function metricFor(
  name: string,
  tree: Tree,
  intervalNs: number,
  readings: Metric["readings"],
): Metric {
  const m = metricOf(name);
  return {
    name: m.name,
    title: m.title,
    unit: m.unit,
    intervalNs,
    untimed: false,
    note: "",
    noteShort: "",
    roughBelow: 0,
    pruned: 0,
    threadsMerged: true,
    bucketNs: 0,
    fromNs: 0,
    shape: tree,
    cells: {
      n: 0,
      bucket: new Int32Array(0),
      thread: new Int32Array(0),
      node: new Int32Array(0),
      weight: new Float64Array(0),
      buckets: 1,
    },
    readings,
    calls: null,
    estimated: new Set(),
    aside: 0,
  };
}
