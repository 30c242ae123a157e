// SPDX-License-Identifier: Apache-2.0
// One row a thread: its states, the interactions as arrows, the critical path through the rows.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration, percent } from "./format";
import { ThreadFilter } from "./threadfilter";
import { useDark } from "./theme";
import { Frame, lockOf, otherOf, Segment, stackOf, stateAt, Timeline } from "./timeline";

const ROW = 26;
const AXIS = 24;
const GUTTER = 190;
const MAX_ARROWS = 3000;

/** Colours of states, apart in hue and lightness (after Okabe and Ito). */
const stateColours: Record<string, [string, string]> = {
  run: ["#2f9e6e", "#37b07c"],
  "wait-object": ["#8fa8c9", "#56708f"],
  "wait-lock": ["#d1495b", "#e0566a"],
  sleep: ["#cfd6de", "#39424c"],
  "wait-join": ["#b59ad0", "#77589a"],
  deadlock: ["#000000", "#ffffff"],
  park: ["#a9c4dd", "#48627e"],
  reacquire: ["#e8932f", "#e8a14a"],
  io: ["#e7c547", "#b7962a"],
  preempted: ["#9fd8bd", "#2d6b50"],
  unmounted: ["#9fd8bd", "#2d6b50"],
};

const stateTitles: Record<string, string> = {
  run: "running or ready",
  "wait-object": "waiting (Object.wait)",
  "wait-lock": "blocked on a monitor",
  sleep: "sleeping",
  "wait-join": "waiting for a thread's end",
  deadlock: "deadlocked",
  dead: "ended",
  park: "parked",
  reacquire: "notified, waiting for the monitor",
  io: "in a blocking read or write",
  preempted: "ready, no processor",
  unmounted: "virtual, no carrier",
};

const edgeTitles: Record<string, string> = {
  start: "start",
  join: "join",
  notify: "notify",
  "notify-all": "notifyAll",
  handoff: "lock hand-off",
  interrupt: "interrupt",
  unpark: "unpark",
};

const edgeColours: Record<string, [string, string]> = {
  start: ["#0b7a4b", "#5fd3a0"],
  join: ["#7b4fa3", "#c79df0"],
  notify: ["#1f6fb2", "#79bdf5"],
  "notify-all": ["#12508a", "#4f9fe0"],
  handoff: ["#b3261e", "#ff8b80"],
  interrupt: ["#8a6d00", "#f1d264"],
  unpark: ["#3b6ea5", "#93c4f2"],
};

const colourOf = (table: Record<string, [string, string]>, key: string, dark: boolean) => (table[key] ?? ["#999", "#888"])[dark ? 1 : 0];

interface Line {
  thread: number; // -1: heading of a group
  title: string;
}

interface Picked {
  thread: number;
  node: number;
  segment: number; // of the critical path, -1 none
}

export interface ThreadsState {
  grouped: boolean;
  hidden: Set<string>; // edges
  path: boolean;
  chosen: Set<number> | null;
}

