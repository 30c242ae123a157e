// SPDX-License-Identifier: Apache-2.0
// Calls that were recorded with their values, as written by src/answers/calls.c.

export interface CallJson {
  method: string;
  thread: string | null;
  start_ns: number; // since the recording's start
  ns: number;
  reading_ns?: number; // after start_ns, besides ns: in which values were read for the recording
  depth: number;
  this?: string; // JSON, as are args and return
  args: string;
  return?: string;
  exception: string | null;
  message?: string; // of the exception
  caller: string | null;
  self_ns: number; // that no recorded call below it took
  callees: number; // recorded calls directly below it, also those that the page does not contain
  java_thread: number; // 0: unknown; threads of the same name differ in it
}

declare module "./data" {
  interface PageJson {
    trace?: TraceJson;
  }
}

export interface TraceJson {
  calls: CallJson[];
  total: number; // of which `calls` are the first
  methods: MethodRow[]; // of all of them
  threads: string[]; // of all calls of the recording
}

export interface Call extends CallJson {
  parent: number; // call, -1: none that was recorded
  children: number; // of which the page has the calls
  name: string; // package.Class.method
}

const threadOf = (c: CallJson) => c.java_thread || (c.thread ?? "");
const endOf = (c: CallJson) => c.start_ns + c.ns + (c.reading_ns ?? 0);

/** Calls are ordered by their start; on one thread the caller of a call is the last one before it that is less deep. */
export function linkCalls(json: TraceJson): Call[] {
  const open = new Map<string | number, number[]>();
  const calls: Call[] = json.calls.map((c) => ({
    ...c,
    parent: -1,
    children: 0,
    name: c.method.replace(/\(.*$/s, ""),
  }));
  calls.forEach((c, i) => {
    const key = threadOf(c);
    let stack = open.get(key);
    if (!stack) open.set(key, (stack = []));
    while (stack.length && calls[stack[stack.length - 1]].depth >= c.depth) stack.pop();
    const parent = stack.length ? stack[stack.length - 1] : -1;
    if (parent >= 0 && endOf(calls[parent]) >= c.start_ns) {
      c.parent = parent;
      calls[parent].children++;
    }
    stack.push(i);
  });
  return calls;
}

/**
 * Formats values that were recorded as JSON for people: strings and characters quoted and escaped as in Java, other objects by
 * their text alone. `of` are their declared types. Anything that is not JSON is shown unchanged.
 */
export function values(json: string, of: string[] = []): string[] {
  try {
    const list: unknown = JSON.parse(json);
    const written = texts(json);
    return (Array.isArray(list) ? list : [list]).map((v, i) =>
      show(v, of[i], Array.isArray(list) ? written[i] : json),
    );
  } catch {
    return [json];
  }
}

/** The texts of the elements of an array as they were recorded: 1.0 and 1e300, which JavaScript writes as 1 and 1e+300. */
function texts(json: string): string[] {
  const list: string[] = [];
  let depth = 0;
  let start = 0;
  for (const m of json.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},]/gs)) {
    if (/[\]}]/.test(m[0]) && m[0].length === 1) depth--;
    if (depth === (m[0] === "]" ? 0 : 1) && (m[0] === "," || m[0] === "]")) {
      list.push(json.slice(start, m.index).trim());
      start = m.index + 1;
    }
    if ((m[0] === "[" || m[0] === "{") && ++depth === 1) start = m.index + 1;
  }
  return list;
}

// Objects and numbers that JSON cannot express are recorded as {"object": text} and {"number":
// text}.
function show(v: unknown, type: string | undefined, written: string): string {
  const named =
    v && typeof v === "object"
      ? ((v as Record<string, unknown>).object ?? (v as Record<string, unknown>).number)
      : undefined;
  if (typeof named === "string") return named;
  if (type === "char")
    return `'${JSON.stringify(v).slice(1, -1).replace(/'/g, "\\'").replace(/\\"/g, '"')}'`;
  return typeof v === "number" ? written.trim() : JSON.stringify(v);
}

