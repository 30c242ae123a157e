// SPDX-License-Identifier: Apache-2.0
// The strip below the threads: when the VM stopped all threads and when the container was out of
// CPU (src/page/bands.c).
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Varints } from "./data";
import { duration, moment, plural } from "./format";
import { useSize } from "./size";
import { gutter } from "./threadpaint";
import { useDark } from "./theme";
import type { BandsJson } from "./timeline";

export interface Band {
  start: number;
  end: number;
  stopped: number; // ns of it for which threads could not run
  way: number; // ns of these for which threads were being stopped
  events: number;
  name: string; // of the longest event
}

interface Lane {
  title: string;
  what: string; // one event of it
  colour: [string, string]; // light, dark
  bands: Band[];
}

export function decodeBands(text: string, names: string[]): Band[] {
  const v = new Varints(text);
  const bands: Band[] = [];
  for (let start = 0; v.more;) {
    start += v.next();
    bands.push({
      start,
      end: start + v.next(),
      stopped: v.next(),
      way: v.next(),
      events: v.next(),
      name: names[v.next()] ?? "",
    });
  }
  return bands;
}

/** What a band says in words. */
export function bandText(what: string, b: Band): string {
  const way = b.way ? `, ${duration(b.way)} of it until all threads had stopped` : "";
  const span =
    b.events > 1
      ? `${plural(b.events, what)} in ${duration(b.end - b.start)}, ${duration(b.stopped)} together`
      : b.stopped < b.end - b.start
        ? `${what}, ${duration(b.stopped)} of ${duration(b.end - b.start)}`
        : `${what}, ${duration(b.stopped)}`;
  return `${moment(b.start)}: ${span}${way}${b.name ? `; ${b.events > 1 ? "the longest: " : ""}${b.name}` : ""}`;
}

/** Finds the band at a time, or within `near` ns of it; -1: there is none. */
export function bandAt(bands: Band[], time: number, near: number): number {
  let lo = 0;
  let hi = bands.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (bands[mid].start <= time) lo = mid + 1;
    else hi = mid;
  }
  const before = lo - 1;
  if (before >= 0 && time <= bands[before].end) return before;
  const far = (i: number) =>
    bands[i] ? Math.max(bands[i].start - time, time - bands[i].end) : Infinity;
  const nearest = far(before) <= far(lo) ? before : lo;
  return far(nearest) <= near ? nearest : -1;
}

const LANE = 18;

export const lanesOf = (json: BandsJson): Lane[] =>
  (
    [
      ["Collections", "collection pause", ["#7b4fa3", "#b58be0"], json.collections],
      ["Safepoints", "safepoint", ["#b3261e", "#ff8b80"], json.safepoints],
      ["Out of CPU", "time out of CPU", ["#d98880", "#a5564d"], json.throttled],
    ] as [string, string, [string, string], string][]
  )
    .map(([title, what, colour, list]) => ({
      title,
      what,
      colour,
      bands: decodeBands(list, json.names),
    }))
    .filter((l) => l.bands.length);

interface Props {
  json: BandsJson;
  /** The visible part of time, which changes without a rendering. */
  view: { current: [number, number] };
  onView: (view: [number, number]) => void;
  /** Receives the function that draws the strip, for code that changes the view. */
  drawer: { current: () => void };
}