export function ThreadView({ t, file }: { t: Timeline; file: string }) {
  const dark = useDark();
  const whole: [number, number] = [0, Math.max(1, t.json.cut_ns || t.json.end_ns)];
  const [view, setView] = useState<[number, number]>(whole);
  const [picked, setShown] = useState<Picked | null>(null);
  // Keys come faster than renderings: they act on what the one before chose.
  const latest = useRef<Picked | null>(null);
  const setPicked = (to: Picked | null) => setShown((latest.current = to));
  const [options, setOptions] = useState<ThreadsState>({ grouped: false, hidden: new Set(), path: true, chosen: null });
  const [filter, setFilter] = useState(false);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; view: [number, number]; moved: boolean } | null>(null);
  const lines = useMemo(() => layout(t, options), [t, options.grouped, options.chosen]);
  const rowOf = useMemo(() => {
    const rows = new Map<number, number>();
    lines.forEach((l, i) => l.thread >= 0 && rows.set(l.thread, i));
    return rows;
  }, [lines]);
  const usedEdges = useMemo(() => {
    const seen = new Set<string>();
    for (let i = 0; i < t.n; i++) if (t.waker[i] >= 0) seen.add(t.json.edges[t.edge[i]]);
    return [...seen].filter((e) => edgeTitles[e]);
  }, [t]);
  const usedStates = useMemo(() => [...new Set(Array.from(t.kind))].map((k) => t.json.kinds[k]).filter((k) => stateColours[k]), [t]);
  const height = lines.length * ROW + AXIS;

  const clamp = (from: number, to: number): [number, number] => {
    const span = Math.min(Math.max(to - from, 1000), whole[1]);
    const start = Math.max(0, Math.min(from, whole[1] - span));
    return [start, start + span];
  };
  const zoom = (factor: number, at = (view[0] + view[1]) / 2) => setView((v) => clamp(at - (at - v[0]) * factor, at + (v[1] - at) * factor));
  const pan = (share: number) => setView((v) => clamp(v[0] + share * (v[1] - v[0]), v[1] + share * (v[1] - v[0])));

  useEffect(() => {
    const watch = new ResizeObserver(() => setSize([box.current!.clientWidth, box.current!.clientHeight]));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);

  const draw = () => {
    const c = canvas.current!;
    const [w, h] = size;
    if (!w) return;
    const ratio = devicePixelRatio || 1;
    c.width = w * ratio;
    c.height = h * ratio;
    const ctx = c.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(ctx, { t, lines, rowOf, view, options, dark, w, h, top: box.current!.scrollTop, picked });
  };
  useEffect(draw);

  const show = (node: number, segment = -1) => {
    const thread = t.thread[node];
    setPicked({ thread, node, segment });
    const row = rowOf.get(thread);
    const b = box.current!;
    if (row !== undefined) {
      const y = row * ROW;
      if (y < b.scrollTop) b.scrollTop = y;
      else if (y + ROW + AXIS > b.scrollTop + b.clientHeight) b.scrollTop = y + ROW + AXIS - b.clientHeight;
    }
    const x = t.time[node];
    if (x < view[0] || x > view[1]) setView(clamp(x - (view[1] - view[0]) / 2, x + (view[1] - view[0]) / 2));
  };
  const showSegment = (i: number) => {
    const s = t.path[i];
    if (!s) return;
    const node = s.node >= 0 && s.node < t.n ? s.node : stateAt(t, s.thread, s.start);
    if (node < 0) return;
    const span = view[1] - view[0];
    if (s.start < view[0] || s.start > view[1]) setView(clamp(s.start - span / 2, s.start + span / 2));
    show(node, i);
  };
  const segmentAt = (thread: number, time: number) => t.path.findIndex((s) => s.thread === thread && s.start <= time && time < s.end);
  const nodeAt = (e: MouseEvent): { thread: number; node: number; time: number } | null => {
    const r = canvas.current!.getBoundingClientRect();
    const line = lines[Math.floor((e.clientY - r.top - AXIS + box.current!.scrollTop) / ROW)];
    const x = e.clientX - r.left - GUTTER;
    if (!line || line.thread < 0 || e.clientY - r.top < AXIS) return null;
    const time = view[0] + (Math.max(x, 0) / (size[0] - GUTTER)) * (view[1] - view[0]);
    return { thread: line.thread, node: stateAt(t, line.thread, time), time };
  };
  const onKey = (e: KeyboardEvent) => {
    const picked = latest.current;
    const states = picked ? t.states[picked.thread] : null;
    const at = picked && states ? states.indexOf(picked.node) : -1;
    const row = picked ? (rowOf.get(picked.thread) ?? 0) : -1;
    const other = (step: number) => {
      for (let i = row + step; i >= 0 && i < lines.length; i += step) {
        const thread = lines[i].thread;
        if (thread < 0) continue;
        const node = stateAt(t, thread, picked ? Math.max(t.time[picked.node], view[0]) : view[0]);
        const first = t.states[thread][0] ?? -1;
        if (node >= 0 || first >= 0) return show(node >= 0 ? node : first);
      }
    };
    const acts: Record<string, () => void> = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => setView(whole),
      a: () => pan(-0.25), d: () => pan(0.25),
      ArrowRight: () => (at >= 0 && at + 1 < states!.length ? show(states![at + 1]) : pan(0.25)),
      ArrowLeft: () => (at > 0 ? show(states![at - 1]) : pan(-0.25)),
      ArrowDown: () => other(1), ArrowUp: () => other(-1),
      w: () => picked && t.waker[picked.node] >= 0 && show(t.waker[picked.node]),
      n: () => showSegment(picked?.segment !== undefined && picked.segment >= 0 ? picked.segment + 1 : 0),
      p: () => showSegment(picked?.segment !== undefined && picked.segment >= 0 ? picked.segment - 1 : t.path.length - 1),
      c: () => setOptions((o) => ({ ...o, path: !o.path })),
      g: () => setOptions((o) => ({ ...o, grouped: !o.grouped })),
      Escape: () => setPicked(null),
    };
    if (!acts[e.key] || e.ctrlKey || e.metaKey) return;
    acts[e.key]();
    e.preventDefault();
    e.stopPropagation();
  };
  const toggle = (edge: string) =>
    setOptions((o) => {
      const hidden = new Set(o.hidden);
      if (!hidden.delete(edge)) hidden.add(edge);
      return { ...o, hidden };
    });
  return (
    <main class="threads">
      <div class="tools" role="toolbar" aria-label="Timeline">
        <div class="seg" role="group" aria-label="Zoom">
          <button onClick={() => zoom(0.5)} title="Zoom in (+)" aria-label="Zoom in">+</button>
          <button onClick={() => zoom(2)} title="Zoom out (-)" aria-label="Zoom out">−</button>
          <button onClick={() => setView(whole)} title="Everything (0)">All</button>
        </div>
        <button aria-pressed={options.path} class="toggle" onClick={() => setOptions({ ...options, path: !options.path })} title="The chain of activities that the time depends on (c)">
          <i style={{ background: dark ? "#fff" : "#111" }} /> Critical path
        </button>
        {usedEdges.map((e) => (
          <button key={e} aria-pressed={!options.hidden.has(e)} class="toggle" onClick={() => toggle(e)} title={`Arrows: ${edgeTitles[e]}`}>
            <i style={{ background: colourOf(edgeColours, e, dark) }} /> {edgeTitles[e]}
          </button>
        ))}
        <button aria-pressed={options.grouped} class="toggle" onClick={() => setOptions({ ...options, grouped: !options.grouped })} title="Group the rows by thread group (g)">
          Groups
        </button>
        <button class={options.chosen ? "toggle on" : "toggle"} onClick={() => setFilter(true)}>
          {options.chosen ? `${options.chosen.size} of ${t.json.threads.length} threads` : `All ${t.json.threads.length} threads`} …
        </button>
        <div class="grow" />
        <div class="legend">
          {usedStates.map((s) => (
            <span key={s}>
              <i style={{ background: colourOf(stateColours, s, dark) }} /> {stateTitles[s] ?? s}
            </span>
          ))}
        </div>
      </div>
      {t.json.cut_ns > 0 && <p class="note">More was recorded than one file holds: shown up to {duration(t.json.cut_ns)}. Convert a window with --from and --to to see later times.</p>}
      {t.json.lost > 0 && <p class="note">{t.json.lost} events were lost while recording; waits around them have no known cause.</p>}
      <div class="rows" ref={box} onScroll={draw}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="thread timeline"
          aria-label="Threads over time. Arrow keys move between states and threads, plus and minus zoom, W goes to the waker, N and P along the critical path."
          style={{ width: `${size[0]}px`, height: `${size[1]}px` }}
          onKeyDown={onKey}
          onWheel={(e) => {
            const r = canvas.current!.getBoundingClientRect();
            if (e.ctrlKey) {
              e.preventDefault();
              zoom(Math.exp(e.deltaY * 0.004), view[0] + ((e.clientX - r.left - GUTTER) / (size[0] - GUTTER)) * (view[1] - view[0]));
            } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
              e.preventDefault();
              pan((e.deltaX || e.deltaY) / size[0]);
            }
          }}
          onPointerDown={(e) => {
            canvas.current!.setPointerCapture(e.pointerId);
            drag.current = { x: e.clientX, view, moved: false };
          }}
          onPointerMove={(e) => {
            const d = drag.current;
            if (!d) return;
            if (Math.abs(e.clientX - d.x) > 3) d.moved = true;
            const by = ((d.x - e.clientX) / (size[0] - GUTTER)) * (d.view[1] - d.view[0]);
            if (d.moved) setView(clamp(d.view[0] + by, d.view[1] + by));
          }}
          onPointerUp={(e) => {
            const hit = drag.current?.moved ? null : nodeAt(e);
            drag.current = null;
            if (hit && hit.node >= 0) setPicked({ thread: hit.thread, node: hit.node, segment: segmentAt(hit.thread, hit.time) });
          }}
        />
        <div style={{ height: `${Math.max(0, height - size[1])}px` }} />
      </div>
      {picked ? (
        <Details t={t} node={picked.node} segment={t.path[picked.segment]} onShow={show} onClose={() => setPicked(null)} />
      ) : (
        <PathSummary t={t} onFirst={() => showSegment(0)} file={file} />
      )}
      {filter && (
        <ThreadFilter t={t} chosen={options.chosen} onChoose={(chosen) => setOptions({ ...options, chosen })} onClose={() => setFilter(false)} />
      )}
    </main>
  );
}

