// SPDX-License-Identifier: Apache-2.0
// Monitor statistics: threads, then classes, blocks and waits by calling method, and the call stack of what is chosen.
import { useEffect, useMemo, useState } from "preact/hooks";
import { duration, percent } from "./format";
import { SortableTable } from "./sortable";
import type { SiteStats, Timeline } from "./timeline";

const time = { numeric: true, format: duration };

export function Monitors({ t, served }: { t: Timeline; served: boolean }) {
  const [threads, setThreads] = useState(new Set<number>());
  const [sites, setSites] = useState(new Set<number>());
  const stats = t.json.stats;
  const threadRows = useMemo(
    () =>
      stats.threads.map((s, i) => {
        const x = t.json.threads[s.thread];
        return { key: i, cells: [x.name || "?", x.id, x.group, s.blocked, s.blocked_ns, s.waited, s.waited_ns] };
      }),
    [t],
  );
  const siteRows = (block: boolean) =>
    stats.sites.map((s, i) => ({ s, i })).filter(({ s }) => s.block === block).map(({ s, i }) => ({
      key: i,
      cells: [place(s), s.class, s.count, s.total_ns, s.min_ns, s.count ? s.total_ns / s.count : 0, s.max_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.threads],
    }));
  const blocks = useMemo(() => siteRows(true), [t]);
  const waits = useMemo(() => siteRows(false), [t]);
  const columns = [{ title: "Calling method" }, { title: "Class" }, { title: "Count", numeric: true }, { title: "Total", ...time }, { title: "Min", ...time },
    { title: "Average", ...time }, { title: "Max", ...time }, { title: "50 %", ...time }, { title: "90 %", ...time }, { title: "99 %", ...time }, { title: "Threads", numeric: true }];
  const chosen = [...sites].map((i) => stats.sites[i]);
  return (
    <main class="monitors">
      <div class="columns">
        <section>
          <h2>Threads</h2>
          <SortableTable caption="Threads" by={4} totals selected={threads} onSelect={setThreads} rows={threadRows}
            columns={[{ title: "Thread" }, { title: "Id", numeric: true }, { title: "Group" }, { title: "Blocked count", numeric: true }, { title: "Blocked", ...time }, { title: "Waited count", numeric: true }, { title: "Waited", ...time }]} />
        </section>
        <section>
          <h2>Blocks, by calling method</h2>
          <SortableTable caption="Blocks by calling method" by={3} totals selected={sites} onSelect={setSites} rows={blocks} columns={columns} />
        </section>
        <section>
          <h2>Waits, by calling method</h2>
          <SortableTable caption="Waits by calling method" by={3} totals selected={sites} onSelect={setSites} rows={waits} columns={columns} />
        </section>
      </div>
      <aside class="stacks" aria-label="Call stacks" aria-live="polite">
        <WhatIf t={t} served={served} classes={[...new Set((chosen.length ? chosen : stats.sites.filter((s) => s.block)).map((s) => s.class))]} />
        <h2>Call stack</h2>
        {!chosen.length && <p class="dim">Choose a block or a wait.</p>}
        {chosen.map((s) => (
          <section class="stack">
            <h3>
              {s.block ? "Blocked" : "Waiting"} on {s.class}
            </h3>
            <ol>
              {(t.frames[s.stack - 1] ?? []).map((f) => (
                <li>
                  {f.method}
                  {f.line > 0 && <span class="dim">:{f.line}</span>}
                </li>
              ))}
            </ol>
          </section>
        ))}
      </aside>
    </main>
  );
}

const place = (s: SiteStats) => (s.method ? `${s.method}${s.line ? `:${s.line}` : ""}` : "not recorded");

/** What the program would take if the sections of a class's locks were shorter: replayed on the server. */
function WhatIf({ t, served, classes }: { t: Timeline; served: boolean; classes: string[] }) {
  const [name, setName] = useState("");
  const [factor, setFactor] = useState(50);
  const [answer, setAnswer] = useState<{ before_ns: number; kept_ns: number; arbitrated_ns: number } | string | null>(null);
  const lock = classes.includes(name) ? name : (classes[0] ?? "");
  useEffect(() => {
    if (!served || !lock) return;
    const stop = new AbortController();
    const wait = setTimeout(async () => {
      try {
        const r = await fetch(`what-if?class=${encodeURIComponent(lock)}&factor=${factor / 100}`, { signal: stop.signal });
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
  if (!t.json.path) return null;
  return (
    <section class="whatif">
      <h2>What if</h2>
      {!lock ? (
        <p class="dim">No thread was blocked.</p>
      ) : !served ? (
        <p class="dim">
          To predict the run time with shorter sections the recording must be replayed: <code>jvmscope serve</code> does that here,{" "}
          <code>jvmscope threads what-if</code> on the command line.
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
            <input type="range" min={0} max={200} step={5} value={factor} onInput={(e) => setFactor(Number(e.currentTarget.value))} />
          </label>
          <output>
            {typeof answer === "string" ? answer : answer ? (
              <>
                <b>{duration(answer.kept_ns)}</b> instead of {duration(answer.before_ns)} ({percent(answer.kept_ns, answer.before_ns)})
                {answer.arbitrated_ns !== answer.kept_ns && <span class="dim"> — {duration(answer.arbitrated_ns)} if the locks went to whom comes first</span>}
              </>
            ) : null}
          </output>
        </>
      )}
    </section>
  );
}
