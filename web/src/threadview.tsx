// SPDX-License-Identifier: Apache-2.0
// One row per thread: its states, the interactions as arrows, the critical path through the rows.
// Pictures are requested by part of time and rows; threadpaint.ts draws them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Asking } from "./asking";
import { Bands } from "./bands";
import { choiceOf, chosenRequests, countOf, choiceText, noChoice, workedFor } from "./choice";
import { allThreads, count, duration, plural } from "./format";
import type { Kept, State } from "./link";
import { MANY } from "./picture";
import type { RequestsJson } from "./requestdata";
import { download, table } from "./save";
import { Details, PathSummary } from "./threaddetails";
import { ThreadFilter } from "./threadfilter";
import {
  AXIS,
  arrowsOf,
  colourOf,
  CROWDED,
  edgeColours,
  edgeTitles,
  gutter,
  Line,
  Options,
  rowHeight,
  rowsHeight,
  Scene,
  stateColours,
  stateTitles,
  ThreadPainter,
  workedColour,
} from "./threadpaint";
import { threadsRows, threadsSvg } from "./threadsave";
import { useSize } from "./size";
import { useDark } from "./theme";
import type { NodeDetails, SegmentDetails, Source, TimelineJson } from "./timeline";
import { noTimeline, timelineFacts, View } from "./view";

interface Props extends Kept {
  json: TimelineJson;
  source: Source;
  file: string;
  requests?: RequestsJson;
  go: (to: Partial<State>) => void;
}

interface Picked {
  node: NodeDetails;
  segment: SegmentDetails | null;
}

const list = (text: string | undefined) => (text ? text.split(",") : []);