/** The rows: threads by their first appearance, system threads last; with headings when grouped. */
function layout(t: Timeline, o: ThreadsState): Line[] {
  const all = t.json.threads.map((_, i) => i).filter((i) => !o.chosen || o.chosen.has(i));
  const { threads } = t.json;
  all.sort((a, b) => Number(threads[a].system) - Number(threads[b].system) || threads[a].start - threads[b].start || a - b);
  const line = (i: number): Line => ({ thread: i, title: t.json.threads[i].name || `thread ${t.json.threads[i].id}` });
  if (!o.grouped) return all.map(line);
  const groups = new Map<string, number[]>();
  for (const i of all) {
    const g = t.json.threads[i].group || "(no group)";
    groups.set(g, [...(groups.get(g) ?? []), i]);
  }
  return [...groups].flatMap(([g, threads]) => [{ thread: -1, title: g }, ...threads.map(line)]);
}

interface Scene {
  t: Timeline;
  lines: Line[];
  rowOf: Map<number, number>;
  view: [number, number];
  options: ThreadsState;
  dark: boolean;
  w: number;
  h: number;
  top: number;
  picked: { thread: number; node: number } | null;
}

function paint(ctx: CanvasRenderingContext2D, s: Scene) {
  const { t, lines, view, dark, w, h, top } = s;
  const scale = (w - GUTTER) / (view[1] - view[0]);
  const x = (time: number) => GUTTER + (time - view[0]) * scale;
  const y = (row: number) => AXIS + row * ROW - top;
  ctx.fillStyle = dark ? "#0f1515" : "#fff";
  ctx.fillRect(0, 0, w, h);
  ctx.textBaseline = "middle";
  ctx.save();
  ctx.beginPath();
  ctx.rect(GUTTER, AXIS, w - GUTTER, h - AXIS);
  ctx.clip();
  const first = Math.max(0, Math.floor(top / ROW));
  const last = Math.min(lines.length, Math.ceil((top + h) / ROW));
  for (let i = first; i < last; i++) {
    if (i % 2) {
      ctx.fillStyle = dark ? "#131b1b" : "#f7faf9";
      ctx.fillRect(GUTTER, y(i), w, ROW);
    }
    if (lines[i].thread >= 0) paintStates(ctx, s, lines[i].thread, y(i), x, scale);
  }
  if (s.options.path) paintPath(ctx, s, x, y);
  paintArrows(ctx, s, x, y);
  if (s.picked) {
    const row = s.rowOf.get(s.picked.thread);
    if (row !== undefined) {
      ctx.strokeStyle = dark ? "#8cc8ff" : "#0b57d0";
      ctx.lineWidth = 2;
      const from = x(t.time[s.picked.node]);
      ctx.strokeRect(from, y(row) + 4, Math.max(2, x(t.next[s.picked.node] || t.time[s.picked.node]) - from), ROW - 8);
    }
  }
  ctx.restore();
  paintGutter(ctx, s, first, last, y);
  paintAxis(ctx, s, x);
}

