// SPDX-License-Identifier: Apache-2.0
// Colours by frame kind. The hues also differ in lightness, so that colour-blind readers and
// printouts can tell them apart. The names written on each have a contrast of 4.5 at least
// (tests/page/views.test.mjs).
import { kinds } from "./data";

type Hsl = [number, number, number];

const light: Record<string, Hsl> = {
  java: [132, 34, 70],
  compiled: [172, 42, 62],
  inlined: [190, 48, 74],
  interpreted: [44, 82, 68],
  native: [14, 68, 72],
  kernel: [345, 48, 64],
  stub: [262, 34, 76],
  mark: [220, 8, 80],
};

const dark: Record<string, Hsl> = {
  java: [132, 30, 32],
  compiled: [174, 40, 28],
  inlined: [196, 42, 36],
  interpreted: [40, 58, 29],
  native: [14, 46, 39],
  kernel: [345, 40, 36],
  stub: [262, 24, 42],
  mark: [220, 8, 34],
};

export const kindTitles: Record<string, string> = {
  java: "Java, kind not known",
  compiled: "Java, compiled",
  inlined: "Java, inlined",
  interpreted: "Java, interpreted",
  native: "native",
  kernel: "kernel",
  stub: "VM stub",
  mark: "not known",
};

const cache = new Map<string, string>();

/** A frame's colour: that of its kind, a little lighter or darker depending on the class, so that neighbours differ. */
export function colour(kind: number, seed: number, isDark: boolean): string {
  const key = `${kind}/${seed % 7}/${isDark}`;
  let c = cache.get(key);
  if (!c) {
    const [h, s, l] = (isDark ? dark : light)[kinds[kind]];
    const shift = (seed % 7) - 3;
    c = `hsl(${h + shift * 1.5} ${s}% ${l + shift * (isDark ? 1.1 : 1.4)}%)`;
    cache.set(key, c);
  }
  return c;
}

const values = new Map<string, number>();

/** Converts a colour of this file ("hsl(h s% l%)" or "#rrggbb") to an opaque pixel of ImageData. */
export function pixel(css: string): number {
  let v = values.get(css);
  if (v === undefined) {
    if (values.size > 20000) values.clear();
    const [r, g, b] = css.startsWith("#")
      ? [1, 3, 5].map((i) => parseInt(css.slice(i, i + 2), 16))
      : fromHsl(css);
    v = (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
    values.set(css, v);
  }
  return v;
}

/** The colours of kinds by seed modulo 7, as pixels: pixels[kind * 7 + seed % 7]. */
export function kindPixels(isDark: boolean): Uint32Array {
  return Uint32Array.from({ length: kinds.length * 7 }, (_, i) =>
    pixel(colour(Math.floor(i / 7), i % 7, isDark)),
  );
}

function fromHsl(css: string): number[] {
  const [h, s, l] = css.match(/-?[\d.]+/g)!.map(Number);
  const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
  return [0, 8, 4].map((n) => {
    const k = (((n + h / 30) % 12) + 12) % 12;
    return Math.round(255 * (l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  });
}

export const ink = (isDark: boolean) => (isDark ? "#eef2f2" : "#12211f");

export function seedOf(text: string): number {
  let h = 7;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) | 0;
  return h >>> 1;
}
