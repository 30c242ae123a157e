// SPDX-License-Identifier: Apache-2.0
// Requests: when they arrived and how long they took, what the slow ones waited for, and the
// details of one of them.
import { useMemo } from "preact/hooks";
import { causeColour, inWords } from "./causes";
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
import { count, duration, moment, percent, percentile, percentileText, plural } from "./format";
import { HeatMap } from "./heat";
import type { Kept, State } from "./link";
import type { OneRequest, RequestsJson } from "./requestdata";
import { download, table } from "./save";
import { Group } from "./slowgroup";
import { SortableTable } from "./sortable";
import { useDark } from "./theme";
import type { View } from "./view";
import { Waterfall } from "./waterfall";

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
          {json.cpu_note && <p class="note">CPU: {json.cpu_note}</p>}
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