function paintStates(ctx: CanvasRenderingContext2D, s: Scene, thread: number, y: number, x: (t: number) => number, scale: number) {
  const { t, view, dark, w } = s;
  const states = t.states[thread];
  let i = 0;
  let lo = 0;
  let hi = states.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (t.next[states[mid]] <= view[0]) lo = mid + 1;
    else hi = mid;
  }
  for (i = lo; i < states.length; i++) {
    const n = states[i];
    if (t.time[n] > view[1]) break;
    const kind = t.json.kinds[t.kind[n]];
    const x0 = Math.max(GUTTER, x(t.time[n]));
    const x1 = Math.min(w, x(t.next[n]));
    if (kind === "dead") {
      ctx.fillStyle = dark ? "#9db0b0" : "#333";
      ctx.fillRect(x0 - 1, y + 4, 2, ROW - 8); // the mark of the end
      continue;
    }
    const thin = kind === "run" ? 0 : kind === "wait-lock" || kind === "reacquire" || kind === "deadlock" ? 0 : 4;
    ctx.fillStyle = colourOf(stateColours, kind, dark);
    ctx.fillRect(x0, y + 5 + thin, Math.max(x1 - x0, 0.8), ROW - 10 - 2 * thin);
    if (x1 - x0 < 1 && i + 1 < states.length) {
      // Many states in one pixel: go on at the next pixel.
      const until = view[0] + (x0 + 1 - GUTTER) / scale;
      let a = i + 1;
      let b = states.length;
      while (a < b) {
        const mid = (a + b) >> 1;
        if (t.next[states[mid]] <= until) a = mid + 1;
        else b = mid;
      }
      i = Math.max(i, a - 1);
    } else if (x1 - x0 > 90 && kind !== "run" && kind !== "sleep") {
      const lock = lockOf(t, n);
      if (lock) {
        ctx.font = "11px system-ui, sans-serif";
        ctx.fillStyle = dark ? "#f3f7f6" : "#14211f";
        const text = lock.replace(/^.*\./, "");
        if (ctx.measureText(text).width < x1 - x0 - 10) ctx.fillText(text, x0 + 5, y + ROW / 2 + 0.5);
      }
    }
  }
  // A timeout is a short box where the wait ended.
  for (const n of t.marks[thread]) {
    if (t.time[n] < view[0] || t.time[n] > view[1]) continue;
    const kind = t.json.kinds[t.kind[n]];
    if (kind === "timeout") {
      ctx.fillStyle = dark ? "#f1d264" : "#8a6d00";
      ctx.fillRect(x(t.time[n]) - 2, y + 3, 4, ROW - 6);
    }
  }
}

