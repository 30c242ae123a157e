// SPDX-License-Identifier: Apache-2.0
// A flame graph (or, downwards, an icicle) on a canvas. Only what is visible is drawn, so a million frames stay fluid.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { kinds, MARK, Metric } from "./data";
import { percent, short, weightLong } from "./format";
import { colour, ink, kindTitles, seedOf } from "./palette";
import type { Tree } from "./tree";
import { useDark } from "./theme";

const ROW = 20;
const MIN_WIDTH = 1; // of a frame that is drawn, in pixels

interface Props {
  tree: Tree;
  labels: string[];
  metric: Metric;
  whole: number; // what percentages are of
  upwards: boolean;
  match: Uint8Array | null;
  selected: number; // label, -1 when none
  title: string; // for screen readers
  onSelect: (label: number) => void;
  onOpen: (label: number) => void; // double click, "o"
  tint?: (node: number) => string; // instead of the colour of its kind
  zoomed?: string; // path of labels, for links
  onZoom?: (path: string) => void;
}

interface Box {
  x: number;
  w: number;
  node: number; // -1: many small ones
}

/** Where each node begins, in weight from the left; its own time lies behind its children. */
function starts(t: Tree): Float64Array {
  const at = new Float64Array(t.n);
  for (let i = 0; i < t.n; i++) {
    let x = at[i];
    for (let c = t.firstChild[i]; c; c = t.nextSibling[c]) {
      at[c] = x;
      x += t.total[c];
    }
  }
  return at;
}

function depthOf(t: Tree, node: number): number {
  let d = 0;
  for (let n = node; n; n = t.parent[n]) d++;
  return d;
}

function pathOf(t: Tree, node: number): string {
  const path: number[] = [];
  for (let n = node; n; n = t.parent[n]) path.push(t.label[n]);
  return path.reverse().join(".");
}

function nodeAt(t: Tree, path: string): number {
  let n = 0;
  for (const label of path ? path.split(".").map(Number) : []) {
    let c = t.firstChild[n];
    while (c && t.label[c] !== label) c = t.nextSibling[c];
    if (!c) return n;
    n = c;
  }
  return n;
}

/** The longest beginning of a text that fits. */
function fit(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  const w = ctx.measureText(text).width;
  if (w <= room) return text;
  const n = Math.floor((text.length * room) / w) - 1;
  return n > 2 ? `${text.slice(0, n)}…` : "";
}

