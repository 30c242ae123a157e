// SPDX-License-Identifier: Apache-2.0
// Requests: when they arrived and how long they took, what the slow ones waited for, and the
// details of one of them.
import { useEffect, useMemo, useRef } from "preact/hooks";
import {
  axis,
  canFollow,
  type Choice,
  choiceOf,
  chosenRequests,
  countOf,
  noChoice,
} from "./choice";
import type { PageJson } from "./data";
import {
  count,
  duration,
  moment,
  percent,
  percentile,
  percentileText,
  plural,
  sentence,
} from "./format";
import { HeatMap } from "./heat";
import type { Kept, State } from "./link";
import { download, table } from "./save";
import { SortableTable } from "./sortable";
import { useDark } from "./theme";
import type { View } from "./view";

export interface RequestName {
  name: string;
  kind: string;
  count: number;
  kept: number;
  exact: boolean;
  rate: number;
  errors: number;
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
  p999_ns: number;
  upper_bounds: string[]; // percentiles that are only upper bounds
  uncertain_percentiles: string[]; // percentiles that rest on few requests
  max_ns: number;
  total_ns: number;
  cpu_ns: number;
  cpu_error_ns: number;
  most: string;
  causes: Record<string, number>;
  causes_error: Record<string, number>;
  uncertain: string[];
}

export interface GroupCause {
  cause: string;
  slow_ns: number;
  typical_ns: number;
  share: number;
  slow_error_ns: number;
  typical_error_ns: number;
  share_error: number; // errors are half of 95 % intervals
  uncertain: boolean;
  hidden: boolean; // uncertain because of waits that were left out
  sentence: string;
  thread: string | null;
  frames: string[];
  waiting_frames: string[];
}

export interface RequestGroup {
  name: string;
  limit_ns: number;
  slow: { count: number; mean_ns: number };
  typical: { count: number; mean_ns: number };
  causes: GroupCause[];
  sentence: string;
  hidden_note: string | null;
}

export interface OneRequest {
  id: number;
  name: number;
  at: number;
  ns: number;
  status: number;
  exception: string | null;
  parts: number[]; // start, length, cause, thread, object; -1: none
  short_ns: number; // parts that are too short to be among these
  works: number[]; // start, length, time in the queue, thread, its id
  calls: { kind: string; name: string; at: number; ns: number }[];
  works_left?: number; // how many of these the page lacks
  calls_left?: number;
}

declare module "./data" {
  interface PageJson {
    requests?: RequestsJson;
  }
}

export interface RequestsJson {
  cpu_note: string | null; // what the cause cpu includes besides CPU time
  columns: number;
  rows: number;
  rows_of_ten: number;
  end_ns: number;
  timeline_ns: number; // from the start of the timeline to the time 0 of requests
  total: number;
  causes: string[];
  names: RequestName[];
  groups: RequestGroup[];
  heat: number[][]; // per name: column, row, count
  requests: OneRequest[]; // some of each name
  texts: string[];
}

const hues: Record<string, [number, number]> = {
  cpu: [132, 40],
  runnable: [60, 60],
  throttled: [8, 70],
  lock: [350, 62],
  park: [320, 48],
  queue: [28, 80],
  pool: [14, 62],
  io: [208, 58],
  fault: [190, 40],
  sleep: [262, 36],
  gc: [48, 88],
  safepoint: [40, 50],
  "class-load": [172, 42],
  unknown: [220, 6],
};
/** Causes in the words of the sentences about them. */
const words: Record<string, string> = {
  cpu: "CPU",
  runnable: "waiting for a processor",
  throttled: "container out of CPU",
  lock: "lock",
  park: "parked",
  queue: "queue of an executor",
  pool: "connection pool",
  io: "I/O",
  fault: "page faults",
  gc: "garbage collection",
  safepoint: "stopped by the VM",
  "class-load": "class loading",
};
const inWords = (cause: string) => words[cause] ?? cause;

const causeColour = (cause: string, dark: boolean) => {
  const [h, s] = hues[cause] ?? hues.unknown;
  return `hsl(${h} ${s}% ${dark ? 42 : 62}%)`;
};

const nothingChosen: Choice = { name: -1, box: null };

