// SPDX-License-Identifier: Apache-2.0
// Weight over time; dragging selects a window.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Metric } from "./data";
import { duration } from "./format";
import { useSize } from "./size";
import { useDark } from "./theme";

const HEIGHT = 46;

interface Props {
  metric: Metric;
  threads: Set<number> | null;
  window: [number, number] | null; // buckets
  onWindow: (w: [number, number] | null) => void;
}

function niceStep(span: number, pieces: number): number {
  const raw = span / pieces;
  const base = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((k) => k * base).find((s) => s >= raw)!;
}

export function Ruler(p: Props) {
  const { metric } = p;
  const isDark = useDark();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width] = useSize(canvas);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const buckets = metric.cells.buckets;
  const weights = useMemo(() => {
    const w = new Float64Array(buckets);
    const c = metric.cells;
    for (let i = 0; i < c.n; i++)
      if (!p.threads || p.threads.has(c.thread[i])) w[c.bucket[i]] += c.weight[i];
    return w;
  }, [metric, p.threads]);
  const shown = drag ? ([Math.min(...drag), Math.max(...drag) + 1] as [number, number]) : p.window;

  useEffect(() => {
    const c = canvas.current;
    if (!c) return;
    const ratio = window.devicePixelRatio || 1;
    c.width = width * ratio;
    c.height = HEIGHT * ratio;
    const ctx = c.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, HEIGHT);
    const top = weights.reduce((a, b) => Math.max(a, b), 1e-9);
    const bw = width / buckets;
    for (let i = 0; i < buckets; i++) {
      const inside = !shown || (i >= shown[0] && i < shown[1]);
      ctx.fillStyle = inside ? (isDark ? "#3fa796" : "#2a9d8f") : isDark ? "#39454a" : "#cfdad8";
      const h = (weights[i] / top) * (HEIGHT - 16);
      ctx.fillRect(i * bw, HEIGHT - 14 - h, Math.max(bw - (bw > 4 ? 1 : 0), 0.7), h);
    }
    const span = buckets * metric.bucketNs;
    const step = niceStep(span, Math.max(2, width / 110));
    ctx.font = "10.5px system-ui, sans-serif";
    ctx.fillStyle = isDark ? "#9db0b0" : "#52615f";
    for (let t = 0; t <= span; t += step) {
      const x = (t / span) * width;
      ctx.fillRect(x, HEIGHT - 13, 1, 4);
      if (x < width - 36)
        ctx.fillText(t + metric.fromNs ? duration(t + metric.fromNs) : "0", x + 3, HEIGHT - 3);
    }
    if (shown) {
      ctx.strokeStyle = isDark ? "#8cc8ff" : "#0b57d0";
      ctx.lineWidth = 1.5;
      ctx.strokeRect(shown[0] * bw + 0.75, 0.75, (shown[1] - shown[0]) * bw - 1.5, HEIGHT - 15);
    }
  });

  const bucketAt = (e: PointerEvent) => {
    const r = canvas.current!.getBoundingClientRect();
    return Math.max(
      0,
      Math.min(buckets - 1, Math.floor(((e.clientX - r.left) / r.width) * buckets)),
    );
  };
  const onKey = (e: KeyboardEvent) => {
    const w = p.window ?? [0, buckets];
    const step = Math.max(1, Math.round(buckets / 50));
    const clamp = (v: number) => Math.max(0, Math.min(buckets, v));
    let to: [number, number] | null = null;
    if (e.key === "Escape") p.onWindow(null);
    else if (e.key === "ArrowRight")
      to = e.shiftKey
        ? [w[0], clamp(w[1] + step)]
        : [clamp(w[0] + step), clamp(w[1] + (p.window ? step : 0))];
    else if (e.key === "ArrowLeft")
      to = e.shiftKey ? [w[0], clamp(w[1] - step)] : [clamp(w[0] - step), clamp(w[1] - step)];
    else return;
    e.preventDefault();
    e.stopPropagation();
    if (to && to[1] > to[0]) p.onWindow(to);
  };
  const text = p.window
    ? `${duration(p.window[0] * metric.bucketNs + metric.fromNs)} to ${duration(p.window[1] * metric.bucketNs + metric.fromNs)}`
    : "the whole recording";
  return (
    <div class="ruler">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="slider"
        aria-label="Time window. Arrow keys move it, with Shift its end; Escape selects everything."
        aria-valuemin={0}
        aria-valuemax={buckets}
        aria-valuenow={p.window ? p.window[0] : 0}
        aria-valuetext={text}
        style={{ width: "100%", height: `${HEIGHT}px` }}
        onPointerDown={(e) => {
          canvas.current!.setPointerCapture(e.pointerId);
          setDrag([bucketAt(e), bucketAt(e)]);
        }}
        onPointerMove={(e) => drag && setDrag([drag[0], bucketAt(e)])}
        onPointerUp={() => {
          if (drag)
            p.onWindow(drag[0] === drag[1] ? null : [Math.min(...drag), Math.max(...drag) + 1]);
          setDrag(null);
        }}
        onKeyDown={onKey}
      />
      {p.window && (
        <button
          class="chip"
          onClick={() => p.onWindow(null)}
          title="Select the whole recording (Escape)"
        >
          {text} ✕
        </button>
      )}
    </div>
  );
}
