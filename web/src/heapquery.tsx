// SPDX-License-Identifier: Apache-2.0
// Queries of a heap dump in SQL, and the rows that they answer with.
import { useEffect, useRef, useState } from "preact/hooks";
import { plural } from "./format";
import { Ask, QueryAnswer } from "./heapdata";
import { download, table } from "./save";
import { SortableTable } from "./sortable";

const examples = [
  "SELECT class, count(*) AS objects, sum(shallow) AS bytes FROM objects GROUP BY class ORDER BY bytes DESC LIMIT 50",
  "SELECT id, class, retained, value FROM objects ORDER BY retained DESC LIMIT 50",
  "SELECT value, count(*) AS times FROM strings GROUP BY value ORDER BY times DESC LIMIT 50",
  'SELECT object, size, threshold FROM "java.util.HashMap" WHERE size > 100 LIMIT 50',
];

export function Query(p: {
  ask: Ask;
  served: boolean;
  sql: string;
  onSql: (s: string) => void;
  onChoose: (o: string) => void;
  name: string;
  file: string;
}) {
  const [text, setText] = useState(p.sql || examples[0]);
  const [state, setState] = useState<{ busy: boolean; answer: QueryAnswer | null; error: string }>({
    busy: false,
    answer: null,
    error: "",
  });
  const stop = useRef<AbortController | null>(null);
  const run = async () => {
    stop.current?.abort();
    const mine = (stop.current = new AbortController());
    setState({ busy: true, answer: null, error: "" });
    p.onSql(text);
    try {
      const answer = await p.ask<QueryAnswer>("query", { sql: text }, mine.signal);
      if (stop.current === mine) setState({ busy: false, answer, error: "" });
    } catch (e) {
      if (stop.current === mine)
        setState({ busy: false, answer: null, error: String((e as Error).message ?? e) });
    }
  };
  useEffect(() => {
    if (p.sql && p.served) run();
    return () => stop.current?.abort();
  }, []);
  if (!p.served)
    return (
      <p class="empty">
        A query needs the dump itself: <code>jvmscope serve {p.file}</code>, or{" "}
        <code>jvmscope heap query {p.file} 'SELECT …'</code>.
      </p>
    );
  const { answer } = state;
  return (
    <div class="query">
      <textarea
        aria-label="SQL query. Ctrl + Enter runs it."
        spellcheck={false}
        rows={4}
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
            run();
            e.preventDefault();
          }
        }}
      />
      <div class="tools inner">
        <button class="on" onClick={run} title="Run (Ctrl + Enter)">
          Run
        </button>
        <select
          aria-label="Examples"
          value=""
          onChange={(e) => e.currentTarget.value && setText(e.currentTarget.value)}
        >
          <option value="">Examples …</option>
          {examples.map((q) => (
            <option key={q} value={q}>
              {q.slice(0, 70)}
            </option>
          ))}
        </select>
        <output aria-live="polite">
          {state.busy
            ? "…"
            : answer
              ? `${plural(answer.rows.length, "row")}${answer.truncated ? ", and more" : ""}${answer.seconds !== undefined ? ` in ${(answer.seconds * 1000).toFixed(0)} ms` : ""}`
              : ""}
        </output>
        <div class="grow" />
        {answer && (
          <button
            onClick={() =>
              download(
                `${p.name}-query.csv`,
                "text/csv",
                table(
                  answer.columns,
                  answer.rows.map((r) => r.map((v) => v ?? "")),
                ),
              )
            }
          >
            Save CSV
          </button>
        )}
      </div>
      {state.error && (
        <p class="note" role="alert">
          {state.error}
        </p>
      )}
      {!answer && !state.error && !state.busy && (
        <p class="empty">
          Run shows the rows here. The tables are objects, classes, fields, refs, strings, retained,
          roots, and each class by its name in double quotes.
        </p>
      )}
      {answer && (
        <SortableTable
          caption="Answer"
          limit={2000}
          natural
          rows={answer.rows.map((r, i) => ({ key: i, cells: r.map((v) => v ?? "") }))}
          selected={new Set()}
          columns={answer.columns.map((title, i) => ({
            title,
            numeric: answer.rows.some((r) => typeof r[i] === "number"),
          }))}
          onSelect={(s) => {
            const id = answer.rows[[...s][0]]?.find(
              (v) => typeof v === "string" && /^0x[0-9a-f]+$/.test(v),
            );
            if (typeof id === "string") p.onChoose(id);
          }}
        />
      )}
    </div>
  );
}
