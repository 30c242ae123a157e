// SPDX-License-Identifier: Apache-2.0
// The parts of one request, in order of time.
import { useEffect, useRef } from "preact/hooks";
import { causeColour, inWords } from "./causes";
import { duration, moment, plural } from "./format";
import type { OneRequest, RequestsJson } from "./requestdata";

export function Waterfall({
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