export function ThreadView({ json, source, file, requests, kept, keep, go }: Props) {
  const dark = useDark();
  const choice = useMemo(() => choiceOf(requests, kept), [requests, kept.rn, kept.rb]);
  const ofChoice = useMemo(
    () => (requests && choice ? chosenRequests(requests, choice) : []),
    [requests, choice],
  );
  const worksLeft = ofChoice.reduce((n, r) => n + (r.works_left ?? 0), 0);
  const worked = useMemo(
    () => (requests && choice ? workedFor(requests, ofChoice) : null),
    [requests, ofChoice],
  );
  const whole: [number, number] = [0, Math.max(1, json.end_ns)];
  const chosen = useMemo(() => (kept.th ? new Set(list(kept.th).map(Number)) : null), [kept.th]);
  const options: Options = useMemo(
    () => ({
      grouped: kept.tg === "1",
      hidden: new Set(list(kept.te)),
      path: kept.tp !== "0",
      marks: kept.tm !== "0",
    }),
    [kept.tg, kept.te, kept.tp, kept.tm],
  );
  const [picked, setShown] = useState<Picked | null>(null);
  const [filter, setFilter] = useState<{ lock?: string } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const size = useSize(box);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef(new ThreadPainter());
  const drawBands = useRef(() => {});
  const arrowNote = useRef<HTMLParagraphElement>(null);
  const finestNote = useRef<HTMLParagraphElement>(null);
  const drag = useRef<{ x: number; view: [number, number]; moved: boolean } | null>(null);
  // Keys and answers arrive faster than renderings, so each acts on the state that the one before
  // has left.
  const latest = useRef<Picked | null>(null);
  const turn = useRef<Promise<unknown>>(Promise.resolve());
  const { view: latestView, set: setView } = useView(kept, keep, whole, () => redraw());
  const ofVm = useMemo(() => json.threads.filter((t) => t.system).length, [json]);
  const withVm = kept.ty === "1" || !ofVm || ofVm === json.threads.length;
  const lines = useMemo(
    () => layout(json, options.grouped, chosen, withVm),
    [json, options.grouped, chosen, withVm],
  );
  const rowOf = useMemo(() => {
    const rows = new Map<number, number>();
    lines.forEach((l, i) => l.thread >= 0 && rows.set(l.thread, i));
    return rows;
  }, [lines]);
  const usedEdges = json.used_edges.map((e) => json.edges[e]).filter((e) => edgeTitles[e]);
  const usedStates = json.used_kinds.map((k) => json.kinds[k]).filter((k) => stateColours[k]);
  const rowH = rowHeight(lines.length, size[1]);
  const height = lines.length * rowH + AXIS;
  const now = useRef({ draw() {}, want() {}, onPicture() {} }); // of the last rendering
  const asking = useMemo(() => new Asking(source, () => now.current.onPicture()), [source]);
  const zoom = (factor: number, at?: number) => {
    const v = latestView.current;
    const t = at ?? (v[0] + v[1]) / 2;
    setView([t - (t - v[0]) * factor, t + (v[1] - t) * factor]);
  };
  const pan = (share: number) => {
    const [a, b] = latestView.current;
    setView([a + share * (b - a), b + share * (b - a)]);
  };

  const top = useRef(0); // how far the rows are scrolled: to ask the document would lay it out
  const scrollTo = (y: number) => {
    box.current!.scrollTop = y;
    top.current = box.current!.scrollTop;
  };
  const scene = (): Scene => ({
    json,
    lines,
    rowOf,
    picture: asking.shown,
    view: latestView.current,
    options,
    dark,
    w: size[0],
    h: size[1],
    row: rowH,
    top: top.current,
    picked: picked && {
      thread: picked.node.thread,
      start: picked.node.start,
      end: picked.node.end,
    },
    worked,
  });
  /** Requests what is visible unless it is there or has been requested. */
  const want = (): boolean => {
    const [w, h] = size;
    if (w <= gutter(w)) return false;
    const view = latestView.current;
    const pixel = (view[1] - view[0]) / (w - gutter(w));
    const rows = (around: number) => {
      const first = Math.floor(top.current / rowH) - around;
      return lines
        .slice(Math.max(0, first), Math.ceil((top.current + h) / rowH) + around)
        .flatMap((l) => (l.thread < 0 ? [] : [l.thread]));
    };
    const fresh = asking.covers(view, pixel, rows(0));
    if (!fresh) asking.want(view, pixel, rows(ROWS_AROUND));
    return fresh;
  };
  const draw = () => {
    frame.current = 0;
    const c = canvas.current;
    const [w, h] = size;
    if (!c || w <= gutter(w)) return;
    const ratio = devicePixelRatio || 1;
    if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) {
      c.width = Math.round(w * ratio);
      c.height = Math.round(h * ratio);
    }
    const fresh = String(want());
    painter.current.paint(c.getContext("2d")!, scene(), ratio);
    drawBands.current();
    if (c.dataset.fresh !== fresh) c.dataset.fresh = fresh;
    if (source.finest !== undefined)
      finestNote.current?.classList.toggle(
        "warn",
        (latestView.current[1] - latestView.current[0]) / (w - gutter(w)) < source.finest * 0.9,
      );
  };
  // Moving in time and scrolling send requests at once, draw at most once per frame, and render
  // nothing. A picture that arrives before that frame is drawn instead.
  const onPicture = () => {
    const { arrowEvery, arrowsInAll } = asking.shown;
    const every = arrowEvery > 1 ? `; of every ${count(arrowEvery)} arrows one is drawn` : "";
    const drawn =
      arrowsOf(scene()).length > CROWDED
        ? `${every ? `${every}, and` : ", and"} only the heads of arrows are drawn. Choose a thread for its arrows, or zoom in.`
        : `${every}${every && ". Zoom in for each of them"}.`;
    const text = `${arrowsInAll ? count(arrowsInAll) : "No"} interaction${arrowsInAll === 1 ? "" : "s"} in view${drawn}`;
    if (!arrowNote.current) return; // the view has changed since this was asked for
    if (arrowNote.current.textContent !== text) arrowNote.current.textContent = text;
    draw();
  };
  now.current = { draw, want: () => void want(), onPicture };
  const frame = useRef(0);
  const redraw = () => {
    now.current.want();
    frame.current ||= requestAnimationFrame(() => frame.current && now.current.draw());
  };
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  useEffect(() => {
    top.current = box.current?.scrollTop ?? 0;
    draw();
  });

  const pick = (to: Picked | null) => {
    setShown((latest.current = to));
    keep({ tn: to && to.node.node >= 0 ? String(to.node.node) : "" });
  };
  const reveal = (p: Picked) => {
    const row = rowOf.get(p.node.thread);
    const b = box.current;
    if (b && row !== undefined) {
      const y = row * rowH;
      if (y < top.current) scrollTo(y);
      else if (y + rowH + AXIS > top.current + b.clientHeight)
        scrollTo(y + rowH + AXIS - b.clientHeight);
    }
    const [from, to] = latestView.current;
    const at = p.segment ? p.segment.start : p.node.start;
    if (at < from || at > to) setView([at - (to - from) / 2, at + (to - from) / 2]);
  };
  const show = async (node: number, segment: SegmentDetails | null = null) => {
    if (node < 0) return;
    const details = await source.node(node);
    if (!details) return;
    const p = { node: details, segment: segment ?? (await source.segment(details.segment)) };
    pick(p);
    reveal(p);
  };
  const showSegment = async (i: number) => {
    const segment = await source.segment(i);
    if (!segment) return;
    if (segment.node >= 0) return show(segment.node, segment);
    // Where nothing is known about a time, only the segment is shown.
    const { thread, start, end, index } = segment;
    const node = {
      node: -1,
      thread,
      kind: -1,
      start,
      end,
      lock: null,
      other: -1,
      timeout_ms: 0,
      before: -1,
      after: -1,
      frames: [],
      cause: null,
      ended: null,
      segment: index,
    };
    pick({ node, segment });
    reveal({ node, segment });
  };
  const other = async (step: number) => {
    const p = latest.current;
    const row = p ? (rowOf.get(p.node.thread) ?? 0) : -1;
    for (let i = row + step; i >= 0 && i < lines.length; i += step) {
      const { thread } = lines[i];
      if (thread < 0) continue;
      const near = await source.at(thread, Math.max(p ? p.node.start : 0, latestView.current[0]));
      const found = near ?? (await source.at(thread, json.threads[thread].end));
      if (found) return show(found.node);
    }
  };
  useEffect(() => {
    if (kept.tn && !latest.current)
      turn.current = turn.current.then(() => show(Number(kept.tn))).catch(() => {});
  }, [source]);

  const hitAt = (e: MouseEvent): { thread: number; node: number; time: number } | null => {
    const r = canvas.current!.getBoundingClientRect();
    const line = lines[Math.floor((e.clientY - r.top - AXIS + top.current) / rowH)];
    if (!line || line.thread < 0 || e.clientY - r.top < AXIS) return null;
    const view = latestView.current;
    const perPixel = (view[1] - view[0]) / (size[0] - gutter(size[0]));
    const time = view[0] + Math.max(e.clientX - r.left - gutter(size[0]), 0) * perPixel;
    const p = asking.shown;
    const row = p.rows.get(line.thread);
    for (let k = row?.markLo ?? 0; options.marks && row && k < row.markHi; k++)
      if (
        Math.abs(p.markTime[k] - time) < 2.5 * perPixel &&
        ["timeout", "notify-all"].includes(json.kinds[p.markKind[k]])
      )
        return { thread: line.thread, node: p.markNode[k], time };
    for (let k = row?.lo ?? 0; row && k < row.hi; k++)
      if (p.runFrom[k] <= time && time < p.runTo[k] && p.runKind[k] !== MANY)
        return { thread: line.thread, node: p.runNode[k], time };
    return { thread: line.thread, node: -1, time };
  };
  const onKey = (e: KeyboardEvent) => {
    const now: Record<string, () => unknown> = {
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => setView(whole),
      a: () => pan(-0.25),
      d: () => pan(0.25),
      c: () => keep({ tp: options.path ? "0" : "" }),
      g: () => keep({ tg: options.grouped ? "" : "1" }),
      m: () => keep({ tm: options.marks ? "0" : "" }),
      v: () => keep({ ty: kept.ty === "1" ? "" : "1" }),
      s: () => setFilter({}),
      Escape: () => pick(null),
    };
    const inTurn: Record<string, (p: Picked | null) => unknown> = {
      ArrowRight: (p) => (p ? show(p.node.after) : pan(0.25)),
      ArrowLeft: (p) => (p ? show(p.node.before) : pan(-0.25)),
      ArrowDown: () => other(1),
      ArrowUp: () => other(-1),
      w: (p) => p?.node.cause && show(p.node.cause.node),
      e: (p) => p?.node.ended && show(p.node.ended.node),
      n: (p) => showSegment(p?.segment ? p.segment.index + 1 : 0),
      p: (p) => showSegment(p?.segment ? p.segment.index - 1 : (json.path?.n_segments ?? 0) - 1),
    };
    const act = inTurn[e.key];
    if ((!act && !now[e.key]) || e.ctrlKey || e.metaKey || e.altKey) return;
    if (act) turn.current = turn.current.then(() => act(latest.current)).catch(() => {});
    else now[e.key]();
    e.preventDefault();
    e.stopPropagation();
  };
  const toggle = (edge: string) => {
    const hidden = new Set(options.hidden);
    if (!hidden.delete(edge)) hidden.add(edge);
    keep({ te: [...hidden].join(",") });
  };
  const name = file.replace(/\.[^.]*$/, "");
  const saves: [string, () => void][] = [
    [
      "Picture, PNG",
      () => canvas.current!.toBlob((b) => b && download(`${name}-threads.png`, "image/png", b)),
    ],
    [
      "Picture, SVG",
      () => download(`${name}-threads.svg`, "image/svg+xml", threadsSvg(scene(), file)),
    ],
    [
      "Visible states, CSV",
      () =>
        download(
          `${name}-threads.csv`,
          "text/csv",
          table(["thread", "from_ns", "to_ns", "state", "share"], threadsRows(scene())),
        ),
    ],
  ];
  return (
    <main class="threads">
      <div class="tools" role="toolbar" aria-label="Timeline">
        <div class="seg" role="group" aria-label="Zoom">
          <button onClick={() => zoom(0.5)} title="Zoom in (+)" aria-label="Zoom in">
            +
          </button>
          <button onClick={() => zoom(2)} title="Zoom out (-)" aria-label="Zoom out">
            −
          </button>
          <button onClick={() => setView(whole)} title="Everything (0)">
            All
          </button>
        </div>
        <button
          aria-pressed={options.path}
          class="toggle"
          onClick={() => keep({ tp: options.path ? "0" : "" })}
          title="The chain of activities that the time depends on (c)"
        >
          <i style={{ background: dark ? "#fff" : "#111" }} /> Critical path
        </button>
        {usedEdges.map((e) => (
          <button
            key={e}
            aria-pressed={!options.hidden.has(e)}
            class="toggle"
            onClick={() => toggle(e)}
            title={`Arrows: ${edgeTitles[e]}`}
          >
            <i style={{ background: colourOf(edgeColours, e, dark) }} /> {edgeTitles[e]}
          </button>
        ))}
        <button
          aria-pressed={options.marks}
          class="toggle"
          onClick={() => keep({ tm: options.marks ? "0" : "" })}
          title="Timeouts, notify, notifyAll, locks acquired and released (m)"
        >
          Marks
        </button>
        <button
          aria-pressed={options.grouped}
          class="toggle"
          onClick={() => keep({ tg: options.grouped ? "" : "1" })}
          title="Group the rows by thread group (g)"
        >
          Groups
        </button>
        {ofVm > 0 && ofVm < json.threads.length && (
          <button
            aria-pressed={withVm}
            class="toggle"
            disabled={!!chosen}
            onClick={() => keep({ ty: withVm ? "" : "1" })}
            title="Rows of the VM's own threads, such as the Finalizer (v)"
          >
            {ofVm} of the VM
          </button>
        )}
        <button
          class={chosen ? "toggle on" : "toggle"}
          onClick={() => setFilter({})}
          title="Choose threads by name, time blocked or lock (s)"
        >
          {chosen
            ? `${chosen.size} of ${plural(json.threads.length, "thread")}`
            : allThreads(json.threads.length)}{" "}
          …
        </button>
        <div class="grow" />
        <div class="legend">
          {usedStates.map((s) => (
            <span key={s}>
              <i style={{ background: colourOf(stateColours, s, dark) }} /> {stateTitles[s] ?? s}
            </span>
          ))}
        </div>
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
      {requests && choice && (
        <p class="note choice">
          <span>
            <i style={{ background: workedColour(dark) }} /> Marked above the states: work for{" "}
            {ofChoice.length < countOf(requests, choice) && `${count(ofChoice.length)} of the `}
            {plural(countOf(requests, choice), "chosen request")} ({choiceText(requests, choice)})
            {ofChoice.length < countOf(requests, choice) &&
              ", those whose details are in this page"}
            {worksLeft > 0 &&
              `, without ${plural(worksLeft, "piece of work", "pieces of work")} that this page lacks`}
          </span>
          <button onClick={() => go({ view: "requests" })}>To the requests</button>
          <button onClick={() => keep(noChoice)}>No marks</button>
        </p>
      )}
      {source.finest !== undefined && (
        <p class="note" ref={finestNote}>
          This file holds pictures of {count(json.n_nodes)} state changes, down to{" "}
          {duration(source.finest)} a column. Below that, and for what lies in a column of many
          states, open the recording with <code>jvmscope serve</code>;{" "}
          <code>convert --from --to</code> makes a file of a part.
        </p>
      )}
      {json.lost_here > 0 && (
        <p class="note">
          {count(json.lost_here)} event{json.lost_here === 1 ? " was" : "s were"} lost while
          recording; waits around them have no known cause.
        </p>
      )}
      <div
        class="rows"
        style={{ flexBasis: rowsHeight(lines.length) }}
        ref={box}
        onScroll={() => {
          top.current = box.current!.scrollTop;
          redraw();
        }}
      >
        <canvas
          ref={canvas}
          tabIndex={0}
          data-keys
          role="application"
          aria-roledescription="thread timeline"
          data-lines={lines.length}
          data-row={rowH}
          aria-label="Threads over time. Arrow keys move between states and threads, plus and minus zoom, W goes to the waker, N and P along the critical path."
          style={{ width: `${size[0]}px`, height: `${size[1]}px` }}
          onKeyDown={onKey}
          onWheel={(e) => {
            const r = canvas.current!.getBoundingClientRect();
            const v = latestView.current;
            if (e.ctrlKey) {
              e.preventDefault();
              zoom(
                Math.exp(e.deltaY * 0.004),
                v[0] +
                  ((e.clientX - r.left - gutter(size[0])) / (size[0] - gutter(size[0]))) *
                    (v[1] - v[0]),
              );
            } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
              e.preventDefault();
              pan((e.deltaX || e.deltaY) / size[0]);
            }
          }}
          onPointerDown={(e) => {
            canvas.current!.setPointerCapture(e.pointerId);
            drag.current = { x: e.clientX, view: latestView.current, moved: false };
          }}
          onPointerMove={(e) => {
            const d = drag.current;
            if (!d) return;
            if (Math.abs(e.clientX - d.x) > 3) d.moved = true;
            const by = ((d.x - e.clientX) / (size[0] - gutter(size[0]))) * (d.view[1] - d.view[0]);
            if (d.moved) setView([d.view[0] + by, d.view[1] + by]);
          }}
          onPointerUp={(e) => {
            const hit = drag.current?.moved ? null : hitAt(e);
            drag.current = null;
            if (!hit) return;
            turn.current = turn.current
              .then(async () => {
                const node =
                  hit.node >= 0 ? hit.node : ((await source.at(hit.thread, hit.time))?.node ?? -1);
                await show(node);
              })
              .catch(() => {});
          }}
        />
        <div style={{ height: `${Math.max(0, height - size[1])}px` }} />
      </div>
      {json.bands && (
        <Bands json={json.bands} view={latestView} onView={setView} drawer={drawBands} />
      )}
      <p class="note small-note" ref={arrowNote} />
      {picked ? (
        <Details
          json={json}
          node={picked.node}
          segment={picked.segment}
          onShow={(n) => (turn.current = turn.current.then(() => show(n)).catch(() => {}))}
          onLock={(lock) => setFilter({ lock })}
          onClose={() => pick(null)}
        />
      ) : (
        <PathSummary
          json={json}
          onFirst={() => (turn.current = turn.current.then(() => showSegment(0)))}
          file={file}
        />
      )}
      {filter && (
        <ThreadFilter
          json={json}
          chosen={chosen}
          onChoose={(s) => keep({ th: s ? [...s].join(",") : "" })}
          lock={filter.lock}
          onClose={() => setFilter(null)}
        />
      )}
    </main>
  );
}

