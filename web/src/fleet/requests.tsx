// SPDX-License-Identifier: Apache-2.0
// Requests of the whole fleet: how many, how long, and when the slow ones came.
import { useEffect, useMemo, useState } from "preact/hooks";
import { inWords } from "../causes";
import { count, duration, percent, percentile, percentileText } from "../format";
import type { Box, Heat } from "../choice";
import { HeatMap } from "../heat";
import { SortableTable } from "../sortable";
import { useDark } from "../theme";
import { question, RequestRow, SlowRow, useAnswer } from "./ask";
import { Nothing, ViewProps, Waiting } from "./parts";
import { choice, seconds, State } from "./state";

const COLUMNS = 48; // at most
const OF_TEN = 12; // rows for each factor of ten
const ROWS = 9 * OF_TEN; // from 1 us on

interface Answers {
  requests: RequestRow[];
  slowest: SlowRow[];
}

const rowOf = (ns: number) =>
  Math.max(
    0,
    Math.min(ROWS - 1, Math.floor(Math.log10(Math.max(ns, 1000) / 1000) * OF_TEN + 1e-9)),
  );

/**
 * The older the times, the more coarsely a store keeps them: each column is a multiple of that
 * resolution, so that no request is in two.
 */
const resolutionOf = (age: number) => (age < 47 * 3600 ? 10 : age < 29 * 86400 ? 300 : 3600);

/** Asks for one column after the other, so that the picture fills while the store is read. */
function useHeat(
  state: State,
  from: number,
  to: number,
): Heat & { requests: number; done: boolean } {
  const unit = resolutionOf(Date.now() / 1000 - from);
  const first = Math.floor(from / unit) * unit;
  const step = Math.max(1, Math.ceil((to - first) / unit / COLUMNS)) * unit;
  const columns = Math.max(1, Math.ceil((to - first) / step));
  const empty = {
    heat: [[]],
    columns,
    rows: ROWS,
    rows_of_ten: OF_TEN,
    end_ns: columns * step * 1e9,
    start_s: first,
    requests: 0,
    done: false,
  };
  const [heat, set] = useState(empty as Heat & { requests: number; done: boolean });
  useEffect(() => {
    const stop = new AbortController();
    const list: number[] = [];
    let sum = 0;
    set(empty);
    (async () => {
      for (let c = 0; c < columns; c++) {
        const at = (k: number) => String(first + k * step);
        const { requests } = await question<Answers>(
          "requests",
          { ...choice(state), from: at(c), to: at(c + 1) },
          stop.signal,
        );
        for (const r of requests) {
          if (state.request && r.request !== state.request) continue;
          for (const [ns, n] of r.histogram) list.push(c, rowOf(ns), n);
          sum += r.count;
        }
        if (requests.length) set({ ...empty, heat: [[...list]], requests: sum });
      }
      set({ ...empty, heat: [list], requests: sum, done: true });
    })().catch(() => {}); // the table says what is wrong
    return () => stop.abort();
  }, [state.service, state.version, state.host, state.label, state.request, from, to]);
  return heat;
}

/** What most of the latency went into. */
const most = (r: RequestRow) =>
  r.causes.length ? `${inWords(r.causes[0].cause)} ${percent(r.causes[0].share, 1)}` : "";

/** What the slow requests have more of than the typical ones. */
const whySlow = (r: RequestRow) =>
  r.why_slow ? `${inWords(r.why_slow.cause)} +${duration(r.why_slow.more_ns)}` : "";

