// SPDX-License-Identifier: Apache-2.0
// A heap dump: what occupies the memory as areas and as a tree, classes, suspects, queries; next to
// them the chosen object.
import { useMemo, useState } from "preact/hooks";
import { bytes, count, percent, plural } from "./format";
import {
  asker,
  Ask,
  ClassRow,
  HeapJson,
  HeapObject,
  simple,
  Suspect,
  Summary,
  useAnswer,
} from "./heapdata";
import { HeapMap } from "./heapmap";
import { Inspector, Why } from "./heapobject";
import { Query } from "./heapquery";
import { Reports } from "./heapreports";
import type { Kept } from "./link";
import { download, table } from "./save";
import { SortableTable } from "./sortable";
import { nameTest } from "./tree";
import { VirtualTable } from "./virtual";
import type { View } from "./view";

const tabs = [
  ["map", "Map"],
  ["tree", "Dominators"],
  ["classes", "Classes"],
  ["suspects", "Leak suspects"],
  ["reports", "Reports"],
  ["query", "Query"],
] as const;

interface Props extends Kept {
  json: HeapJson;
  name: string;
  file: string;
}

export function HeapView({ json, kept, keep, name, file }: Props) {
  const ask = useMemo(() => asker(json), [json]);
  const { answer: summary, error } = useAnswer<Summary>(ask, "summary", {});
  const tab = tabs.find(([t]) => t === kept.ht)?.[0] ?? "map";
  const choose = (object: string) => keep({ ho: object });
  const chosen = kept.ho ?? "";
  // The tables of reports and queries need the width; the facts of the heap are beside the others.
  const aside = !!chosen || (tab !== "reports" && tab !== "query");
  if (error)
    return (
      <main class="nothing">
        <Why error={error} />
      </main>
    );
  if (!summary)
    return (
      <main class="nothing">
        <p>Reading the heap …</p>
      </main>
    );
  return (
    <main class="heap">
      <div class="tools" role="toolbar" aria-label="Heap">
        <div class="seg" role="group" aria-label="View">
          {tabs.map(([t, title]) => (
            <button
              key={t}
              aria-pressed={tab === t}
              onClick={() => keep({ ht: t === "map" ? "" : t })}
            >
              {title}
            </button>
          ))}
        </div>
        <span class="dim">
          {plural(summary.objects, "object")}, {bytes(summary.bytes)}
          {summary.reachableBytes < summary.bytes &&
            `; ${bytes(summary.bytes - summary.reachableBytes)} of it not reachable`}
        </span>
        <div class="grow" />
      </div>
      {summary.notes
        ?.filter((n) => n.trim())
        .map((n) => (
          <p class="note">{n}</p>
        ))}
      <div class={aside ? "panes" : "panes single"}>
        <section class="fill" aria-label={tabs.find(([t]) => t === tab)![1]}>
          {tab === "map" && (
            <HeapMap
              ask={ask}
              summary={summary}
              chosen={chosen}
              zoom={kept.hz ?? ""}
              onChoose={choose}
              onZoom={(hz) => keep({ hz })}
            />
          )}
          {tab === "tree" && <Tree ask={ask} summary={summary} chosen={chosen} onChoose={choose} />}
          {tab === "classes" && (
            <Classes
              ask={ask}
              text={kept.hq ?? ""}
              onText={(hq) => keep({ hq })}
              chosen={chosen}
              onChoose={choose}
              name={name}
            />
          )}
          {tab === "suspects" && <Suspects ask={ask} onChoose={choose} />}
          {tab === "reports" && (
            <Reports
              ask={ask}
              verb={kept.hr ?? ""}
              onVerb={(hr) => keep({ hr })}
              onChoose={choose}
            />
          )}
          {tab === "query" && (
            <Query
              ask={ask}
              served={!json.answers}
              sql={kept.hs ?? ""}
              onSql={(hs) => keep({ hs })}
              onChoose={choose}
              name={name}
              file={file}
            />
          )}
        </section>
        {aside && (
          <aside class={chosen ? "side" : "side about"} aria-label="Object" aria-live="polite">
            {chosen ? (
              <Inspector ask={ask} object={chosen} onChoose={choose} />
            ) : (
              <Facts summary={summary} />
            )}
          </aside>
        )}
      </div>
    </main>
  );
}