/** The visible part of time. It moves at once; the address, for links, follows when it rests. */
function useView(
  kept: Kept["kept"],
  keep: Kept["keep"],
  whole: [number, number],
  onMove: () => void,
) {
  const keptKey = useRef<string | null>(null); // the key kept last
  const view = useRef(whole);
  const later = useRef(0);
  const pending = useRef<(() => void) | null>(null);
  const key = `${kept.tf ?? ""} ${kept.tt ?? ""}`;
  if (key !== keptKey.current) {
    keptKey.current = key;
    view.current =
      kept.tf || kept.tt
        ? within(Number(kept.tf) || 0, Number(kept.tt) || whole[1], whole[1])
        : whole;
  }
  useEffect(() => () => pending.current?.(), []);
  const set = (v: [number, number]) => {
    view.current = within(v[0], v[1], whole[1]);
    pending.current = () => {
      clearTimeout(later.current);
      pending.current = null;
      const [from, to] = view.current;
      const all = from <= 0 && to >= whole[1];
      const part = {
        tf: all ? "" : String(Math.floor(from)),
        tt: all ? "" : String(Math.ceil(to)),
      };
      keptKey.current = `${part.tf} ${part.tt}`;
      keep(part);
    };
    clearTimeout(later.current);
    later.current = window.setTimeout(() => pending.current?.(), 150);
    onMove();
  };
  return { view, set };
}