/** Those slow requests whose recordings can be fetched. */
function Slowest({ rows }: { rows: SlowRow[] }) {
  if (!rows.length) return null;
  return (
    <section aria-label="Slow requests whose recordings are kept">
      <p class="dim">
        Recordings of the slowest requests. <code>jvmscope requests show ID FILE</code> shows what
        one of them did.
      </p>
      <ol>
        {rows.map((r) => (
          <li key={`${r.at} ${r.instance} ${r.id}`}>
            {duration(r.duration_ns)}, {r.request}, {`${r.service} ${r.version}`.trim()},{" "}
            {new Date(r.at * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC, ID {r.id}:{" "}
            {r.recording ? (
              <a href={`v1/recordings/${r.recording}`} download={`${r.recording}.jfr`}>
                recording
              </a>
            ) : (
              "its recording has been removed"
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

export function RequestsView({ state, change, known }: ViewProps) {
  const { data, error, nothing } = useAnswer<Answers>("requests", {
    ...choice(state),
    request: undefined,
  });
  const dark = useDark();
  const [box, setBox] = useState<Box | null>(null);
  const [from, to] = useMemo(() => {
    const now = Math.ceil(Date.now() / 10_000) * 10;
    const mine = known.filter((s) => s.to && (!state.service || s.service === state.service));
    const first = mine.length ? Math.min(...mine.map((s) => s.from!)) : now;
    return [
      state.range ? Math.max(first, now - seconds(state.range)) : first,
      mine.length ? Math.min(now, Math.max(...mine.map((s) => s.to!)) + 10) : now,
    ];
  }, [known, state.service, state.range]);
  const heat = useHeat(state, from, to);
  if (!data) return <Waiting error={error} />;
  if (!data.requests.length)
    return (
      <main>
        <Nothing
          why={nothing && `${nothing}. A VM that records with --requests sends them`}
          otherwise=""
        />
      </main>
    );
  const all = data.requests.reduce((n, r) => n + r.with_causes + r.without_causes, 0);
  const without = data.requests.reduce((n, r) => n + r.without_causes, 0);
  const shown = data.requests
    .filter((r) => !state.request || r.request === state.request)
    .reduce((n, r) => n + r.count, 0);
  const chosen = data.requests.findIndex(
    (r) => r.request === state.request && (!state.service || r.service === state.service),
  );
  const time = { numeric: true, format: duration };
  const rank = { numeric: true, format: percentileText };
  return (
    <main class="columns stay" aria-busy={!heat.done}>
      <p class="dim">
        VMs with host recording send only the requests whose details were kept in their ring. At
        high rates, these are not all.
      </p>
      {without > 0 && (
        <p class="note lost">
          The causes are estimated from the details of {count(all - without)} of {count(all)}{" "}
          requests; those of the others were not kept, or were kept only because the request was
          slow.
        </p>
      )}
      {heat.done && heat.requests > shown && (
        <p class="note lost">
          This store keeps times less precisely than the width of a column, so a request can be in
          more than one.
        </p>
      )}
      <HeatMap json={heat} only={-1} box={box} dark={dark} onBox={setBox} />
      <SortableTable
        cards
        caption="Requests. Enter chooses one."
        by={2}
        selected={new Set(chosen < 0 ? [] : [chosen])}
        onSelect={(s) => {
          const row = data.requests[[...s].find((k) => k !== chosen) ?? -1];
          change({ request: row?.request ?? "" });
        }}
        rows={data.requests.map((r, key) => ({
          key,
          cells: [
            r.service,
            r.request,
            r.count,
            r.errors,
            r.mean_ns,
            percentile(r.p50_ns, "p50_ns", r.upper_bounds),
            percentile(r.p99_ns, "p99_ns", r.upper_bounds),
            percentile(r.p999_ns, "p999_ns", r.upper_bounds),
            r.max_ns,
            most(r),
            whySlow(r),
          ],
        }))}
        columns={[
          { title: "Service", minor: true },
          { title: "Request", name: true },
          { title: "Count", numeric: true, format: count },
          { title: "Errors", numeric: true, format: count },
          { title: "Mean", ...time },
          { title: "p50", ...rank, minor: true },
          { title: "p99", ...rank },
          { title: "p99.9", ...rank, minor: true },
          { title: "Max", ...time },
          { title: "Largest cause", words: true },
          { title: "Why slow", words: true },
        ]}
      />
      <Slowest rows={data.slowest.filter((r) => !state.request || r.request === state.request)} />
    </main>
  );
}