function Facts({ summary }: { summary: Summary }) {
  return (
    <>
      <h2>This heap</h2>
      <dl class="facts-list">
        <dt>objects</dt>
        <dd>
          {count(summary.objects)}, {bytes(summary.bytes)}
        </dd>
        <dt>reachable</dt>
        <dd>
          {count(summary.reachable)}, {bytes(summary.reachableBytes)}
        </dd>
        <dt>classes</dt>
        <dd>{count(summary.classes)}</dd>
        {typeof summary.weakReferences === "string" && (
          <>
            <dt>weak references</dt>
            <dd>{summary.weakReferences.replace(/ \(--strong: .*\)$/, "")}</dd>
          </>
        )}
        {typeof summary.sizeRule === "string" && (
          <>
            <dt>sizes</dt>
            <dd>{summary.sizeRule}</dd>
          </>
        )}
      </dl>
      <h2>GC roots</h2>
      <table class="small">
        <caption class="sr">GC roots by kind</caption>
        <tbody>
          {summary.roots.map((r) => (
            <tr key={r.root}>
              <th scope="row">{r.root}</th>
              <td class="num">{count(r.count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">
        Choose an object to see what is in it, who refers to it and why it is alive.
      </p>
    </>
  );
}

interface Node {
  o: HeapObject;
  level: number;
}

function Tree({
  ask,
  summary,
  chosen,
  onChoose,
}: {
  ask: Ask;
  summary: Summary;
  chosen: string;
  onChoose: (o: string) => void;
}) {
  const [open, setOpen] = useState<Record<string, HeapObject[] | Error>>({});
  const { answer, error } = useAnswer<{ dominators: HeapObject[] }>(ask, "dominators", {
    children: "root",
  });
  const rows = useMemo(() => {
    const list: Node[] = [];
    const add = (objects: HeapObject[], level: number) => {
      for (const o of objects) {
        list.push({ o, level });
        const below = open[o.object];
        if (Array.isArray(below) && level < 200) add(below, level + 1);
      }
    };
    add(answer?.dominators ?? [], 1);
    return list;
  }, [answer, open]);
  if (error) return <Why error={error} />;
  const [cursor, setCursor] = [
    rows.findIndex((r) => r.o.object === chosen),
    (i: number) => onChoose(rows[i].o.object),
  ];
  const toggle = (o: HeapObject) => {
    if (open[o.object]) return setOpen(({ [o.object]: _, ...rest }) => rest);
    ask<{ dominators: HeapObject[] }>("dominators", { children: o.object })
      .then((a) => setOpen((s) => ({ ...s, [o.object]: a.dominators })))
      .catch((e) => setOpen((s) => ({ ...s, [o.object]: e })));
  };
  const onKey = (e: KeyboardEvent, i: number) => {
    const { o, level } = rows[i];
    const isOpen = Array.isArray(open[o.object]);
    if (e.key === "ArrowRight" && o.children && !isOpen) toggle(o);
    else if (e.key === "ArrowRight" && isOpen && rows[i + 1]) setCursor(i + 1);
    else if (e.key === "ArrowLeft" && isOpen) toggle(o);
    else if (e.key === "ArrowLeft" && level > 1)
      setCursor(
        rows
          .slice(0, i)
          .map((r) => r.level)
          .lastIndexOf(level - 1),
      );
    else return false;
    return true;
  };
  return (
    <VirtualTable
      label="Dominators"
      count={rows.length}
      cursor={cursor}
      onCursor={setCursor}
      onKey={onKey}
      level={(i) => rows[i].level}
      expanded={(i) => (rows[i].o.children ? Array.isArray(open[rows[i].o.object]) : undefined)}
      columns={[
        { title: "Object" },
        { title: "Retained", numeric: true, width: "100px" },
        { title: "Share", numeric: true, width: "80px", minor: true },
        { title: "Itself", numeric: true, width: "90px", minor: true },
      ]}
      cells={(i) => {
        const { o, level } = rows[i];
        return [
          <span
            class="call"
            style={{ paddingLeft: `${(Math.min(level, 40) - 1) * 16}px` }}
            title={`${o.class} @ ${o.object}`}
          >
            {o.children ? (
              <button
                class="fold"
                tabIndex={-1}
                aria-hidden="true"
                onClick={(e) => (e.stopPropagation(), toggle(o))}
              >
                {Array.isArray(open[o.object]) ? "▾" : "▸"}
              </button>
            ) : (
              <span class="fold" />
            )}
            <b>{simple(o.class)}</b> <span class="value">{o.value?.slice(0, 200) ?? ""}</span>
            {open[o.object] instanceof Error && (
              <span class="dim"> (its contents are not in this file)</span>
            )}
          </span>,
          bytes(o.retained),
          percent(o.retained, summary.reachableBytes),
          bytes(o.shallow),
        ];
      }}
    />
  );
}

function Classes(p: {
  ask: Ask;
  text: string;
  onText: (t: string) => void;
  chosen: string;
  onChoose: (o: string) => void;
  name: string;
}) {
  const { answer, error } = useAnswer<{ classes: ClassRow[]; left_out?: { classes: number } }>(
    p.ask,
    "histogram",
    { retained: "1" },
  );
  const leftOut = answer?.left_out?.classes ?? 0;
  const rows = useMemo(
    () =>
      (answer?.classes ?? []).map((c, key) => ({
        key,
        cells: [c.class, c.objects, c.shallow, c.retained ?? 0, c.ofName],
      })),
    [answer],
  );
  const shown = useMemo(() => {
    const test = nameTest(p.text, true);
    return rows.filter((r) => test(String(r.cells[0])));
  }, [rows, p.text]);
  if (error) return <Why error={error} />;
  const size = { numeric: true, format: bytes };
  const at = rows.findIndex((r) => r.cells[0] === p.chosen);
  return (
    <>
      <div class="tools inner">
        <input
          type="search"
          placeholder="Class"
          aria-label="Class"
          value={p.text}
          onInput={(e) => p.onText(e.currentTarget.value)}
        />
        <output aria-live="polite">
          {p.text
            ? `${shown.length} of ${plural(rows.length, "class", "classes")}`
            : plural(rows.length + leftOut, "class", "classes")}
        </output>
        <div class="grow" />
        <button
          onClick={() =>
            download(
              `${p.name}-classes.csv`,
              "text/csv",
              table(
                ["class", "objects", "shallow", "retained", "classes"],
                shown.map((r) => r.cells),
              ),
            )
          }
        >
          Save CSV
        </button>
      </div>
      {leftOut > 0 && (
        <p class="note">
          The first {count(rows.length)} of {plural(rows.length + leftOut, "class", "classes")}.
          jvmscope serve and jvmscope heap histogram show all of them.
        </p>
      )}
      <SortableTable
        caption="Classes"
        by={2}
        limit={1000}
        rows={shown}
        selected={new Set(at >= 0 ? [at] : [])}
        totals={!leftOut}
        onSelect={(s) =>
          p.onChoose(String(rows[[...s].find((k) => k !== at) ?? -1]?.cells[0] ?? ""))
        }
        columns={[
          { title: "Class", name: true, code: "class" },
          { title: "Count", numeric: true, format: count },
          { title: "Shallow", ...size },
          { title: "Retained", ...size },
          ...(rows.some((r) => Number(r.cells[4]) > 1)
            ? [{ title: "Classes", numeric: true, minor: true, format: count }]
            : []),
        ]}
      />
    </>
  );
}

function Suspects({ ask, onChoose }: { ask: Ask; onChoose: (o: string) => void }) {
  const { answer, error } = useAnswer<{ suspects: Suspect[] }>(ask, "leaks", {});
  if (error) return <Why error={error} />;
  if (!answer) return null;
  return (
    <div class="suspects">
      {!answer.suspects.length && (
        <p>Nothing holds a tenth of the heap and 2 MiB or more: no suspect.</p>
      )}
      {answer.suspects.map((s, i) => (
        <article key={s.object} aria-label={`Suspect ${i + 1}`}>
          <h2>
            <span class="rank">{i + 1}</span> {bytes(s.retained)}{" "}
            <small>{s.percent.toFixed(1)} % of the heap</small>
          </h2>
          <div class="gauge wide" aria-hidden="true">
            <i style={{ width: `${s.percent}%` }} />
          </div>
          {sentences(s).map((t) => (
            <p>{t}</p>
          ))}
          <div class="row">
            <button onClick={() => onChoose(s.object)}>What holds it: {simple(s.class)}</button>
            {s.accumulator && s.accumulator !== s.object && (
              <button onClick={() => onChoose(s.accumulator!)}>
                Where it accumulates: {simple(s.accumulatorClass ?? "object")}
              </button>
            )}
            {s.accumulates && (
              <button onClick={() => onChoose(s.accumulates!)}>All {simple(s.accumulates)}</button>
            )}
          </div>
        </article>
      ))}
    </div>
  );
}

/** The sentences about a suspect, as the command prints them. */
function sentences(s: Suspect): string[] {
  return s.text
    .split("\n")
    .map((t) => t.trim())
    .filter(Boolean);
}

const heapKeys: [string, string][] = [
  ["↑ ↓ → ←", "move between objects; in the tree, open and close"],
  ["Enter", "in the map: show what an object holds"],
  ["Backspace", "in the map: go back"],
  ["Space", "in the map: inspect the object"],
  ["Ctrl + Enter", "run the query"],
];

export const heapView: View = {
  name: "heap",
  title: "Heap",
  has: (p) => !!p.heap,
  missing: {
    title: "Heap",
    is: "what holds the memory",
    by: "jvmscope heap dump -o app.hprof PID",
  },
  losses: /^(heap|recording)$/,
  show: ({ page, name, kept }) => (
    <HeapView json={page.heap!} name={name} file={page.file} {...kept} />
  ),
  help: (
    <p>
      An object <b>retains</b> what would be freed if it were gone. Each box of the map is an object
      with all that it retains; a large box contains the boxes of the objects that it keeps alive.
      The tree of dominators shows the same in rows. Choose an object to see what is in it, who
      refers to it and the path from a GC root that keeps it alive.
    </p>
  ),
  keys: heapKeys,
};
