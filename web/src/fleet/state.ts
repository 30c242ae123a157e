// SPDX-License-Identifier: Apache-2.0
// What is asked, in the address's fragment, so that every answer can be linked to.
import type { Params } from "./ask";

export const views = [
  "services",
  "profile",
  "difference",
  "requests",
  "vm",
  "findings",
  "method",
] as const;
export type View = (typeof views)[number];

export interface State {
  view: View;
  service: string;
  version: string;
  host: string;
  label: string; // KEY=VALUE, several separated by commas
  request: string;
  range: string; // "1h", "7d"; "" is everything
  metric: string; // "": CPU samples or, without any, the first that was sent
  price: string; // of an hour of a processor
  base: string; // of the difference: "version=1.7", or "before" for the time before that as long as `range`
  search: string;
}

const keys: Record<keyof State, string> = {
  view: "v",
  service: "service",
  version: "version",
  host: "host",
  label: "label",
  request: "request",
  range: "range",
  metric: "metric",
  price: "price",
  base: "base",
  search: "q",
};
const usual: State = {
  view: "services",
  service: "",
  version: "",
  host: "",
  label: "",
  request: "",
  range: "24h",
  metric: "",
  price: "",
  base: "",
  search: "",
};

export function encode(s: State): string {
  const q = new URLSearchParams();
  for (const k of Object.keys(keys) as (keyof State)[]) if (s[k] !== usual[k]) q.set(keys[k], s[k]);
  return q.toString();
}

export function decode(fragment: string): State {
  const q = new URLSearchParams(fragment.replace(/^#/, ""));
  const s = { ...usual } as Record<string, string>;
  for (const [k, name] of Object.entries(keys)) if (q.has(name)) s[k] = q.get(name)!;
  const known = (views as readonly string[]).includes(s.view);
  return {
    ...(s as unknown as State),
    view: known ? (s.view as View) : "services",
    range: /^(\d{1,4}[hd])?$/.test(s.range) ? s.range : usual.range,
  };
}

const HOUR = 3600;

/** Seconds of a range; 0: everything. */
export const seconds = (range: string) =>
  parseInt(range || "0") * (range.endsWith("d") ? 24 * HOUR : HOUR);

const LABELS = 32; // as many as a question may have
const isLabel = (l: string) => l.indexOf("=") > 0;

/** What is wrong with a typed label or price, for the reader, or nothing. */
export const labelFault = (s: string) =>
  s && !s.split(",").every(isLabel)
    ? "a label is KEY=VALUE"
    : s.split(",").length > LABELS
      ? `at most ${LABELS} labels`
      : "";
export const priceFault = (s: string) =>
  s && !(/^\d*\.?\d+$/.test(s) && isFinite(Number(s))) ? "a price is a number, such as 0.04" : "";

/** Where the answers come from, as parameters of a question. */
export function choice(s: State): Params {
  return {
    service: s.service,
    version: s.version,
    host: s.host,
    request: s.request,
    label: s.label.split(",").filter(isLabel).slice(0, LABELS),
    from: s.range ? `${seconds(s.range) / 60}m` : undefined,
  };
}