export function RequestsView({
  page,
  kept,
  keep,
  go,
  name,
}: Kept & { page: PageJson; name: string; go: (to: Partial<State>) => void }) {
  const dark = useDark();
  const json = page.requests!;
  const choice = useMemo(() => choiceOf(json, kept) ?? nothingChosen, [json, kept.rn, kept.rb]);
  const { name: chosenName, box } = choice;
  const chosen = json.requests.find((r) => String(r.id) === kept.ri);
  const group = json.groups.find(
    (g) => g.name === (chosenName >= 0 ? json.names[chosenName].name : json.groups[0]?.name),
  );
  const all = useMemo(() => sumOfNames(json, -1), [json]);
  const picked = useMemo(
    () => (box ? { count: countOf(json, choice), ns: null } : sumOfNames(json, chosenName)),
    [json, choice],
  );
  const inBox = useMemo(() => chosenRequests(json, choice), [json, choice]);
  const names = useMemo(
    () =>
      json.names.map((n, key) => ({
        key,
        cells: [
          n.name,
          n.count,
          n.rate,
          n.errors,
          percentile(n.p50_ns, "p50_ns", n.upper_bounds, n.uncertain_percentiles),
          percentile(n.p90_ns, "p90_ns", n.upper_bounds, n.uncertain_percentiles),
          percentile(n.p99_ns, "p99_ns", n.upper_bounds, n.uncertain_percentiles),
          percentile(n.p999_ns, "p999_ns", n.upper_bounds, n.uncertain_percentiles),
          n.max_ns,
          n.cpu_ns,
          n.uncertain.includes(n.most) ? `${inWords(n.most)} (uncertain)` : inWords(n.most),
        ],
      })),
    [json],
  );
  const list = useMemo(
    () =>
      inBox.map((r) => ({
        key: r.id,
        cells: [r.ns, r.at, r.status || "", json.names[r.name].name, largest(json, r)],
      })),
    [inBox],
  );
  const time = { numeric: true, format: duration };
  const rank = { numeric: true, format: percentileText };
  return (
    <main class="requests">
      <div class="tools" role="toolbar" aria-label="Requests">
        <span>
          <b>{plural(all.count, "request")}</b>
          {json.names.some((n) => !n.exact) && <> whose details were kept, of more</>}
          {chosenName >= 0 && <> · shown: {json.names[chosenName].name}</>}
          {box && (
            <>
              {" "}
              · chosen: {count(picked.count)} from {axis(json, box)}
            </>
          )}
        </span>
        {(chosenName >= 0 || box) && <button onClick={() => keep(noChoice)}>Show all</button>}
        <div class="grow" />
        <button
          title="The table of names, as CSV"
          onClick={() =>
            download(
              `${name}-requests.csv`,
              "text/csv",
              table(
                [
                  "name",
                  "count",
                  "errors",
                  "p50_ns",
                  "p90_ns",
                  "p99_ns",
                  "p999_ns",
                  "max_ns",
                  "cpu_ns",
                  "cpu_error_ns",
                  "most",
                ],
                json.names.map((n) => [
                  n.name,
                  n.count,
                  n.errors,
                  n.p50_ns,
                  n.p90_ns,
                  n.p99_ns,
                  n.p999_ns,
                  n.max_ns,
                  n.cpu_ns,
                  n.cpu_error_ns,
                  n.most,
                ]),
              ),
            )
          }
        >
          Save CSV
        </button>
      </div>
      <div class="scroll">
        <HeatMap
          json={json}
          only={chosenName}
          box={box}
          dark={dark}
          onBox={(b) => keep({ rb: b ? [b.c0, b.c1, b.r0, b.r1].join(".") : "", ri: "" })}
        />
        {(chosenName >= 0 || box) && <Follow page={page} go={go} keep={keep} />}
        <section aria-label="Names">
          <h2>Names {box && <small>all requests, not only the chosen ones</small>}</h2>
          {json.cpu_note && <p class="note">cpu: {json.cpu_note}</p>}
          <SortableTable
            caption="Names of requests"
            natural
            limit={200}
            rows={names}
            selected={new Set(chosenName >= 0 ? [chosenName] : [])}
            onSelect={(s) =>
              keep({
                rn: json.names[[...s].find((k) => k !== chosenName) ?? -1]?.name ?? "",
                ri: "",
              })
            }
            columns={[
              { title: "Name", name: true },
              { title: "Count", numeric: true, format: count },
              { title: "per s", numeric: true, minor: true, format: (v) => v.toFixed(1) },
              { title: "Errors", numeric: true, minor: true, format: count },
              { title: "p50", ...rank },
              { title: "p90", ...rank, minor: true },
              { title: "p99", ...rank },
              { title: "p99.9", ...rank, minor: true },
              { title: "Max", ...time, minor: true },
              { title: "CPU", ...time, minor: true },
              { title: "Most", minor: true },
            ]}
          />
        </section>
        {group && <Group group={group} dark={dark} ofAll={!!box} />}
        <section aria-label="Chosen requests">
          <h2>
            {box || chosenName >= 0 ? "Chosen requests" : "Requests"}{" "}
            <small>
              {plural(inBox.length, "request")} of which the details are in this page;{" "}
              {count(picked.count)} in the recording
            </small>
          </h2>
          <Causes json={json} chosen={inBox} chosenSum={picked} allSum={all} dark={dark} />
          <SortableTable
            caption="Requests"
            by={0}
            limit={100}
            rows={list}
            selected={new Set(chosen ? [chosen.id] : [])}
            onSelect={(s) => keep({ ri: String([...s].find((k) => k !== chosen?.id) ?? "") })}
            columns={[
              { title: "Latency", ...time },
              { title: "At", numeric: true, format: moment, minor: true },
              { title: "Status", minor: true },
              { title: "Name", name: true },
              { title: "Most", name: true },
            ]}
          />
        </section>
        {chosen && <Waterfall json={json} request={chosen} dark={dark} />}
      </div>
    </main>
  );
}

