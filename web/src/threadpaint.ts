// SPDX-License-Identifier: Apache-2.0
// Draws threads over time: states as pixels, then the critical path, arrows, marks, names and the axis over them.
import { axisTime } from "./format";
import { pixel } from "./palette";
import { MANY, Picture } from "./picture";
import type { TimelineJson } from "./timeline";

export const ROW = 26;
export const AXIS = 24;
export const GUTTER = 190;

/** Colours of states, apart in hue and lightness (after Okabe and Ito). */
export const stateColours: Record<string, [string, string]> = {
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

export const stateTitles: Record<string, string> = {
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
  timeout: "a wait's time ran out",
  starts: "starts a thread",
  handoff: "hands a lock over",
  interrupts: "interrupts a thread",
  notify: "notify",
  "notify-all": "notifyAll",
  "dead-join": "ended, and woke who joined it",
  unpark: "unparks a thread",
  acquire: "takes a lock",
  release: "lets a lock go",
};

export const edgeTitles: Record<string, string> = {
  start: "start", join: "join", notify: "notify", "notify-all": "notifyAll", handoff: "lock hand-off", interrupt: "interrupt", unpark: "unpark",
};

export const edgeColours: Record<string, [string, string]> = {
  start: ["#0b7a4b", "#5fd3a0"],
  join: ["#7b4fa3", "#c79df0"],
  notify: ["#1f6fb2", "#79bdf5"],
  "notify-all": ["#12508a", "#4f9fe0"],
  handoff: ["#b3261e", "#ff8b80"],
  interrupt: ["#8a6d00", "#f1d264"],
  unpark: ["#3b6ea5", "#93c4f2"],
};

/** Instants that are drawn as marks: a short box, or a tick at the upper or the lower edge of the row. */
export const markColours: Record<string, [string, string]> = {
  timeout: ["#8a6d00", "#f1d264"],
  "notify-all": ["#12508a", "#4f9fe0"],
  notify: ["#1f6fb2", "#79bdf5"],
  acquire: ["#0b7a4b", "#5fd3a0"],
  release: ["#b3261e", "#ff8b80"],
};

export const colourOf = (table: Record<string, [string, string]>, key: string, dark: boolean) => (table[key] ?? ["#999999", "#888888"])[dark ? 1 : 0];

export interface Line {
  thread: number; // -1: heading of a group
  title: string;
}

export interface Options {
  grouped: boolean;
  hidden: Set<string>; // edges
  path: boolean;
  marks: boolean;
}

export interface Scene {
  json: TimelineJson;
  lines: Line[];
  rowOf: Map<number, number>;
  picture: Picture;
  view: [number, number];
  options: Options;
  dark: boolean;
  w: number;
  h: number;
  top: number;
  picked: { thread: number; start: number; end: number } | null;
}

/** How thick a state is: what costs the program time is thicker. */
const thinOf = (kind: string) => (kind === "run" || kind === "wait-lock" || kind === "reacquire" || kind === "deadlock" ? 0 : 4);

export class ThreadPainter {
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);

  paint(ctx: CanvasRenderingContext2D, s: Scene, ratio: number) {
    const width = Math.round(s.w * ratio);
    const height = Math.round(s.h * ratio);
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(pixel(s.dark ? "#0f1515" : "#ffffff"));
    const first = Math.max(0, Math.floor(s.top / ROW));
    const last = Math.min(s.lines.length, Math.ceil((s.top + s.h) / ROW));
    const names: Name[] = [];
    for (let i = first; i < last; i++) this.row(s, i, ratio, width, height, names);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.putImageData(this.image, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.textBaseline = "middle";
    ctx.save();
    ctx.beginPath();
    ctx.rect(GUTTER, AXIS, s.w - GUTTER, s.h - AXIS);
    ctx.clip();
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillStyle = s.dark ? "#f3f7f6" : "#14211f";
    for (const n of names) ctx.fillText(n.text, n.x, n.y);
    const x = (time: number) => GUTTER + ((time - s.view[0]) * (s.w - GUTTER)) / (s.view[1] - s.view[0]);
    const y = (row: number) => AXIS + row * ROW - s.top;
    if (s.options.path) paintPath(ctx, s, x, y);
    paintArrows(ctx, s, x, y);
    if (s.picked) paintPicked(ctx, s, x, y);
    ctx.restore();
    paintGutter(ctx, s, first, last, y);
    paintAxis(ctx, s, x);
  }

  private fill(x0: number, y0: number, x1: number, y1: number, value: number, width: number) {
    if (x1 - x0 === 1) {
      for (let y = y0; y < y1; y++) this.pixels[y * width + x0] = value;
      return;
    }
    for (let y = y0; y < y1; y++) this.pixels.fill(value, y * width + x0, y * width + x1);
  }

  private row(s: Scene, i: number, ratio: number, width: number, height: number, names: Name[]) {
    const { json, picture: p, view, dark } = s;
    const top = AXIS + i * ROW - s.top;
    const yOf = (offset: number) => Math.max(0, Math.min(height, Math.round((top + offset) * ratio)));
    const left = Math.round(GUTTER * ratio);
    if (i % 2) this.fill(left, yOf(0), width, yOf(ROW), pixel(dark ? "#131b1b" : "#f7faf9"), width);
    const row = p.rows.get(s.lines[i].thread);
    if (!row) return;
    const scale = ((s.w - GUTTER) * ratio) / (view[1] - view[0]);
    const xOf = (time: number) => Math.max(left, Math.min(width, Math.round(left + (time - view[0]) * scale)));
    const colours = json.kinds.map((k) => pixel(colourOf(stateColours, k, dark)));
    let k = firstBehind(p.runTo, row.lo, row.hi, view[0]);
    for (; k < row.hi && p.runFrom[k] < view[1]; k++) {
      const x0 = xOf(p.runFrom[k]);
      const x1 = Math.min(width, Math.max(xOf(p.runTo[k]), x0 + 1));
      if (p.runKind[k] === MANY) {
        this.many(p, p.runShare[k], colours, x0, x1, yOf(5), yOf(ROW - 5), width);
        continue;
      }
      const kind = json.kinds[p.runKind[k]];
      if (kind === "dead") {
        this.fill(Math.max(left, x0 - 1), yOf(4), Math.min(width, x0 + 1), yOf(ROW - 4), pixel(dark ? "#9db0b0" : "#333333"), width);
        continue;
      }
      const thin = thinOf(kind);
      this.fill(x0, yOf(5 + thin), x1, yOf(ROW - 5 - thin), colours[p.runKind[k]], width);
      if (x1 - x0 > 150 * ratio && kind !== "run") names.push({ text: stateTitles[kind] ?? kind, x: x0 / ratio + 6, y: top + ROW / 2 + 0.5 });
    }
    if (s.options.marks) this.marks(s, row.markLo, row.markHi, xOf, yOf, width);
  }

  /** A pixel of many states: what they are, one above the other by their shares. */
  private many(p: Picture, at: number, colours: number[], x0: number, x1: number, y0: number, y1: number, width: number) {
    let from = y1;
    for (let n = p.shares[at + 1], k = at + 2; n > 0; n--, k += 2) {
      const to = n === 1 ? y0 : Math.max(y0, Math.round(from - ((y1 - y0) * p.shares[k + 1]) / 255));
      this.fill(x0, to, x1, from, colours[p.shares[k]], width);
      from = to;
    }
  }

  private marks(s: Scene, lo: number, hi: number, xOf: (t: number) => number, yOf: (o: number) => number, width: number) {
    const { picture: p, json, view, dark } = s;
    for (let k = lo; k < hi; k++) {
      const kind = json.kinds[p.markKind[k]];
      if (!markColours[kind] || p.markTime[k] < view[0] || p.markTime[k] > view[1]) continue;
      const x = xOf(p.markTime[k]);
      const value = pixel(colourOf(markColours, kind, dark));
      const whole = kind === "timeout" || kind === "notify-all";
      const upper = kind === "notify" || kind === "acquire";
      this.fill(Math.max(0, x - (whole ? 2 : 1)), yOf(whole ? 3 : upper ? 2 : ROW - 8), Math.min(width, x + (whole ? 2 : 1)), yOf(whole ? ROW - 3 : upper ? 8 : ROW - 2), value, width);
    }
  }
}

interface Name {
  text: string;
  x: number;
  y: number;
}

export function firstBehind(ends: number[], lo: number, hi: number, time: number): number {
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (ends[mid] <= time) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

function paintPicked(ctx: CanvasRenderingContext2D, s: Scene, x: (t: number) => number, y: (row: number) => number) {
  const row = s.rowOf.get(s.picked!.thread);
  if (row === undefined) return;
  ctx.strokeStyle = s.dark ? "#8cc8ff" : "#0b57d0";
  ctx.lineWidth = 2;
  const from = Math.max(x(s.picked!.start), -10);
  ctx.strokeRect(from, y(row) + 3, Math.max(3, Math.min(x(s.picked!.end), s.w + 10) - from), ROW - 6);
}

function paintPath(ctx: CanvasRenderingContext2D, s: Scene, x: (t: number) => number, y: (row: number) => number) {
  const solid = new Path2D();
  const links = new Path2D();
  const dashed = new Path2D();
  const dense = s.picture.path.length > 250; // then the ways between rows stand back: they would hide the rows
  let before: number | undefined;
  for (const p of s.picture.path) {
    const row = s.rowOf.get(p.thread);
    if (row !== undefined && p.end >= s.view[0] && p.start <= s.view[1]) {
      const py = y(row) + ROW - 3;
      if (before !== undefined && before !== row) {
        const line = p.inferred ? dashed : links;
        line.moveTo(x(p.start), y(before) + ROW - 3);
        line.lineTo(x(p.start), py);
      }
      if (py > 0 && py < s.h) {
        solid.moveTo(Math.max(GUTTER, x(p.start)), py);
        solid.lineTo(Math.min(s.w, Math.max(x(p.end), x(p.start) + 0.7)), py);
      }
    }
    before = row;
  }
  ctx.strokeStyle = s.dark ? "#ffffff" : "#111111";
  ctx.lineWidth = 2.5;
  ctx.stroke(solid);
  ctx.lineWidth = dense ? 1 : 2.5;
  ctx.globalAlpha = dense ? 0.2 : 1;
  ctx.stroke(links);
  ctx.setLineDash([4, 3]);
  ctx.stroke(dashed);
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

/** Arrows that are in sight: from the waker to what it woke, dashed where the cause was concluded. */
export function arrowsOf(s: Scene) {
  return s.picture.arrows.filter((a) => a.time >= s.view[0] && a.cause <= s.view[1] && !s.options.hidden.has(s.json.edges[a.edge]) && s.rowOf.has(a.thread) && s.rowOf.has(a.from));
}

/** Arrows of one look are drawn together: thousands cost little more than one. */
function paintArrows(ctx: CanvasRenderingContext2D, s: Scene, x: (t: number) => number, y: (row: number) => number) {
  const arrows = arrowsOf(s);
  const looks = new Map<string, { edge: number; inferred: boolean; far: boolean; lines: Path2D; heads: Path2D }>();
  for (const a of arrows) {
    const from = s.rowOf.get(a.from)!;
    const to = s.rowOf.get(a.thread)!;
    const down = to > from;
    const [x0, x1] = [x(a.cause), x(a.time)];
    const y0 = y(from) + (down ? ROW - 5 : 5);
    const y1 = y(to) + (down ? 5 : ROW - 5);
    if ((y0 < 0 && y1 < 0) || (y0 > s.h && y1 > s.h)) continue;
    // Where there are many, those that lead out of sight stand back.
    const far = arrows.length > 200 && (Math.min(y0, y1) < 0 || Math.max(y0, y1) > s.h);
    const key = `${a.edge}/${a.inferred}/${far}`;
    let look = looks.get(key);
    if (!look) looks.set(key, (look = { edge: a.edge, inferred: a.inferred, far, lines: new Path2D(), heads: new Path2D() }));
    // A line that runs far out of sight is cut there: its slope stays.
    const cut = (at: number) => Math.max(-60, Math.min(s.h + 60, at));
    const along = (at: number) => (y1 === y0 ? x1 : x0 + ((x1 - x0) * (at - y0)) / (y1 - y0));
    look.lines.moveTo(along(cut(y0)), cut(y0));
    look.lines.lineTo(along(cut(y1)), cut(y1));
    if (y1 < -8 || y1 > s.h + 8) continue;
    const angle = Math.atan2(y1 - y0, x1 - x0);
    look.heads.moveTo(x1, y1);
    look.heads.lineTo(x1 - 7 * Math.cos(angle - 0.4), y1 - 7 * Math.sin(angle - 0.4));
    look.heads.lineTo(x1 - 7 * Math.cos(angle + 0.4), y1 - 7 * Math.sin(angle + 0.4));
  }
  ctx.lineWidth = s.picture.arrowEvery > 1 ? 0.8 : 1.4;
  for (const l of looks.values()) {
    ctx.strokeStyle = ctx.fillStyle = colourOf(edgeColours, s.json.edges[l.edge], s.dark);
    ctx.globalAlpha = l.far ? 0.3 : 1;
    ctx.setLineDash(l.inferred ? [4, 3] : []);
    ctx.stroke(l.lines);
    ctx.setLineDash([]);
    ctx.fill(l.heads);
  }
  ctx.globalAlpha = 1;
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

/** Round times for an axis. */
export function ticks(view: [number, number], pixels: number): number[] {
  const raw = (view[1] - view[0]) / Math.max(2, pixels / 120);
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * base).find((k) => k >= raw)!;
  const list: number[] = [];
  for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) list.push(at);
  return list;
}

function paintAxis(ctx: CanvasRenderingContext2D, s: Scene, x: (t: number) => number) {
  const { dark, w } = s;
  ctx.fillStyle = dark ? "#161e1e" : "#f5f8f7";
  ctx.fillRect(0, 0, w, AXIS);
  ctx.font = "11px system-ui, sans-serif";
  const list = ticks(s.view, w - GUTTER);
  const step = list.length > 1 ? list[1] - list[0] : s.view[1] - s.view[0];
  for (const at of list) {
    ctx.fillStyle = dark ? "#ffffff14" : "#0000000d";
    ctx.fillRect(x(at), AXIS, 1, s.h);
    ctx.fillStyle = dark ? "#9db0b0" : "#566763";
    if (x(at) < w - 50) ctx.fillText(axisTime(at, step), x(at) + 4, AXIS / 2);
  }
}

/** The rows in sight as SVG. */
export function threadsSvg(s: Scene, title: string): string {
  const escape = (t: string) => t.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b-\u001f]/g, "\ufffd");
  const x = (time: number) => Math.max(GUTTER, Math.min(s.w, GUTTER + ((time - s.view[0]) * (s.w - GUTTER)) / (s.view[1] - s.view[0])));
  const rows = s.lines.map((l, i) => ({ l, i })).filter(({ i }) => (i + 1) * ROW > s.top && i * ROW < s.top + s.h - AXIS);
  const y = (row: number) => AXIS + row * ROW - (rows[0]?.i ?? 0) * ROW;
  const ink = s.dark ? "#c3cfcd" : "#3a4947";
  const out: string[] = [];
  for (const { l, i } of rows) {
    out.push(`<text x="${l.thread < 0 ? 8 : 14}" y="${y(i) + 17}">${escape(l.title.slice(0, 26))}</text>`);
    const row = s.picture.rows.get(l.thread);
    for (let k = row?.lo ?? 0; row && k < row.hi; k++) {
      if (s.picture.runTo[k] < s.view[0] || s.picture.runFrom[k] > s.view[1]) continue;
      const [x0, x1] = [x(s.picture.runFrom[k]), x(s.picture.runTo[k])];
      const rect = (kind: string, y0: number, h: number) =>
        out.push(`<rect x="${x0.toFixed(2)}" y="${y0.toFixed(2)}" width="${Math.max(x1 - x0, 0.7).toFixed(2)}" height="${h.toFixed(2)}" fill="${colourOf(stateColours, kind, s.dark)}"/>`);
      if (s.picture.runKind[k] !== MANY) {
        const kind = s.json.kinds[s.picture.runKind[k]];
        if (kind !== "dead") rect(kind, y(i) + 5 + thinOf(kind), ROW - 10 - 2 * thinOf(kind));
        continue;
      }
      const at = s.picture.runShare[k];
      let from = y(i) + ROW - 5;
      for (let n = 0; n < s.picture.shares[at + 1]; n++) {
        const h = ((ROW - 10) * s.picture.shares[at + 3 + 2 * n]) / 255;
        rect(s.json.kinds[s.picture.shares[at + 2 + 2 * n]], from - h, h);
        from -= h;
      }
    }
  }
  const seen = new Set(rows.map(({ i }) => i));
  for (const a of arrowsOf(s)) {
    const [from, to] = [s.rowOf.get(a.from)!, s.rowOf.get(a.thread)!];
    if (!seen.has(from) && !seen.has(to)) continue;
    out.push(`<line x1="${x(a.cause).toFixed(2)}" y1="${y(from) + ROW / 2}" x2="${x(a.time).toFixed(2)}" y2="${y(to) + ROW / 2}" stroke="${colourOf(edgeColours, s.json.edges[a.edge], s.dark)}"${a.inferred ? ' stroke-dasharray="4 3"' : ""}/>`);
  }
  const marks = ticks(s.view, s.w - GUTTER);
  for (const t of marks) out.push(`<text x="${(x(t) + 4).toFixed(1)}" y="15" font-size="11">${axisTime(t, marks.length > 1 ? marks[1] - marks[0] : t)}</text>`);
  const height = AXIS + rows.length * ROW + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${s.w} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="${ink}"><title>${escape(title)}</title>` +
    `<rect width="100%" height="100%" fill="${s.dark ? "#0f1515" : "#fff"}"/>${out.join("")}</svg>\n`;
}

/** The states in sight, and of pixels of many the share of each kind. */
export function threadsRows(s: Scene): (string | number)[][] {
  const out: (string | number)[][] = [];
  for (const l of s.lines) {
    const row = s.picture.rows.get(l.thread);
    for (let k = row?.lo ?? 0; row && k < row.hi; k++) {
      const { runFrom, runTo, runKind, runShare, shares } = s.picture;
      const [from, to] = [Math.max(runFrom[k], s.view[0]), Math.min(runTo[k], s.view[1])];
      if (from > to) continue;
      if (runKind[k] !== MANY) out.push([l.title, from, to, s.json.kinds[runKind[k]], 1]);
      else for (let n = 0; n < shares[runShare[k] + 1]; n++) out.push([l.title, from, to, s.json.kinds[shares[runShare[k] + 2 + 2 * n]], Number((shares[runShare[k] + 3 + 2 * n] / 255).toFixed(3))]);
    }
  }
  return out;
}
