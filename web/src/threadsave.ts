// SPDX-License-Identifier: Apache-2.0
// The threads that are in view, saved as SVG and as rows of a table.
import { axisTime } from "./format";
import { MANY, type Picture } from "./picture";
import {
  ROW,
  AXIS,
  WORKED,
  gutter,
  stateColours,
  edgeColours,
  colourOf,
  thinOf,
  workedColour,
  isWhole,
  CROWDED,
  arrowsOf,
  ticks,
  Scene,
} from "./threadpaint";

/** For a pixel of many states: kinds and their shares. */
const sharesOf = (p: Picture, k: number): [number, number][] =>
  Array.from({ length: p.runKinds[k] }, (_, n) => [
    p.shares[p.runShare[k] + 2 * n],
    p.shares[p.runShare[k] + 2 * n + 1] / 255,
  ]);

/** The visible rows as SVG. */
export function threadsSvg(s: Scene, title: string): string {
  const escape = (t: string) =>
    t
      .replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, "\ufffd");
  const x = (time: number) =>
    Math.max(
      gutter(s.w),
      Math.min(
        s.w,
        gutter(s.w) + ((time - s.view[0]) * (s.w - gutter(s.w))) / (s.view[1] - s.view[0]),
      ),
    );
  const rows = s.lines
    .map((l, i) => ({ l, i }))
    .filter(({ i }) => (i + 1) * ROW > s.top && i * ROW < s.top + s.h - AXIS);
  const y = (row: number) => AXIS + row * ROW - (rows[0]?.i ?? 0) * ROW;
  const ink = s.dark ? "#c3cfcd" : "#3a4947";
  const out: string[] = [];
  for (const { l, i } of rows) {
    out.push(
      `<text x="${l.thread < 0 ? 8 : 14}" y="${y(i) + 17}">${escape(l.title.slice(0, 26))}</text>`,
    );
    const worked = l.thread < 0 ? undefined : s.worked?.get(s.json.threads[l.thread].id);
    worked?.from.forEach((from, k) => {
      if (worked.to[k] < s.view[0] || from > s.view[1]) return;
      const width = Math.max(x(worked.to[k]) - x(from), 0.7);
      out.push(
        `<rect x="${x(from).toFixed(2)}" y="${y(i) + WORKED[0]}" width="${width.toFixed(2)}" height="${WORKED[1] - WORKED[0]}" fill="${workedColour(s.dark)}"/>`,
      );
    });
    const row = s.picture.rows.get(l.thread);
    for (let k = row?.lo ?? 0; row && k < row.hi; k++) {
      if (s.picture.runTo[k] < s.view[0] || s.picture.runFrom[k] > s.view[1]) continue;
      const [x0, x1] = [x(s.picture.runFrom[k]), x(s.picture.runTo[k])];
      const rect = (kind: string, y0: number, h: number) =>
        out.push(
          `<rect x="${x0.toFixed(2)}" y="${y0.toFixed(2)}" width="${Math.max(x1 - x0, 0.7).toFixed(2)}" height="${h.toFixed(2)}" fill="${colourOf(stateColours, kind, s.dark)}"/>`,
        );
      if (s.picture.runKind[k] !== MANY) {
        const kind = s.json.threads[l.thread].quiet ? "sleep" : s.json.kinds[s.picture.runKind[k]];
        if (kind !== "dead") rect(kind, y(i) + 5 + thinOf(kind), ROW - 10 - 2 * thinOf(kind));
        continue;
      }
      let from = y(i) + ROW - 5;
      for (const [kind, share] of sharesOf(s.picture, k)) {
        const h = (ROW - 10) * share;
        rect(s.json.kinds[kind], from - h, h);
        from -= h;
      }
    }
  }
  const seen = new Set(rows.map(({ i }) => i));
  const arrows = arrowsOf(s);
  for (const a of arrows) {
    const [from, to] = [s.rowOf.get(a.from)!, s.rowOf.get(a.thread)!];
    if ((!seen.has(from) && !seen.has(to)) || !isWhole(s, a, arrows.length > CROWDED)) continue;
    out.push(
      `<line x1="${x(a.cause).toFixed(2)}" y1="${y(from) + ROW / 2}" x2="${x(a.time).toFixed(2)}" y2="${y(to) + ROW / 2}" stroke="${colourOf(edgeColours, s.json.edges[a.edge], s.dark)}"${a.inferred ? ' stroke-dasharray="4 3"' : ""}/>`,
    );
  }
  const marks = ticks(s.view, s.w - gutter(s.w));
  for (const t of marks)
    out.push(
      `<text x="${(x(t) + 4).toFixed(1)}" y="15" font-size="11">${axisTime(t, marks.length > 1 ? marks[1] - marks[0] : t)}</text>`,
    );
  const height = AXIS + rows.length * ROW + 10;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${s.w} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="${ink}"><title>${escape(title)}</title>` +
    `<rect width="100%" height="100%" fill="${s.dark ? "#0f1515" : "#fff"}"/>${out.join("")}</svg>\n`
  );
}

/** Lists the visible states, and for pixels of many states the share of each kind. */
export function threadsRows(s: Scene): (string | number)[][] {
  const out: (string | number)[][] = [];
  for (const l of s.lines) {
    const row = s.picture.rows.get(l.thread);
    for (let k = row?.lo ?? 0; row && k < row.hi; k++) {
      const { runFrom, runTo, runKind } = s.picture;
      const [from, to] = [Math.max(runFrom[k], s.view[0]), Math.min(runTo[k], s.view[1])];
      if (from > to) continue;
      if (runKind[k] !== MANY) out.push([l.title, from, to, s.json.kinds[runKind[k]], 1]);
      else
        for (const [kind, share] of sharesOf(s.picture, k))
          out.push([l.title, from, to, s.json.kinds[kind], Number(share.toFixed(3))]);
    }
  }
  return out;
}
