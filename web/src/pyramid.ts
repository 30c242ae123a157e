// SPDX-License-Identifier: Apache-2.0
// Threads in a page of one file that contains pictures of them instead of each state change, as
// written by src/page/pyramid.c.
import { Varints } from "./data";
import { decodeAcross, decodeRows, MANY, Picture } from "./picture";
import {
  Cause,
  decodeContexts,
  decodePath,
  Known,
  NodeDetails,
  nothing,
  PyramidJson,
  SegmentDetails,
  segmentBehind,
  Source,
  TimelineJson,
} from "./timeline";

interface Named {
  time: number;
  end: number;
  kind: number;
  edge: number;
  inferred: boolean;
  thread: number;
  waker: number;
  context: number;
  before: number;
  after: number;
}

export class Pyramid implements Source {
  readonly finest: number;
  private pyramid: PyramidJson;
  private named = new Map<number, Named>();
  private known: Known;
  private path: SegmentDetails[];
  private parts = new Map<string, Picture>(); // what was decoded, by place
  private firstInstant: number;

  constructor(private json: TimelineJson) {
    this.pyramid = json.pyramid!;
    this.firstInstant = json.kinds.indexOf("timeout");
    this.finest = this.columnOf(this.pyramid.levels.length - 1);
    this.known = decodeContexts(json);
    this.path = decodePath(json);
    const v = new Varints(this.pyramid.nodes);
    for (let i = 0; v.more;) {
      i += v.next();
      const time = v.next();
      const end = time + v.next();
      const [kind, edge, thread, waker, context, before, after] = [
        v.next(),
        v.next(),
        v.next(),
        v.next(),
        v.next(),
        v.next(),
        v.next(),
      ];
      const place = (distance: number) => (distance ? i + distance : -1);
      this.named.set(i, {
        time,
        end,
        kind,
        edge: edge & 15,
        inferred: ((edge >> 4) & 1) === 1,
        thread,
        waker: place(-waker),
        context,
        before: place(-before),
        after: place(after),
      });
    }
  }

  private columnOf(level: number): number {
    return Math.max(1, this.pyramid.levels[level].span / this.pyramid.width);
  }

  /** A part of a level, for some threads (-1: what spans all of them). */
  private part(level: number, part: number, group: number): Picture {
    const key = `${level}/${part}/${group}`;
    let p = this.parts.get(key);
    if (p) return p;
    const { span, parts } = this.pyramid.levels[level];
    const from = part * span;
    p = new Picture(from, from + span);
    if (group < 0) decodeAcross(new Varints(parts[part].across), p);
    else {
      const first = group * this.pyramid.group;
      const threads = Array.from(
        { length: Math.min(this.pyramid.group, this.json.threads.length - first) },
        (_, k) => first + k,
      );
      decodeRows(new Varints(parts[part].rows[group]), p, threads);
    }
    if (this.parts.size > 400) this.parts.clear();
    this.parts.set(key, p);
    return p;
  }

  async range(from: number, to: number, width: number, threads: number[]): Promise<Picture> {
    const pixel = Math.max(1, (to - from) / width);
    const { levels } = this.pyramid;
    let level = levels.findIndex((_, i) => this.columnOf(i) <= pixel * 1.01);
    if (level < 0) level = levels.length - 1;
    const { span, parts } = levels[level];
    const lo = Math.max(0, Math.floor(from / span));
    const hi = Math.min(parts.length - 1, Math.floor((to - 1) / span));
    const out = new Picture(from, to);
    const shares: number[] = [];
    for (const thread of threads) {
      const first = out.runs;
      const firstMark = out.marks;
      for (let part = lo; part <= hi; part++)
        copyRow(
          this.part(level, part, Math.floor(thread / this.pyramid.group)),
          out,
          shares,
          thread,
        );
      out.rows.set(thread, { lo: first, hi: out.runs, markLo: firstMark, markHi: out.marks });
    }
    out.shares = Uint8Array.from(shares);
    const shown = new Set(threads);
    for (let part = lo; part <= hi; part++) {
      const p = this.part(level, part, -1);
      out.arrowsInAll += p.arrowsInAll;
      out.arrowEvery = Math.max(out.arrowEvery, p.arrowEvery);
      for (const a of p.arrows) if (shown.has(a.thread) || shown.has(a.from)) out.arrows.push(a);
      for (const s of p.path)
        if (!out.path.length || out.path[out.path.length - 1].index < s.index) out.path.push(s);
    }
    return out;
  }

