// SPDX-License-Identifier: Apache-2.0
// The choice of requests in their heat map and table, which the profile and the threads follow:
// what was chosen, and the part of their data that belongs to it.
import { Bytes, Cells, Metric, MetricJson, PageJson, Varints, without } from "./data";
import { clock, duration } from "./format";
import type { OneRequest, RequestsJson } from "./requestdata";

/** Columns and rows of the heat map, both ends inclusive. */
export interface Box {
  c0: number;
  c1: number;
  r0: number;
  r1: number;
}

/** How many requests began in each column of time and took as long as each row stands for. */
export type Heat = Pick<RequestsJson, "heat" | "columns" | "rows" | "rows_of_ten" | "end_ns"> & {
  start_s?: number; // of the first column, since 1970, where times of day are shown
};

export const leastOf = (row: number, ofTen: number) => 1000 * 10 ** (row / ofTen);

export const readBox = (text: string): Box | null => {
  const n = text.split(".").map(Number);
  return n.length === 4 && n.every((x) => Number.isInteger(x) && x >= 0)
    ? {
        c0: Math.min(n[0], n[1]),
        c1: Math.max(n[0], n[1]),
        r0: Math.min(n[2], n[3]),
        r1: Math.max(n[2], n[3]),
      }
    : null;
};

/** The time at a share of the heat map's width. */
export const timeAt = (json: Heat, share: number) =>
  json.start_s === undefined
    ? duration(share * json.end_ns)
    : clock(json.start_s + (share * json.end_ns) / 1e9, json.end_ns / 1e9);

export const axis = (json: Heat, b: Box) =>
  `${timeAt(json, b.c0 / json.columns)} to ${timeAt(json, (b.c1 + 1) / json.columns)}${json.start_s === undefined ? "" : " UTC"}, ${duration(leastOf(b.r0, json.rows_of_ten))} to ${duration(leastOf(b.r1 + 1, json.rows_of_ten))}`;

/** Requests of a name (-1: of all) in a part of the heat map (null: all of it). */
export interface Choice {
  name: number;
  box: Box | null;
}

/** What is chosen, by the address; null: nothing, which means all requests. */
export function choiceOf(
  json: RequestsJson | undefined,
  kept: Record<string, string>,
): Choice | null {
  const name = json ? json.names.findIndex((n) => n.name === kept.rn) : -1;
  const box = json ? readBox(kept.rb ?? "") : null;
  return name >= 0 || box ? { name, box } : null;
}

/** The name in the address of which the recording has no request, or nothing. */
export const unknownRequest = (json: RequestsJson | undefined, kept: Record<string, string>) =>
  json && kept.rn && !json.names.some((n) => n.name === kept.rn) ? kept.rn : "";

/** What of the address is to be cleared so that nothing is chosen. */
export const noChoice = { rn: "", rb: "", ri: "", rc: "" };

export const choiceText = (json: RequestsJson, { name, box }: Choice) =>
  [name >= 0 && json.names[name].name, box && axis(json, box)].filter(Boolean).join(", ");

const isIn = (c: Choice, name: number, column: number, row: number) =>
  (c.name < 0 || name === c.name) &&
  (!c.box || (column >= c.box.c0 && column <= c.box.c1 && row >= c.box.r0 && row <= c.box.r1));

/** The chosen ones of the requests whose details are in the page. */
export function chosenRequests(json: RequestsJson, choice: Choice): OneRequest[] {
  const column = (r: OneRequest) =>
    Math.min(json.columns - 1, Math.floor((r.at / json.end_ns) * json.columns));
  const row = (r: OneRequest) =>
    Math.min(
      json.rows - 1,
      r.ns < 1000 ? 0 : Math.floor(Math.log10(r.ns / 1000) * json.rows_of_ten),
    );
  return json.requests.filter((r) => isIn(choice, r.name, column(r), row(r)));
}

/** The number of requests in the recording that are chosen. */
export function countOf(json: RequestsJson, choice: Choice): number {
  let n = 0;
  json.heat.forEach((cells, name) => {
    for (let i = 0; i < cells.length; i += 3)
      if (isIn(choice, name, cells[i], cells[i + 1])) n += cells[i + 2];
  });
  return n;
}