const primitives: Record<string, string> = {
  B: "byte",
  C: "char",
  D: "double",
  F: "float",
  I: "int",
  J: "long",
  S: "short",
  Z: "boolean",
  V: "void",
};

/** The types in "name(II[Ljava/lang/String;)V": those of the parameters and of the result. */
export function types(method: string): { parameters: string[]; result: string } {
  const list: string[] = [];
  const d = method.slice(method.indexOf("("));
  for (const m of d.matchAll(/(\[*)(?:([BCDFIJSZV])|L([^;]*);)/g))
    list.push((m[2] ? primitives[m[2]] : m[3].replace(/\//g, ".")) + "[]".repeat(m[1].length));
  return { result: list.pop() ?? "", parameters: list };
}

export interface CallFilter {
  text: string; // of the method's name: a part, with * and ? the whole, or after = exactly
  thread: string;
  minNs: number;
  threw: boolean;
}

const lower = (s: string) => s.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** Follows the same rule as call_name_matches() in src/answers/calls.c. */
export function filterCalls(calls: Call[], f: CallFilter): Uint8Array {
  const hits = new Uint8Array(calls.length);
  const text = lower(f.text);
  const exact = text.startsWith("=") ? text.slice(1) : null;
  const glob =
    exact === null && /[*?]/.test(text)
      ? new RegExp(
          `^${text
            .replace(/[.+^${}()|[\]\\]/g, "\\$&")
            .replace(/\*+/g, ".*")
            .replace(/\?/g, ".")}$`,
          "su",
        )
      : null;
  calls.forEach((c, i) => {
    const name = lower(c.name);
    if (exact !== null) {
      if (name !== exact) return;
    } else if (text && !(glob ? glob.test(name) : name.includes(text))) return;
    if ((f.thread && c.thread !== f.thread) || c.ns < f.minNs || (f.threw && !c.exception)) return;
    hits[i] = 1;
  });
  return hits;
}

const units: Record<string, number> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 6e10,
  min: 6e10,
  h: 3.6e12,
  d: 8.64e13,
};

/** Converts "1.5ms" or "200us" to nanoseconds, as the command does; NaN for anything else, also for a number without a unit. */
export function parseTime(text: string): number {
  const m = text.trim().match(/^([\d.]+)\s*([a-zµ]*)$/);
  return !text.trim()
    ? 0
    : m && (units[m[2]] || Number(m[1]) === 0)
      ? Number(m[1]) * (units[m[2]] ?? 1)
      : NaN;
}

/** What is wrong with a time that was typed; "" for nothing. */
export function timeFault(text: string): string {
  const t = text.trim();
  return !Number.isNaN(parseTime(t))
    ? ""
    : Number.isNaN(Number(t))
      ? `${t} is not a time such as 1.5ms or 200us`
      : `${t} needs a unit: ${t}s, ${t}ms, ${t}us`;
}

export interface MethodRow {
  name: string;
  calls: number;
  total: number;
  self: number;
  max: number;
  threw: number;
}

/**
 * Sums up the calls that a filter selects. The total of a method leaves out calls within another
 * one of them, whose time contains theirs.
 */
export function methods(calls: Call[], hits: Uint8Array): MethodRow[] {
  const rows = new Map<string, MethodRow>();
  const outer = new Map<string, Call>(); // by thread and method: the last one not within another
  calls.forEach((c, i) => {
    if (!hits[i]) return;
    let r = rows.get(c.name);
    if (!r) rows.set(c.name, (r = { name: c.name, calls: 0, total: 0, self: 0, max: 0, threw: 0 }));
    const key = `${threadOf(c)} ${c.name}`;
    const o = outer.get(key);
    if (!o || c.depth <= o.depth || c.start_ns > endOf(o)) {
      outer.set(key, c);
      r.total += c.ns;
    }
    r.calls++;
    r.self += c.self_ns;
    r.max = Math.max(r.max, c.ns);
    if (c.exception) r.threw++;
  });
  return [...rows.values()];
}
