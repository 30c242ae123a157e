// SPDX-License-Identifier: Apache-2.0
// Keeps the state of the page in the address's fragment, so that every view can be linked to.

export interface State {
  metric: string;
  view: string; // "profile", "method" or the name of a row of views.ts
  inverted: boolean;
  upwards: boolean;
  search: string;
  selected: string; // label text, "" when none
  threads: number[];
  window: [number, number] | null;
  zoom: string;
  compare: number; // number of the other file, -1 none
  more: Record<string, string>; // what the other views keep: their own names, which have two letters or more
}

/** What a view keeps in the address, and how it changes that; an empty text is left out. */
export interface Kept {
  kept: Record<string, string>;
  keep: (part: Record<string, string>) => void;
}

export function encode(s: State): string {
  const q = new URLSearchParams();
  if (s.metric) q.set("m", s.metric);
  if (s.view !== "profile") q.set("v", s.view);
  if (s.inverted) q.set("i", "1");
  if (s.upwards) q.set("u", "1");
  if (s.search) q.set("q", s.search);
  if (s.selected) q.set("s", s.selected);
  if (s.threads.length) q.set("t", s.threads.join(","));
  if (s.window) q.set("w", s.window.join("-"));
  if (s.zoom) q.set("z", s.zoom);
  if (s.compare >= 0) q.set("b", String(s.compare));
  for (const [k, v] of Object.entries(s.more)) if (v) q.set(k, v);
  return q.toString();
}

export function decode(fragment: string): State {
  const q = new URLSearchParams(fragment.replace(/^#/, ""));
  const numbers = (text: string | null, by: string) =>
    (text ?? "")
      .split(by)
      .filter((x) => /^\d+$/.test(x))
      .map(Number);
  const w = numbers(q.get("w"), "-");
  return {
    metric: q.get("m") ?? "",
    view: q.get("v") || "profile",
    inverted: q.get("i") === "1",
    upwards: q.get("u") === "1",
    search: q.get("q") ?? "",
    selected: q.get("s") ?? "",
    threads: numbers(q.get("t"), ","),
    window: w.length === 2 && w[0] < w[1] ? [w[0], w[1]] : null,
    zoom: /^[\d.]*$/.test(q.get("z") ?? "") ? (q.get("z") ?? "") : "",
    compare: /^\d+$/.test(q.get("b") ?? "") ? Number(q.get("b")) : -1,
    more: Object.fromEntries([...q].filter(([k]) => k.length > 1)),
  };
}
