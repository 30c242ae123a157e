// SPDX-License-Identifier: Apache-2.0
// What threads did, as written by src/page/timeline.c. A served page requests what it shows; a page
// of one file contains everything.
import { Varints } from "./data";
import { decodePicture, MANY, Picture } from "./picture";
import { Pyramid } from "./pyramid";

export interface TimelineJson {
  end_ns: number;
  lost_here: number;
  deadlocks: number;
  owner_unknown: number; // threads that wait at the end for a monitor whose owner is unknown
  waiting_for_locks: number; // those that wait for a lock of java.util.concurrent
  exact: boolean;
  part: boolean; // events of only some threads or classes of a recording
  served: boolean;
  n_nodes: number;
  kinds: string[];
  edges: string[];
  used_kinds: number[];
  used_edges: number[];
  path_states: string[];
  threads: {
    name: string;
    group: string;
    id: number;
    start: number;
    end: number;
    system: boolean;
    quiet: boolean;
  }[];
  bands?: BandsJson; // where the recording has any
  nodes?: string;
  pyramid?: PyramidJson; // instead of all nodes
  contexts?: string;
  objects?: string;
  stacks?: string;
  strings?: string[];
  path?: {
    makespan_ns: number;
    length_ns: number;
    n_segments: number;
    states: number[]; // without what is idle
    idle_ns: number;
    samples: number;
    run_ns: number;
    sampled_run_ns: number;
    methods: { method: string; self_ns: number; total_ns: number }[];
    ran: string[]; // which segments name
    segments: string;
  };
  stats?: Stats; // a served page requests them
  stats_idle?: Stats; // with the waits of threads that have nothing to do
  by_thread?: { thread: number; stats: Stats; stats_idle?: Stats }[];
}

/** Times in which threads could not run, encoded as bands.tsx decodes them. */
export interface BandsJson {
  collections: string;
  safepoints: string;
  throttled: string;
  names: string[];
}

/** Pictures of threads, each level twice as fine as the one before, and details of the states visible in them. */
export interface PyramidJson {
  group: number; // threads in a picture
  width: number; // columns of a part
  levels: { span: number; parts: { rows: string[]; across: string }[] }[];
  nodes: string;
}

export interface Stats {
  idle: number; // waits of threads with nothing to do, which are left out unless asked for
  idle_ns: number;
  threads: ThreadStats[];
  classes: ClassStats[];
  sites: SiteStats[];
}

export interface ThreadStats {
  thread: number;
  blocked: number;
  blocked_ns: number;
  waited: number;
  waited_ns: number;
  io: number; // waits for sockets and files
  io_ns: number;
}

export interface Times {
  count: number;
  cut: number; // of count: those that lasted when the recording began or ended, which are part of total_ns and max_ns alone
  unknown: number; // of count: those for which it is unknown what ended them
  total_ns: number;
  min_ns: number;
  avg_ns: number;
  max_ns: number;
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
}

export interface ClassStats {
  class: string;
  blocks: Times;
  waits: Times;
  objects: number;
  threads: number;
  users?: number[]; // threads that use its locks
}

export interface SiteStats extends Times {
  class: string;
  method: string | null;
  line: number;
  frames: Frame[];
  block: boolean;
  objects: number;
  threads: number;
}

export interface Frame {
  method: string;
  line: number;
}

/** The thread that caused a state. */
export interface Cause {
  edge: number;
  inferred: boolean;
  node: number; // -1: a timer, a device, or not known
  thread?: number;
  frames?: Frame[];
}

export interface NodeDetails {
  node: number;
  thread: number;
  kind: number;
  start: number;
  end: number;
  lock: string | null;
  other: number; // thread, -1 none
  timeout_ms: number;
  before: number; // the thread's state before and after, -1 none
  after: number;
  frames: Frame[];
  cause: Cause | null;
  ended: Cause | null;
  segment: number; // of the critical path, -1 none
  woken?: { node: number; thread: number; time: number }[]; // of an interaction
}

export interface SegmentDetails {
  index: number;
  start: number;
  end: number;
  thread: number;
  node: number;
  state: string;
  edge: number;
  inferred: boolean;
  idle: boolean; // its thread waited for something to do
  ran: string | null; // the method that most CPU samples of it were in
}