/** To the other views, which follow the choice. */
function Follow({
  page,
  go,
  keep,
}: {
  page: PageJson;
  go: (to: Partial<State>) => void;
  keep: Kept["keep"];
}) {
  const metric =
    page.metrics.find((m) => m.name === page.metric && canFollow(page, m)) ??
    page.metrics.find((m) => canFollow(page, m));
  const profile = (compared: boolean) => {
    keep({ rc: compared ? "1" : "" });
    go({ view: "profile", metric: metric!.name, zoom: "", window: null });
  };
  return (
    <div class="follow" role="group" aria-label="Of these requests">
      {metric && (
        <button onClick={() => profile(false)} title="Samples in the chosen requests">
          Their flame graph
        </button>
      )}
      {metric && (
        <button
          onClick={() => profile(true)}
          title="Samples in the chosen requests, compared with those in the others"
        >
          Compared with the others
        </button>
      )}
      {page.timeline && (
        <button
          onClick={() => go({ view: "threads" })}
          title="Which threads worked for the chosen requests, and when"
        >
          Their threads
        </button>
      )}
    </div>
  );
}

/** The cause that took the largest part of a request. */
function largest(json: RequestsJson, r: OneRequest): string {
  const sums = sumsOf(json, [r]);
  const best = sums.reduce((a, x, i) => (x > sums[a] ? i : a), 0);
  return r.ns ? `${percent(sums[best], r.ns)} ${inWords(json.causes[best])}` : "";
}

function sumsOf(json: RequestsJson, list: OneRequest[]): number[] {
  const sums = json.causes.map(() => 0);
  for (const r of list)
    for (let i = 0; i < r.parts.length; i += 6) sums[r.parts[i + 2]] += r.parts[i + 1];
  return sums;
}

/** Requests of the recording; null: the page does not have their time. */
interface Sum {
  count: number;
  ns: number | null;
}

/** The requests of a name; -1: of all names. */
function sumOfNames(json: RequestsJson, name: number): Sum {
  const names = name < 0 ? json.names : [json.names[name]];
  return {
    count: names.reduce((s, n) => s + n.count, 0),
    ns: names.reduce((s, n) => s + n.total_ns, 0),
  };
}

const estimate = (ns: number, error: number) =>
  error > 0 ? `${duration(ns)} ±\u00a0${duration(error)}` : duration(ns);

