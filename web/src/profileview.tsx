// SPDX-License-Identifier: Apache-2.0
// The view of a profile: the flame graph with the ranked methods, a method, a comparison.
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Choice, choiceText, countOf, noChoice, unknownRequest } from "./choice";
import { Compare, CompareLegend, Difference } from "./compare";
import { kinds, Metric, PageJson } from "./data";
import { Flame, flameHeight } from "./flame";
import { duration, percent, plural, weightLong } from "./format";
import { State } from "./link";
import { colour, kindTitles } from "./palette";
import { Ruler } from "./ruler";
import { collapsed, csv, download, svg } from "./save";
import { MethodTable } from "./table";
import { ThreadPicker } from "./threads";
import { invert, matched, rank, sandwich, search, select, unattributed, withCalls } from "./tree";
import { Header } from "./header";

interface ProfileProps {
  page: PageJson;
  metric: Metric;
  others: Metric | null; // where `metric` is limited to chosen requests: the same of the others
  choice: Choice | null; // of requests
  state: State;
  change: (part: Partial<State>) => void;
  dark: boolean;
  searchBox: preact.RefObject<HTMLInputElement | null>;
  onHelp: () => void;
  help: preact.ComponentChild;
}

export function Profile({
  page,
  metric: all,
  others: allOthers,
  choice,
  state,
  change,
  dark,
  searchBox,
  onHelp,
  help,
}: ProfileProps) {
  const withAside = state.more.id === "1";
  const metric = withAside ? all : (all.plain ?? all);
  const { labels } = page;
  const threads = useMemo(
    () => (state.threads.length ? new Set(state.threads) : null),
    [state.threads.join()],
  );
  const window =
    !metric.untimed && state.window && state.window[1] <= metric.cells.buckets
      ? state.window
      : null;
  const tree = useMemo(
    () => select(metric.shape, metric.cells, { threads, window }),
    [metric, threads, window?.join()],
  );
  const shownTree = useMemo(
    () => (state.inverted ? invert(tree, labels.length) : tree),
    [tree, state.inverted],
  );
  const rows = useMemo(() => withCalls(rank(tree, labels.length), metric.calls), [tree]);
  const match = useMemo(() => search(labels, state.search), [labels, state.search]);
  const shownRows = useMemo(
    () => (match ? rows.filter((r) => match[r.label]) : rows),
    [rows, match],
  );
  const selected = useMemo(() => labels.indexOf(state.selected), [state.selected]);
  const whole = tree.total[0];
  const lost = useMemo(() => unattributed(tree, labels), [tree, labels]);
  const used = useMemo(() => {
    const seen = new Set<number>();
    for (let i = 1; i < tree.n; i++) if (tree.total[i]) seen.add(tree.kind[i]);
    return [...seen].sort();
  }, [tree]);
  const onSelect = (label: number) => change({ selected: label < 0 ? "" : labels[label] });
  const onOpen = (label: number) => change({ view: "method", selected: labels[label] });
  const name = page.file.replace(/\.[^.]*$/, "");
  const amongRequests = allOthers !== null && state.more.rc === "1";
  const otherTree = useMemo(() => {
    if (!allOthers || !amongRequests) return null;
    const m = withAside ? allOthers : (allOthers.plain ?? allOthers);
    return select(m.shape, m.cells, { threads, window: null });
  }, [allOthers, amongRequests, withAside, threads]);
  const comparable = (page.site?.files ?? [])
    .map((_, i) => i)
    .filter((i) => i !== page.site!.at && !page.site!.dumps.includes(i));
  const other =
    page.site && !allOthers && comparable.includes(state.compare)
      ? page.site.files[state.compare]
      : undefined;
  // The other recording that lacks this metric, so that nothing can be compared.
  const [lacking, setLacking] = useState("");
  const comparing = other !== undefined && lacking !== `${metric.name} of ${other}`;
  const saves: [string, () => void][] = [
    [
      "Flame graph, SVG",
      () =>
        download(
          `${name}.svg`,
          "image/svg+xml",
          svg(shownTree, labels, page.file, state.upwards, dark),
        ),
    ],
    ["Flame graph, PNG", () => png(`${name}.png`)],
    [
      "Table, CSV",
      // Only its name can say that rows or samples are missing.
      () =>
        download(
          `${name}${match || page.part ? "-part" : ""}.csv`,
          "text/csv",
          csv(shownRows, labels),
        ),
    ],
    [
      "Stacks, collapsed",
      () => download(`${name}.collapsed`, "text/plain", collapsed(tree, labels)),
    ],
  ];
  return (
    <>
      <Header page={page} metric={metric} state={state} change={change} dark={dark} onHelp={onHelp}>
        <span>
          <b>{weightLong(metric, whole)}</b>
        </span>
        {page.duration_ns > 0 && <span>in {duration(page.duration_ns)}</span>}
        {metric.note && <span title={metric.note}>{metric.noteShort}</span>}
        {lost > whole / 20000 && (
          <span class="warn" title="Samples whose stack could not be walked to a method">
            {percent(lost, whole)} without a method
          </span>
        )}
        {metric.threadsMerged && (
          <span title="There are too many stacks of different threads for one page; convert --thread PATTERN makes a page of selected threads">
            all threads together
          </span>
        )}
        {metric.pruned > 0 && (
          <span title="The smallest stacks are added to their callers">
            {plural(metric.pruned, "tiny stack")} merged
          </span>
        )}
      </Header>
      {unknownRequest(page.requests, state.more) && (
        <p class="note choice">
          <span>
            No request has this name: {state.more.rn}. The samples are those of{" "}
            {choice ? "all names" : "the whole recording"}.
          </span>
          <button onClick={() => change({ more: { ...state.more, rn: "" } })}>All names</button>
        </p>
      )}
      {choice && (
        <ChoiceNote
          page={page}
          metric={metric}
          choice={choice}
          follows={allOthers !== null}
          empty={!whole ? "the chosen" : otherTree && !otherTree.total[0] ? "the other" : ""}
          state={state}
          change={change}
        />
      )}
      {!metric.untimed && metric.cells.buckets > 1 && (
        <Ruler
          metric={metric}
          threads={threads}
          window={window}
          onWindow={(w) => change({ window: w, zoom: "" })}
        />
      )}
      <div class="tools" role="toolbar" aria-label="View">
        {state.view === "method" && selected >= 0 ? (
          <button onClick={() => change({ view: "profile" })}>← Flame graph</button>
        ) : (
          <>
            <div class="seg" role="group" aria-label="Order">
              <button
                aria-pressed={!state.inverted}
                onClick={() => change({ inverted: false, zoom: "" })}
                title="Callers first, what they call next to them"
              >
                Top down
              </button>
              <button
                aria-pressed={state.inverted}
                onClick={() => change({ inverted: true, zoom: "" })}
                title="The running methods first, their callers next to them (i)"
              >
                Inverted
              </button>
            </div>
            <div class="seg" role="group" aria-label="Direction">
              <button
                aria-pressed={!state.upwards}
                onClick={() => change({ upwards: false })}
                title="Grows downwards (f)"
              >
                Icicle
              </button>
              <button
                aria-pressed={state.upwards}
                onClick={() => change({ upwards: true })}
                title="Grows upwards (f)"
              >
                Flame
              </button>
            </div>
          </>
        )}
        {!metric.threadsMerged && (
          <ThreadPicker
            metric={metric}
            names={page.threads}
            chosen={threads}
            onChoose={(s) => change({ threads: s ? [...s] : [], zoom: "" })}
          />
        )}
        {page.site && comparable.length > 0 && !allOthers && (
          <select
            aria-label="Compare with"
            value={state.compare}
            onChange={(e) => change({ compare: Number(e.currentTarget.value) })}
          >
            <option value={-1}>{other !== undefined ? "No comparison" : "Compare with …"}</option>
            {comparable.map((i) => (
              <option value={i}>
                {state.compare === i ? "Compared with " : ""}
                {page.site!.files[i].replace(/^.*\//, "")}
              </option>
            ))}
          </select>
        )}
        {all.aside > 0 && (
          <button
            class="toggle switch"
            aria-pressed={withAside}
            onClick={() => change({ more: { ...state.more, id: withAside ? "" : "1" }, zoom: "" })}
            title={
              all.name === "wall"
                ? "Samples of threads that wait for something to do: idle pool threads, timers, threads of the VM"
                : "CPU time of threads that run no Java code, by the kernel's count: compilers, collectors, the VM"
            }
          >
            Include {weightLong(all, all.aside)}{" "}
            {all.name === "wall" ? "idle" : "of the VM's threads"}
          </button>
        )}
        <div class="search">
          <input
            ref={searchBox}
            type="search"
            placeholder="Search methods ( / )"
            title="Enter or n goes to the next match, with Shift to the one before"
            aria-label="Search methods"
            value={state.search}
            onInput={(e) => change({ search: e.currentTarget.value })}
          />
          <output aria-live="polite">
            {match
              ? `${percent(matched(tree, match), whole)} in ${plural(shownRows.length, "method")}`
              : ""}
          </output>
        </div>
        <div class="grow" />
        {amongRequests ? (
          <CompareLegend than="the other requests" />
        ) : comparing ? (
          <CompareLegend than={other.replace(/^.*\//, "")} />
        ) : (
          <div class="legend">
            {used.map((k) => (
              <span key={k}>
                <i style={{ background: colour(k, 3, dark) }} /> {kindTitles[kinds[k]]}
              </span>
            ))}
          </div>
        )}
        <details class="save">
          <summary title="Save what is shown">Save ▾</summary>
          <div class="pop">
            {saves.map(([title, save]) => (
              <button
                key={title}
                onClick={(e) => {
                  save();
                  e.currentTarget.closest("details")!.open = false;
                }}
              >
                {title}
              </button>
            ))}
          </div>
        </details>
      </div>
      {other !== undefined && !comparing && (
        <p class="note">
          {other.replace(/^.*\//, "")} holds no {metric.title.toLowerCase()}, so nothing is
          compared.
        </p>
      )}
      {otherTree && tree.total[0] > 0 && otherTree.total[0] > 0 ? (
        <Difference
          now={{ labels, tree }}
          base={{ labels, tree: otherTree }}
          than="the other requests"
          metric={metric}
          text={state.search}
          match={match}
          selected={selected}
          onSelect={onSelect}
        />
      ) : comparing ? (
        <Compare
          page={page}
          metric={metric}
          aside={state.more.id === "1"}
          at={state.compare}
          text={state.search}
          match={match}
          selected={selected}
          onSelect={onSelect}
          onLacking={() => setLacking(`${metric.name} of ${other}`)}
        />
      ) : state.view === "method" && selected >= 0 ? (
        <Method
          page={page}
          metric={metric}
          tree={tree}
          label={selected}
          whole={whole}
          match={match}
          onSelect={onSelect}
          onOpen={onOpen}
        />
      ) : (
        <main class="split">
          <section aria-label="Flame graph" style={{ maxHeight: flameHeight(shownTree) }}>
            <Flame
              tree={shownTree}
              labels={labels}
              metric={metric}
              whole={whole}
              upwards={state.upwards}
              match={match}
              selected={selected}
              title={state.inverted ? "Inverted flame graph" : "Flame graph"}
              onSelect={onSelect}
              onOpen={onOpen}
              zoomed={state.zoom}
              onZoom={(zoom) => change({ zoom })}
            />
          </section>
          <Splitter />
          <section aria-label="Ranked methods">
            <MethodTable
              rows={shownRows}
              labels={labels}
              metric={metric}
              whole={whole}
              selected={selected}
              onSelect={onSelect}
              onOpen={onOpen}
            />
          </section>
        </main>
      )}
      {help}
    </>
  );
}

/** Which requests the profile is limited to, and how to compare or leave them. */
function ChoiceNote({
  page,
  metric,
  choice,
  follows,
  empty,
  state,
  change,
}: {
  page: PageJson;
  metric: Metric;
  choice: Choice;
  follows: boolean;
  empty: string; // which requests have no sample
  state: State;
  change: (part: Partial<State>) => void;
}) {
  const keep = (part: Record<string, string>) =>
    change({ more: { ...state.more, ...part }, zoom: "" });
  const compared = state.more.rc === "1";
  const requests = page.requests!;
  const namesOnly = page.request_sets?.names_only && choice.box;
  const shown = namesOnly ? { ...choice, box: null } : choice;
  const title = metric.title.toLowerCase();
  return (
    <p class="note choice">
      <span>
        {follows ? (
          <>
            Only while a thread worked for one of{" "}
            {plural(countOf(requests, shown), "chosen request")}
            {shown.name >= 0 || shown.box ? `: ${choiceText(requests, shown)}` : ""}.
            {namesOnly &&
              " There are too many requests to tell them apart by time and latency; report --slowest does."}
            {empty && ` No sample of ${title} was taken in ${empty} requests.`}
          </>
        ) : (
          <>
            The chosen requests ({choiceText(requests, choice)}) do not limit this view: its figures
            are not known by request.
          </>
        )}
      </span>
      {follows && (
        <button
          class="toggle"
          aria-pressed={compared}
          onClick={() => keep({ rc: compared ? "" : "1" })}
          title="How the shares differ from those in the requests that are not chosen"
        >
          Compare with the others
        </button>
      )}
      <button onClick={() => change({ view: "requests" })}>To the requests</button>
      <button onClick={() => keep(noChoice)}>Show all samples</button>
    </p>
  );
}

function png(name: string) {
  const c = document.querySelector<HTMLCanvasElement>(".flame canvas");
  c?.toBlob((b) => b && download(name, "image/png", b));
}

/** A method with all its callers above it and all its callees below. */
function Method(p: {
  page: PageJson;
  metric: Metric;
  tree: ReturnType<typeof select>;
  label: number;
  whole: number;
  match: Uint8Array | null;
  onSelect: (label: number) => void;
  onOpen: (label: number) => void;
}) {
  const { labels } = p.page;
  const s = useMemo(() => sandwich(p.tree, p.label, labels.length), [p.tree, p.label]);
  const common = {
    labels,
    metric: p.metric,
    whole: p.whole,
    match: p.match,
    selected: p.label,
    onSelect: p.onSelect,
    onOpen: p.onOpen,
  };
  return (
    <main class="sandwich">
      <h2>
        <span class="cut">{labels[p.label]}</span>
        <small>
          total {percent(s.weight, p.whole)} · {weightLong(p.metric, s.weight)} — self{" "}
          {percent(s.self, p.whole)} · {weightLong(p.metric, s.self)}
        </small>
      </h2>
      <section aria-label="Callers">
        <h3>Called by</h3>
        <Flame {...common} tree={s.callers} upwards title="Callers" />
      </section>
      <section aria-label="Callees">
        <h3>Calls</h3>
        <Flame {...common} tree={s.callees} upwards={false} title="Callees" />
      </section>
    </main>
  );
}

/** The splitter between flame graph and table. */
function Splitter() {
  const [share, setShare] = useState(58);
  useEffect(() => document.documentElement.style.setProperty("--share", `${share}%`), [share]);
  const set = (v: number) => setShare(Math.max(15, Math.min(85, v)));
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label="Height of the flame graph"
      aria-valuenow={Math.round(share)}
      aria-valuemin={15}
      aria-valuemax={85}
      onPointerDown={(e) => e.currentTarget.setPointerCapture(e.pointerId)}
      onPointerMove={(e) => {
        if (!e.currentTarget.hasPointerCapture(e.pointerId)) return;
        const r = e.currentTarget.parentElement!.getBoundingClientRect();
        set(((e.clientY - r.top) / r.height) * 100);
      }}
      onKeyDown={(e) => {
        if (e.key === "ArrowUp") set(share - 4);
        else if (e.key === "ArrowDown") set(share + 4);
        else return;
        e.preventDefault();
      }}
    />
  );
}
