// SPDX-License-Identifier: Apache-2.0
// Why the slow requests of a name are slow.
import { causeColour } from "./causes";
import { duration, percent, sentence } from "./format";
import type { RequestGroup } from "./requestdata";

const estimate = (ns: number, error: number) =>
  error > 0 ? `${duration(ns)} ±\u00a0${duration(error)}` : duration(ns);

export function Group({
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
