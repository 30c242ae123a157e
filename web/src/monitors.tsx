// SPDX-License-Identifier: Apache-2.0
// Monitor statistics, each table restricted by the selection in the one before: threads, classes,
// blocks and waits by calling method, and the call stack of the selection.
import { useEffect, useMemo, useState } from "preact/hooks";
import { count, duration, percent, plural } from "./format";
import type { Kept } from "./link";
import { download, table } from "./save";
import { Column, SortableTable } from "./sortable";
import { Stack } from "./threaddetails";
import type { SiteStats, Stats, Times, TimelineJson } from "./timeline";
import { noTimeline, timelineFacts, View } from "./view";

const time = { numeric: true, format: (v: number) => (v > 0 ? duration(v) : "–") };
const siteKey = (s: SiteStats) => `${s.block ? 1 : 0}/${s.class}/${s.method}/${s.line}`;
const place = (s: SiteStats) =>
  s.method ? `${s.method}${s.line ? `:${s.line}` : ""}` : "not recorded";
const numbers = (text: string | undefined) =>
  new Set((text ?? "").split(",").filter(Boolean).map(Number));

export function Monitors({
  json,
  served,
  name,
  kept,
  keep,
}: Kept & { json: TimelineJson; served: boolean; name: string }) {
  const threads = useMemo(() => numbers(kept.mt), [kept.mt]);
  const [site, setSite] = useState(new Set<string>());
  const idle = kept.mi === "1";
  const stats = useStats(json, threads, idle);
  const all = useStats(json, everyone, idle);
  const separate = json.served || !!json.by_thread; // the tables can be restricted to threads
  const chosenClasses = new Set((kept.mc ?? "").split("|").filter(Boolean));
  const classes = stats.classes;
  const sites = stats.sites.filter((s) => !chosenClasses.size || chosenClasses.has(s.class));
  const threadRows = useMemo(
    () =>
      all.threads.map((s) => {
        const x = json.threads[s.thread];
        return {
          key: s.thread,
          cells: [
            x.name || "?",
            x.id,
            x.group,
            s.blocked,
            s.blocked_ns,
            s.waited,
            s.waited_ns,
            s.io,
            s.io_ns,
          ],
        };
      }),
    [json, all],
  );
  const siteRows = (block: boolean) =>
    sites
      .map((s, i) => ({ s, i }))
      .filter(({ s }) => s.block === block)
      .map(({ s, i }) => ({
        key: i,
        cells: [
          place(s),
          s.class,
          s.count,
          s.total_ns,
          s.min_ns,
          s.avg_ns,
          s.max_ns,
          s.p50_ns,
          s.p90_ns,
          s.p99_ns,
          s.objects,
          s.threads,
        ],
      }));
  const columns: Column[] = [
    { title: "Calling method", name: true, code: "method" },
    { title: "Class", name: true, code: "class" },
    { title: "Count", numeric: true },
    { title: "Total", ...time },
    { title: "Min", ...time, minor: true },
    { title: "Average", ...time, minor: true },
    { title: "Max", ...time, minor: true },
    { title: "50 %", ...time, minor: true },
    { title: "90 %", ...time, minor: true },
    { title: "99 %", ...time, minor: true },
    {
      title: "Objects",
      numeric: true,
      minor: true,
      format: (v: number) => (v < 0 ? "–" : String(v)),
    },
    { title: "Threads", numeric: true, minor: true },
  ];
  const chosen = sites.filter((s) => site.has(siteKey(s)));
  const selected = new Set(
    sites.map((s, i) => (site.has(siteKey(s)) ? i : -1)).filter((i) => i >= 0),
  );
  const choose = (s: Set<number>) => setSite(new Set([...s].map((i) => siteKey(sites[i]))));
  const classRows = classes.map((c, key) => ({
    key,
    cells: [
      c.class,
      c.blocks.count,
      c.blocks.total_ns,
      c.blocks.min_ns,
      c.blocks.avg_ns,
      c.blocks.max_ns,
      c.waits.count,
      c.waits.total_ns,
      c.waits.min_ns,
      c.waits.avg_ns,
      c.waits.max_ns,
      c.threads,
    ],
  }));
  const save = () =>
    download(
      `${name}-monitors.csv`,
      "text/csv",
      table(
        [
          "kind",
          "class",
          "method",
          "line",
          "count",
          "cut",
          "total_ns",
          "min_ns",
          "avg_ns",
          "max_ns",
          "p50_ns",
          "p90_ns",
          "p99_ns",
          "threads",
        ],
        sites.map((s) => [
          s.block ? "block" : "wait",
          s.class,
          s.method ?? "",
          s.line,
          s.count,
          s.cut,
          s.total_ns,
          s.min_ns,
          s.avg_ns,
          s.max_ns,
          s.p50_ns,
          s.p90_ns,
          s.p99_ns,
          s.threads,
        ]),
      ),
    );
  return (
    <main class="monitors">
      <div class="columns" tabIndex={0} role="group" aria-label="Tables">
        <section>
          <h2>
            Threads{" "}
            <button class="aside" onClick={save}>
              Save CSV
            </button>
            {stats.idle > 0 && (
              <button
                class="aside toggle switch"
                aria-pressed={idle}
                onClick={() => keep({ mi: idle ? "" : "1" })}
                title="Waits of threads that have nothing to do: idle pool threads, timers"
              >
                Include {plural(stats.idle, "idle wait")}, {duration(stats.idle_ns)}
              </button>
            )}
          </h2>
          <SortableTable
            limit={100}
            caption="Threads"
            by={4}
            ties={6}
            totals
            selected={threads}
            onSelect={(s) => keep({ mt: [...s].join(",") })}
            rows={threadRows}
            columns={[
              { title: "Thread", name: true },
              { title: "Id", numeric: true, minor: true },
              { title: "Group", minor: true },
              { title: "Blocks", numeric: true },
              { title: "Blocked", ...time },
              { title: "Waits", numeric: true },
              { title: "Waited", ...time },
              { title: "I/O waits", numeric: true, minor: true },
              { title: "I/O", ...time, minor: true },
            ]}
          />
        </section>
        <section>
          <h2>
            Classes
            {threads.size > 0 && ` of ${separate ? plural(threads.size, "thread") : "all threads"}`}
          </h2>
          {threads.size > 0 && !separate && (
            <p class="note">
              There are too many threads for one file to hold the tables of each; those below are of
              all threads. <code>jvmscope serve</code> shows those of the chosen ones.
            </p>
          )}
          <SortableTable
            limit={100}
            caption="Classes whose monitors were used"
            by={2}
            ties={7}
            totals
            selected={
              new Set(
                classes.map((c, i) => (chosenClasses.has(c.class) ? i : -1)).filter((i) => i >= 0),
              )
            }
            onSelect={(s) => keep({ mc: [...s].map((i) => classes[i].class).join("|") })}
            rows={classRows}
            columns={[
              { title: "Class", name: true, code: "class" },
              { title: "Blocks", numeric: true },
              { title: "Blocked", ...time },
              { title: "Min", ...time, minor: true },
              { title: "Average", ...time, minor: true },
              { title: "Max", ...time, minor: true },
              { title: "Waits", numeric: true },
              { title: "Waited", ...time },
              { title: "Min ", ...time, minor: true },
              { title: "Average ", ...time, minor: true },
              { title: "Max ", ...time, minor: true },
              { title: "Threads", numeric: true, minor: true },
            ]}
          />
        </section>
        <section>
          <h2>Blocks, by calling method</h2>
          <SortableTable
            limit={100}
            caption="Blocks by calling method"
            by={3}
            totals
            selected={selected}
            onSelect={choose}
            rows={siteRows(true)}
            columns={columns}
          />
          <Cut sites={sites.filter((s) => s.block)} />
        </section>
        <section>
          <h2>Waits, by calling method</h2>
          <SortableTable
            limit={100}
            caption="Waits by calling method"
            by={3}
            totals
            selected={selected}
            onSelect={choose}
            rows={siteRows(false)}
            columns={columns}
          />
          <Cut sites={sites.filter((s) => !s.block)} />
        </section>
      </div>
      <aside class="stacks" aria-label="Call stacks" aria-live="polite">
        <WhatIf
          json={json}
          served={served}
          classes={[
            ...new Set((chosen.length ? chosen : sites.filter((s) => s.block)).map((s) => s.class)),
          ]}
        />
        <h2>Call stack</h2>
        {!chosen.length && <p class="dim">Choose a block or a wait.</p>}
        {chosen.map((s) => (
          <Stack title={`${s.block ? "Blocked" : "Waiting"} on ${s.class}`} frames={s.frames} />
        ))}
      </aside>
    </main>
  );
}

