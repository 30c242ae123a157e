// SPDX-License-Identifier: Apache-2.0
// Shows sizes as areas that are close to squares (after Bruls, Huizing and van Wijk, "Squarified
// treemaps", 2000).

export interface Box<T> {
  x: number;
  y: number;
  w: number;
  h: number;
  item: T;
}

/** Arranges items (largest first) in a rectangle. If sizes add up to less than `whole`, the rest stays free at the end. */
export function squarify<T>(
  items: { size: number; item: T }[],
  whole: number,
  x: number,
  y: number,
  w: number,
  h: number,
): Box<T>[] {
  const out: Box<T>[] = [];
  const scale = whole > 0 ? (w * h) / whole : 0;
  const areas = items
    .map((i) => ({ area: i.size * scale, item: i.item }))
    .filter((a) => a.area > 0);
  for (let i = 0; i < areas.length && w > 0.5 && h > 0.5;) {
    const side = Math.min(w, h);
    let sum = areas[i].area;
    let n = 1;
    let worst = ratio(areas[i].area, areas[i].area, sum, side);
    while (i + n < areas.length) {
      const next = ratio(areas[i].area, areas[i + n].area, sum + areas[i + n].area, side);
      if (next > worst) break;
      sum += areas[i + n].area;
      worst = next;
      n++;
    }
    const depth = sum / side;
    let at = 0;
    for (const a of areas.slice(i, i + n)) {
      const length = a.area / depth;
      out.push(
        w >= h
          ? { x, y: y + at, w: depth, h: length, item: a.item }
          : { x: x + at, y, w: length, h: depth, item: a.item },
      );
      at += length;
    }
    if (w >= h) {
      x += depth;
      w -= depth;
    } else {
      y += depth;
      h -= depth;
    }
    i += n;
  }
  return out;
}

/** The worst aspect ratio in a row, given its largest and its smallest area. */
function ratio(largest: number, smallest: number, sum: number, side: number): number {
  const s = sum * sum;
  const d = side * side;
  return Math.max((d * largest) / s, s / (d * smallest));
}