export interface Source {
  finest?: number; // ns of a column, below which nothing is known
  /** An answer stays valid until the answer after the next one. */
  range(from: number, to: number, width: number, threads: number[]): Promise<Picture>;
  node(i: number): Promise<NodeDetails | null>;
  at(thread: number, time: number): Promise<NodeDetails | null>;
  segment(i: number): Promise<SegmentDetails | null>;
}

export const sourceOf = (json: TimelineJson): Source =>
  json.served ? new Served() : json.pyramid ? new Pyramid(json) : new InFile(json);

class Served implements Source {
  private pictures = [new Picture(0, 0), new Picture(0, 0)]; // in turns: one is shown

  async range(from: number, to: number, width: number, threads: number[]) {
    const r = await fetch(
      `range?from=${Math.floor(from)}&to=${Math.ceil(to)}&width=${Math.round(width)}&threads=${threads.join(",")}`,
    );
    if (!r.ok) throw new Error(await r.text());
    const bytes = new Uint8Array(await r.arrayBuffer());
    this.pictures.reverse();
    return decodePicture(
      new Varints(bytes),
      this.pictures[0].begin(Math.floor(from), Math.ceil(to)),
      threads,
    );
  }

  private async get<T>(path: string): Promise<T | null> {
    const r = await fetch(path);
    return r.ok ? ((await r.json()) as T) : null;
  }

  async node(i: number) {
    return this.get<NodeDetails>(`node?i=${i}`);
  }
  at(thread: number, time: number) {
    return this.get<NodeDetails>(`at?thread=${thread}&time=${Math.floor(time)}`);
  }
  segment(i: number) {
    return i < 0 ? Promise.resolve(null) : this.get<SegmentDetails>(`segment?i=${i}`);
  }
}

/** Properties that states share: lock, stack, the other thread. */
export interface Known {
  contexts: { object: number; stack: number; other: number; timeout: number }[];
  classOf: string[];
  frames: Frame[][];
}

export const nothing = { object: -1, stack: -1, other: -1, timeout: 0 };

export function decodeContexts(json: TimelineJson): Known {
  const known: Known = { contexts: [], classOf: [], frames: [] };
  const strings = json.strings!;
  const c = new Varints(json.contexts!);
  while (c.more)
    known.contexts.push({
      object: c.next() - 1,
      stack: c.next() - 1,
      other: c.next() - 1,
      timeout: c.next(),
    });
  const o = new Varints(json.objects!);
  while (o.more) known.classOf.push(strings[o.next() - 1] ?? "?");
  const s = new Varints(json.stacks!);
  while (s.more) {
    const frames: Frame[] = [];
    for (let n = s.next(); n > 0; n--)
      frames.push({ method: strings[s.next() - 1] ?? "?", line: s.next() });
    known.frames.push(frames);
  }
  return known;
}

export function decodePath(json: TimelineJson): SegmentDetails[] {
  const path: SegmentDetails[] = [];
  const p = new Varints(json.path?.segments ?? "");
  let start = 0;
  for (let index = 0; p.more; index++) {
    start += p.next();
    const end = start + p.next();
    const thread = p.next();
    const node = p.next() - 1;
    const state = json.path_states[p.next()];
    const edge = p.next();
    const ran = json.path!.ran[p.next() - 1] ?? null;
    path.push({
      index,
      start,
      end,
      thread,
      node,
      state,
      edge: edge & 15,
      inferred: (edge & 16) > 0,
      idle: (edge & 32) > 0,
      ran,
    });
  }
  return path;
}