/** Says which of the waits in the table above its lengths leave out, and how many have no known end. */
function Cut({ sites }: { sites: SiteStats[] }) {
  const cut = sites.reduce((n, s) => n + s.cut, 0);
  const unknown = sites.reduce((n, s) => n + s.unknown, 0);
  return cut || unknown ? (
    <p class="dim cut">
      {cut > 0 &&
        `Of these, ${count(cut)} ${cut === 1 ? "was" : "were"} in progress when the recording began or ended: ${cut === 1 ? "it is" : "they are"} in Count, Total and Max only. `}
      {unknown > 0 && `What ended ${count(unknown)} of them is unknown.`}
    </p>
  ) : null;
}

const nothing: Stats = { idle: 0, idle_ns: 0, threads: [], classes: [], sites: [] };

/** The tables for the selected threads (all if none is), from the server or added up from those of each thread. */
export function useStats(json: TimelineJson, threads: Set<number>, idle = false): Stats {
  const [asked, setAsked] = useState<{ key: string; stats: Stats } | null>(null);
  const list = [...threads].join(",");
  const key = `${list}/${idle}`;
  useEffect(() => {
    if (!json.served) return;
    const stop = new AbortController();
    fetch(`monitors?${list ? `threads=${list}&` : ""}${idle ? "idle=1" : ""}`, {
      signal: stop.signal,
    })
      .then(async (r) => r.ok && setAsked({ key, stats: await r.json() }))
      .catch(() => {});
    return () => stop.abort();
  }, [key, json]);
  return useMemo(() => {
    if (json.served) return asked?.key === key ? asked.stats : nothing;
    if (!list || !json.by_thread) return (idle && json.stats_idle) || json.stats || nothing;
    return merge(
      json.by_thread
        .filter((b) => threads.has(b.thread))
        .map((b) => (idle && b.stats_idle) || b.stats),
    );
  }, [key, asked, json]);
}

