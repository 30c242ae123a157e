// SPDX-License-Identifier: Apache-2.0
// Saves what is shown: CSV of the table, SVG and PNG of the flame graph, collapsed stacks.
import { kinds } from "./data";
import { short } from "./format";
import { colour, ink, seedOf } from "./palette";
import type { Row, Tree } from "./tree";

export function download(name: string, type: string, data: BlobPart) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([data], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

/** Quotes a field of a CSV file, and defuses what a spreadsheet would take for a formula. */
function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

export function table(titles: string[], rows: (string | number)[][]): string {
  return [
    titles.join(","),
    ...rows.map((r) => r.map((v) => (typeof v === "number" ? String(v) : field(v))).join(",")),
    "",
  ].join("\r\n");
}

export function csv(rows: Row[], labels: string[]): string {
  const lines = rows.map((r) => `${field(labels[r.label])},${r.self},${r.total},${kinds[r.kind]}`);
  return ["method,self,total,kind", ...lines, ""].join("\r\n");
}

export function collapsed(t: Tree, labels: string[]): string {
  const lines: string[] = [];
  const paths: string[] = new Array(t.n);
  paths[0] = "";
  for (let i = 1; i < t.n; i++) {
    if (!t.total[i]) continue;
    const name = labels[t.label[i]].replace(/;/g, ",").replace(/[\n\r]/g, "?");
    paths[i] = paths[t.parent[i]] ? `${paths[t.parent[i]]};${name}` : name;
    if (t.self[i]) lines.push(`${paths[i]} ${t.self[i]}`);
  }
  return lines.join("\n") + "\n";
}

const WIDTH = 1600;
const ROW = 18;

/** The whole flame graph as SVG, with frames of half a pixel or more. */
export function svg(
  t: Tree,
  labels: string[],
  title: string,
  upwards: boolean,
  isDark: boolean,
): string {
  const height = (t.depth + 1) * ROW + 30;
  const escape = (s: string) =>
    s
      .replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, "\ufffd");
  const out: string[] = [];
  const scale = WIDTH / (t.total[0] || 1);
  const stack: [number, number, number][] = [[0, 0, 0]];
  while (stack.length) {
    const [node, depth, x] = stack.pop()!;
    const w = t.total[node] * scale;
    const y = 30 + (upwards ? t.depth - depth : depth) * ROW;
    const name = node ? labels[t.label[node]] : "all";
    const fill = node
      ? colour(t.kind[node], seedOf(name.slice(0, name.lastIndexOf(".") + 1)), isDark)
      : isDark
        ? "#2b3535"
        : "#e3eae9";
    const room = Math.floor((w - 6) / 6.6);
    const label = room > 2 ? (name.length <= room ? name : short(name).slice(0, room)) : "";
    out.push(
      `<g><title>${escape(name)}: ${t.total[node]}</title><rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(w - 0.5, 0.2).toFixed(2)}" height="${ROW - 1}" fill="${fill}"/>` +
        (label ? `<text x="${(x + 3).toFixed(2)}" y="${y + 12.5}">${escape(label)}</text>` : "") +
        "</g>",
    );
    let cx = x;
    for (let c = t.firstChild[node]; c; c = t.nextSibling[c]) {
      if (t.total[c] * scale < 0.5) break;
      stack.push([c, depth + 1, cx]);
      cx += t.total[c] * scale;
    }
  }
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="11.5">` +
    `<rect width="100%" height="100%" fill="${isDark ? "#101616" : "#fff"}"/><g fill="${ink(isDark)}"><text x="4" y="19" font-size="15">${escape(title)}</text>${out.join("")}</g></svg>\n`
  );
}
