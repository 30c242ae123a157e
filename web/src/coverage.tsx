// SPDX-License-Identifier: Apache-2.0
// Coverage: a table of classes, and the source of the chosen class with the lines that ran, if the
// source was found.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { percent, plural } from "./format";
import type { Kept } from "./link";
import { download, table } from "./save";
import { SortableTable } from "./sortable";
import { nameTest } from "./tree";
import type { View } from "./view";

export interface CoverSum {
  lines: number;
  lines_hit: number;
  methods: number;
  methods_hit: number;
  branches: number;
  branches_hit: number;
  classes: number;
  classes_hit: number;
}

export interface CoverClass extends CoverSum {
  class: string;
  source: string | null;
  by_line: { line: number; hit: boolean; branches?: number; taken?: number }[];
  by_method: { method: string; descriptor: string; line: number; hit: boolean }[];
}

declare module "./data" {
  interface PageJson {
    coverage?: CoverageJson;
  }
}

export interface CoverageJson {
  total: CoverSum;
  classes: CoverClass[];
  texts?: Record<string, string>; // by the file's place below the folder of sources
}

/** What a class does not have is none of 100 %; above all shares. */
const NONE = 2;
const share = (hit: number, all: number) => (all ? hit / all : NONE);

/** The path of a class's source relative to the folder of sources. */
function placeOf(c: CoverClass): string {
  const folder = c.class.slice(0, c.class.lastIndexOf(".") + 1).replace(/\./g, "/");
  return folder + (c.source ?? `${c.class.slice(folder.length).replace(/\$.*$/s, "")}.java`);
}

export function CoverageView({
  json,
  kept,
  keep,
  name,
}: Kept & { json: CoverageJson; name: string }) {
  const text = kept.kc ?? "";
  const rows = useMemo(
    () =>
      json.classes.map((c, key) => ({
        key,
        cells: [
          c.class,
          share(c.lines_hit, c.lines),
          c.lines_hit,
          c.lines - c.lines_hit,
          share(c.methods_hit, c.methods),
          c.methods_hit,
          c.methods - c.methods_hit,
          share(c.branches_hit, c.branches),
          c.branches - c.branches_hit,
        ],
      })),
    [json],
  );
  const shown = useMemo(() => {
    const test = nameTest(text, true);
    return rows.filter((r) => test(String(r.cells[0])));
  }, [rows, text]);
  const at = json.classes.findIndex((c) => c.class === kept.kl);
  const part = { numeric: true, format: (v: number) => (v === NONE ? "–" : percent(v, 1)) };
  const t = json.total;
  return (
    <main class="coverage">
      <div class="tools" role="toolbar" aria-label="Coverage">
        <div class="search">
          <input
            type="search"
            placeholder="Class ( / )"
            aria-label="Class"
            value={text}
            onInput={(e) => keep({ kc: e.currentTarget.value })}
          />
          <output aria-live="polite">
            {text ? `${shown.length} of ${plural(rows.length, "class", "classes")}` : ""}
          </output>
        </div>
        <div class="meters">
          <Meter what="lines" hit={t.lines_hit} all={t.lines} />
          <Meter what="methods" hit={t.methods_hit} all={t.methods} />
          <Meter what="branches" hit={t.branches_hit} all={t.branches} />
        </div>
        <div class="grow" />
        <button
          title="The classes shown, as CSV"
          onClick={() =>
            download(
              `${name}-coverage.csv`,
              "text/csv",
              table(
                [
                  "class",
                  "lines",
                  "lines_hit",
                  "methods",
                  "methods_hit",
                  "branches",
                  "branches_hit",
                ],
                shown
                  .map((r) => json.classes[r.key])
                  .map((c) => [
                    c.class,
                    c.lines,
                    c.lines_hit,
                    c.methods,
                    c.methods_hit,
                    c.branches,
                    c.branches_hit,
                  ]),
              ),
            )
          }
        >
          Save CSV
        </button>
      </div>
      <div class="panes even">
        <section aria-label="Classes" class="fill">
          <SortableTable
            caption="Classes"
            by={3}
            limit={2000}
            rows={shown}
            selected={new Set(at >= 0 ? [at] : [])}
            onSelect={(s) =>
              keep({ kl: json.classes[[...s].find((k) => k !== at) ?? -1]?.class ?? "" })
            }
            columns={[
              { title: "Class", name: true, code: "class" },
              { title: "Lines", ...part },
              { title: "ran", numeric: true, minor: true },
              { title: "missed", numeric: true },
              { title: "Methods", ...part },
              { title: "ran ", numeric: true, minor: true },
              { title: "missed ", numeric: true, minor: true },
              { title: "Branches", ...part },
              { title: "missed  ", numeric: true, minor: true },
            ]}
          />
        </section>
        <section aria-label="Source" class="source fill">
          {at >= 0 ? (
            <Source json={json} c={json.classes[at]} />
          ) : (
            <p class="empty">Choose a class to see which of its lines ran.</p>
          )}
        </section>
      </div>
    </main>
  );
}

