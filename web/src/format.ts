// SPDX-License-Identifier: Apache-2.0
import type { Metric, Unit } from "./data";

export function duration(ns: number): string {
  const units: [number, string][] = [
    [3600e9, "h"],
    [60e9, "min"],
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
  ];
  for (const [size, name] of units) if (ns >= size) return `${digits(ns / size)}\u00a0${name}`;
  return `${Math.round(ns)}\u00a0ns`;
}

/** A percentile. One that is only known to be less than a microsecond sorts right below a microsecond. */
export const percentile = (ns: number, key: string, bounds: string[], uncertain: string[] = []) =>
  bounds.includes(key) ? BELOW : uncertain.includes(key) ? ns + UNCERTAIN : ns;
const BELOW = 999.5;
const UNCERTAIN = 0.25;
/** One that rests on few requests is marked. */
export const percentileText = (ns: number) =>
  ns === BELOW ? "<\u00a01\u00a0µs" : `${ns % 1 === UNCERTAIN ? "~" : ""}${duration(ns)}`;

/** A difference of two shares, in percentage points. */
export const points = (v: number) => `${v > 0 ? "+" : ""}${(100 * v).toFixed(2)}`;

/** A sentence of the command's, with times as the page writes them. */
export const sentence = (text: string) => text.replace(/(\d) us\b/g, "$1\u00a0µs");

/** A moment, counted from the start: "0.281345 s", which can be compared with any other. */
export const moment = (ns: number) => `${(ns / 1e9).toFixed(6)}\u00a0s`;

/** Formats a time on an axis with just enough digits to distinguish it from the next one. */
export function axisTime(ns: number, step: number): string {
  if (!ns) return "0";
  const [size, name] = (
    [
      [60e9, "min"],
      [1e9, "s"],
      [1e6, "ms"],
      [1e3, "µs"],
      [1, "ns"],
    ] as [number, string][]
  ).find(([u]) => ns >= u) ?? [1, "ns"];
  if (name === "min")
    return `${Math.floor(ns / size)}:${((ns % size) / 1e9).toFixed(Math.max(0, -Math.floor(Math.log10(step / 1e9) + 1e-9))).padStart(2, "0")}\u00a0min`;
  return `${(ns / size).toFixed(Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9)))}\u00a0${name}`;
}

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i ? digits(n) : n}\u00a0${units[i]}`;
}

function digits(v: number): string {
  return v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : v.toFixed(0);
}

/** "1,859", as in the texts that the command writes. */
const grouped = new Intl.NumberFormat("en-US");
export const count = (n: number) => grouped.format(n);

/** "1 thread", "2 threads". */
/** What is chosen when no thread is. */
export const allThreads = (n: number) =>
  n === 1 ? "The only thread" : `All ${plural(n, "thread")}`;
export const plural = (n: number, one: string, many = `${one}s`) =>
  `${count(n)} ${n === 1 ? one : many}`;

export function weight(unit: Unit, n: number): string {
  return unit === "bytes" ? bytes(n) : unit === "ns" ? duration(n) : count(n);
}

/** Formats a weight for people: "1,234 samples (12.3 s)". */
export function weightLong(m: Metric, n: number): string {
  if (m.unit !== "samples") return weight(m.unit, n);
  const time = m.intervalNs ? ` (${duration(n * m.intervalNs)})` : "";
  return `${count(n)} sample${n === 1 ? "" : "s"}${time}`;
}

export function percent(part: number, whole: number): string {
  const p = whole ? (100 * part) / whole : 0;
  return `${p >= 10 ? p.toFixed(1) : p.toFixed(2)}\u00a0%`;
}

/** Splits "p.q.Class.method" into package, class and method. */
export function split(label: string): { pkg: string; cls: string; name: string } {
  // The name of a native library ends at .so and its version; that of a symbol may have dots as
  // well.
  const native = label.match(/^(\S*\.so(?:\.\d+)*)\.(?=[^.\d])(.+)$/);
  if (native) return { pkg: "", cls: native[1], name: native[2] };
  const paren = label.indexOf("(");
  const dot = label.lastIndexOf(".", paren < 0 ? undefined : paren);
  if (dot < 0 || label.startsWith("[")) return { pkg: "", cls: "", name: label };
  const cls = label.slice(0, dot);
  const at = cls.replace(/\/.*$/, "").lastIndexOf(".");
  return { pkg: cls.slice(0, at + 1), cls: cls.slice(at + 1), name: label.slice(dot + 1) };
}

export const short = (label: string) => {
  const { cls, name } = split(label);
  return cls ? `${cls}.${name}` : name;
};

/** A time of day (UTC) of a span of so many seconds, with the date if the span is longer than a day. */
export function clock(seconds: number, span: number): string {
  const text = new Date(Math.round(seconds) * 1000).toISOString();
  if (span > 86400) return text.slice(5, 16).replace("T", " ");
  return text.slice(11, span > 7200 ? 16 : 19);
}
