// SPDX-License-Identifier: Apache-2.0
// What the thread view shows of a part of time, computed by the server (src/timeline/view.c) or
// from the states in this file.

export const MANY = 255; // kind of a run that is a pixel of many states

/**
 * The runs of all rows, one row after another, in arrays that grow; a row has runs lo to hi - 1 and instants markLo to markHi -
 * 1.
 */
export class Picture {
  rows = new Map<number, { lo: number; hi: number; markLo: number; markHi: number }>(); // by thread
  runs = 0;
  runFrom = new Float64Array(1024);
  runTo = new Float64Array(1024);
  runKind = new Uint8Array(1024);
  runNode = new Float64Array(1024); // -1 of many
  runShare = new Uint32Array(1024); // of many: where in `shares` they begin
  runKinds = new Uint8Array(1024); // and how many kinds
  shares: Uint8Array<ArrayBufferLike> = new Uint8Array(0); // kind and share of 255 of each
  marks = 0;
  markTime = new Float64Array(256);
  markKind = new Uint8Array(256);
  markNode = new Float64Array(256);
  arrows: Arrow[] = [];
  arrowsInAll = 0;
  arrowEvery = 1; // one in this many is in `arrows`
  path: PathRun[] = [];

  constructor(
    public from: number,
    public to: number,
  ) {}

  /** Empties it for another part of time and keeps its memory. */
  begin(from: number, to: number): this {
    this.rows.clear();
    this.arrows = [];
    this.path = [];
    [this.from, this.to, this.runs, this.marks, this.arrowsInAll, this.arrowEvery] = [
      from,
      to,
      0,
      0,
      0,
      1,
    ];
    return this;
  }

  addRun(from: number, to: number, kind: number, node: number, share = 0, kinds = 0) {
    const i = this.runs++;
    if (i === this.runFrom.length) {
      this.runFrom = twice(this.runFrom);
      this.runTo = twice(this.runTo);
      this.runKind = twice(this.runKind);
      this.runNode = twice(this.runNode);
      this.runShare = twice(this.runShare);
      this.runKinds = twice(this.runKinds);
    }
    this.runFrom[i] = from;
    this.runTo[i] = to;
    this.runKind[i] = kind;
    this.runNode[i] = node;
    this.runShare[i] = share;
    this.runKinds[i] = kinds;
  }

  addMark(time: number, kind: number, node: number) {
    const i = this.marks++;
    if (i === this.markTime.length) {
      this.markTime = twice(this.markTime);
      this.markKind = twice(this.markKind);
      this.markNode = twice(this.markNode);
    }
    this.markTime[i] = time;
    this.markKind[i] = kind;
    this.markNode[i] = node;
  }
}

function twice<T extends Float64Array | Uint32Array | Uint8Array>(a: T): T {
  const b = new (a.constructor as new (n: number) => T)(2 * a.length);
  b.set(a);
  return b;
}

export interface Arrow {
  time: number;
  cause: number; // when
  node: number;
  waker: number;
  thread: number;
  from: number; // thread
  edge: number;
  inferred: boolean;
}

export interface PathRun {
  start: number;
  end: number;
  thread: number;
  index: number;
  edge: number;
  inferred: boolean;
}

interface Numbers {
  readonly bytes: Uint8Array;
  at: number;
  next(): number;
}

export function decodePicture(v: Numbers, p: Picture, threads: number[]): Picture {
  decodeRows(v, p, threads);
  decodeAcross(v, p);
  return p;
}

/** Adds a row for each thread. The shares of pixels with many states stay in the bytes that are read. */
export function decodeRows(v: Numbers, p: Picture, threads: number[]) {
  p.shares = v.bytes;
  for (const thread of threads) {
    const lo = p.runs;
    let at = p.from;
    for (let n = v.next(); n > 0; n--) {
      const gap = v.next();
      const begin = at + Math.floor(gap / 2);
      at = begin + v.next();
      if (gap % 2) {
        const kinds = v.next() % 16;
        p.addRun(begin, at, MANY, -1, v.at, kinds);
        v.at += 2 * kinds;
      } else {
        const node = v.next();
        p.addRun(begin, at, v.next(), node);
      }
    }
    const markLo = p.marks;
    at = p.from;
    for (let n = v.next(); n > 0; n--) {
      at += v.next();
      const kind = v.next();
      p.addMark(at, kind, v.next());
    }
    p.rows.set(thread, { lo, hi: p.runs, markLo, markHi: p.marks });
  }
}

/** Adds arrows and the critical path. */
export function decodeAcross(v: Numbers, p: Picture) {
  p.arrowsInAll += v.next();
  p.arrowEvery = Math.max(p.arrowEvery, v.next());
  let time = p.from;
  for (let n = v.next(); n > 0; n--) {
    time += v.next();
    const cause = time - v.next();
    const [node, waker, thread, by, edge] = [v.next(), v.next(), v.next(), v.next(), v.next()];
    p.arrows.push({
      time,
      cause,
      node,
      waker,
      thread,
      from: by,
      edge: edge & 15,
      inferred: edge > 15,
    });
  }
  let start = 0;
  for (let n = v.next(); n > 0; n--) {
    start += v.next();
    const end = start + v.next();
    const [thread, index, edge] = [v.next(), v.next(), v.next()];
    p.path.push({ start, end, thread, index, edge: edge & 15, inferred: edge > 15 });
  }
}
