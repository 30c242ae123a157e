// SPDX-License-Identifier: Apache-2.0
// A flame graph (or, growing downwards, an icicle) on a canvas: zooming, selecting, the keyboard.
// flamepaint.ts draws it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { kinds, MARK, Metric } from "./data";
import { percent, plural, short, weightLong } from "./format";
import { FlamePainter, frameAt, Names, ROW, starts } from "./flamepaint";
import { kindPixels, kindTitles, pixel, seedOf } from "./palette";
import { useSize } from "./size";
import type { Tree } from "./tree";
import { useDark } from "./theme";

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

/** The height that the deepest stack needs; the content below gets the rest. */
export const flameHeight = (tree: Tree) => `${(tree.depth + 1) * ROW + 12}px`;

/** The next matching frame after `from` (before it: back) in tree order; `from` if it is the only one. */
function nextMatch(t: Tree, match: Uint8Array, from: number, back: boolean): number {
  const order: number[] = [];
  const open = [0];
  while (open.length) {
    const n = open.pop()!;
    if (n && t.total[n] && match[t.label[n]]) order.push(n);
    const below: number[] = [];
    for (let c = t.firstChild[n]; c; c = t.nextSibling[c]) below.push(c);
    open.push(...below.reverse());
  }
  const at = order.indexOf(from);
  if (at < 0) return order[back ? order.length - 1 : 0] ?? from;
  return order[(at + (back ? order.length - 1 : 1)) % order.length];
}

export function Flame(p: Props) {
  const { tree, labels, metric } = p;
  const isDark = useDark();
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef(new FlamePainter());
  const names = useRef<Names | null>(null);
  const view = useRef<[number, number]>([0, 1]);
  const animation = useRef(0);
  const size = useSize(scroller);
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const [cursor, setCursor] = useState(0);
  const [zoom, setZoom] = useState(0);
  const start = useMemo(() => starts(tree), [tree]);
  const seeds = useMemo(
    () => labels.map((l) => seedOf(l.slice(0, l.lastIndexOf(".") + 1))),
    [labels],
  );
  const shades = useMemo(() => kindPixels(isDark), [isDark]);
  const height = (tree.depth + 1) * ROW;

  const draw = () => {
    const c = canvas.current;
    if (!c) return; // the view has changed since this was asked for
    const ctx = c.getContext("2d")!;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = size;
    if (!w) return;
    if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) {
      c.width = Math.round(w * ratio);
      c.height = Math.round(h * ratio);
    }
    ctx.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
    const fitted = (names.current ??= new Names(ctx));
    const ground = pixel(isDark ? "#2b3535" : "#e3eae9");
    const found = pixel(isDark ? "#b14a8f" : "#e58ac6");
    painter.current.paint(
      ctx,
      {
        tree,
        start,
        view: view.current,
        width: w,
        height: h,
        top: scroller.current!.scrollTop,
        full: Math.max(height, h),
        upwards: p.upwards,
        selected: p.selected,
        cursor: document.activeElement === c ? cursor : -1,
        isDark,
        colourOf: (node) => {
          if (node === 0) return ground;
          if (p.match?.[tree.label[node]]) return found;
          return p.tint
            ? pixel(p.tint(node))
            : shades[tree.kind[node] * 7 + (seeds[tree.label[node]] % 7)];
        },
        alphaOf: (node, partly) =>
          partly ? 140 : p.match && !(node > 0 && p.match[tree.label[node]]) ? 102 : 255,
        textOf: (node, room) => {
          const name = node
            ? labels[tree.label[node]]
            : `all: ${weightLong(metric, tree.total[0])}`;
          return fitted.fit(name, () => (node ? short(name) : name), room);
        },
      },
      ratio,
    );
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
      if (canvas.current) canvas.current.dataset.still = String(t === 1);
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

  useEffect(() => () => cancelAnimationFrame(animation.current), []);
  useEffect(() => {
    const n = nodeAt(tree, p.zoomed ?? "");
    setCursor(n);
    zoomTo(n, false);
    if (scroller.current)
      scroller.current.scrollTop = p.upwards ? scroller.current.scrollHeight : 0;
  }, [tree, p.upwards]);
  // Not redrawn for the tooltip, because the frame under the pointer changes nothing in the
  // picture.
  useEffect(draw, [tree, labels, size, p.match, p.selected, cursor, isDark, p.upwards, zoom]);

  const hitAt = (e: MouseEvent): number | null => {
    const r = canvas.current!.getBoundingClientRect();
    const full = Math.max(height, size[1]);
    const y = e.clientY - r.top + scroller.current!.scrollTop;
    const depth = Math.floor((p.upwards ? full - y : y) / ROW);
    const [v0, v1] = view.current;
    const pixel = (v1 - v0) / size[0];
    return frameAt(tree, start, depth, v0 + (e.clientX - r.left) * pixel, pixel);
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

  // "n" and "N" anywhere, or Enter and Shift+Enter in the search box, go through the matches. The
  // listener is replaced before anything is painted, so that a key pressed at once after another
  // one starts from the frame that is shown.
  useLayoutEffect(() => {
    if (!p.match) return;
    const found = p.match;
    const next = (e: KeyboardEvent) => {
      const inSearch =
        e.target instanceof HTMLInputElement &&
        e.target.type === "search" &&
        !!e.target.closest(".tools");
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as HTMLElement).tagName);
      const isKey = inSearch ? e.key === "Enter" : !typing && (e.key === "n" || e.key === "N");
      if (!isKey || e.ctrlKey || e.metaKey || e.altKey) return;
      const to = nextMatch(tree, found, cursor, inSearch ? e.shiftKey : e.key === "N");
      show(to);
      if (to) p.onSelect(tree.label[to]);
      e.preventDefault();
    };
    addEventListener("keydown", next);
    return () => removeEventListener("keydown", next);
  });

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

  const hovered = hover && hover.node > 0 ? hover.node : 0;
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
          data-keys
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
      <div class="sr" aria-live="polite">
        {say(cursor)}
      </div>
      {zoom > 0 && (
        <button class="zoom-out" onClick={() => zoomTo(0)} title="Show everything again (Home)">
          ⤺ All
        </button>
      )}
      {hovered > 0 && (
        <div class="tip" style={tipPlace(hover!)}>
          <b>{labels[tree.label[hovered]]}</b>
          <span>
            {percent(tree.total[hovered], p.whole)} · {weightLong(metric, tree.total[hovered])}
          </span>
          {tree.kind[hovered] !== MARK && tree.self[hovered] > 0 && (
            <span>
              self {percent(tree.self[hovered], p.whole)} · {weightLong(metric, tree.self[hovered])}
            </span>
          )}
          {metric.calls?.has(tree.label[hovered]) && (
            <span>{plural(metric.calls.get(tree.label[hovered])!, "call")} from all stacks</span>
          )}
          <span class="dim">{kindTitles[kinds[tree.kind[hovered]]]}</span>
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
