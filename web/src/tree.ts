// SPDX-License-Identifier: Apache-2.0
// Weights over a tree of methods: selection, totals, ranking, inversion, callers and callees of one
// method.
import { Cells, kinds, MARK, Shape } from "./data";

/**
 * A Shape with weights. A node's children are child[first[node]] to child[first[node + 1] - 1], linked with the heaviest first.
 */
export interface Tree extends Shape {
  self: Float64Array;
  total: Float64Array;
  first: Int32Array;
  child: Int32Array;
  firstChild: Int32Array;
  nextSibling: Int32Array;
  depth: number; // frames of the deepest stack
}

/** Selects cells. Buckets are from (inclusive) to (exclusive); null selects all. */
export interface Selection {
  threads: Set<number> | null;
  window: [number, number] | null;
}

/** Sorts short lists by insertion; they are most of the work for a large tree. */
function sortHeaviest(child: Int32Array, from: number, to: number, total: Float64Array) {
  if (to - from > 24) {
    child.subarray(from, to).sort((a, b) => total[b] - total[a] || a - b);
    return;
  }
  for (let i = from + 1; i < to; i++) {
    const c = child[i];
    let k = i;
    for (; k > from && total[child[k - 1]] < total[c]; k--) child[k] = child[k - 1];
    child[k] = c;
  }
}

function finish(shape: Shape, self: Float64Array): Tree {
  const { n, parent } = shape;
  const total = Float64Array.from(self);
  for (let i = n - 1; i > 0; i--) total[parent[i]] += total[i];
  // The children of each node are adjacent in `child`, sorted and linked with the heaviest first.
  const first = new Int32Array(n + 2);
  for (let i = 1; i < n; i++) if (total[i]) first[parent[i] + 2]++;
  for (let i = 2; i < n + 2; i++) first[i] += first[i - 1];
  const child = new Int32Array(first[n + 1]);
  for (let i = 1; i < n; i++) if (total[i]) child[first[parent[i] + 1]++] = i;
  const firstChild = new Int32Array(n);
  const nextSibling = new Int32Array(n);
  for (let p = 0; p < n; p++) {
    const from = first[p];
    const to = first[p + 1];
    if (to === from) continue;
    sortHeaviest(child, from, to, total);
    firstChild[p] = child[from];
    for (let k = from; k + 1 < to; k++) nextSibling[child[k]] = child[k + 1];
  }
  const level = new Int32Array(n);
  let depth = 0;
  for (let i = 1; i < n; i++) {
    level[i] = level[parent[i]] + 1;
    if (total[i] && level[i] > depth) depth = level[i];
  }
  return { ...shape, self, total, first, child, firstChild, nextSibling, depth };
}

export function select(shape: Shape, cells: Cells, s: Selection): Tree {
  const self = new Float64Array(shape.n);
  const [from, to] = s.window ?? [0, Infinity];
  for (let i = 0; i < cells.n; i++) {
    if (cells.bucket[i] < from || cells.bucket[i] >= to) continue;
    if (s.threads && !s.threads.has(cells.thread[i])) continue;
    self[cells.node[i]] += cells.weight[i];
  }
  return finish(shape, self);
}

/** Builds a tree node by node. */
class Builder {
  private parent: number[] = [0];
  private label: number[] = [-1];
  private kind: number[] = [0];
  private self: number[] = [0];
  private best: number[] = [0];
  private index = new Map<number, number>();

  constructor(private labels: number) {}

  child(parent: number, label: number, kind: number, weight: number): number {
    const key = parent * this.labels + label;
    let node = this.index.get(key);
    if (node === undefined) {
      node = this.parent.length;
      this.index.set(key, node);
      this.parent.push(parent);
      this.label.push(label);
      this.kind.push(kind);
      this.self.push(0);
      this.best.push(0);
    }
    if (weight > this.best[node]) {
      this.best[node] = weight;
      this.kind[node] = kind;
    }
    return node;
  }

  add(node: number, weight: number) {
    this.self[node] += weight;
  }

  build(): Tree {
    const shape = {
      n: this.parent.length,
      parent: Int32Array.from(this.parent),
      label: Int32Array.from(this.label),
      kind: Uint8Array.from(this.kind),
    };
    return finish(shape, Float64Array.from(this.self));
  }
}

/** Builds the tree with the running method at the root and its callers as children. */
export function invert(t: Tree, labels: number): Tree {
  const b = new Builder(labels);
  for (let i = 0; i < t.n; i++) {
    const w = t.self[i];
    if (!w) continue;
    let at = 0;
    for (let n = i; n; n = t.parent[n]) at = b.child(at, t.label[n], t.kind[n], w);
    b.add(at, w);
  }
  return b.build();
}

/**
 * Builds all that a method calls (below it) and all that calls it (above), merged over all its occurrences; of recursive calls
 * the outermost counts.
 */