const ROWS_AROUND = 4;

/** Limits a part of time to the whole, and to a microsecond at least. */
function within(from: number, to: number, end: number): [number, number] {
  const span = Math.min(Math.max(to - from, 1000), end);
  const start = Math.max(0, Math.min(from, end - span));
  return [start, start + span];
}

/**
 * The rows: the selected ones, or all except the VM's own, by their first appearance, with headings when grouped. The VM's
 * threads come last.
 */
function layout(
  json: TimelineJson,
  grouped: boolean,
  chosen: Set<number> | null,
  withVm: boolean,
): Line[] {
  const { threads } = json;
  const all = threads
    .map((_, i) => i)
    .filter((i) => (chosen ? chosen.has(i) : withVm || !threads[i].system));
  all.sort(
    (a, b) =>
      Number(threads[a].system) - Number(threads[b].system) ||
      threads[a].start - threads[b].start ||
      a - b,
  );
  const line = (i: number): Line => ({
    thread: i,
    title: threads[i].name || `thread ${threads[i].id}`,
  });
  if (!grouped) return all.map(line);
  const groups = new Map<string, number[]>();
  for (const i of all) {
    const g = threads[i].group || "(no group)";
    const of = groups.get(g);
    if (of) of.push(i);
    else groups.set(g, [i]);
  }
  return [...groups].flatMap(([g, members]) => [{ thread: -1, title: g }, ...members.map(line)]);
}

