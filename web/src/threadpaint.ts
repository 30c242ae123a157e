// SPDX-License-Identifier: Apache-2.0
// Draws threads over time: states as pixels, then the critical path, arrows, marks, names and the
// axis on top.
import type { Worked } from "./choice";
import { Names } from "./flamepaint";
import { axisTime } from "./format";
import { pixel } from "./palette";
import { type Arrow, MANY, Picture } from "./picture";
import type { TimelineJson } from "./timeline";

/** The least height of a row. Few threads get higher rows, so that they fill their part of the page (rowHeight). */
export const ROW = 26;
const ROW_MAX = 2.5 * ROW;
export const AXIS = 24;

/** The height of each of `rows` rows that have `height` pixels together with the axis. */
export const rowHeight = (rows: number, height: number) =>
  Math.max(ROW, Math.min(ROW_MAX, Math.floor((height - AXIS) / Math.max(rows, 1))));
/** CSS's height of an element with this many rows: as much as they need, and for few of them up to half of the window. */
export const rowsHeight = (rows: number) =>
  `max(${rows * ROW + AXIS}px, min(${rows * ROW_MAX + AXIS}px, 50vh))`;

/** The width of the names to the left of a timeline; on a phone, time gets most of the room. */
export const gutter = (width: number) => Math.min(190, Math.max(96, Math.round(width * 0.27)));

/** Colours of states, distinct in hue and lightness (after Okabe and Ito). */
export const stateColours: Record<string, [string, string]> = {
  run: ["#2f9e6e", "#37b07c"],
  "wait-object": ["#8fa8c9", "#56708f"],
  "wait-lock": ["#d1495b", "#e0566a"],
  sleep: ["#cfd6de", "#39424c"],
  "wait-join": ["#b59ad0", "#77589a"],
  deadlock: ["#f27ac1", "#a5186f"],
  park: ["#8fd3e0", "#1f7a8c"],
  reacquire: ["#e8932f", "#e8a14a"],
  io: ["#e7c547", "#b7962a"],
  preempted: ["#9fd8bd", "#2d6b50"],
  throttled: ["#d98880", "#8e3b33"],
  unmounted: ["#e3d5c0", "#5c5040"],
  "class-init": ["#c7b08a", "#7d6a45"],
  unknown: ["#999999", "#808080"],
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
  preempted: "waiting for a processor",
  throttled: "ready, the container was out of CPU",
  unmounted: "virtual, no carrier",
  "class-init": "waiting for a class's initialization",
  unknown: "not in this part of the recording",
  timeout: "a wait's time ran out",
  starts: "starts a thread",
  handoff: "hands a lock over",
  interrupts: "interrupts a thread",
  notify: "notify",
  "notify-all": "notifyAll",
  "dead-join": "ended, and woke who joined it",
  unpark: "unparks a thread",
  acquire: "takes a lock",
  release: "releases a lock",
};

/** For the only state of a quiet thread. */
export const QUIET = "nothing recorded";

export const edgeTitles: Record<string, string> = {
  start: "start",
  join: "join",
  notify: "notify",
  "notify-all": "notifyAll",
  handoff: "lock hand-off",
  interrupt: "interrupt",
  unpark: "unpark",
};

export const edgeColours: Record<string, [string, string]> = {
  start: ["#0b7a4b", "#5fd3a0"],
  join: ["#7b4fa3", "#c79df0"],
  notify: ["#1f6fb2", "#79bdf5"],
  "notify-all": ["#0b2f6b", "#3f86e8"],
  handoff: ["#b3261e", "#ff8b80"],
  interrupt: ["#8a6d00", "#f1d264"],
  unpark: ["#a1317f", "#f29fd6"],
};

/** Instants that are drawn as marks: a short box, or a tick at the upper or lower edge of the row. */
export const markColours: Record<string, [string, string]> = {
  timeout: ["#8a6d00", "#f1d264"],
  "notify-all": ["#0b2f6b", "#3f86e8"],
  notify: ["#1f6fb2", "#79bdf5"],
  acquire: ["#0b7a4b", "#5fd3a0"],
  release: ["#b3261e", "#ff8b80"],
};

export const colourOf = (table: Record<string, [string, string]>, key: string, dark: boolean) =>
  (table[key] ?? ["#999999", "#888888"])[dark ? 1 : 0];

/** The top and bottom of the bars that say when a thread worked for the chosen requests. */
export const WORKED = [1, 4];

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
  row: number; // the height of a row
  top: number;
  picked: { thread: number; start: number; end: number } | null;
  worked: Map<number, Worked> | null; // by id of thread: when it worked for the chosen requests
}

