// SPDX-License-Identifier: Apache-2.0
// The heat map of requests: how many began in each column of time and took as long as each row
// stands for. Also for the requests of a fleet.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { axis, type Box, type Heat, leastOf, timeAt } from "./choice";
import { duration, plural } from "./format";
import { ink } from "./palette";
import { useSize } from "./size";

interface HeatProps {
  json: Heat;
  only: number;
  box: Box | null;
  dark: boolean;
  onBox: (b: Box | null) => void;
}

const LEFT = 62;
const BOTTOM = 20;

export function HeatMap({ json, only, box, dark, onBox }: HeatProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width] = useSize(frame);
  const height = 220;
  const [cursor, show] = useState<[number, number] | null>(null);
  // Keys may arrive faster than the page is drawn.
  const at = useRef<[number, number] | null>(null);
  const anchor = useRef<[number, number] | null>(null); // the other end of what is chosen
  const drag = useRef<[number, number] | null>(null);
  const setCursor = (c: [number, number]) => show((at.current = c));
  const cells = useMemo(() => {
    const all = new Map<number, number>();
    json.heat.forEach((list, n) => {
      if (only >= 0 && n !== only) return;
      for (let i = 0; i < list.length; i += 3)
        all.set(
          list[i] * json.rows + list[i + 1],
          (all.get(list[i] * json.rows + list[i + 1]) ?? 0) + list[i + 2],
        );
    });
    return all;
  }, [json, only]);
  const [low, high] = useMemo(() => {
    const used = [...cells.keys()].map((k) => k % json.rows);
    return used.length
      ? [Math.max(0, Math.min(...used) - 1), Math.min(json.rows - 1, Math.max(...used) + 1)]
      : [0, json.rows - 1];
  }, [cells]);
  const most = useMemo(() => Math.max(1, ...cells.values()), [cells]);
  const cw = Math.max(0, width - LEFT) / json.columns;
  const ch = (height - BOTTOM) / (high - low + 1);
  const place = (c: number, r: number): [number, number] => [LEFT + c * cw, (high - r) * ch];
  useEffect(() => {
    const c = canvas.current;
    if (!c || !width) return;
    const ratio = devicePixelRatio || 1;
    c.width = width * ratio;
    c.height = height * ratio;
    const ctx = c.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    ctx.fillStyle = ink(dark);
    for (
      let r = Math.ceil(low / json.rows_of_ten) * json.rows_of_ten;
      r <= high;
      r += json.rows_of_ten
    ) {
      const y = (high - r + 1) * ch;
      ctx.globalAlpha = 0.15;
      ctx.fillRect(LEFT, y, width - LEFT, 1);
      ctx.globalAlpha = 1;
      ctx.textAlign = "right";
      ctx.fillText(
        duration(Math.round(leastOf(r, json.rows_of_ten))),
        LEFT - 6,
        Math.max(6, Math.min(y, height - BOTTOM - 6)),
      );
    }
    const steps = width < 600 ? 2 : 5;
    for (let i = 0; i <= steps; i++) {
      ctx.textAlign = i === 0 ? "left" : i === steps ? "right" : "center";
      ctx.fillText(
        i || json.start_s !== undefined ? timeAt(json, i / steps) : "0",
        LEFT + (i / steps) * (width - LEFT),
        height - BOTTOM / 2,
      );
    }
    for (const [k, n] of cells) {
      const [x, y] = place(Math.floor(k / json.rows), k % json.rows);
      const heat = 0.25 + 0.75 * (Math.log1p(n) / Math.log1p(most));
      ctx.fillStyle = dark
        ? `hsl(${190 - 150 * heat} 70% ${22 + 40 * heat}%)`
        : `hsl(${205 - 190 * heat} 70% ${82 - 40 * heat}%)`;
      ctx.fillRect(x, y, Math.max(cw, 1), Math.max(ch - 0.5, 1));
    }
    ctx.lineWidth = 2;
    if (box) {
      const [x, y] = place(box.c0, box.r1);
      ctx.strokeStyle = ink(dark);
      ctx.strokeRect(x, y, (box.c1 - box.c0 + 1) * cw, (box.r1 - box.r0 + 1) * ch);
    }
    if (cursor && document.activeElement === c) {
      const [x, y] = place(...cursor);
      ctx.strokeStyle = dark ? "#8cc8ff" : "#0b57d0";
      ctx.strokeRect(x - 1, y - 1, Math.max(cw, 2) + 2, ch + 2);
    }
  });
  const hit = (e: PointerEvent): [number, number] => {
    const r = canvas.current!.getBoundingClientRect();
    const clamp = (v: number, a: number, b: number) => Math.max(a, Math.min(b, v));
    return [
      clamp(Math.floor((e.clientX - r.left - LEFT) / cw), 0, json.columns - 1),
      clamp(high - Math.floor((e.clientY - r.top) / ch), low, high),
    ];
  };
  const span = (a: [number, number], b: [number, number]): Box => ({
    c0: Math.min(a[0], b[0]),
    c1: Math.max(a[0], b[0]),
    r0: Math.min(a[1], b[1]),
    r1: Math.max(a[1], b[1]),
  });
  const onKey = (e: KeyboardEvent) => {
    const from = at.current ?? [0, high];
    const move: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    const m = move[e.key];
    if (m) {
      setCursor([
        Math.max(0, Math.min(json.columns - 1, from[0] + m[0])),
        Math.max(low, Math.min(high, from[1] + m[1])),
      ]);
      if (!e.shiftKey) anchor.current = null;
      else onBox(span((anchor.current ??= from), at.current!));
    } else if (e.key === "Enter" || e.key === " ") onBox(span((anchor.current = from), from));
    else if (e.key === "Escape" && box) onBox((anchor.current = null));
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const n = cursor ? (cells.get(cursor[0] * json.rows + cursor[1]) ?? 0) : 0;
  return (
    <section aria-label="Latencies over time" class="heat">
      <div ref={frame}>
        <canvas
          ref={canvas}
          style={{ width: "100%", height: `${height}px` }}
          tabIndex={0}
          role="img"
          aria-label={`Latencies over time: ${cells.size} of ${json.columns} by ${json.rows} fields have requests. Arrow keys move, Enter chooses.`}
          onFocus={() => setCursor(at.current ?? [0, high])}
          onKeyDown={onKey}
          onPointerDown={(e) => {
            drag.current = hit(e);
            canvas.current!.setPointerCapture(e.pointerId);
          }}
          onPointerMove={(e) => {
            setCursor(hit(e));
            if (drag.current) onBox(span(drag.current, hit(e)));
          }}
          onPointerUp={(e) => {
            if (drag.current) onBox(span(drag.current, hit(e)));
            drag.current = null;
          }}
        />
      </div>
      <output aria-live="polite">
        {cursor
          ? `${plural(n, "request")} from ${axis(json, span(cursor, cursor))}`
          : "Drag, or move with the arrow keys and press Enter to choose."}
      </output>
    </section>
  );
}
