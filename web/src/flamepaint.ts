// SPDX-License-Identifier: Apache-2.0
// Draws a tree of frames. Each row is one line of pixels that is repeated, so that the cost depends
// on pixels, not on frames.
import { pixel } from "./palette";
import type { Tree } from "./tree";

export const ROW = 20;
const MIN_WIDTH = 1; // of a frame that is drawn, in pixels
const TEXT_WIDTH = 26; // of a frame that has its name in it

export interface Scene {
  tree: Tree;
  start: Float64Array; // of each node, in weight from the left
  view: [number, number]; // the weights at the left and the right edge
  width: number;
  height: number;
  top: number; // pixels scrolled
  full: number; // height of all rows
  upwards: boolean;
  selected: number; // label
  cursor: number; // node that has the keyboard, -1 none
  isDark: boolean;
  colourOf: (node: number) => number; // an opaque pixel
  alphaOf: (node: number, partly: boolean) => number; // 0 to 255
  textOf: (node: number, room: number) => string;
}

/** Computes where each node begins, as weight from the left; a node's own time follows its children. */
export function starts(t: Tree): Float64Array {
  const at = new Float64Array(t.n);
  for (let i = 0; i < t.n; i++) {
    let x = at[i];
    for (let k = t.first[i]; k < t.first[i + 1]; k++) {
      at[t.child[k]] = x;
      x += t.total[t.child[k]];
    }
  }
  return at;
}