export function Bands({ json, view, onView, drawer }: Props) {
  const dark = useDark();
  const lanes = useMemo(() => lanesOf(json), [json]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width] = useSize(canvas);
  const [picked, pick] = useState<{ lane: number; band: number } | null>(null);
  const height = lanes.length * LANE;
  const draw = () => {
    const c = canvas.current;
    if (!c || width <= gutter(width)) return;
    const ratio = devicePixelRatio || 1;
    if (c.width !== Math.round(width * ratio)) c.width = Math.round(width * ratio);
    if (c.height !== Math.round(height * ratio)) c.height = Math.round(height * ratio);
    const ctx = c.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    lanes.forEach((l, i) =>
      paintLane(ctx, l, i, view.current, width, dark, picked?.lane === i ? picked.band : -1),
    );
  };
  drawer.current = draw;
  useEffect(draw);
  if (!lanes.length) return null;

  const show = (lane: number, band: number) => {
    const b = lanes[lane]?.bands[band];
    if (!b) return;
    pick({ lane, band });
    const [from, to] = view.current;
    if (b.end < from || b.start > to)
      onView([b.start - (to - from) / 2, b.start + (to - from) / 2]);
  };
  const onKey = (e: KeyboardEvent) => {
    const p = picked ?? { lane: 0, band: -1 };
    const l = Math.min(lanes.length - 1, p.lane + (e.key === "ArrowDown" ? 1 : 0));
    if (e.key === "ArrowRight") show(p.lane, p.band + 1);
    else if (e.key === "ArrowLeft") show(p.lane, p.band - 1);
    else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      const lane = e.key === "ArrowDown" ? l : Math.max(0, p.lane - 1);
      const time = lanes[p.lane].bands[p.band]?.start ?? view.current[0];
      show(lane, bandAt(lanes[lane].bands, time, Infinity));
    } else if (e.key === "Escape") pick(null);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const hit = (e: MouseEvent) => {
    const r = canvas.current!.getBoundingClientRect();
    const lane = Math.floor((e.clientY - r.top) / LANE);
    const x = e.clientX - r.left - gutter(width);
    if (!lanes[lane] || x < 0) return pick(null);
    const scale = (view.current[1] - view.current[0]) / (width - gutter(width));
    const band = bandAt(lanes[lane].bands, view.current[0] + x * scale, 4 * scale);
    pick(band < 0 ? null : { lane, band });
  };
  const of = picked && lanes[picked.lane];
  return (
    <div class="bands">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="strip of the VM's pauses"
        aria-label={`${lanes.map((l) => `${l.bands.length} ${l.title.toLowerCase()}`).join(", ")} over time. Left and right go from one to the next, up and down to another kind.`}
        style={{ width: "100%", height: `${height}px` }}
        onKeyDown={onKey}
        onPointerDown={hit}
        onPointerMove={(e) => e.pointerType === "mouse" && !e.buttons && hit(e)}
      />
      <p class="note small-note" aria-live="polite">
        {of
          ? bandText(of.what, of.bands[picked.band])
          : lanes.map((l) => `${l.title}: ${summary(l)}`).join(" · ")}
      </p>
    </div>
  );
}

/** Says how many events a lane has, and for how long threads could not run. */
function summary(l: Lane): string {
  let [events, stopped] = [0, 0];
  for (const b of l.bands) {
    events += b.events;
    stopped += b.stopped;
  }
  return `${plural(events, "time")}, ${duration(stopped)}`;
}

/** For each of `columns` columns of the view, the share of its time for which threads could not run. */
export function sharesOf(bands: Band[], view: [number, number], columns: number): Float64Array {
  const share = new Float64Array(columns);
  const scale = columns / (view[1] - view[0]);
  for (
    let k = Math.max(0, bandAt(bands, view[0], Infinity) - 1);
    k < bands.length && bands[k].start <= view[1];
    k++
  ) {
    const b = bands[k];
    if (b.end < view[0]) continue;
    const from = Math.max(0, (b.start - view[0]) * scale);
    const to = Math.min(columns, Math.max((b.end - view[0]) * scale, from + 1e-6));
    const dense = b.end > b.start ? Math.min(1, b.stopped / (b.end - b.start)) : 1;
    for (let c = Math.floor(from); c < to && c < columns; c++)
      share[c] = Math.min(1, share[c] + (Math.min(to, c + 1) - Math.max(from, c)) * dense);
  }
  return share;
}

function paintLane(
  ctx: CanvasRenderingContext2D,
  l: Lane,
  i: number,
  view: [number, number],
  width: number,
  dark: boolean,
  picked: number,
) {
  const left = gutter(width);
  const scale = (width - left) / (view[1] - view[0]);
  const top = i * LANE;
  ctx.fillStyle = dark ? "#161e1e" : "#f5f8f7";
  ctx.fillRect(0, top, left - 1, LANE);
  ctx.fillStyle = dark ? "#2a3636" : "#dbe4e2";
  ctx.fillRect(left - 1, top, 1, LANE);
  ctx.fillRect(0, top, width, 1);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  ctx.fillStyle = dark ? "#c3cfcd" : "#3a4947";
  ctx.fillText(l.title, 14, top + LANE / 2 + 1);
  const share = sharesOf(l.bands, view, Math.ceil(width - left));
  ctx.fillStyle = l.colour[dark ? 1 : 0];
  share.forEach((part, column) => {
    if (!part) return;
    ctx.globalAlpha = 0.3 + 0.7 * part; // even a short pause can be seen
    ctx.fillRect(left + column, top + 4, 1, LANE - 7);
  });
  ctx.globalAlpha = 1;
  const b = l.bands[picked];
  if (!b) return;
  const x = (time: number) => Math.max(left, Math.min(width, left + (time - view[0]) * scale));
  ctx.strokeStyle = dark ? "#8cc8ff" : "#0b57d0";
  ctx.lineWidth = 2;
  ctx.strokeRect(x(b.start) - 1, top + 2, Math.max(1, x(b.end) - x(b.start)) + 2, LANE - 3);
}
