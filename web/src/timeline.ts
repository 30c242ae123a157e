// SPDX-License-Identifier: Apache-2.0
// What threads did: src/export/page_timeline.c writes it.
import { Varints } from "./data";

export interface TimelineJson {
  end_ns: number;
  lost: number;
  deadlocks: number;
  exact: boolean;
  cut_ns: number;
  kinds: string[];
  edges: string[];
  path_states: string[];
  threads: { name: string; group: string; id: number; start: number; end: number; system: boolean }[];
  nodes: string;
  contexts: string;
  objects: string;
  stacks: string;
  strings: string[];
  path?: { makespan_ns: number; length_ns: number; states: number[]; segments: string };
  stats: { threads: ThreadStats[]; sites: SiteStats[] };
}

export interface ThreadStats {
  thread: number;
  blocked: number;
  blocked_ns: number;
  waited: number;
  waited_ns: number;
}

export interface SiteStats {
  class: string;
  method: string | null;
  line: number;
  stack: number;
  block: boolean;
  threads: number;
  count: number;
  total_ns: number;
  min_ns: number;
  max_ns: number;
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
}

export interface Segment {
  start: number;
  end: number;
  thread: number;
  node: number; // -1: none
  state: string;
  edge: number;
  inferred: boolean;
}

export interface Frame {
  method: string;
  line: number;
}

/** State changes in order of time, over all threads. -1 stands for none. */
export interface Timeline {
  json: TimelineJson;
  n: number;
  time: Float64Array;
  kind: Uint8Array;
  edge: Uint8Array;
  inferred: Uint8Array;
  thread: Int32Array;
  waker: Int32Array;
  context: Int32Array;
  next: Float64Array; // when the thread's state ends
  states: Int32Array[]; // by thread: its states, in order
  marks: Int32Array[]; // by thread: its instants
  object: Int32Array; // by context
  stack: Int32Array;
  other: Int32Array;
  timeout: Int32Array;
  classOf: string[];
  frames: Frame[][];
  path: Segment[];
  firstInstant: number; // kinds from here on are instants
}

export function decodeTimeline(json: TimelineJson): Timeline {
  const v = new Varints(json.nodes);
  const rows: number[] = [];
  let time = 0;
  while (v.more) {
    time += v.next();
    rows.push(time, v.next(), v.next(), v.next(), v.next(), v.next());
  }
  const n = rows.length / 6;
  const t: Timeline = {
    json, n,
    time: new Float64Array(n), kind: new Uint8Array(n), edge: new Uint8Array(n), inferred: new Uint8Array(n),
    thread: new Int32Array(n), waker: new Int32Array(n), context: new Int32Array(n), next: new Float64Array(n),
    states: [], marks: [], object: new Int32Array(0), stack: new Int32Array(0), other: new Int32Array(0), timeout: new Int32Array(0),
    classOf: [], frames: [], path: [], firstInstant: json.kinds.indexOf("timeout"),
  };
  const states: number[][] = json.threads.map(() => []);
  const marks: number[][] = json.threads.map(() => []);
  for (let i = 0; i < n; i++) {
    const r = 6 * i;
    t.time[i] = rows[r];
    t.kind[i] = rows[r + 1];
    t.edge[i] = rows[r + 2] & 15;
    t.inferred[i] = (rows[r + 2] >> 4) & 1;
    t.thread[i] = rows[r + 3];
    t.waker[i] = rows[r + 4] ? i - rows[r + 4] : -1;
    t.context[i] = rows[r + 5];
    (t.kind[i] < t.firstInstant ? states : marks)[t.thread[i]].push(i);
  }
  t.states = states.map((s) => Int32Array.from(s));
  t.marks = marks.map((s) => Int32Array.from(s));
  t.states.forEach((s, thread) => {
    const end = Math.max(json.threads[thread].end, s.length ? t.time[s[s.length - 1]] : 0);
    for (let i = 0; i < s.length; i++) t.next[s[i]] = i + 1 < s.length ? t.time[s[i + 1]] : end;
  });
  decodeContexts(t);
  return t;
}

function decodeContexts(t: Timeline) {
  const { json } = t;
  const c = new Varints(json.contexts);
  const rows: number[] = [];
  while (c.more) rows.push(c.next() - 1, c.next() - 1, c.next() - 1, c.next());
  const pick = (k: number) => Int32Array.from({ length: rows.length / 4 }, (_, i) => rows[4 * i + k]);
  t.object = pick(0);
  t.stack = pick(1);
  t.other = pick(2);
  t.timeout = pick(3);
  const o = new Varints(json.objects);
  while (o.more) t.classOf.push(json.strings[o.next() - 1] ?? "?");
  const s = new Varints(json.stacks);
  while (s.more) {
    const frames: Frame[] = [];
    for (let n = s.next(); n > 0; n--) frames.push({ method: json.strings[s.next() - 1] ?? "?", line: s.next() });
    t.frames.push(frames);
  }
  if (!json.path) return;
  const p = new Varints(json.path.segments);
  let start = 0;
  while (p.more) {
    start += p.next();
    const end = start + p.next();
    const thread = p.next();
    const node = p.next() - 1;
    const state = json.path_states[p.next()];
    const edge = p.next();
    t.path.push({ start, end, thread, node, state, edge: edge & 15, inferred: edge > 15 });
  }
}

/** The state of a thread at a time: its node, or -1. */
export function stateAt(t: Timeline, thread: number, time: number): number {
  const s = t.states[thread];
  let lo = 0;
  let hi = s.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (t.time[s[mid]] <= time) lo = mid + 1;
    else hi = mid;
  }
  return lo ? s[lo - 1] : -1;
}

export const stackOf = (t: Timeline, node: number): Frame[] => t.frames[t.stack[t.context[node]]] ?? [];
export const lockOf = (t: Timeline, node: number): string => t.classOf[t.object[t.context[node]]] ?? "";
export const otherOf = (t: Timeline, node: number): number => t.other[t.context[node]];
