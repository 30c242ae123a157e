// SPDX-License-Identifier: Apache-2.0
// Who calls a method, in the whole fleet, and at what cost.
import { useEffect, useState } from "preact/hooks";
import { percent, weight } from "../format";
import { SortableTable } from "../sortable";
import { MethodRow, metricOf, question } from "./ask";
import { ViewProps, Waiting } from "./fleet";
import { choice } from "./state";

interface Found extends MethodRow {
  service: string;
  whole: number;
}

export function MethodView({ state, change, known }: ViewProps) {
  const m = metricOf(state.metric);
  const [found, setFound] = useState<Found[] | null>(null);
  const [error, setError] = useState("");
  const services = [...new Set(known.map((s) => s.service))].filter((s) => !state.service || s === state.service);
  const asked = state.search.trim();
  useEffect(() => {
    const stop = new AbortController();
    const all: Found[] = [];
    setFound(null);
    setError("");
    if (!asked) return;
    (async () => {
      for (const service of services) {
        const answer = await question<{ methods: MethodRow[] } & Record<string, number>>("top", { ...choice(state), service, metric: state.metric, method: /[*?]/.test(asked) ? asked : `*${asked}*` }, stop.signal);
        const whole = answer[`${m.name}_${m.unit === "samples" ? "samples" : m.sum}`] ?? 0;
        all.push(...answer.methods.map((row) => ({ ...row, service, whole })));
      }
      setFound(all);
    })().catch((e: Error) => !stop.signal.aborted && setError(e.message));
    return () => stop.abort();
  }, [asked, services.join(), state.version, state.host, state.label, state.request, state.range, state.metric]);
  const share = { numeric: true, format: (v: number) => percent(v, 1) };
  const sum = { numeric: true, format: (v: number) => weight(m.unit, v), minor: true };
  return (
    <>
      <div class="tools">
        <div class="search">
          <input type="search" autofocus placeholder="java.util.regex.*" aria-label="Method, a part of its name or a pattern" value={state.search} onChange={(e) => change({ search: e.currentTarget.value })} />
        </div>
        <span class="dim">A part of a method's name, or a pattern with * and ?</span>
      </div>
      <main>
        {!asked ? null : !found ? (
          <Waiting error={error} />
        ) : found.length ? (
          <section class="columns" aria-label="Services that call it">
            <SortableTable caption="Services that call it. Enter shows the profile of one." by={3} selected={new Set()}
              onSelect={(s) => {
                const row = found[[...s][0]];
                if (row) change({ view: "profile", service: row.service, search: row.method });
              }}
              rows={found.map((r, key) => ({ key, cells: [r.service, r.whole ? r.self / r.whole : 0, r.self, r.whole ? r.total / r.whole : 0, r.total, r.method] }))}
              columns={[{ title: "Service" }, { title: "Self", ...share }, { title: "Self, absolute", ...sum }, { title: "Total", ...share }, { title: "Total, absolute", ...sum }, { title: "Method", name: true }]} />
          </section>
        ) : (
          <p class="empty">No service ran such a method in that time.</p>
        )}
      </main>
    </>
  );
}