/** The weight of samples in requests, by set of fields of the heat map, thread and node. */
export interface ByRequestJson {
  threads_merged: boolean;
  pruned: number; // small nodes that were added to their callers
  n_cells: number;
  cells: Bytes;
}

/**
 * A sample belongs to a set: the fields of all requests for which its thread worked at that moment,
 * usually one.
 */
export interface SetsJson {
  n: number;
  names_only: boolean; // too many fields: a set has the names alone
  sets: Bytes;
}

declare module "./data" {
  interface MetricJson {
    by_request?: ByRequestJson; // where its samples can be attributed to requests
  }
  interface PageJson {
    request_sets?: SetsJson;
  }
}

/** Says of each set whether a chosen request is in it. */
export function chosenSets(json: SetsJson, choice: Choice): Uint8Array {
  const chosen = new Uint8Array(json.n);
  const of = json.names_only ? { ...choice, box: null } : choice;
  const v = new Varints(json.sets as string | Uint8Array);
  for (let i = 0; i < json.n; i++)
    for (let k = v.next(); k > 0; k--) {
      const [name, column, row] = [v.next(), v.next(), v.next()];
      if (isIn(of, name, column, row)) chosen[i] = 1;
    }
  return chosen;
}

/** Whether the samples of a metric can be limited to requests. */
export const canFollow = (page: PageJson, json: MetricJson) =>
  !!(page.request_sets && json.by_request);

/** The samples of a metric in the chosen requests, or in the others. Their cells have no time. */
export function limitTo(
  metric: Metric,
  json: MetricJson,
  chosen: Uint8Array,
  others: boolean,
): Metric {
  const { n_cells, cells, threads_merged, pruned } = json.by_request!;
  const v = new Varints(cells as string | Uint8Array);
  const all: Cells = {
    n: n_cells,
    bucket: new Int32Array(n_cells),
    thread: new Int32Array(n_cells),
    node: new Int32Array(n_cells),
    weight: new Float64Array(n_cells),
    buckets: 1,
  };
  const left = new Uint8Array(n_cells); // not wanted
  const aside = new Uint8Array(n_cells); // not wanted, or set aside
  let set = 0;
  let asideWeight = 0;
  for (let i = 0; i < n_cells; i++) {
    set += v.next();
    all.thread[i] = v.next();
    const node = v.next();
    all.node[i] = json.aside ? node >>> 1 : node;
    all.weight[i] = v.next();
    left[i] = !!chosen[set] === others ? 1 : 0;
    aside[i] = left[i] | (json.aside ? node & 1 : 0);
    if (aside[i] && !left[i]) asideWeight += all.weight[i];
  }
  const part: Metric = {
    ...metric,
    cells: without(all, left),
    aside: asideWeight,
    pruned: metric.pruned + pruned,
    threadsMerged: threads_merged,
    calls: null,
    readings: null,
    note: metric.note && `in the whole recording: ${metric.note}`,
    noteShort: metric.noteShort && `in the whole recording: ${metric.noteShort}`,
    plain: undefined,
  };
  if (asideWeight) part.plain = { ...part, cells: without(all, aside) };
  return part;
}

/** When a thread worked: sorted by time, and disjoint. */
export interface Worked {
  from: Float64Array;
  to: Float64Array;
}

/** When each thread, by its id, worked for these requests, in the time of the timeline. */
export function workedFor(json: RequestsJson, requests: OneRequest[]): Map<number, Worked> {
  const lists = new Map<number, [number, number][]>();
  for (const r of requests)
    for (let i = 0; i + 4 < r.works.length; i += 5) {
      const from = r.at + json.timeline_ns + r.works[i];
      const list = lists.get(r.works[i + 4]);
      const time: [number, number] = [from, from + r.works[i + 1]];
      if (list) list.push(time);
      else lists.set(r.works[i + 4], [time]);
    }
  const worked = new Map<number, Worked>();
  for (const [id, list] of lists) {
    const joined: [number, number][] = [];
    for (const [from, to] of list.sort((a, b) => a[0] - b[0])) {
      const last = joined[joined.length - 1];
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else joined.push([from, to]);
    }
    worked.set(id, {
      from: Float64Array.from(joined, (t) => t[0]),
      to: Float64Array.from(joined, (t) => t[1]),
    });
  }
  return worked;
}