/** The height of a state: states that cost the program time are higher. */
export const thinOf = (kind: string) =>
  kind === "run" || kind === "wait-lock" || kind === "reacquire" || kind === "deadlock" ? 0 : 4;

/** Of the bars above the states that say when a thread worked for the chosen requests. */
export const workedColour = (dark: boolean) => (dark ? "#ff7a3d" : "#d43d00");

/** The styles of rows by number of kind, made once per theme. */
interface Look {
  dark: boolean;
  row: number; // the height of a row
  paper: number;
  stripe: number;
  ink: number;
  worked: number;
  colours: Uint32Array;
  thin: Uint8Array;
  titles: string[]; // "" where a state has no name in its row
  dead: number;
  quiet: number; // how a quiet thread is drawn: as this kind
  marks: { colour: number; half: number; from: number; to: number }[]; // of kinds without a mark: colour 0
}

function styleOf(kinds: string[], dark: boolean, row: number): Look {
  const mark = (k: string) => {
    if (!markColours[k]) return { colour: 0, half: 0, from: 0, to: 0 };
    const whole = k === "timeout" || k === "notify-all";
    const upper = k === "notify" || k === "acquire";
    return {
      colour: pixel(colourOf(markColours, k, dark)),
      half: whole ? 2 : 1,
      from: whole ? 3 : upper ? 2 : row - 8,
      to: whole ? row - 3 : upper ? 8 : row - 2,
    };
  };
  return {
    dark,
    row,
    paper: pixel(dark ? "#0f1515" : "#ffffff"),
    stripe: pixel(dark ? "#131b1b" : "#f7faf9"),
    ink: pixel(dark ? "#ffffff" : "#111111"),
    worked: pixel(workedColour(dark)),
    colours: Uint32Array.from(kinds, (k) =>
      pixel(k === "dead" ? (dark ? "#9db0b0" : "#333333") : colourOf(stateColours, k, dark)),
    ),
    thin: Uint8Array.from(kinds, thinOf),
    titles: kinds.map((k) => (k === "run" ? "" : (stateTitles[k] ?? k))),
    dead: kinds.indexOf("dead"),
    quiet: kinds.indexOf("sleep"),
    marks: kinds.map(mark),
  };
}

/** Draws a row into pixels; knows the positions of times and heights. */
interface Place {
  left: number;
  width: number;
  height: number;
  ratio: number;
  from: number; // time at `left`
  scale: number; // pixels of a ns
}

export class ThreadPainter {
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private look: Look | null = null;