function Group({
  group,
  dark,
  ofAll,
}: {
  group: RequestGroup;
  dark: boolean;
  ofAll: boolean; // although some requests are chosen
}) {
  const shown = group.causes.filter(
    (c) => Math.abs(c.share) >= 0.002 || c.slow_ns > 0.002 * group.slow.mean_ns,
  );
  const most = Math.max(group.slow.mean_ns, 1);
  return (
    <section aria-label="Why the slow ones are slow" class="why">
      <h2>
        Why the slow ones are slow: {group.name}{" "}
        {ofAll && <small>all requests of this name, not only the chosen ones</small>}
      </h2>
      <p>{sentence(group.sentence)}.</p>
      <table class="wide-text">
        <caption class="sr">Causes of a slow and of a typical request</caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              Slow
            </th>
            <th scope="col" class="num">
              Typical
            </th>
            <th scope="col" class="num">
              Share
            </th>
            <th scope="col">Cause</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((c, i) => (
            <tr key={i}>
              <td class="num">{estimate(c.slow_ns, c.slow_error_ns)}</td>
              <td class="num">{estimate(c.typical_ns, c.typical_error_ns)}</td>
              <td class="num">
                {percent(c.share, 1)}
                {c.share_error > 0 && ` ±\u00a0${percent(c.share_error, 1)}`}
              </td>
              <td>
                <span class="gauge wide" aria-hidden="true">
                  <i
                    style={{
                      width: `${(100 * c.slow_ns) / most}%`,
                      background: causeColour(c.cause, dark),
                    }}
                  />
                </span>
                {c.uncertain && (
                  <b
                    title={
                      c.hidden
                        ? "Uncertain: waits that were left out may be part of it"
                        : "Uncertain: too few of the recorded requests had this cause"
                    }
                  >
                    uncertain:{" "}
                  </b>
                )}
                {sentence(c.sentence)}
                {c.share >= 0.1 && (c.waiting_frames.length > 0 || c.thread) && (
                  <details>
                    <summary>Stacks</summary>
                    <Stack
                      title={c.cause === "cpu" ? "Where they ran" : "Where they waited"}
                      frames={c.waiting_frames}
                    />
                    {c.thread && (
                      <Stack title={`What thread ${c.thread} did meanwhile`} frames={c.frames} />
                    )}
                  </details>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {group.hidden_note && <p class="dim">{sentence(group.hidden_note)}.</p>}
    </section>
  );
}

function Stack({ title, frames }: { title: string; frames: string[] }) {
  return frames.length ? (
    <div class="stack">
      <h3>{title}</h3>
      <ol>
        {frames.slice(0, 40).map((f, i) => (
          <li key={i}>{f}</li>
        ))}
      </ol>
    </div>
  ) : null;
}

/**
 * How long the chosen requests took, compared with the others, and what they spent their time on.
 * The averages are of all requests of the recording where their sums are known, and the causes of
 * those whose details are in the page.
 */
function Causes({
  json,
  chosen,
  chosenSum,
  allSum,
  dark,
}: {
  json: RequestsJson;
  chosen: OneRequest[];
  chosenSum: Sum;
  allSum: Sum;
  dark: boolean;
}) {
  const all = json.requests;
  const bar = (list: OneRequest[], label: string, sum: Sum) => {
    const sums = sumsOf(json, list);
    const whole = list.reduce((a, r) => a + r.ns, 0);
    if (!whole) return null;
    const of = `${count(list.length)} of ${plural(sum.count, "request")}`;
    const average =
      list.length >= sum.count || sum.ns === null ? whole / list.length : sum.ns / sum.count;
    return (
      <div class="causes">
        <span class="dim">
          {label}: {duration(average)} on average
          {list.length < sum.count && (sum.ns === null ? ` over ${of}` : `; causes of ${of}`)}
        </span>
        <div
          class="stacked"
          role="img"
          aria-label={`${label}: ${json.causes
            .map((c, i) => [c, sums[i]] as const)
            .filter(([, v]) => v > 0)
            .map(([c, v]) => `${inWords(c)} ${percent(v, whole)}`)
            .join(", ")}`}
        >
          {json.causes.map(
            (c, i) =>
              sums[i] > 0 && (
                <i
                  key={c}
                  title={`${inWords(c)} ${percent(sums[i], whole)}`}
                  style={{ width: `${(100 * sums[i]) / whole}%`, background: causeColour(c, dark) }}
                />
              ),
          )}
        </div>
      </div>
    );
  };
  const sums = sumsOf(json, all);
  const some = chosenSum.count < allSum.count;
  const others = {
    count: allSum.count - chosenSum.count,
    ns: allSum.ns === null || chosenSum.ns === null ? null : allSum.ns - chosenSum.ns,
  };
  return (
    <>
      {all.length < allSum.count && (
        <p class="note">
          The causes are those of the requests whose details are in this page: the slowest of each
          name, and some of the others.
        </p>
      )}
      {bar(chosen, some ? "chosen" : "all", chosenSum)}
      {some &&
        bar(
          all.filter((r) => !chosen.includes(r)),
          "the others",
          others,
        )}
      <p class="legend">
        {json.causes.map(
          (c, i) =>
            sums[i] > 0 && (
              <span key={c}>
                <i style={{ background: causeColour(c, dark) }} />
                {inWords(c)}
              </span>
            ),
        )}
      </p>
    </>
  );
}

function Waterfall({
  json,
  request,
  dark,
}: {
  json: RequestsJson;
  request: OneRequest;
  dark: boolean;
}) {
  const text = (n: number) => (n < 0 ? "" : json.texts[n]);
  const rows: { at: number; ns: number; thread: string; what: string; colour: string }[] = [];
  for (let i = 0; i < request.parts.length; i += 6) {
    const [at, ns, cause, thread, object, method] = request.parts.slice(i, i + 6);
    rows.push({
      at,
      ns,
      thread: text(thread),
      what:
        [inWords(json.causes[cause]), text(object)].filter(Boolean).join(": ") +
        (method < 0 ? "" : ` in ${text(method)}`),
      colour: causeColour(json.causes[cause], dark),
    });
  }
  const works: typeof rows = [];
  for (let i = 0; i < request.works.length && request.works.length > 5; i += 5) {
    const [at, ns, queued, thread] = request.works.slice(i, i + 5);
    works.push({
      at,
      ns,
      thread: text(thread),
      what: queued ? `worked for it, after ${duration(queued)} in the queue` : "worked for it",
      colour: dark ? "#5b6b6b" : "#9fb0ae",
    });
  }
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: "nearest" }), [request.id]);
  const left = [
    request.works_left && plural(request.works_left, "more piece of work", "more pieces of work"),
    request.calls_left && plural(request.calls_left, "more call"),
  ].filter(Boolean);
  const calls = request.calls.map((c) => ({
    at: c.at,
    ns: c.ns,
    thread: "",
    what: `${c.kind}: ${c.name}`,
    colour: causeColour(c.kind === "jdbc" ? "io" : c.kind === "pool" ? "pool" : "io", dark),
  }));
  return (
    <section aria-label="Waterfall" class="waterfall" ref={box}>
      <h2>
        Request {request.id}: {json.names[request.name].name}, {duration(request.ns)}{" "}
        <small>
          at {moment(request.at)}
          {request.status ? `, status ${request.status}` : ""}
          {request.exception ? `, ${request.exception}` : ""}
        </small>
      </h2>
      <table class="wide-text">
        <caption class="sr">Parts of the request in order of time</caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              At
            </th>
            <th scope="col" class="num">
              Time
            </th>
            <th scope="col" class="bars">
              <span class="sr">When</span>
            </th>
            <th scope="col" class="minor">
              Thread
            </th>
            <th scope="col">What</th>
          </tr>
        </thead>
        <tbody>
          {[...rows, ...works, ...calls].map((r, i) => (
            <tr key={i} class={i === rows.length || i === rows.length + works.length ? "next" : ""}>
              <td class="num">{duration(r.at)}</td>
              <td class="num">{duration(r.ns)}</td>
              <td class="bars">
                <i
                  style={{
                    marginLeft: `${Math.min(99, (100 * r.at) / request.ns)}%`,
                    width: `${Math.max(0.6, Math.min(100, (100 * r.ns) / request.ns))}%`,
                    background: r.colour,
                  }}
                />
              </td>
              <td class="minor" title={r.thread}>
                {r.thread}
              </td>
              <td>{r.what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {request.short_ns > 0 && (
        <p class="dim">{duration(request.short_ns)} in parts that are too short to be shown.</p>
      )}
      {left.length > 0 && <p class="dim">Not in this page: {left.join(" and ")}.</p>}
    </section>
  );
}

export const requestsView: View = {
  name: "requests",
  followsRequests: true,
  title: "Requests",
  has: (p) => !!p.requests,
  missing: {
    title: "Requests",
    is: "which requests a server handled, and why the slow ones are slow",
    by: "jvmscope run --requests -o app.jfr -- java ...",
  },
  losses: /^(requests|threads|locks|monitors|io|recording)$/,
  facts: (p) => (
    <span>
      <b>{plural(p.requests!.names.length, "name")}</b>
    </span>
  ),
  show: ({ page, name, kept, go }) => <RequestsView page={page} name={name} go={go} {...kept} />,
  help: (
    <p>
      Each field of the chart is a time and a latency; the more requests, the darker it is. Drag
      over fields, or choose a name, to compare what these requests waited for with the others. The
      flame graphs and the threads then show these requests, until you choose <b>Show all</b>. The{" "}
      <b>typical</b> requests are the middle half of a name, the <b>slow</b> ones its slowest
      hundredth. Choose a request for its waterfall: the parts add up to its latency. A thread
      without a processor for less than 2 ms counts as running.
    </p>
  ),
  keys: [
    ["← ↑ → ↓", "in the chart: move; with Shift extend the selection"],
    ["Enter", "choose the field, or the row"],
    ["↑ ↓", "move between rows"],
    ["Escape", "choose nothing"],
  ],
};