  private causeOf(i: number): Cause | null {
    const n = this.named.get(i);
    if (!n || n.kind >= this.firstInstant || !n.edge) return null;
    const by = this.named.get(n.waker);
    return {
      edge: n.edge,
      inferred: n.inferred,
      node: by ? n.waker : -1,
      ...(by ? { thread: by.thread, frames: this.framesOf(by) } : {}),
    };
  }

  private framesOf(n: Named) {
    return this.known.frames[this.known.contexts[n.context]?.stack] ?? [];
  }

  async node(i: number): Promise<NodeDetails | null> {
    const n = this.named.get(i);
    if (!n) return null;
    const context = this.known.contexts[n.context] ?? nothing;
    const isState = n.kind < this.firstInstant;
    let segment = segmentBehind(this.path, n.time);
    while (
      segment < this.path.length &&
      this.path[segment].start < Math.max(n.end, n.time + 1) &&
      this.path[segment].thread !== n.thread
    )
      segment++;
    if (this.path[segment]?.thread !== n.thread) segment = -1;
    const woken: NodeDetails["woken"] = [];
    if (!isState)
      for (const [k, w] of this.named)
        if (w.waker === i && w.kind < this.firstInstant)
          woken.push({ node: k, thread: w.thread, time: w.time });
    const has = (k: number) => (this.named.has(k) ? k : -1);
    return {
      node: i,
      thread: n.thread,
      kind: n.kind,
      start: n.time,
      end: n.end,
      lock: this.known.classOf[context.object] ?? null,
      other: context.other,
      timeout_ms: context.timeout,
      before: has(n.before),
      after: has(n.after),
      frames: this.framesOf(n),
      cause: this.causeOf(i),
      ended: isState ? this.causeOf(n.after) : null,
      segment,
      ...(isState ? {} : { woken }),
    };
  }

  /** Finds the state there if it is as wide as a column of the finest pictures. */
  async at(thread: number, time: number): Promise<NodeDetails | null> {
    const level = this.pyramid.levels.length - 1;
    const part = Math.floor(time / this.pyramid.levels[level].span);
    if (part >= this.pyramid.levels[level].parts.length) return null;
    const p = this.part(level, part, Math.floor(thread / this.pyramid.group));
    const row = p.rows.get(thread);
    for (let k = row?.lo ?? 0; row && k < row.hi; k++)
      if (p.runFrom[k] <= time && time < p.runTo[k])
        return p.runKind[k] === MANY ? null : this.node(p.runNode[k]);
    return null;
  }

  async segment(i: number): Promise<SegmentDetails | null> {
    const s = this.path[i];
    return s ? { ...s, node: this.named.has(s.node) ? s.node : -1 } : null;
  }
}

/** Adds a thread's part of a picture to the row under construction. */
function copyRow(p: Picture, out: Picture, shares: number[], thread: number) {
  const row = p.rows.get(thread);
  if (!row) return;
  for (let k = row.lo; k < row.hi; k++) {
    out.addRun(p.runFrom[k], p.runTo[k], p.runKind[k], p.runNode[k], shares.length, p.runKinds[k]);
    for (let n = 0; n < 2 * p.runKinds[k]; n++) shares.push(p.shares[p.runShare[k] + n]);
  }
  for (let k = row.markLo; k < row.markHi; k++)
    out.addMark(p.markTime[k], p.markKind[k], p.markNode[k]);
}