/** Finds the first segment that ends after a time. */
export function segmentBehind(path: SegmentDetails[], time: number): number {
  let lo = 0;
  let hi = path.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (path[mid].end <= time) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** State changes of all threads in order of time. -1 stands for none. */
class InFile implements Source {
  private n: number;
  private time: Float64Array;
  private kind: Uint8Array;
  private edge: Uint8Array;
  private inferred: Uint8Array;
  private thread: Int32Array;
  private waker: Int32Array;
  private context: Int32Array;
  private next: Float64Array; // when the thread's state ends
  private states: Int32Array[]; // by thread: its states, in order
  private marks: Int32Array[]; // by thread: its instants
  private known: Known;
  private path: SegmentDetails[];
  private firstInstant: number; // kinds from here on are instants

  constructor(json: TimelineJson) {
    const v = new Varints(json.nodes!);
    const rows: number[] = [];
    let time = 0;
    while (v.more) {
      time += v.next();
      rows.push(time, v.next(), v.next(), v.next(), v.next(), v.next());
    }
    const n = (this.n = rows.length / 6);
    this.firstInstant = json.kinds.indexOf("timeout");
    this.time = new Float64Array(n);
    this.kind = new Uint8Array(n);
    this.edge = new Uint8Array(n);
    this.inferred = new Uint8Array(n);
    this.thread = new Int32Array(n);
    this.waker = new Int32Array(n);
    this.context = new Int32Array(n);
    this.next = new Float64Array(n);
    const states: number[][] = json.threads.map(() => []);
    const marks: number[][] = json.threads.map(() => []);
    for (let i = 0; i < n; i++) {
      const r = 6 * i;
      this.time[i] = rows[r];
      this.kind[i] = rows[r + 1];
      this.edge[i] = rows[r + 2] & 15;
      this.inferred[i] = (rows[r + 2] >> 4) & 1;
      this.thread[i] = rows[r + 3];
      this.waker[i] = rows[r + 4] ? i - rows[r + 4] : -1;
      this.context[i] = rows[r + 5];
      (this.isState(i) ? states : marks)[this.thread[i]].push(i);
    }
    this.states = states.map((s) => Int32Array.from(s));
    this.marks = marks.map((s) => Int32Array.from(s));
    this.states.forEach((s, thread) => {
      const end = Math.max(json.threads[thread].end, s.length ? this.time[s[s.length - 1]] : 0);
      for (let i = 0; i < s.length; i++)
        this.next[s[i]] = i + 1 < s.length ? this.time[s[i + 1]] : end;
    });
    this.known = decodeContexts(json);
    this.path = decodePath(json);
    for (const s of this.path) if (s.node >= n) s.node = -1;
  }

  private isState(i: number) {
    return this.kind[i] < this.firstInstant;
  }

  /** Finds the first node in a list whose `from` (its start or end) is after a time. */
  private behind(list: Int32Array, of: Float64Array, time: number, lo = 0): number {
    let hi = list.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (of[list[mid]] <= time) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }

  async range(from: number, to: number, width: number, threads: number[]): Promise<Picture> {
    const p = new Picture(from, to);
    const shares: number[] = [];
    const pixel = Math.max(1, (to - from) / width);
    for (const thread of threads) {
      const lo = p.runs;
      this.runs(p, shares, thread, pixel);
      const markLo = p.marks;
      const marks = this.marks[thread];
      for (
        let i = this.behind(marks, this.time, from - 1);
        i < marks.length && this.time[marks[i]] < to;
      ) {
        p.addMark(this.time[marks[i]], this.kind[marks[i]], marks[i]);
        i =
          pixel > 1 ? this.behind(marks, this.time, this.time[marks[i]] + 3 * pixel, i + 1) : i + 1;
      }
      p.rows.set(thread, { lo, hi: p.runs, markLo, markHi: p.marks });
    }
    p.shares = Uint8Array.from(shares);
    this.arrowsInto(p, new Set(threads));
    for (let i = this.segmentBehind(from); i < this.path.length && this.path[i].start < to;) {
      const s = this.path[i];
      p.path.push(s);
      i = s.end - s.start >= pixel ? i + 1 : Math.max(i + 1, this.segmentBehind(s.start + pixel));
    }
    return p;
  }

  /** A thread's states that are a pixel or wider, and pixels of many states with the shares of their kinds. */
  private runs(p: Picture, shares: number[], thread: number, pixel: number) {
    const s = this.states[thread];
    let at = p.from;
    for (let i = this.behind(s, this.next, p.from); i < s.length && this.time[s[i]] < p.to;) {
      const begin = Math.max(this.time[s[i]], at);
      const end = this.next[s[i]];
      if (end - begin >= pixel || i + 1 === s.length || end <= begin) {
        if (end > begin || i + 1 === s.length) {
          p.addRun(begin, Math.min(end, p.to), this.kind[s[i]], s[i]);
          at = Math.max(end, begin);
        }
        i++;
        continue;
      }
      const share = new Map<number, number>();
      let k = i;
      for (; k < s.length && this.time[s[k]] < begin + pixel; k++) {
        const ns = Math.min(this.next[s[k]], begin + pixel) - Math.max(this.time[s[k]], begin);
        share.set(this.kind[s[k]], (share.get(this.kind[s[k]]) ?? 0) + ns);
      }
      p.addRun(begin, begin + pixel, MANY, -1, shares.length, share.size);
      for (const [kind, ns] of share)
        shares.push(kind, Math.min(255, Math.round((255 * ns) / pixel)));
      at = begin + pixel;
      i = Math.max(i + 1, k - 1);
    }
  }

  private arrowsInto(p: Picture, shown: Set<number>) {
    let lo = 0;
    let hi = this.n;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.time[mid] < p.from) lo = mid + 1;
      else hi = mid;
    }
    const found: number[] = [];
    for (let i = lo; i < this.n && this.time[i] < p.to; i++) {
      const w = this.waker[i];
      if (w < 0 || !this.isState(i) || this.thread[w] === this.thread[i]) continue;
      p.arrowsInAll++;
      if (shown.has(this.thread[i]) || shown.has(this.thread[w])) found.push(i);
    }
    p.arrowEvery = Math.floor(found.length / 500) + 1;
    for (let k = 0; k < found.length; k += p.arrowEvery) {
      const i = found[k];
      const w = this.waker[i];
      p.arrows.push({
        time: this.time[i],
        cause: this.time[w],
        node: i,
        waker: w,
        thread: this.thread[i],
        from: this.thread[w],
        edge: this.edge[i],
        inferred: !!this.inferred[i],
      });
    }
  }

  private segmentBehind(time: number): number {
    return segmentBehind(this.path, time);
  }

  private causeOf(i: number): Cause | null {
    if (i < 0 || !this.isState(i) || !this.edge[i]) return null;
    const node = this.waker[i];
    return {
      edge: this.edge[i],
      inferred: !!this.inferred[i],
      node,
      ...(node >= 0 ? { thread: this.thread[node], frames: this.stackOf(node) } : {}),
    };
  }

  private stackOf(i: number): Frame[] {
    return this.known.frames[this.known.contexts[this.context[i]]?.stack] ?? [];
  }

  async node(i: number): Promise<NodeDetails> {
    const thread = this.thread[i];
    const s = this.states[thread];
    const context = this.known.contexts[this.context[i]] ?? nothing;
    const isState = this.isState(i);
    const at = this.behind(s, this.time, this.time[i]);
    const index = isState ? s.indexOf(i) : at;
    const before = isState ? (s[index - 1] ?? -1) : (s[at - 1] ?? -1);
    const after = isState ? (s[index + 1] ?? -1) : (s[at] ?? -1);
    const end = isState ? this.next[i] : this.time[i];
    let segment = -1;
    for (
      let k = this.segmentBehind(this.time[i]);
      k < this.path.length && this.path[k].start < Math.max(end, this.time[i] + 1);
      k++
    )
      if (this.path[k].thread === thread) {
        segment = k;
        break;
      }
    const woken: NodeDetails["woken"] = [];
    if (!isState)
      for (let k = i + 1; k < this.n && woken.length < 1000; k++)
        if (this.waker[k] === i && this.isState(k))
          woken.push({ node: k, thread: this.thread[k], time: this.time[k] });
    return {
      node: i,
      thread,
      kind: this.kind[i],
      start: this.time[i],
      end,
      lock: this.known.classOf[context.object] ?? null,
      other: context.other,
      timeout_ms: context.timeout,
      before,
      after,
      frames: this.stackOf(i),
      cause: this.causeOf(i),
      ended: isState ? this.causeOf(after) : null,
      segment,
      ...(isState ? {} : { woken }),
    };
  }

  async at(thread: number, time: number): Promise<NodeDetails | null> {
    const s = this.states[thread];
    const k = this.behind(s, this.time, time);
    return k ? this.node(s[k - 1]) : null;
  }

  async segment(i: number): Promise<SegmentDetails | null> {
    const s = this.path[i];
    if (!s) return null;
    if (s.node >= 0) return s;
    const near = await this.at(s.thread, s.start);
    return { ...s, node: near ? near.node : -1 };
  }
}
