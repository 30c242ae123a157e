// SPDX-License-Identifier: Apache-2.0
// The details of a state or an interaction: lock, owner, causes and stacks; and the critical path
// in numbers.
import { duration, moment, percent, plural } from "./format";
import { edgeTitles, QUIET, stateTitles } from "./threadpaint";
import type { Cause, Frame, NodeDetails, SegmentDetails, TimelineJson } from "./timeline";

export function Stack({ frames, title }: { frames: Frame[]; title: string }) {
  return (
    <section class="stack" aria-label={title}>
      <h3>{title}</h3>
      {frames.length ? (
        <ol>
          {frames.map((f) => (
            <li>
              {f.method}
              {f.line > 0 && <span class="dim">:{f.line}</span>}
            </li>
          ))}
        </ol>
      ) : (
        <p class="dim">No stack was recorded.</p>
      )}
    </section>
  );
}

export function Details(p: {
  json: TimelineJson;
  node: NodeDetails;
  segment: SegmentDetails | null;
  onShow: (node: number) => void;
  onLock: (lock: string) => void;
  onClose: () => void;
}) {
  const { json, node } = p;
  const name = (i: number | undefined) =>
    i === undefined ? "?" : json.threads[i]?.name || `thread ${json.threads[i]?.id ?? "?"}`;
  const kind = json.kinds[node.kind];
  const isState = !node.woken;
  const edge = (c: Cause) => edgeTitles[json.edges[c.edge]] ?? json.edges[c.edge];
  const by = (c: Cause, title?: string) => (
    <>
      {c.node >= 0 && (
        <button onClick={() => p.onShow(c.node)} title={title}>
          {name(c.thread)}
        </button>
      )}
      {c.inferred && <span class="dim"> (inferred)</span>}
    </>
  );
  const far = node.ended?.frames ? node.ended : node.cause?.frames ? node.cause : null;
  return (
    <aside
      class="details"
      aria-live="polite"
      aria-label="Details"
      data-node={node.node}
      data-segment={p.segment?.index}
    >
      <div>
        <h3>
          {name(node.thread)}:{" "}
          {json.threads[node.thread]?.quiet ? QUIET : (stateTitles[kind] ?? kind ?? "unknown")}
        </h3>
        {isState ? (
          <p>
            {duration(node.end - node.start)}{" "}
            <span class="dim">
              from {moment(node.start)} to {moment(node.end)}
            </span>
          </p>
        ) : (
          <p class="dim">at {moment(node.start)}</p>
        )}
        {node.lock && (
          <p>
            on <b>{node.lock}</b>{" "}
            <button
              onClick={() => p.onLock(node.lock!)}
              title="Choose the threads that use locks of this class"
            >
              Its threads …
            </button>
          </p>
        )}
        {node.other >= 0 && (
          <p>
            {kind === "wait-join" ? "waits for the end of " : isState ? "held by " : "thread "}
            <b>{name(node.other)}</b>
          </p>
        )}
        {node.timeout_ms > 0 && <p class="dim">timeout {node.timeout_ms} ms</p>}
        {p.segment && (
          <p class="dim">
            on the critical path: {p.segment.idle ? "idle" : p.segment.state},{" "}
            {duration(p.segment.end - p.segment.start)}
            {p.segment.ran && `, in ${p.segment.ran}`}
          </p>
        )}
        {node.cause && (
          <p>
            {edge(node.cause)} {node.cause.node >= 0 && "by "}
            {by(node.cause, "Go to the waker (w)")}
          </p>
        )}
        {node.ended && (
          <p>
            ended by {edge(node.ended)} {node.ended.node >= 0 && "of "}
            {by(node.ended, "Go to what ended it (e)")}
          </p>
        )}
        <button onClick={p.onClose}>Close</button>
      </div>
      {node.woken && kind !== "timeout" && (
        <section class="woken" aria-label="Threads woken">
          <h3>
            {node.woken.length
              ? `Woke ${node.woken.length} thread${node.woken.length > 1 ? "s" : ""}`
              : "Woke no known thread"}
          </h3>
          <ol>
            {node.woken.map((w) => (
              <li>
                <button onClick={() => p.onShow(w.node)}>{name(w.thread)}</button>{" "}
                <span class="dim">after {duration(w.time - node.start)}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      <Stack title="Stack" frames={node.frames} />
      {far && <Stack title={`Stack of ${name(far.thread)}`} frames={far.frames!} />}
    </aside>
  );
}

export function PathSummary({
  json,
  onFirst,
  file,
}: {
  json: TimelineJson;
  onFirst: () => void;
  file: string;
}) {
  const path = json.path;
  if (!path)
    return (
      <aside class="details">
        <p class="dim">
          {json.part
            ? `${file} is a part of a recording without what other threads did, so that there is no critical path.`
            : `${file} holds no critical path: nothing ends in it.`}
        </p>
      </aside>
    );
  const rows = path.states
    .map((ns, i) => [json.path_states[i], ns] as const)
    .filter((r) => r[1] > 0)
    .sort((a, b) => b[1] - a[1]);
  return (
    <aside class="details" aria-label="Critical path">
      <div>
        <h3>Critical path: {duration(path.length_ns)}</h3>
        <p class="dim">
          {plural(path.n_segments, "segment")}, {duration(path.makespan_ns)} from beginning to end
        </p>
        <button onClick={onFirst} title="Next segment (n)">
          Follow it
        </button>
      </div>
      <table class="small">
        <caption class="sr">The critical path by state</caption>
        <tbody>
          {rows.map(([state, ns]) => (
            <tr key={state}>
              <th scope="row">{state}</th>
              <td class="num">{duration(ns)}</td>
              <td class="num">{percent(ns, path.length_ns)}</td>
            </tr>
          ))}
          {path.idle_ns > 0 && (
            <tr title="The thread had nothing to do">
              <th scope="row">idle</th>
              <td class="num">{duration(path.idle_ns)}</td>
              <td class="num">{percent(path.idle_ns, path.length_ns)}</td>
            </tr>
          )}
        </tbody>
      </table>
      {path.methods.length > 0 && (
        <section class="ran" aria-label="What ran on the path">
          <table class="small">
            <caption class="sr">Methods on the critical path</caption>
            <thead>
              <tr>
                <th scope="col">Method</th>
                <th scope="col" class="num">
                  Of the path
                </th>
                <th scope="col" class="num">
                  Self
                </th>
              </tr>
            </thead>
            <tbody>
              {path.methods.map((m) => (
                <tr key={m.method}>
                  <th scope="row" title={m.method}>
                    {m.method}
                  </th>
                  <td class="num" title={percent(m.total_ns, path.length_ns)}>
                    {duration(m.total_ns)}
                  </td>
                  <td class="num">{m.self_ns ? duration(m.self_ns) : "-"}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="dim">
            {path.samples > 0
              ? `What ran in ${Math.round((100 * path.sampled_run_ns) / path.run_ns)} % of the running time is known from ${plural(path.samples, "CPU sample")}.`
              : path.run_ns > 0 &&
                "Running time counts for the methods that were on the stack both before and after it."}
          </p>
        </section>
      )}
      {json.deadlocks > 0 && (
        <p class="warn">
          {json.deadlocks} deadlock{json.deadlocks > 1 ? "s" : ""} found.
        </p>
      )}
      {json.owner_unknown > 0 && (
        <p class="warn">
          At the end, {plural(json.owner_unknown, "thread")} waited for monitors of unknown owners.
          They may be deadlocked.
        </p>
      )}
      {json.deadlocks > 0 && json.waiting_for_locks > 0 && (
        <p class="dim">
          At the end, {plural(json.waiting_for_locks, "thread")} waited for locks of
          java.util.concurrent. Only --deadlocks finds deadlocks with these.
        </p>
      )}
    </aside>
  );
}
