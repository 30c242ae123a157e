// SPDX-License-Identifier: Apache-2.0
// Colours by frame kind. The hues differ in lightness as well, so that they stay apart for colour-blind eyes and in print.
import { kinds } from "./data";

type Hsl = [number, number, number];

const light: Record<string, Hsl> = {
  java: [172, 42, 62],
  compiled: [172, 42, 62],
  inlined: [190, 48, 74],
  interpreted: [44, 82, 68],
  native: [14, 68, 72],
  kernel: [345, 48, 64],
  stub: [262, 34, 76],
  mark: [220, 8, 80],
};

const dark: Record<string, Hsl> = {
  java: [174, 40, 31],
  compiled: [174, 40, 31],
  inlined: [196, 42, 40],
  interpreted: [40, 58, 36],
  native: [14, 46, 40],
  kernel: [345, 40, 36],
  stub: [262, 24, 42],
  mark: [220, 8, 34],
};

export const kindTitles: Record<string, string> = {
  java: "Java",
  compiled: "Java, compiled",
  inlined: "Java, inlined",
  interpreted: "Java, interpreted",
  native: "native",
  kernel: "kernel",
  stub: "VM stub",
  mark: "not known",
};

const cache = new Map<string, string>();

/** A frame's colour: its kind's, a little lighter or darker by the class, so that neighbours are told apart. */
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

export const ink = (isDark: boolean) => (isDark ? "#eef2f2" : "#12211f");

export function seedOf(text: string): number {
  let h = 7;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) | 0;
  return h >>> 1;
}
