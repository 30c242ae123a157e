// SPDX-License-Identifier: Apache-2.0
// Monitor statistics: threads, then classes, blocks and waits by calling method, and the call stack of what is chosen.
import { useMemo, useState } from "preact/hooks";
import { duration } from "./format";
import { SortableTable } from "./sortable";
import type { SiteStats, Timeline } from "./timeline";

const time = { numeric: true, format: duration };

export function Monitors({ t }: { t: Timeline }) {
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