function paintPath(ctx: CanvasRenderingContext2D, s: Scene, x: (t: number) => number, y: (row: number) => number) {
  ctx.strokeStyle = s.dark ? "#ffffff" : "#111111";
  ctx.lineWidth = 2.5;
  let before: Segment | null = null;
  for (const p of s.t.path) {
    const row = s.rowOf.get(p.thread);
    const from = before && s.rowOf.get(before.thread);
    if (row !== undefined && p.end >= s.view[0] && p.start <= s.view[1]) {
      const py = y(row) + ROW - 3;
      if (from !== undefined && from !== null && from !== row) {
        ctx.setLineDash(p.inferred ? [4, 3] : []);
        ctx.beginPath();
        ctx.moveTo(x(p.start), y(from) + ROW - 3);
        ctx.lineTo(x(p.start), py);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      ctx.beginPath();
      ctx.moveTo(Math.max(GUTTER, x(p.start)), py);
      ctx.lineTo(Math.min(s.w, x(p.end)), py);
      ctx.stroke();
    }
    before = p;
  }
}

/** Arrows from the waker to what it woke; dashed where the cause was concluded. Too many for the picture are left out. */
function paintArrows(ctx: CanvasRenderingContext2D, s: Scene, x: (t: number) => number, y: (row: number) => number) {
  const { t, view } = s;
  let lo = 0;
  let hi = t.n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (t.time[mid] < view[0]) lo = mid + 1;
    else hi = mid;
  }
  const list: number[] = [];
  for (let i = lo; i < t.n && t.time[i] <= view[1] && list.length <= MAX_ARROWS; i++) {
    if (t.waker[i] < 0 || t.thread[i] === t.thread[t.waker[i]] || s.options.hidden.has(t.json.edges[t.edge[i]])) continue;
    if (s.rowOf.has(t.thread[i]) && s.rowOf.has(t.thread[t.waker[i]])) list.push(i);
  }
  if (list.length > MAX_ARROWS) {
    ctx.fillStyle = s.dark ? "#9db0b0" : "#566763";
    ctx.font = "12px system-ui, sans-serif";
    ctx.fillText("more arrows than can be told apart: zoom in", GUTTER + 12, s.h - 12);
    return;
  }
  ctx.lineWidth = 1.4;
  for (const i of list) {
    const edge = t.json.edges[t.edge[i]];
    const a = s.rowOf.get(t.thread[t.waker[i]])!;
    const b = s.rowOf.get(t.thread[i])!;
    const down = b > a;
    const x0 = x(t.time[t.waker[i]]);
    const x1 = x(t.time[i]);
    const y0 = y(a) + (down ? ROW - 5 : 5);
    const y1 = y(b) + (down ? 5 : ROW - 5);
    ctx.strokeStyle = ctx.fillStyle = colourOf(edgeColours, edge, s.dark);
    ctx.setLineDash(t.inferred[i] ? [4, 3] : []);
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
    ctx.stroke();
    ctx.setLineDash([]);
    const angle = Math.atan2(y1 - y0, x1 - x0);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 7 * Math.cos(angle - 0.4), y1 - 7 * Math.sin(angle - 0.4));
    ctx.lineTo(x1 - 7 * Math.cos(angle + 0.4), y1 - 7 * Math.sin(angle + 0.4));
    ctx.fill();
  }
}

