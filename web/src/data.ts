// SPDX-License-Identifier: Apache-2.0
// The page's data, as written by src/page/data.c.

import type {} from "./choice";
import type { TimelineJson } from "./timeline";

export type Unit = "samples" | "bytes" | "ns";

export interface MetricJson {
  name: string;
  title: string;
  unit: Unit;
  interval_ns: number;
  untimed?: boolean; // counts of the whole recording, which have no times
  note?: string; // what the figures rest on, where they are not plain counts
  note_short?: string; // its beginning, without the explanation
  rough_below?: number; // fewer than ten samples stand on average for less than this weight
  nodes: number;
  pruned: number;
  tree: Bytes;
  bucket_ns: number;
  buckets: number; // up to the end of the recording
  from_ns: number;
  threads_merged: boolean; // too many stacks of too many threads: weights are of all of them
  aside: number; // weight of threads with nothing to do, or of the VM's own; not 0: the lowest bit of a cell's node says which cells are of it
  // Counted calls: label, calls, the readings of the clock for its own and for its whole time,
  // which of these times are known (1, 2), and so on. by_readings: times rest on readings.
  calls?: number[];
  by_readings?: boolean;
  estimated?: number[]; // of exact allocations: labels of methods whose own bytes samples show
  n_cells: number;
  cells: Bytes;
}

/** What a capture lost, and when, counted from the start of the recording. */
export interface Loss {
  capture: string;
  what: string;
  reason: string;
  sentence: string; // all of it, in words
  amount: number;
  with?: { what: string; amount: number }[]; // what these held, such as bytes of sites
  from_ns: number;
  to_ns: number;
}

/**
 * Bytes in base64 in a page of one file; in a served page their position in the binary data of the profile, and later the
 * bytes.
 */
export type Bytes = string | [number, number] | Uint8Array;

/** What every page has. A view that has data of its own declares them in its module: `declare module "./data"`. */
export interface PageJson {
  version: string;
  file: string;
  warning: string | null; // what is wrong with the recording
  part?: string | null; // where samples are selected: the options that select them
  whole?: string | null; // where samples are selected: the data that still covers the whole recording
  start_ms: number;
  duration_ns: number;
  metric: string;
  metrics: MetricJson[];
  labels: string[];
  threads: string[];
  timeline?: TimelineJson;
  losses?: Loss[];
  unended?: boolean; // the recording: it still records, or its VM was killed
  counted?: { capture: string; until_ns: number }[]; // then: until when what is only counted is there
  before?: { capture: string; ns: number }[]; // what recorded before the recording began
  missing?: { capture: string; what: string; reason: string }[]; // what the system did not permit
  left_out?: { type: string; events: number }[]; // of the VM's own recorder, recorded here as well
  // Served, with these files next to it; dumps: those of which a heap is all there is.
  site?: { at: number; files: string[]; dumps: number[] };
  fill?: () => Promise<void>; // served: asks for the weights of the profile
}

/** The data of this page, from the file or from the server. `weights`: the first view needs the weights of its profile. */
export async function load(inFile: string, weights: boolean): Promise<PageJson> {
  if (inFile) return JSON.parse(inFile);
  fetch("ready").catch(() => {}); // what is indexed is opened meanwhile
  return ask("", weights);
}

async function get(url: string, signal?: AbortSignal): Promise<Response> {
  const r = await fetch(url, { signal });
  if (!r.ok) throw new Error(await r.text());
  return r;
}

/** The data of a served page, with the weights of its profile now or when they are needed. */
export async function ask(base: string, weights: boolean, signal?: AbortSignal): Promise<PageJson> {
  const bytes = () => get(`${base}weights`, signal).then((r) => r.arrayBuffer());
  let asked = weights ? bytes() : null;
  asked?.catch(() => {}); // the other answer says why
  const page: PageJson = await (await get(`${base}data`, signal)).json();
  page.fill = async () => {
    const all = await (asked ??= bytes());
    const part = (b: Bytes) => (Array.isArray(b) ? new Uint8Array(all, b[0], b[1]) : b);
    for (const m of page.metrics) {
      [m.tree, m.cells] = [part(m.tree), part(m.cells)];
      if (m.by_request) m.by_request.cells = part(m.by_request.cells);
    }
    if (page.request_sets) page.request_sets.sets = part(page.request_sets.sets);
  };
  if (weights && page.metrics.length) await page.fill();
  return page;
}

/** Returns whether the weights of a metric have yet to be requested. */
export const isEmpty = (m: MetricJson) => Array.isArray(m.cells);

/** Frame kinds in the order of enum frame_kind. */
export const kinds = [
  "java",
  "interpreted",
  "compiled",
  "inlined",
  "native",
  "kernel",
  "stub",
  "mark",
] as const;
export const MARK = 7;

/** A tree of methods; node 0 is the root, and a parent's number is smaller than its children's. */
export interface Shape {
  n: number;
  parent: Int32Array;
  label: Int32Array;
  kind: Uint8Array;
}

/** Weight by time, thread and node of a Shape. */
export interface Cells {
  n: number;
  bucket: Int32Array;
  thread: Int32Array;
  node: Int32Array;
  weight: Float64Array;
  buckets: number;
}