  paint(ctx: CanvasRenderingContext2D, s: Scene, ratio: number) {
    const width = Math.round(s.w * ratio);
    const height = Math.round(s.h * ratio);
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    if (this.look?.dark !== s.dark || this.look.row !== s.row)
      this.look = styleOf(s.json.kinds, s.dark, s.row);
    const left = Math.round(gutter(s.w) * ratio);
    const place: Place = {
      left,
      width,
      height,
      ratio,
      from: s.view[0],
      scale: ((s.w - gutter(s.w)) * ratio) / (s.view[1] - s.view[0]),
    };
    const first = Math.max(0, Math.floor(s.top / s.row));
    const last = Math.min(s.lines.length, Math.ceil((s.top + s.h) / s.row));
    const names: Name[] = [];
    const below = AXIS + s.lines.length * s.row - s.top; // where there are no rows any more
    if (below < s.h)
      this.pixels.fill(this.look.paper, Math.max(0, Math.round(below * ratio)) * width);
    for (let i = first; i < last; i++) this.row(s, i, this.look, place, names);
    if (s.options.path) this.path(s, this.look, place);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.putImageData(this.image, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.textBaseline = "middle";
    ctx.save();
    ctx.beginPath();
    ctx.rect(gutter(s.w), AXIS, s.w - gutter(s.w), s.h - AXIS);
    ctx.clip();
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillStyle = s.dark ? "#f3f7f6" : "#14211f";
    for (const n of names) ctx.fillText(n.text, n.x, n.y);
    const x = (time: number) =>
      gutter(s.w) + ((time - s.view[0]) * (s.w - gutter(s.w))) / (s.view[1] - s.view[0]);
    const y = (row: number) => AXIS + row * s.row - s.top;
    paintArrows(ctx, s, x, y);
    if (s.picked) paintPicked(ctx, s, x, y);
    ctx.restore();
    paintGutter(ctx, s, first, last, y);
    paintAxis(ctx, s, x);
  }

  /** Optimized for fills that are a pixel or two wide, which most are. */
  private fill(x0: number, y0: number, x1: number, y1: number, value: number, width: number) {
    const { pixels } = this;
    for (let y = y0, at = y0 * width; y < y1; y++, at += width) {
      if (x1 - x0 > 24) pixels.fill(value, at + x0, at + x1);
      else for (let x = at + x0; x < at + x1; x++) pixels[x] = value;
    }
  }

  private row(s: Scene, i: number, look: Look, place: Place, names: Name[]) {
    const { left, width, ratio } = place;
    const top = AXIS + i * s.row - s.top;
    const yOf = (offset: number) =>
      Math.max(0, Math.min(place.height, Math.round((top + offset) * ratio)));
    this.pixels.fill(i % 2 ? look.stripe : look.paper, yOf(0) * width, yOf(s.row) * width); // names and axis are painted over it
    const row = s.picture.rows.get(s.lines[i].thread);
    if (!row) return;
    const { runFrom, runTo, runKind } = s.picture;
    const quiet = s.json.threads[s.lines[i].thread].quiet;
    const [thickFrom, thickTo, thinFrom, thinTo] = [
      yOf(5),
      yOf(s.row - 5),
      yOf(s.row * 0.35),
      yOf(s.row * 0.65),
    ];
    for (
      let k = firstBehind(runTo, row.lo, row.hi, s.view[0]);
      k < row.hi && runFrom[k] < s.view[1];
      k++
    ) {
      const x0 = xOf(place, runFrom[k]);
      const x1 = Math.min(width, Math.max(xOf(place, runTo[k]), x0 + 1));
      const kind = quiet ? look.quiet : runKind[k];
      if (kind === MANY) this.many(s.picture, k, look.colours, x0, x1, thickFrom, thickTo, width);
      else if (kind === look.dead)
        this.fill(
          Math.max(left, x0 - 1),
          yOf(4),
          Math.min(width, x0 + 1),
          yOf(s.row - 4),
          look.colours[kind],
          width,
        );
      else {
        const thin = look.thin[kind];
        this.fill(
          x0,
          thin ? thinFrom : thickFrom,
          x1,
          thin ? thinTo : thickTo,
          look.colours[kind],
          width,
        );
        if (x1 - x0 > 150 * ratio && look.titles[kind])
          names.push({
            text: quiet ? QUIET : look.titles[kind],
            x: x0 / ratio + 6,
            y: top + s.row / 2 + 0.5,
          });
      }
    }
    if (s.options.marks) this.marks(s, row.markLo, row.markHi, look, place, yOf);
    const worked = s.worked?.get(s.json.threads[s.lines[i].thread].id);
    if (!worked) return;
    const { from, to } = worked;
    for (
      let k = firstBehind(to, 0, to.length, s.view[0]);
      k < to.length && from[k] < s.view[1];
      k++
    ) {
      const x0 = xOf(place, from[k]);
      this.fill(
        x0,
        yOf(WORKED[0]),
        Math.min(width, Math.max(xOf(place, to[k]), x0 + 1)),
        yOf(WORKED[1]),
        look.worked,
        width,
      );
    }
  }

  /** Draws a pixel of many states: one above the other, by their shares. */
  private many(
    p: Picture,
    k: number,
    colours: Uint32Array,
    x0: number,
    x1: number,
    y0: number,
    y1: number,
    width: number,
  ) {
    const { shares } = p;
    const { pixels } = this;
    let from = y1;
    for (let n = p.runKinds[k], at = p.runShare[k]; n > 0; n--, at += 2) {
      const to =
        n === 1 ? y0 : Math.max(y0, from - ((((y1 - y0) * shares[at + 1] + 127) / 255) | 0));
      const colour = colours[shares[at]];
      if (x1 - x0 === 1)
        for (let i = to * width + x0, end = from * width; i < end; i += width) pixels[i] = colour;
      else this.fill(x0, to, x1, from, colour, width);
      from = to;
    }
  }

  private marks(
    s: Scene,
    lo: number,
    hi: number,
    look: Look,
    place: Place,
    yOf: (o: number) => number,
  ) {
    const { markTime, markKind } = s.picture;
    const { left, width } = place;
    const from = look.marks.map((m) => yOf(m.from));
    const to = look.marks.map((m) => yOf(m.to));
    for (
      let k = firstBehind(markTime, lo, hi, s.view[0] - 1);
      k < hi && markTime[k] <= s.view[1];
      k++
    ) {
      const { colour, half } = look.marks[markKind[k]];
      if (!colour) continue;
      const x = xOf(place, markTime[k]);
      this.fill(
        Math.max(left - half, x - half),
        from[markKind[k]],
        Math.min(width, x + half),
        to[markKind[k]],
        colour,
        width,
      );
    }
  }

  /** Draws the critical path: along the lower edge of a row, then straight to the next row. */
  private path(s: Scene, look: Look, place: Place) {
    const { width, height, ratio } = place;
    const dense = s.picture.path.length > 250; // then the ways between rows stand back: they would hide the rows
    const thick = Math.max(2, Math.round(2.5 * ratio));
    const wide = dense ? 1 : thick;
    const yOf = (row: number) =>
      Math.round((AXIS + row * s.row + s.row - 3 - s.top) * ratio) - (thick >> 1);
    const clamp = (y: number) => Math.max(0, Math.min(height, y));
    let before: number | undefined;
    for (const p of s.picture.path) {
      const row = s.rowOf.get(p.thread);
      if (row !== undefined && p.end >= s.view[0] && p.start <= s.view[1]) {
        const x = xOf(place, p.start);
        if (before !== undefined && before !== row && p.start >= s.view[0])
          this.link(
            Math.max(place.left, x - (wide >> 1)),
            Math.min(width, x + wide - (wide >> 1)),
            clamp(Math.min(yOf(before), yOf(row))),
            clamp(Math.max(yOf(before), yOf(row)) + thick),
            look.ink,
            width,
            dense ? 0.2 : 1,
            p.inferred ? Math.round(ratio) : 0,
          );
        this.fill(
          x,
          clamp(yOf(row)),
          Math.min(width, Math.max(xOf(place, p.end), x + 1)),
          clamp(yOf(row) + thick),
          look.ink,
          width,
        );
      }
      before = row;
    }
  }

  /** Draws a vertical line, translucent by its weight, and dashed (4 of 7) where requested. */
  private link(
    x0: number,
    x1: number,
    y0: number,
    y1: number,
    value: number,
    width: number,
    weight: number,
    dash: number,
  ) {
    if (weight === 1 && !dash) return this.fill(x0, y0, x1, y1, value, width);
    const { pixels } = this;
    const share = Math.round(256 * weight);
    const rest = 256 - share;
    const odd = Math.imul(value & 0xff00ff, share); // red and blue at once, then green
    const even = Math.imul((value >> 8) & 255, share);
    for (let y = y0; y < y1; y++) {
      if (dash && (y - y0) % (7 * dash) >= 4 * dash) continue;
      for (let at = y * width + x0; at < y * width + x1; at++) {
        const p = pixels[at];
        pixels[at] =
          0xff000000 |
          (((Math.imul(p & 0xff00ff, rest) + odd) >>> 8) & 0xff00ff) |
          ((Math.imul((p >> 8) & 255, rest) + even) & 0xff00);
      }
    }
  }
}

/** The pixel of a time, limited to the row. */
function xOf(p: Place, time: number): number {
  const x = p.left + (time - p.from) * p.scale;
  return x <= p.left ? p.left : x >= p.width ? p.width : (x + 0.5) | 0;
}

interface Name {
  text: string;
  x: number;
  y: number;
}

export function firstBehind(ends: Float64Array, lo: number, hi: number, time: number): number {
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (ends[mid] <= time) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

function paintPicked(
  ctx: CanvasRenderingContext2D,
  s: Scene,
  x: (t: number) => number,
  y: (row: number) => number,
) {
  const row = s.rowOf.get(s.picked!.thread);
  if (row === undefined) return;
  ctx.strokeStyle = s.dark ? "#8cc8ff" : "#0b57d0";
  ctx.lineWidth = 2;
  const from = Math.max(x(s.picked!.start), -10);
  ctx.strokeRect(
    from,
    y(row) + 3,
    Math.max(3, Math.min(x(s.picked!.end), s.w + 10) - from),
    s.row - 6,
  );
}

/** Draws the visible arrows: from the waker to what it woke, dashed where the cause was inferred. */
export function arrowsOf(s: Scene) {
  return s.picture.arrows.filter(
    (a) =>
      a.time >= s.view[0] &&
      a.cause <= s.view[1] &&
      !s.options.hidden.has(s.json.edges[a.edge]) &&
      s.rowOf.has(a.thread) &&
      s.rowOf.has(a.from),
  );
}

/** With more visible arrows than this, lines would hide the states: only the selected thread's arrows have theirs, the others their heads. */
export const CROWDED = 120;
export const isWhole = (s: Scene, a: Arrow, crowded: boolean) =>
  !crowded || a.from === s.picked?.thread || a.thread === s.picked?.thread;

/** Arrows of one style are drawn together, so that thousands cost little more than one. */
function paintArrows(
  ctx: CanvasRenderingContext2D,
  s: Scene,
  x: (t: number) => number,
  y: (row: number) => number,
) {
  const arrows = arrowsOf(s);
  const crowded = arrows.length > CROWDED;
  const looks = new Map<
    string,
    { edge: number; inferred: boolean; whole: boolean; lines: Path2D; heads: Path2D }
  >();
  for (const a of arrows) {
    const from = s.rowOf.get(a.from)!;
    const to = s.rowOf.get(a.thread)!;
    const down = to > from;
    const [x0, x1] = [x(a.cause), x(a.time)];
    const y0 = y(from) + (down ? s.row - 5 : 5);
    const y1 = y(to) + (down ? 5 : s.row - 5);
    if ((y0 < 0 && y1 < 0) || (y0 > s.h && y1 > s.h)) continue;
    const whole = isWhole(s, a, crowded);
    const key = `${a.edge}/${a.inferred}/${whole}`;
    let look = looks.get(key);
    if (!look)
      looks.set(
        key,
        (look = {
          edge: a.edge,
          inferred: a.inferred,
          whole,
          lines: new Path2D(),
          heads: new Path2D(),
        }),
      );
    // A line that runs far outside the view is cut there; its slope is kept.
    const cut = (at: number) => Math.max(-60, Math.min(s.h + 60, at));
    const along = (at: number) => (y1 === y0 ? x1 : x0 + ((x1 - x0) * (at - y0)) / (y1 - y0));
    if (whole) {
      look.lines.moveTo(along(cut(y0)), cut(y0));
      look.lines.lineTo(along(cut(y1)), cut(y1));
    }
    if (y1 < -8 || y1 > s.h + 8) continue;
    const angle = Math.atan2(y1 - y0, x1 - x0);
    look.heads.moveTo(x1, y1);
    look.heads.lineTo(x1 - 7 * Math.cos(angle - 0.4), y1 - 7 * Math.sin(angle - 0.4));
    look.heads.lineTo(x1 - 7 * Math.cos(angle + 0.4), y1 - 7 * Math.sin(angle + 0.4));
  }
  ctx.lineWidth = s.picture.arrowEvery > 1 ? 0.8 : 1.4;
  for (const l of looks.values()) {
    ctx.strokeStyle = ctx.fillStyle = colourOf(edgeColours, s.json.edges[l.edge], s.dark);
    ctx.globalAlpha = l.whole ? 1 : 0.6;
    ctx.setLineDash(l.inferred ? [4, 3] : []);
    ctx.stroke(l.lines);
    ctx.setLineDash([]);
    ctx.fill(l.heads);
  }
  ctx.globalAlpha = 1;
}

function paintGutter(
  ctx: CanvasRenderingContext2D,
  s: Scene,
  first: number,
  last: number,
  y: (row: number) => number,
) {
  const { dark } = s;
  ctx.fillStyle = dark ? "#161e1e" : "#f5f8f7";
  ctx.fillRect(0, AXIS, gutter(s.w) - 1, s.h);
  ctx.fillStyle = dark ? "#2a3636" : "#dbe4e2";
  ctx.fillRect(gutter(s.w) - 1, 0, 1, s.h);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, AXIS, gutter(s.w) - 8, s.h);
  ctx.clip();
  for (let i = first; i < last; i++) {
    const l = s.lines[i];
    const heading = l.thread < 0;
    ctx.font = `${heading ? "600 " : ""}12px system-ui, sans-serif`;
    ctx.fillStyle =
      heading || (s.picked && s.picked.thread === l.thread)
        ? dark
          ? "#fff"
          : "#000"
        : dark
          ? "#c3cfcd"
          : "#3a4947";
    const at = heading ? 8 : 14;
    ctx.fillText(
      new Names(ctx).fit(l.title, () => l.title, gutter(s.w) - 8 - at),
      at,
      y(i) + s.row / 2,
    );
  }
  ctx.restore();
}

/** Chooses round times for an axis. */
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
  const list = ticks(s.view, w - gutter(w));
  const step = list.length > 1 ? list[1] - list[0] : s.view[1] - s.view[0];
  for (const at of list) {
    ctx.fillStyle = dark ? "#ffffff14" : "#0000000d";
    ctx.fillRect(x(at), AXIS, 1, s.h);
    ctx.fillStyle = dark ? "#9db0b0" : "#566763";
    if (x(at) < w - 50) ctx.fillText(axisTime(at, step), x(at) + 4, AXIS / 2);
  }
}