function paintGutter(ctx: CanvasRenderingContext2D, s: Scene, first: number, last: number, y: (row: number) => number) {
  const { dark } = s;
  ctx.fillStyle = dark ? "#161e1e" : "#f5f8f7";
  ctx.fillRect(0, AXIS, GUTTER - 1, s.h);
  ctx.fillStyle = dark ? "#2a3636" : "#dbe4e2";
  ctx.fillRect(GUTTER - 1, 0, 1, s.h);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, AXIS, GUTTER - 8, s.h);
  ctx.clip();
  for (let i = first; i < last; i++) {
    const l = s.lines[i];
    const heading = l.thread < 0;
    ctx.font = `${heading ? "600 " : ""}12px system-ui, sans-serif`;
    ctx.fillStyle = heading || (s.picked && s.picked.thread === l.thread) ? (dark ? "#fff" : "#000") : dark ? "#c3cfcd" : "#3a4947";
    ctx.fillText(l.title.slice(0, 60), heading ? 8 : 14, y(i) + ROW / 2);
  }
  ctx.restore();
}

function paintAxis(ctx: CanvasRenderingContext2D, s: Scene, x: (t: number) => number) {
  const { dark, w, view } = s;
  ctx.fillStyle = dark ? "#161e1e" : "#f5f8f7";
  ctx.fillRect(0, 0, w, AXIS);
  const raw = (view[1] - view[0]) / Math.max(2, (w - GUTTER) / 120);
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * base).find((k) => k >= raw)!;
  ctx.font = "11px system-ui, sans-serif";
  for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) {
    ctx.fillStyle = dark ? "#ffffff14" : "#0000000d";
    ctx.fillRect(x(at), AXIS, 1, s.h);
    ctx.fillStyle = dark ? "#9db0b0" : "#566763";
    if (x(at) < w - 50) ctx.fillText(at ? duration(at) : "0", x(at) + 4, AXIS / 2);
  }
}