/** Finds the first child of a node, as an index of tree.child, that ends after a weight. */
function firstBehind(t: Tree, start: Float64Array, node: number, weight: number): number {
  let lo = t.first[node];
  let hi = t.first[node + 1];
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    const c = t.child[mid];
    if (start[c] + t.total[c] <= weight) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Finds the frame at a depth and a weight from the left; -1 for several that are too small to tell apart, null for none. */
export function frameAt(
  t: Tree,
  start: Float64Array,
  depth: number,
  weight: number,
  minWeight: number,
): number | null {
  if (weight < 0 || weight >= t.total[0]) return null;
  let node = 0;
  for (let d = 0; d < depth; d++) {
    const k = firstBehind(t, start, node, weight);
    if (k === t.first[node + 1] || start[t.child[k]] > weight) return null;
    node = t.child[k];
    if (t.total[node] < minWeight) return d + 1 === depth ? -1 : null;
  }
  return node;
}

interface Named {
  node: number;
  x: number;
  w: number;
  y: number;
}

export class FlamePainter {
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);

  paint(ctx: CanvasRenderingContext2D, s: Scene, ratio: number) {
    const w = Math.round(s.width * ratio);
    const h = Math.round(s.height * ratio);
    if (!this.image || this.image.width !== w || this.image.height !== h) {
      this.image = new ImageData(w, h);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else this.pixels.fill(0);
    const names: Named[] = [];
    const marked: Named[] = [];
    this.fill(s, ratio, w, h, names, marked);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.putImageData(this.image, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    write(ctx, s, names);
    outline(ctx, s, marked);
  }

  /** Fills the colours, and collects the frames with room for a name and those to outline. */
  private fill(s: Scene, ratio: number, w: number, h: number, names: Named[], marked: Named[]) {
    const { tree, start, view } = s;
    const { child, first, total } = tree;
    const [v0, v1] = view;
    const scale = s.width / (v1 - v0);
    const top = s.upwards ? Math.floor((s.full - s.top - s.height) / ROW) : Math.floor(s.top / ROW);
    const bottom = top + Math.ceil(s.height / ROW) + 1;
    const lines: Uint32Array[] = [];
    const line = (depth: number) => (lines[depth - Math.max(0, top)] ??= new Uint32Array(w));
    const yOf = (depth: number) => (s.upwards ? s.full - (depth + 1) * ROW : depth * ROW) - s.top;
    const small = pixel(s.isDark ? "#3a4343" : "#d5dcdb");
    const stack: number[] = [0, 0];
    while (stack.length) {
      const depth = stack.pop()!;
      const node = stack.pop()!;
      if (depth >= top) {
        const x0 = Math.max(0, (start[node] - v0) * scale);
        const x1 = Math.min(s.width, (start[node] + total[node] - v0) * scale);
        const partly =
          node > 0 && (start[node] < v0 - 1e-9 || start[node] + total[node] > v1 + 1e-9);
        const from = Math.round(x0 * ratio);
        const to = Math.round(x1 * ratio);
        const value = ((s.colourOf(node) & 0xffffff) | (s.alphaOf(node, partly) << 24)) >>> 0;
        line(depth).fill(value, from, Math.max(to - (to - from > 3 ? 1 : 0), from + 1));
        const box = { node, x: x0, w: x1 - x0, y: yOf(depth) };
        if (x1 - x0 > TEXT_WIDTH) names.push(box);
        if (node === s.cursor || (node > 0 && tree.label[node] === s.selected)) marked.push(box);
      }
      if (depth >= bottom) continue;
      for (let k = firstBehind(tree, start, node, v0); k < first[node + 1]; k++) {
        const c = child[k];
        const x = (start[c] - v0) * scale;
        if (x >= s.width) break;
        if (total[c] * scale < MIN_WIDTH) {
          // All remaining children are smaller still; one grey box represents them.
          const end = Math.min(s.width, (start[node] + total[node] - tree.self[node] - v0) * scale);
          if (depth + 1 >= top && end - Math.max(0, x) > 0.5)
            line(depth + 1).fill(
              small,
              Math.round(Math.max(0, x) * ratio),
              Math.round(end * ratio),
            );
          break;
        }
        stack.push(c, depth + 1);
      }
    }
    lines.forEach((l, i) =>
      this.repeat(
        l,
        Math.round(yOf(i + Math.max(0, top)) * ratio),
        Math.round((ROW - 1) * ratio),
        w,
        h,
      ),
    );
  }

  /** Copies a line of pixels into the rows from y on that are inside the picture. */
  private repeat(line: Uint32Array, y: number, rows: number, w: number, h: number) {
    const from = Math.max(0, y);
    const to = Math.min(h, y + rows);
    if (from >= to) return;
    this.pixels.set(line, from * w);
    for (let r = from + 1; r < to; r++) this.pixels.copyWithin(r * w, from * w, from * w + w);
  }
}

function write(ctx: CanvasRenderingContext2D, s: Scene, names: Named[]) {
  ctx.textBaseline = "middle";
  ctx.fillStyle = s.isDark ? "#eef2f2" : "#12211f";
  for (const n of names) {
    const text = s.textOf(n.node, n.w - 8);
    if (text) ctx.fillText(text, n.x + 4, n.y + ROW / 2);
  }
}

function outline(ctx: CanvasRenderingContext2D, s: Scene, marked: Named[]) {
  ctx.strokeStyle = s.isDark ? "#fff" : "#000";
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const m of marked)
    if (m.node && s.tree.label[m.node] === s.selected)
      ctx.rect(m.x + 0.5, m.y + 0.5, Math.max(m.w - 2, 1), ROW - 2);
  ctx.stroke();
  const at = marked.find((m) => m.node === s.cursor);
  if (!at) return;
  ctx.strokeStyle = s.isDark ? "#8cc8ff" : "#0b57d0";
  ctx.lineWidth = 2;
  ctx.strokeRect(at.x + 1, at.y + 1, Math.max(at.w - 3, 1), ROW - 3);
}

/** Fits names of frames into their room; the width of each name is measured once. */
export class Names {
  private width = new Map<string, number>();

  constructor(private ctx: CanvasRenderingContext2D) {}

  private measure(text: string): number {
    let w = this.width.get(text);
    if (w === undefined)
      this.width.set(text, (w = this.ctx.measureText(text.slice(0, 1000)).width));
    return w;
  }

  /** Returns the name, its short form, or the longest beginning of that which fits. */
  fit(name: string, short: () => string, room: number): string {
    if (this.measure(name) <= room) return name;
    const text = short().slice(0, 1000);
    const w = this.measure(text);
    if (w <= room) return text;
    let n = Math.floor((text.length * (room - 12)) / w);
    while (n > 2 && this.measure(`${text.slice(0, n)}…`) > room) n--; // its letters may be wider than those of the whole
    return n > 2 ? `${text.slice(0, n)}…` : "";
  }
}