const threadKeys: [string, string][] = [
  ["← →", "the thread's state before, after; or move in time"],
  ["↑ ↓", "the thread above, below"],
  ["+ - 0", "zoom in, out, everything; Ctrl + wheel zooms at the pointer, dragging moves"],
  ["a d", "earlier, later"],
  ["w e", "go to the waker, to what ended the state"],
  ["n p", "next, previous segment of the critical path"],
  ["c", "show or hide the critical path"],
  ["g m v s", "group by thread group; marks, threads of the VM on or off; choose threads"],
  ["Escape", "back, close, clear"],
  ["?", "this help"],
];

export const threadsView: View = {
  name: "threads",
  followsRequests: true,
  title: "Threads",
  has: (p) => !!p.timeline,
  missing: noTimeline,
  losses: /^(threads|locks|monitors|io|recording)$/,
  facts: timelineFacts,
  show: ({ page, source, kept, go }) => (
    <ThreadView
      json={page.timeline!}
      source={source!}
      file={page.file}
      requests={page.requests}
      go={go}
      {...kept}
    />
  ),
  help: (
    <p>
      Each row is a thread, each colour a state; narrow bars are waits that cost no processor. Where
      states are too short to be drawn, a column shows the share of each. An arrow leads from the
      thread that ended a wait to the one that went on; it is dashed where the cause was inferred.
      The thick line is the <b>critical path</b>: the chain of activities that the whole time
      depends on. The program can only get faster where this path does. A yellow box is a wait that
      timed out, a blue one a notifyAll; ticks above a row are notify and locks acquired, ticks
      below it locks released. Click a state for its lock, its owner and both stacks. The strip
      below the threads shows when the VM stopped all of them, for a collection or for another
      reason, and when the container was out of CPU.
    </p>
  ),
  keys: threadKeys,
};