const everyone = new Set<number>();

/** The waits of which all is in the recording. */
const whole = (t: Times) => t.count - t.cut;

/** The sum of several threads' tables. Percentiles and numbers of objects cannot be added; -1 stands for them. */
function merge(all: Stats[]): Stats {
  if (all.length === 1) return all[0];
  const add = <T extends Times>(a: T, b: Times): T => ({
    ...a,
    count: a.count + b.count,
    cut: a.cut + b.cut,
    unknown: a.unknown + b.unknown,
    total_ns: a.total_ns + b.total_ns,
    max_ns: Math.max(a.max_ns, b.max_ns),
    min_ns: !whole(a) ? b.min_ns : !whole(b) ? a.min_ns : Math.min(a.min_ns, b.min_ns),
    avg_ns: (a.avg_ns * whole(a) + b.avg_ns * whole(b)) / Math.max(whole(a) + whole(b), 1),
    p50_ns: -1,
    p90_ns: -1,
    p99_ns: -1,
  });
  const classes = new Map<string, Stats["classes"][0]>();
  const sites = new Map<string, SiteStats>();
  for (const s of all) {
    for (const c of s.classes) {
      const o = classes.get(c.class);
      classes.set(
        c.class,
        o
          ? {
              ...o,
              blocks: add(o.blocks, c.blocks),
              waits: add(o.waits, c.waits),
              objects: -1,
              threads: o.threads + c.threads,
            }
          : c,
      );
    }
    for (const x of s.sites) {
      const o = sites.get(siteKey(x));
      sites.set(siteKey(x), o ? { ...add(o, x), objects: -1, threads: o.threads + x.threads } : x);
    }
  }
  return {
    idle: all.reduce((n, s) => n + s.idle, 0),
    idle_ns: all.reduce((n, s) => n + s.idle_ns, 0),
    threads: [],
    classes: [...classes.values()],
    sites: [...sites.values()],
  };
}

