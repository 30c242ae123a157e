// SPDX-License-Identifier: Apache-2.0
// What the thread view shows of a part of time: made by the server (src/model/timeline_view.c) or from the states in this file.

export const MANY = 255; // kind of a run that is a pixel of many states

/** Runs of all rows one behind the other; a row's are lo to hi - 1, its instants markLo to markHi - 1. */
export interface Picture {
  from: number;
  to: number;
  rows: Map<number, { lo: number; hi: number; markLo: number; markHi: number }>; // by thread
  runFrom: number[];
  runTo: number[];
  runKind: number[];
  runNode: number[]; // -1 of many
  runShare: number[]; // of many: where in `shares` they begin
  shares: number[]; // how many states, how many kinds, then kind and share of 255 of each
  markTime: number[];
  markKind: number[];
  markNode: number[];
  arrows: Arrow[];
  arrowsInAll: number;
  arrowEvery: number; // one of so many is in `arrows`
  path: PathRun[];
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

export const emptyPicture = (from: number, to: number): Picture => ({
  from, to, rows: new Map(), runFrom: [], runTo: [], runKind: [], runNode: [], runShare: [], shares: [], markTime: [], markKind: [],
  markNode: [], arrows: [], arrowsInAll: 0, arrowEvery: 1, path: [],
});

interface Numbers {
  next(): number;
  byte(): number;
}

export function decodePicture(v: Numbers, from: number, to: number, threads: number[]): Picture {
  const p = emptyPicture(from, to);
  decodeRows(v, p, from, threads);
  decodeAcross(v, p, from);
  return p;
}

/** Adds a row for each of the threads. */
export function decodeRows(v: Numbers, p: Picture, from: number, threads: number[]) {
  const pixel = v.next();
  for (const thread of threads) {
    const lo = p.runFrom.length;
    let at = from;
    for (let n = v.next(); n > 0; n--) {
      const gap = v.next();
      const begin = at + Math.floor(gap / 2);
      p.runFrom.push(begin);
      p.runShare.push(p.shares.length);
      if (gap % 2) {
        at = begin + pixel;
        p.runNode.push(-1);
        p.runKind.push(MANY);
        const states = v.next();
        const kinds = states % 16;
        p.shares.push(Math.floor(states / 16), kinds);
        for (let k = 0; k < kinds; k++) p.shares.push(v.byte(), v.byte());
      } else {
        at = begin + v.next();
        p.runNode.push(v.next());
        p.runKind.push(v.next());
      }
      p.runTo.push(at);
    }
    const hi = p.runFrom.length;
    const markLo = p.markTime.length;
    at = from;
    for (let n = v.next(); n > 0; n--) {
      p.markTime.push((at += v.next()));
      p.markKind.push(v.next());
      p.markNode.push(v.next());
    }
    p.rows.set(thread, { lo, hi, markLo, markHi: p.markTime.length });
  }
}

/** Adds arrows and the path. */
export function decodeAcross(v: Numbers, p: Picture, from: number) {
  p.arrowsInAll += v.next();
  p.arrowEvery = Math.max(p.arrowEvery, v.next());
  let time = from;
  for (let n = v.next(); n > 0; n--) {
    time += v.next();
    const cause = time - v.next();
    const [node, waker, thread, by, edge] = [v.next(), v.next(), v.next(), v.next(), v.next()];
    p.arrows.push({ time, cause, node, waker, thread, from: by, edge: edge & 15, inferred: edge > 15 });
  }
  let start = 0;
  for (let n = v.next(); n > 0; n--) {
    start += v.next();
    const end = start + v.next();
    const [thread, index, edge] = [v.next(), v.next(), v.next()];
    p.path.push({ start, end, thread, index, edge: edge & 15, inferred: edge > 15 });
  }
}

/** Adds a pixel of many states to the row that is being made. */
export function pushMany(p: Picture, from: number, to: number, states: number, share: Map<number, number>) {
  p.runFrom.push(from);
  p.runTo.push(to);
  p.runNode.push(-1);
  p.runKind.push(MANY);
  p.runShare.push(p.shares.length);
  p.shares.push(states, share.size);
  for (const [kind, ns] of share) p.shares.push(kind, Math.min(255, (255 * ns) / (to - from)));
}