/** For a method's own and its whole time: the readings of the clock, and whether the time is certainly above zero. */
export interface Readings {
  of: number[];
  known: boolean[];
}

export interface Metric {
  name: string;
  title: string;
  unit: Unit;
  intervalNs: number;
  untimed: boolean;
  note: string;
  noteShort: string;
  roughBelow: number;
  pruned: number;
  threadsMerged: boolean;
  bucketNs: number;
  fromNs: number;
  shape: Shape;
  cells: Cells;
  estimated: Set<number>; // labels, see MetricJson
  readings: Map<number, Readings> | null; // by label, of the whole recording: what its own and its whole time rest on
  calls: Map<number, number> | null; // by label, of the whole recording: how often it was called
  aside: number; // weight that `plain` leaves out
  plain?: Metric; // the same as `report` shows it: without threads that have nothing to do, and the VM's own
}

function fromBase64(text: string): Uint8Array {
  const quick = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (quick) return quick.call(Uint8Array, text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export class Varints {
  at = 0;
  readonly bytes: Uint8Array;

  /** Takes bytes, or bytes in base64. */
  constructor(from: string | Uint8Array) {
    this.bytes = typeof from === "string" ? fromBase64(from) : from;
  }

  get more(): boolean {
    return this.at < this.bytes.length;
  }

  byte(): number {
    return this.bytes[this.at++];
  }

  /** Multiplies instead of shifting, because weights may exceed 2^32. Most numbers take one or two bytes. */
  next(): number {
    const b = this.bytes[this.at++];
    if (b < 128) return b;
    const c = this.bytes[this.at++];
    if (c < 128) return (b & 127) | (c << 7);
    let value = (b & 127) | ((c & 127) << 7);
    for (let scale = 16384; ; scale *= 128) {
      const d = this.bytes[this.at++];
      value += (d & 127) * scale;
      if (!(d >= 128)) return value;
    }
  }
}

function decodeShape(m: MetricJson): Shape {
  const shape: Shape = {
    n: m.nodes,
    parent: new Int32Array(m.nodes),
    label: new Int32Array(m.nodes),
    kind: new Uint8Array(m.nodes),
  };
  const v = new Varints(m.tree as string | Uint8Array);
  shape.label[0] = -1;
  for (let i = 1; i < m.nodes; i++) {
    shape.parent[i] = i - v.next();
    shape.label[i] = v.next();
    shape.kind[i] = v.next();
  }
  return shape;
}

function decodeCells(m: MetricJson, aside: Uint8Array): Cells {
  const v = new Varints(m.cells as string | Uint8Array);
  const n = m.n_cells;
  const cells: Cells = {
    n,
    bucket: new Int32Array(n),
    thread: new Int32Array(n),
    node: new Int32Array(n),
    weight: new Float64Array(n),
    buckets: 1,
  };
  let bucket = 0;
  for (let i = 0; i < n; i++) {
    cells.bucket[i] = bucket += v.next();
    cells.thread[i] = v.next();
    const node = v.next();
    if (m.aside) aside[i] = node & 1;
    cells.node[i] = m.aside ? node >>> 1 : node;
    cells.weight[i] = v.next();
  }
  cells.buckets = Math.max(bucket + 1, m.buckets);
  return cells;
}

/** What is counted of each method, by label. */
function counted<T>(list: number[] | undefined, of: (row: number[]) => T): Map<number, T> | null {
  if (!list) return null;
  const by = new Map<number, T>();
  for (let i = 0; i + 4 < list.length; i += 5) by.set(list[i], of(list.slice(i + 1, i + 5)));
  return by;
}

/** The cells without a mark. */
export function without(c: Cells, marked: Uint8Array): Cells {
  const keep = marked.reduce((n, m) => n + 1 - m, 0);
  const part = {
    bucket: new Int32Array(keep),
    thread: new Int32Array(keep),
    node: new Int32Array(keep),
    weight: new Float64Array(keep),
  };
  for (let i = 0, k = 0; i < c.n; i++) {
    if (marked[i]) continue;
    part.bucket[k] = c.bucket[i];
    part.thread[k] = c.thread[i];
    part.node[k] = c.node[i];
    part.weight[k++] = c.weight[i];
  }
  return { ...part, n: keep, buckets: c.buckets };
}

export function decodeMetric(m: MetricJson): Metric {
  const aside = new Uint8Array(m.n_cells);
  const metric: Metric = {
    name: m.name,
    title: m.title,
    unit: m.unit,
    intervalNs: m.interval_ns,
    untimed: !!m.untimed,
    note: m.note ?? "",
    noteShort: m.note_short ?? "",
    roughBelow: m.rough_below ?? 0,
    pruned: m.pruned,
    threadsMerged: m.threads_merged,
    bucketNs: m.bucket_ns,
    fromNs: m.from_ns,
    shape: decodeShape(m),
    cells: decodeCells(m, aside),
    estimated: new Set(m.estimated ?? []),
    readings: m.by_readings
      ? counted(m.calls, ([, own, whole, known]) => ({
          of: [own, whole],
          known: [!!(known & 1), !!(known & 2)],
        }))
      : null,
    calls: counted(m.calls, ([calls]) => calls),
    aside: m.aside ?? 0,
  };
  if (metric.aside) metric.plain = { ...metric, cells: without(metric.cells, aside) };
  return metric;
}