export function Flame(p: Props) {
  const { tree, labels, metric } = p;
  const isDark = useDark();
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const rows = useRef<Box[][]>([]);
  const view = useRef<[number, number]>([0, 1]);
  const animation = useRef(0);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const [cursor, setCursor] = useState(0);
  const [zoom, setZoom] = useState(0);
  const start = useMemo(() => starts(tree), [tree]);
  const seeds = useMemo(() => labels.map((l) => seedOf(l.slice(0, l.lastIndexOf(".") + 1))), [labels]);
  const height = (tree.depth + 1) * ROW;

  const draw = () => {
    const c = canvas.current!;
    const ctx = c.getContext("2d")!;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = size;
    if (!w) return;
    if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) {
      c.width = Math.round(w * ratio);
      c.height = Math.round(h * ratio);
    }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, w, h);
    paint(ctx, w, h, scroller.current!.scrollTop);
  };

  const paint = (ctx: CanvasRenderingContext2D, w: number, h: number, top: number, all = false) => {
    const [v0, v1] = view.current;
    const scale = w / (v1 - v0);
    const full = Math.max(height, h);
    const boxes: Box[][] = [];
    ctx.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
    ctx.textBaseline = "middle";
    const first = p.upwards ? Math.floor((full - top - h) / ROW) : Math.floor(top / ROW);
    const last = first + Math.ceil(h / ROW) + 1;
    const stack: [number, number][] = [[0, 0]];
    while (stack.length) {
      const [node, depth] = stack.pop()!;
      const x0 = Math.max(0, (start[node] - v0) * scale);
      const x1 = Math.min(w, (start[node] + tree.total[node] - v0) * scale);
      const y = (p.upwards ? full - (depth + 1) * ROW : depth * ROW) - top;
      if (all || (depth >= first && depth <= last)) box(ctx, node, x0, x1 - x0, y, boxes, depth, v0, v1);
      if (!all && depth > last) continue;
      for (let c = tree.firstChild[node]; c; c = tree.nextSibling[c]) {
        const cx0 = (start[c] - v0) * scale;
        const cw = tree.total[c] * scale;
        if (cx0 >= w) break;
        if (cw < MIN_WIDTH) {
          // The rest is smaller still: one grey box stands for it.
          const end = Math.min(w, (start[node] + tree.total[node] - tree.self[node] - v0) * scale);
          const from = Math.max(0, cx0);
          if (end - from > 0.5 && (all || (depth + 1 >= first && depth < last))) {
            const cy = (p.upwards ? full - (depth + 2) * ROW : (depth + 1) * ROW) - top;
            ctx.fillStyle = isDark ? "#3a4343" : "#d5dcdb";
            ctx.fillRect(from, cy, end - from, ROW - 1);
            (boxes[depth + 1] ??= []).push({ x: from, w: end - from, node: -1 });
          }
          break;
        }
        if (cx0 + cw > 0) stack.push([c, depth + 1]);
      }
    }
    rows.current = boxes;
  };

  const box = (ctx: CanvasRenderingContext2D, node: number, x: number, w: number, y: number, boxes: Box[][], depth: number,
    v0: number, v1: number) => {
    if (w <= 0) return;
    const label = tree.label[node];
    const partly = start[node] < v0 - 1e-9 || start[node] + tree.total[node] > v1 + 1e-9;
    const hit = node > 0 && p.match && p.match[label];
    ctx.globalAlpha = partly && node > 0 ? 0.55 : p.match && !hit ? 0.4 : 1;
    ctx.fillStyle = node === 0 ? (isDark ? "#2b3535" : "#e3eae9") : hit ? (isDark ? "#b14a8f" : "#e58ac6") : p.tint ? p.tint(node) : colour(tree.kind[node], seeds[label], isDark);
    ctx.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
    (boxes[depth] ??= []).push({ x, w, node });
    if (w > 26) {
      const name = node === 0 ? `all: ${weightLong(metric, tree.total[0])}` : labels[label];
      const text = node > 0 && ctx.measureText(name).width > w - 8 ? fit(ctx, short(name), w - 8) : fit(ctx, name, w - 8);
      if (text) {
        ctx.fillStyle = ink(isDark);
        ctx.fillText(text, x + 4, y + ROW / 2);
      }
    }
    ctx.globalAlpha = 1;
    if (node > 0 && label === p.selected) {
      ctx.strokeStyle = isDark ? "#fff" : "#000";
      ctx.lineWidth = 1;
      ctx.strokeRect(x + 0.5, y + 0.5, Math.max(w - 2, 1), ROW - 2);
    }
    if (node === cursor && document.activeElement === canvas.current) {
      ctx.strokeStyle = isDark ? "#8cc8ff" : "#0b57d0";
      ctx.lineWidth = 2;
      ctx.strokeRect(x + 1, y + 1, Math.max(w - 3, 1), ROW - 3);
    }
  };

  const moveTo = (from: number, to: number, animate: boolean) => {
    cancelAnimationFrame(animation.current);
    const [a, b] = view.current;
    const still = !animate || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const t0 = performance.now();
    const step = () => {
      const t = still ? 1 : Math.min(1, (performance.now() - t0) / 180);
      const e = 1 - (1 - t) ** 3;
      view.current = t === 1 ? [from, to] : [a + (from - a) * e, b + (to - b) * e];
      draw();
      if (t < 1) animation.current = requestAnimationFrame(step);
    };
    step();
  };

  const zoomTo = (node: number, animate = true) => {
    setZoom(node);
    setHover(null);
    moveTo(start[node], start[node] + Math.max(tree.total[node], 1e-9), animate);
    if (animate) p.onZoom?.(pathOf(tree, node));
  };

  useEffect(() => {
    const s = scroller.current!;
    const watch = new ResizeObserver(() => setSize([s.clientWidth, s.clientHeight]));
    watch.observe(s);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const n = nodeAt(tree, p.zoomed ?? "");
    setCursor(n);
    zoomTo(n, false);
    if (p.upwards) scroller.current!.scrollTop = scroller.current!.scrollHeight;
    else scroller.current!.scrollTop = 0;
  }, [tree, p.upwards]);
  // Not for the tip: what the pointer is over changes nothing in the picture.
  useEffect(draw, [tree, labels, size, p.match, p.selected, cursor, isDark, p.upwards, zoom]);

  const hitAt = (e: MouseEvent): number | null => {
    const r = canvas.current!.getBoundingClientRect();
    const full = Math.max(height, size[1]);
    const y = e.clientY - r.top + scroller.current!.scrollTop;
    const depth = Math.floor((p.upwards ? full - y : y) / ROW);
    const x = e.clientX - r.left;
    return rows.current[depth]?.find((b) => x >= b.x && x < b.x + Math.max(b.w, 1))?.node ?? null;
  };

  const show = (node: number) => {
    setCursor(node);
    const depth = depthOf(tree, node);
    const s = scroller.current!;
    const y = p.upwards ? Math.max(height, size[1]) - (depth + 1) * ROW : depth * ROW;
    if (y < s.scrollTop) s.scrollTop = y;
    else if (y + ROW > s.scrollTop + size[1]) s.scrollTop = y + ROW - size[1];
    const [v0, v1] = view.current;
    if (start[node] >= v1 || start[node] + tree.total[node] <= v0) zoomTo(tree.parent[node]);
  };

  const onKey = (e: KeyboardEvent) => {
    const sibling = (back: boolean) => {
      const parent = tree.parent[cursor];
      let before = 0;
      for (let c = tree.firstChild[parent]; c; c = tree.nextSibling[c]) {
        if (c === cursor) return back ? before : tree.nextSibling[c];
        before = c;
      }
      return 0;
    };
    const inwards = tree.firstChild[cursor];
    const outwards = tree.parent[cursor];
    const moves: Record<string, () => number> = {
      ArrowDown: () => (p.upwards ? outwards : inwards || cursor),
      ArrowUp: () => (p.upwards ? inwards || cursor : outwards),
      ArrowLeft: () => sibling(true) || cursor,
      ArrowRight: () => sibling(false) || cursor,
      Home: () => 0,
    };
    if (moves[e.key]) {
      const to = moves[e.key]();
      if (e.key === "Home") zoomTo(0);
      show(to);
      if (to) p.onSelect(tree.label[to]);
    } else if (e.key === "Enter" || e.key === " ") zoomTo(cursor);
    else if (e.key === "Backspace" || (e.key === "Escape" && zoom)) zoomTo(tree.parent[zoom]);
    else if (e.key === "o" && cursor) p.onOpen(tree.label[cursor]);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };

  const onWheel = (e: WheelEvent) => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    const r = canvas.current!.getBoundingClientRect();
    const [v0, v1] = view.current;
    const at = v0 + ((e.clientX - r.left) / size[0]) * (v1 - v0);
    const k = Math.exp(e.deltaY * 0.003);
    const from = Math.max(0, at - (at - v0) * k);
    const to = Math.min(Math.max(tree.total[0], 1e-9), at + (v1 - at) * k);
    if (to - from > tree.total[0] * 1e-7) moveTo(from, to, false);
  };

  const told = hover && hover.node > 0 ? hover.node : 0;
  const say = (node: number) =>
    node
      ? `${labels[tree.label[node]]}: ${percent(tree.total[node], p.whole)} in it and what it calls, ${percent(tree.self[node], p.whole)} in itself`
      : `all: ${weightLong(metric, tree.total[0])}`;
  return (
    <div class="flame">
      <div class="flame-scroll" ref={scroller} onScroll={draw}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="flame graph"
          aria-label={`${p.title}. Arrow keys move between frames, Enter zooms in, Backspace out, O opens callers and callees.`}
          style={{ width: `${size[0]}px`, height: `${size[1]}px` }}
          onMouseMove={(e) => {
            const node = hitAt(e);
            setHover(node === null ? null : { node, x: e.clientX, y: e.clientY });
          }}
          onMouseLeave={() => setHover(null)}
          onClick={(e) => {
            const node = hitAt(e);
            if (node === null || node < 0) return;
            setCursor(node);
            p.onSelect(node ? tree.label[node] : -1);
            zoomTo(node);
          }}
          onDblClick={(e) => {
            const node = hitAt(e);
            if (node && node > 0) p.onOpen(tree.label[node]);
          }}
          onKeyDown={onKey}
          onFocus={draw}
          onBlur={draw}
          onWheel={onWheel}
        />
        <div style={{ height: `${Math.max(0, height - size[1])}px` }} />
      </div>
      <div class="sr" aria-live="polite">{say(cursor)}</div>
      {zoom > 0 && (
        <button class="zoom-out" onClick={() => zoomTo(0)} title="Show everything again (Home)">
          ⤺ All
        </button>
      )}
      {told > 0 && (
        <div class="tip" style={tipPlace(hover!)}>
          <b>{labels[tree.label[told]]}</b>
          <span>
            {percent(tree.total[told], p.whole)} · {weightLong(metric, tree.total[told])}
          </span>
          {tree.kind[told] !== MARK && tree.self[told] > 0 && (
            <span>
              self {percent(tree.self[told], p.whole)} · {weightLong(metric, tree.self[told])}
            </span>
          )}
          <span class="dim">{kindTitles[kinds[tree.kind[told]]]}</span>
        </div>
      )}
    </div>
  );
}

function tipPlace(h: { x: number; y: number }) {
  const right = h.x > window.innerWidth - 380;
  const low = h.y > window.innerHeight - 130;
  return {
    left: right ? "auto" : `${h.x + 14}px`,
    right: right ? `${window.innerWidth - h.x + 14}px` : "auto",
    top: low ? "auto" : `${h.y + 16}px`,
    bottom: low ? `${window.innerHeight - h.y + 12}px` : "auto",
  };
}