function Stack({ frames, title }: { frames: Frame[]; title: string }) {
  return (
    <section class="stack" aria-label={title}>
      <h3>{title}</h3>
      {frames.length ? (
        <ol>
          {frames.map((f) => (
            <li>
              {f.method}
              {f.line > 0 && <span class="dim">:{f.line}</span>}
            </li>
          ))}
        </ol>
      ) : (
        <p class="dim">No stack was recorded.</p>
      )}
    </section>
  );
}

function Details(p: { t: Timeline; node: number; segment?: Segment; onShow: (node: number) => void; onClose: () => void }) {
  const { t, node } = p;
  const name = (i: number) => t.json.threads[i]?.name || "?";
  const kind = t.json.kinds[t.kind[node]];
  const lock = lockOf(t, node);
  const other = otherOf(t, node);
  // What ended this state is the cause of the thread's next one.
  const states = t.states[t.thread[node]];
  const after = states[states.indexOf(node) + 1];
  const end = after !== undefined ? t.waker[after] : -1;
  return (
    <aside class="details" aria-live="polite" aria-label="Details">
      <div>
        <h3>
          {name(t.thread[node])}: {stateTitles[kind] ?? kind}
        </h3>
        <p>
          {duration(t.next[node] - t.time[node])} <span class="dim">from {duration(t.time[node])} to {duration(t.next[node])}</span>
        </p>
        {lock && <p>on <b>{lock}</b></p>}
        {other >= 0 && <p>{kind === "wait-join" ? "waits for the end of " : "held by "}<b>{name(other)}</b></p>}
        {t.timeout[t.context[node]] > 0 && <p class="dim">timeout {t.timeout[t.context[node]]} ms</p>}
        {p.segment && <p class="dim">on the critical path: {p.segment.state}, {duration(p.segment.end - p.segment.start)}</p>}
        {t.waker[node] >= 0 && (
          <p>
            {t.json.edges[t.edge[node]]} by <button onClick={() => p.onShow(t.waker[node])} title="Go to the waker (w)">{name(t.thread[t.waker[node]])}</button>
            {t.inferred[node] ? <span class="dim"> (inferred)</span> : null}
          </p>
        )}
        {end >= 0 && (
          <p>
            ended by {t.json.edges[t.edge[after]]} of <button onClick={() => p.onShow(end)}>{name(t.thread[end])}</button>
            {t.inferred[after] ? <span class="dim"> (inferred)</span> : null}
          </p>
        )}
        <button onClick={p.onClose}>Close</button>
      </div>
      <Stack title="Stack" frames={stackOf(t, node)} />
      {end >= 0 ? <Stack title={`Stack of ${name(t.thread[end])}`} frames={stackOf(t, end)} /> : t.waker[node] >= 0 ? <Stack title={`Stack of ${name(t.thread[t.waker[node]])}`} frames={stackOf(t, t.waker[node])} /> : null}
    </aside>
  );
}

function PathSummary({ t, onFirst, file }: { t: Timeline; onFirst: () => void; file: string }) {
  const path = t.json.path;
  if (!path) return <aside class="details"><p class="dim">{file} holds no critical path: nothing ends in it.</p></aside>;
  const rows = path.states.map((ns, i) => [t.json.path_states[i], ns] as const).filter((r) => r[1] > 0).sort((a, b) => b[1] - a[1]);
  return (
    <aside class="details" aria-label="Critical path">
      <div>
        <h3>Critical path: {duration(path.length_ns)}</h3>
        <p class="dim">{t.path.length} segments; of {duration(path.makespan_ns)} from beginning to end</p>
        <button onClick={onFirst} title="Next segment (n)">Walk along it</button>
      </div>
      <table class="small">
        <caption class="sr">The critical path by state</caption>
        <tbody>
          {rows.map(([state, ns]) => (
            <tr key={state}>
              <th scope="row">{state}</th>
              <td class="num">{duration(ns)}</td>
              <td class="num">{percent(ns, path.length_ns)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {t.json.deadlocks > 0 && <p class="warn">{t.json.deadlocks} deadlock{t.json.deadlocks > 1 ? "s" : ""} found.</p>}
    </aside>
  );
}