/** How long the program would take if the sections of a class's locks were shorter, replayed by the server. */
function WhatIf({
  json,
  served,
  classes,
}: {
  json: TimelineJson;
  served: boolean;
  classes: string[];
}) {
  const [name, setName] = useState("");
  const [factor, setFactor] = useState(50);
  const [answer, setAnswer] = useState<
    | {
        before_ns: number;
        after_ns: number;
        after_low_ns: number;
        after_high_ns: number;
        possible_low_ns: number;
        possible_high_ns: number;
        on_path: boolean;
        inferred: boolean;
        order_decided_anew: boolean;
        owner_unknown: number;
        owner_matters: boolean;
        owner_unknown_ns: number;
      }
    | string
    | null
  >(null);
  const lock = classes.includes(name) ? name : (classes[0] ?? "");
  useEffect(() => {
    if (!served || !lock) return;
    const stop = new AbortController();
    const wait = setTimeout(async () => {
      try {
        const r = await fetch(`what-if?class=${encodeURIComponent(lock)}&factor=${factor / 100}`, {
          signal: stop.signal,
        });
        setAnswer(r.ok ? await r.json() : await r.text());
      } catch (e) {
        if (!stop.signal.aborted) setAnswer(String(e));
      }
    }, 80);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [served, lock, factor]);
  if (!json.path) return null;
  return (
    <section class="whatif">
      <h2>What if</h2>
      {!lock ? (
        <p class="dim">No thread was blocked.</p>
      ) : !served ? (
        <p class="dim">
          To predict the run time with shorter sections the recording must be replayed:{" "}
          <code>jvmscope serve</code> does that here, <code>jvmscope threads what-if</code> on the
          command line.
        </p>
      ) : (
        <>
          <label>
            sections of{" "}
            <select value={lock} onChange={(e) => setName(e.currentTarget.value)}>
              {classes.map((c) => (
                <option key={c}>{c}</option>
              ))}
            </select>
          </label>
          <label>
            took {factor} % of their time
            <input
              type="range"
              min={0}
              max={200}
              step={5}
              value={factor}
              onInput={(e) => setFactor(Number(e.currentTarget.value))}
            />
          </label>
          <output>
            {typeof answer === "string" ? (
              answer
            ) : answer ? (
              <>
                <b>{duration(answer.after_ns)}</b> instead of {duration(answer.before_ns)} (
                {percent(answer.after_ns, answer.before_ns)})
                {answer.after_ns !== answer.before_ns &&
                  `, ${duration(Math.abs(answer.before_ns - answer.after_ns))} ${answer.after_ns > answer.before_ns ? "later" : "sooner"}`}
                {!answer.on_path && answer.after_ns === answer.before_ns && (
                  <>
                    : nothing is {factor > 100 ? "lost" : "gained"}, because none of these sections
                    lies on the critical path
                  </>
                )}
                <span class="dim">
                  {" "}
                  — expected between {duration(answer.after_low_ns)} and{" "}
                  {duration(answer.after_high_ns)}
                  {(answer.possible_low_ns < answer.after_low_ns ||
                    answer.possible_high_ns > answer.after_high_ns) &&
                    `, possible from ${duration(answer.possible_low_ns)} to ${duration(answer.possible_high_ns)}: threads may then wait for locks that were free in the recording, or to join threads that had ended, and sections that no thread waited for may have been anywhere in the methods that take the lock`}
                  {!answer.order_decided_anew &&
                    "; the replay keeps the recorded order of the locks, because it could not determine a new one, so the true result may be shorter"}
                  {answer.inferred &&
                    "; the time at which a thread released the lock is inferred if no other thread waited for it"}
                  {answer.owner_matters &&
                    `; who held the lock is unknown for ${plural(answer.owner_unknown, "wait")}, ${duration(answer.owner_unknown_ns)} in all, so that the change may be too small`}
                </span>
              </>
            ) : null}
          </output>
        </>
      )}
    </section>
  );
}

export const monitorsView: View = {
  name: "monitors",
  title: "Monitor statistics",
  has: (p) => !!p.timeline,
  missing: noTimeline,
  losses: /^(threads|locks|monitors|io|recording)$/,
  facts: timelineFacts,
  show: ({ page, name, kept }) => (
    <Monitors json={page.timeline!} served={page.timeline!.served} name={name} {...kept} />
  ),
  help: (
    <p>
      Choose threads to see the classes whose monitors they used, choose classes to see where they
      blocked and waited, choose a place for its call stack. Nothing chosen means all. Shift chooses
      a range; the last line adds up what is chosen.
    </p>
  ),
  keys: [
    ["↑ ↓", "move between rows"],
    ["Space", "choose the row"],
    ["Escape", "back, close, clear"],
  ],
};
