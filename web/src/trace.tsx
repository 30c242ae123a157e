// SPDX-License-Identifier: Apache-2.0
// The call tree: every recorded call with its arguments and its result, below the call that made
// it.
import { useEffect, useMemo, useState } from "preact/hooks";
import {
  Call,
  filterCalls,
  linkCalls,
  MethodRow,
  methods,
  parseTime,
  timeFault,
  TraceJson,
  types,
  values,
} from "./calls";
import { allThreads, count, duration, moment, plural, split } from "./format";
import type { Kept } from "./link";
import { download, table } from "./save";
import { SortableTable } from "./sortable";
import { VirtualTable } from "./virtual";
import type { View } from "./view";

interface Props extends Kept {
  json: TraceJson;
  served: boolean;
  name: string; // of files that are saved
}

export function TraceView({ json, served, kept, keep, name }: Props) {
  const filter = {
    text: kept.cm ?? "",
    thread: kept.ct ?? "",
    min: kept.cn ?? "",
    threw: kept.cx === "1",
  };
  const minNs = parseTime(filter.min);
  const fault = timeFault(filter.min);
  const [asked, setAsked] = useState<TraceJson | null>(null);
  const cut = json.total > json.calls.length;
  useEffect(() => {
    // More calls than one page contains: the server searches all of them.
    if (!cut || !served || !(filter.text || filter.thread || minNs > 0 || filter.threw))
      return setAsked(null);
    const stop = new AbortController();
    const q = new URLSearchParams();
    if (filter.text) q.set("name", filter.text);
    if (filter.thread) q.set("thread", filter.thread);
    if (minNs > 0) q.set("min", String(Math.round(minNs)));
    if (filter.threw) q.set("threw", "1");
    const wait = setTimeout(() => {
      fetch(`calls?${q}`, { signal: stop.signal })
        .then(async (r) => r.ok && setAsked(await r.json()))
        .catch(() => {});
    }, 150);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [filter.text, filter.thread, minNs, filter.threw]);
  const shown = asked ?? json;
  const calls = useMemo(() => linkCalls(shown), [shown]);
  const threads = useMemo(() => [...json.threads].sort(), [json]);
  const hits = useMemo(
    () => filterCalls(calls, { ...filter, minNs: fault ? Infinity : minNs }),
    [calls, filter.text, filter.thread, minNs, filter.threw],
  );
  const [closed, setClosed] = useState(new Set<number>());
  const [at, setAt] = useState(-1);
  const filtered = !!(filter.text || filter.thread || minNs > 0 || fault || filter.threw);
  // The server sums up all calls that the filter selects; the page can do so if it has them all.
  const sums = useMemo(
    () => (!fault && (asked || (cut && !filtered)) ? shown.methods : methods(calls, hits)),
    [calls, hits],
  );
  const partial = cut && filtered && !asked && !fault;
  const rows = useMemo(() => visible(calls, hits, filtered, closed), [calls, hits, closed]);
  const matches = useMemo(() => hits.reduce((a, b) => a + b, 0), [hits]);
  const cursor = rows.indexOf(at);
  useEffect(() => setAt(kept.call ? Number(kept.call) : -1), [calls, kept.call]);
  const pick = (i: number) => {
    setAt(i);
    keep({ call: i < 0 ? "" : String(i) });
  };
  const fold = (i: number, close: boolean) => {
    const s = new Set(closed);
    if (close) s.add(i);
    else s.delete(i);
    setClosed(s);
  };
  const reveal = (i: number) => {
    const s = new Set(closed);
    for (let n = calls[i].parent; n >= 0; n = calls[n].parent) s.delete(n);
    setClosed(s);
    pick(i);
  };
  const onKey = (e: KeyboardEvent, row: number) => {
    const i = rows[row];
    if (e.key === "ArrowRight" && closed.has(i)) fold(i, false);
    else if (e.key === "ArrowRight" && calls[i].children)
      pick(rows[Math.min(row + 1, rows.length - 1)]);
    else if (e.key === "ArrowLeft" && calls[i].children && !closed.has(i)) fold(i, true);
    else if (e.key === "ArrowLeft" && calls[i].parent >= 0) reveal(calls[i].parent);
    else if (filtered && (e.key === "n" || e.key === "N")) {
      const to = (e.key === "n" ? rows.slice(row + 1) : rows.slice(0, row).reverse()).find(
        (k) => hits[k],
      );
      if (to !== undefined) pick(to);
    } else if (e.key === "Escape" && at >= 0) pick(-1);
    else return false;
    return true;
  };
  const save = () =>
    download(
      `${name}-calls.csv`,
      "text/csv",
      table(
        [
          "start_ns",
          "ns",
          "thread",
          "depth",
          "method",
          "arguments",
          "returned",
          "threw",
          "message",
        ],
        rows.map((i) => [
          calls[i].start_ns,
          calls[i].ns,
          calls[i].thread ?? "",
          calls[i].depth,
          calls[i].method,
          calls[i].args,
          calls[i].return ?? "",
          calls[i].exception ?? "",
          calls[i].message ?? "",
        ]),
      ),
    );
  return (
    <main class="trace">
      <div class="tools" role="toolbar" aria-label="Calls">
        <div class="search">
          <input
            type="search"
            placeholder="Method ( / )"
            aria-label="Method: a part of its name, a pattern with *, or = and the name"
            value={filter.text}
            onInput={(e) => keep({ cm: e.currentTarget.value, call: "" })}
          />
        </div>
        <select
          aria-label="Thread"
          value={filter.thread}
          onChange={(e) => keep({ ct: e.currentTarget.value, call: "" })}
        >
          <option value="">{allThreads(threads.length)}</option>
          {threads.map((t) => (
            <option key={t} value={t}>
              {t.slice(0, 80) || "?"}
            </option>
          ))}
        </select>
        <label class="field">
          at least
          <input
            type="text"
            size={7}
            placeholder="1ms"
            aria-label="Shortest time"
            aria-invalid={!!fault}
            value={filter.min}
            onInput={(e) => keep({ cn: e.currentTarget.value, call: "" })}
          />
        </label>
        <button
          class="toggle"
          aria-pressed={filter.threw}
          onClick={() => keep({ cx: filter.threw ? "" : "1", call: "" })}
        >
          Threw
        </button>
        <output aria-live="polite">
          {fault
            ? fault
            : filtered
              ? `${count(matches)} of ${plural(shown.total, "call")}`
              : plural(json.total, "call")}
        </output>
        <div class="grow" />
        <div class="row">
          <div class="seg" role="group" aria-label="Tree">
            <button onClick={() => setClosed(new Set())}>Open all</button>
            <button
              onClick={() =>
                setClosed(new Set(calls.map((_, i) => i).filter((i) => calls[i].children)))
              }
            >
              Close all
            </button>
          </div>
          <button onClick={save} title="The calls shown, as CSV">
            Save CSV
          </button>
        </div>
      </div>
      {shown.total > shown.calls.length && (
        <p class="note">
          The first {count(shown.calls.length)} of {plural(shown.total, "call")}.{" "}
          {served
            ? "A filter searches all of them."
            : "A filter searches only these; jvmscope serve and jvmscope trace search all of them."}
        </p>
      )}
      <div class="panes">
        <VirtualTable
          label="Calls"
          count={rows.length}
          cursor={cursor}
          onCursor={(r) => pick(rows[r])}
          onKey={onKey}
          level={(r) => levelOf(calls, rows[r])}
          expanded={(r) => (calls[rows[r]].children ? !closed.has(rows[r]) : undefined)}
          empty={fault || "No call matches."}
          columns={[
            { title: "Call" },
            { title: "Start", numeric: true, width: "104px", minor: true },
            { title: "Time", numeric: true, width: "92px" },
            { title: "Thread", width: "130px", minor: true },
          ]}
          rowClass={(r) => (filtered && !hits[rows[r]] ? "context" : "")}
          cells={(r) => {
            const i = rows[r];
            const c = calls[i];
            return [
              <Line
                c={c}
                level={levelOf(calls, i)}
                closed={closed.has(i)}
                onFold={() => fold(i, !closed.has(i))}
              />,
              moment(c.start_ns),
              duration(c.ns),
              c.thread ?? "?",
            ];
          }}
        />
        <aside class="side" aria-label="Details" aria-live="polite">
          {at >= 0 && calls[at] ? (
            <Details
              c={calls[at]}
              onParent={() => reveal(calls[at].parent)}
              onMethod={() => keep({ cm: calls[at].name, call: "" })}
              onClose={() => pick(-1)}
            />
          ) : (
            <Summary
              methods={sums}
              of={partial ? calls.length : 0}
              onMethod={(m) => keep({ cm: m, call: "" })}
            />
          )}
        </aside>
      </div>
    </main>
  );
}

function levelOf(calls: Call[], i: number): number {
  let level = 1;
  for (let n = calls[i].parent; n >= 0; n = calls[n].parent) level++;
  return level;
}

/** Matching calls and those that lead to them, without what is inside a closed one. */
function visible(
  calls: Call[],
  hits: Uint8Array,
  filtered: boolean,
  closed: Set<number>,
): number[] {
  const keep = Uint8Array.from(hits);
  if (filtered)
    for (let i = calls.length - 1; i >= 0; i--)
      if (keep[i] && calls[i].parent >= 0) keep[calls[i].parent] = 1;
  const hidden = new Uint8Array(calls.length);
  const rows: number[] = [];
  const children = new Map<number, number[]>();
  calls.forEach((c, i) => {
    const list = children.get(c.parent);
    if (list) list.push(i);
    else children.set(c.parent, [i]);
  });
  // In tree order, because the calls of threads may interleave in time.
  const stack = [...(children.get(-1) ?? [])].reverse();
  while (stack.length) {
    const i = stack.pop()!;
    if (hidden[i] || !keep[i]) continue;
    rows.push(i);
    if (!closed.has(i)) for (const k of [...(children.get(i) ?? [])].reverse()) stack.push(k);
  }
  return rows;
}

function Line({
  c,
  level,
  closed,
  onFold,
}: {
  c: Call;
  level: number;
  closed: boolean;
  onFold: () => void;
}) {
  const { pkg, cls, name } = split(c.name);
  const t = types(c.method);
  const args = values(c.args, t.parameters).join(", ");
  const result = c.exception
    ? ` threw ${thrown(c)}`
    : c.return !== undefined
      ? ` = ${values(c.return, [t.result])[0]}`
      : "";
  return (
    <span
      class="call"
      style={{ paddingLeft: `${(Math.min(level, 40) - 1) * 16}px` }}
      title={`${c.name}(${args})${result}`.slice(0, 2000)}
    >
      {c.children ? (
        <button
          class="fold"
          tabIndex={-1}
          aria-hidden="true"
          onClick={(e) => (e.stopPropagation(), onFold())}
        >
          {closed ? "▸" : "▾"}
        </button>
      ) : (
        <span class="fold" />
      )}
      <span class="dim">{pkg}</span>
      {cls && `${cls}.`}
      <b>{name}</b>
      <span class="dim">({args.slice(0, 300)})</span>
      {c.exception ? (
        <span class="threw">{result.slice(0, 300)}</span>
      ) : (
        <span class="result">{result.slice(0, 300)}</span>
      )}
    </span>
  );
}

/** The class of the exception that a call threw, and its message as `jvmscope trace` prints it. */
const thrown = (c: Call) =>
  c.message === undefined ? c.exception! : `${c.exception}: ${JSON.stringify(c.message)}`;

function Details(p: { c: Call; onParent: () => void; onMethod: () => void; onClose: () => void }) {
  const { c } = p;
  const t = types(c.method);
  const args = values(c.args, t.parameters);
  return (
    <div>
      <h2 class="break">{c.name}</h2>
      <p>
        {duration(c.ns)}
        {c.callees > 0 && (
          <span class="dim">
            {" "}
            of which {duration(Math.max(0, c.self_ns))} in itself;{" "}
            {plural(c.callees, "recorded call")} below
          </span>
        )}
      </p>
      <p class="dim">
        at {moment(c.start_ns)} on {c.thread ?? "?"}
      </p>
      <dl class="facts-list">
        {c.this !== undefined && <Fact name="this" type="" value={values(c.this)[0]} />}
        {args.map((v, i) => (
          <Fact key={i} name={`argument ${i + 1}`} type={t.parameters[i] ?? ""} value={v} />
        ))}
        {c.return !== undefined && (
          <Fact name="returned" type={t.result} value={values(c.return, [t.result])[0]} />
        )}
        {c.exception && <Fact name="threw" type="" value={thrown(c)} />}
        {c.caller && <Fact name="called by" type="" value={c.caller.replace(/\(.*$/s, "")} />}
      </dl>
      <div class="row">
        {c.parent >= 0 && <button onClick={p.onParent}>Go to the caller</button>}
        <button onClick={p.onMethod}>All calls of it</button>
        <button onClick={p.onClose}>Close</button>
      </div>
    </div>
  );
}

function Fact({ name, type, value }: { name: string; type: string; value: string }) {
  return (
    <>
      <dt>
        {name} {type && <span class="dim">{type}</span>}
      </dt>
      <dd>
        <code>{value}</code>
      </dd>
    </>
  );
}

interface SummaryProps {
  methods: MethodRow[];
  of: number; // the sums are only of this many first calls; 0: of all
  onMethod: (m: string) => void;
}

function Summary({ methods, of, onMethod }: SummaryProps) {
  const rows = useMemo(
    () =>
      methods.map((m, key) => ({
        key,
        cells: [m.name, m.calls, m.self, m.total, m.max, m.threw],
      })),
    [methods],
  );
  const time = { numeric: true, format: duration };
  return (
    <>
      <h2>Methods</h2>
      {of > 0 && <p class="note">Among the first {count(of)} calls.</p>}
      <SortableTable
        caption="Methods by self time"
        by={2}
        limit={200}
        rows={rows}
        selected={new Set()}
        onSelect={(s) => onMethod(String(rows[[...s][0]].cells[0]))}
        columns={[
          { title: "Method", name: true, code: "method" },
          { title: "Calls", numeric: true, format: count },
          { title: "Self", ...time },
          { title: "Total", ...time },
          { title: "Max", ...time, minor: true },
          { title: "Threw", numeric: true, minor: true, format: count },
        ]}
      />
    </>
  );
}

const callKeys: [string, string][] = [
  ["/", "search methods"],
  ["↑ ↓ PgUp PgDn Home End", "move between calls"],
  ["→ ←", "open and close a call; to its first call, to its caller"],
  ["n N", "next, previous call that matches the filter"],
  ["Escape", "back, close, clear"],
];

export const traceView: View = {
  name: "trace",
  title: "Calls",
  has: (p) => !!p.trace,
  missing: {
    title: "Calls",
    is: "the calls of chosen methods with arguments and results",
    by: "jvmscope run --trace 'com.example.*' -o app.jfr -- java ...",
  },
  losses: /^(trace|log|recording)$/,
  facts: (p) => (
    <span>
      <b>{plural(p.trace!.total, "call")}</b>
    </span>
  ),
  show: ({ page, name, kept }) => (
    <TraceView json={page.trace!} served={!!page.site} name={name} {...kept} />
  ),
  help: (
    <p>
      Each line is a recorded call with its arguments and its result, below the call that made it.
    </p>
  ),
  keys: callKeys,
};