function Meter({ what, hit, all }: { what: string; hit: number; all: number }) {
  return (
    <span class="meter" title={`${hit} of ${all} ${what}`}>
      <span class="gauge" aria-hidden="true">
        <i style={{ width: `${100 * (all ? hit / all : 0)}%` }} />
      </span>
      {all ? <b>{percent(hit / all, 1)}</b> : <b>–</b>} of {all} {what}
    </span>
  );
}

function Source({ json, c }: { json: CoverageJson; c: CoverClass }) {
  const place = placeOf(c);
  const text = json.texts?.[place];
  const box = useRef<HTMLDivElement>(null);
  // All classes in a file contribute to the colours of its lines.
  const lines = useMemo(() => {
    const by = new Map<number, { hit: boolean; branches: number; taken: number }>();
    for (const k of text === undefined ? [c] : json.classes.filter((x) => placeOf(x) === place))
      for (const l of k.by_line) {
        const o = by.get(l.line);
        by.set(l.line, {
          hit: l.hit || !!o?.hit,
          branches: (l.branches ?? 0) + (o?.branches ?? 0),
          taken: (l.taken ?? 0) + (o?.taken ?? 0),
        });
      }
    return by;
  }, [json, c]);
  useEffect(() => {
    const first = Math.min(...c.by_line.map((l) => l.line));
    box.current
      ?.querySelector(`[data-line="${Math.max(1, first - 3)}"]`)
      ?.scrollIntoView({ block: "start" });
  }, [c]);
  const kind = (n: number) => {
    const l = lines.get(n);
    return !l ? "" : !l.hit ? "missed" : l.branches > l.taken ? "partly" : "ran";
  };
  const label: Record<string, string> = {
    "": "",
    missed: "did not run",
    partly: "ran, not every branch",
    ran: "ran",
  };
  return (
    <>
      <h2 class="break">
        {c.class}{" "}
        <small>
          {c.lines ? percent(c.lines_hit / c.lines, 1) : "–"} of {plural(c.lines, "line")}
        </small>
      </h2>
      {text === undefined ? (
        <>
          <p class="dim">
            {place} was not found.{" "}
            {json.texts
              ? ""
              : "Give the folder of the sources with --sources DIR to convert or serve."}
          </p>
          <ul class="methods-run">
            {c.by_method.map((m) => (
              <li key={m.method + m.descriptor} class={m.hit ? "ran" : "missed"}>
                <b>{m.method}</b>
                <span class="dim">
                  {" "}
                  line {m.line}: {m.hit ? "ran" : "did not run"}
                </span>
              </li>
            ))}
          </ul>
          <p class="dim">
            Lines that did not run:{" "}
            {ranges(c.by_line.filter((l) => !l.hit).map((l) => l.line)) || "none"}.
          </p>
        </>
      ) : (
        <div class="lines" ref={box} tabIndex={0} role="group" aria-label={`Source of ${c.class}`}>
          {text.split("\n").map((line, i) => {
            const k = kind(i + 1);
            const l = lines.get(i + 1);
            return (
              <div
                key={i}
                data-line={i + 1}
                class={k}
                title={
                  k &&
                  `${label[k]}${l!.branches ? `; ${l!.taken} of ${plural(l!.branches, "branch", "branches")}` : ""}`
                }
              >
                <span class="no">{i + 1}</span>
                <span class="hit">
                  {k === "missed"
                    ? "✗"
                    : k === "partly"
                      ? `${l!.taken}/${l!.branches}`
                      : k === "ran"
                        ? "✓"
                        : ""}
                </span>
                <code>{line}</code>
              </div>
            );
          })}
        </div>
      )}
    </>
  );
}

/** Formats 1, 2, 3, 7 as "1–3, 7". */
function ranges(list: number[]): string {
  const out: string[] = [];
  for (let i = 0, k; i < list.length; i = k + 1) {
    for (k = i; list[k + 1] === list[k] + 1;) k++;
    out.push(k > i ? `${list[i]}–${list[k]}` : String(list[i]));
  }
  return out.join(", ");
}

export const coverageView: View = {
  name: "coverage",
  title: "Coverage",
  has: (p) => !!p.coverage,
  missing: {
    title: "Coverage",
    is: "which lines and branches ran",
    by: "jvmscope run --cover -o app.jfr -- java ...",
  },
  losses: /^(coverage|recording)$/,
  facts: (p) => (
    <span>
      <b>{plural(p.coverage!.classes.length, "class", "classes")}</b>
    </span>
  ),
  show: ({ page, name, kept }) => <CoverageView json={page.coverage!} name={name} {...kept} />,
  help: (
    <p>
      Green lines ran, and red ones did not. Yellow lines ran, but not all of their branches were
      taken; the number shows how many were.
    </p>
  ),
  keys: [
    ["/", "search classes"],
    ["↑ ↓", "move between rows"],
    ["Space", "choose the row"],
  ],
};