export function sandwich(
  t: Tree,
  label: number,
  labels: number,
): { callers: Tree; callees: Tree; weight: number; self: number } {
  const down = new Builder(labels);
  const up = new Builder(labels);
  const at = new Int32Array(t.n); // node of `down` where this node lies, 0: not below the method
  let weight = 0;
  let self = 0;
  for (let i = 1; i < t.n; i++) {
    if (!t.total[i]) continue;
    const p = t.parent[i];
    if (at[p]) {
      at[i] = down.child(at[p], t.label[i], t.kind[i], t.total[i]);
      down.add(at[i], t.self[i]);
      if (t.label[i] === label) self += t.self[i];
    } else if (t.label[i] === label) {
      at[i] = down.child(0, label, t.kind[i], t.total[i]);
      down.add(at[i], t.self[i]);
      self += t.self[i];
      weight += t.total[i];
      let u = 0;
      for (let n = i; n; n = t.parent[n]) u = up.child(u, t.label[n], t.kind[n], t.total[i]);
      up.add(u, t.total[i]);
    }
  }
  return { callers: up.build(), callees: down.build(), weight, self };
}

export interface Row {
  label: number;
  kind: number;
  self: number;
  total: number;
}

/** Ranks methods by own time. A method that calls itself counts once in total; marks are left out. */
export function rank(t: Tree, labels: number): Row[] {
  const self = new Float64Array(labels);
  const total = new Float64Array(labels);
  const heaviest = new Float64Array(labels);
  const kind = new Int8Array(labels).fill(-1);
  const depth = new Int32Array(labels); // how often a label is on the way from the root to here
  const next = Int32Array.from(t.first); // the child of each node that comes next
  const enter = (i: number) => {
    if (t.kind[i] === MARK) return;
    const label = t.label[i];
    self[label] += t.self[i];
    if (depth[label]++ === 0) total[label] += t.total[i];
    if (t.total[i] > heaviest[label] || kind[label] < 0) {
      heaviest[label] = t.total[i];
      kind[label] = t.kind[i];
    }
  };
  for (let n = 0; ;) {
    if (next[n] < t.first[n + 1]) {
      n = t.child[next[n]++];
      enter(n);
      continue;
    }
    if (!n) break;
    if (t.kind[n] !== MARK) depth[t.label[n]]--;
    n = t.parent[n];
  }
  const rows: Row[] = [];
  for (let label = 0; label < labels; label++)
    if (kind[label] >= 0)
      rows.push({ label, kind: kind[label], self: self[label], total: total[label] });
  return rows.sort((a, b) => b.self - a.self || b.total - a.total || a.label - b.label);
}

/** Adds the methods of which only the calls are known, because none of their stacks has a weight. */
export function withCalls(rows: Row[], calls: Map<number, number> | null): Row[] {
  if (!calls) return rows;
  const ranked = new Set(rows.map((r) => r.label));
  const others = [...calls]
    .filter(([label, n]) => n && !ranked.has(label))
    .sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return [
    ...rows,
    ...others.map(([label]) => ({ label, kind: kinds.indexOf("java"), self: 0, total: 0 })),
  ];
}

/**
 * The weight of samples without a method: with no frame at all, or with a mark in place of the running one. Calls that have not
 * returned have a method, and what the profiler itself ran is known.
 */
export function unattributed(t: Tree, labels: string[]): number {
  let w = t.self[0];
  for (let i = 1; i < t.n; i++)
    if (
      t.kind[i] === MARK &&
      labels[t.label[i]] !== "[not returned]" &&
      labels[t.label[i]] !== "[jvmscope]"
    )
      w += t.self[i];
  return w;
}

/** The weight of stacks that contain a matching frame, each counted once. */
export function matched(t: Tree, match: Uint8Array): number {
  let w = 0;
  for (let n = t.firstChild[0]; n;) {
    const hit = match[t.label[n]];
    if (hit) w += t.total[n];
    else if (t.firstChild[n]) {
      n = t.firstChild[n];
      continue;
    }
    while (n && !t.nextSibling[n]) n = t.parent[n];
    n = n && t.nextSibling[n];
  }
  return w;
}

/**
 * Returns a test for names: a part of the name, with * and ? the whole name, or after = exactly this name. Case does
 * not matter if `fold` is true.
 */
export function nameTest(typed: string, fold: boolean): (s: string) => boolean {
  const text = fold ? typed.toLowerCase() : typed;
  const folded = fold ? (s: string) => s.toLowerCase() : (s: string) => s;
  if (text.startsWith("=")) return (s) => folded(s) === text.slice(1);
  if (!/[*?]/.test(text)) return (s) => folded(s).includes(text);
  const source = text
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*+/g, ".*")
    .replace(/\?/g, ".");
  const re = new RegExp(`^${source}$`, "s");
  return (s) => re.test(folded(s));
}

/** Finds labels that match a search; case matters when the text contains capitals. */
export function search(labels: string[], text: string): Uint8Array | null {
  if (!text) return null;
  const hits = new Uint8Array(labels.length);
  const test = nameTest(text, text === text.toLowerCase());
  labels.forEach((s, i) => (hits[i] = test(s) ? 1 : 0));
  return hits;
}
