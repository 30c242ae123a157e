// SPDX-License-Identifier: Apache-2.0
// The ranked methods: a real table, of which only the visible rows are in the document.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { kinds, Metric } from "./data";
import { count, percent, plural, weight } from "./format";
import { colour, kindTitles } from "./palette";
import { Parts } from "./parts";
import { useSize } from "./size";
import { useDark } from "./theme";
import type { Row } from "./tree";

const ROW = 28;

type Column = "self" | "total" | "calls" | "method";

interface Props {
  rows: Row[];
  labels: string[];
  metric: Metric;
  whole: number;
  selected: number;
  onSelect: (label: number) => void;
  onOpen: (label: number) => void;
}

export function MethodTable(p: Props) {
  const [sort, setSort] = useState<{ by: Column; down: boolean }>({ by: "self", down: true });
  const [top, setTop] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const height = useSize(box)[1] || 400;
  const isDark = useDark();
  // Own (0) or total (1) time that is not known is marked, and never ranked above known times.
  const few = (r: Row, of: 0 | 1) =>
    !!p.metric.readings && !p.metric.readings.get(r.label)?.known[of];
  const rough = (n: number) => n > 0 && n < p.metric.roughBelow;
  const why = (r: Row, of: 0 | 1) =>
    few(r, of)
      ? `From ${plural(p.metric.readings!.get(r.label)?.of[of] ?? 0, "reading")} of the clock: unknown, because the cost of counting may account for all of it`
      : of === 0 && r.self && p.metric.estimated.has(r.label)
        ? "Estimated from samples: allocated by the VM itself or by code that is not changed"
        : rough(of ? r.total : r.self)
          ? `Rough: on average fewer than ten samples stand for it, ${weight(p.metric.unit, p.metric.roughBelow)}`
          : "";
  const isUnread = (r: Row, of: 0 | 1) =>
    !!p.metric.readings && !p.metric.readings.get(r.label)?.of[of];
  const mark = (r: Row, of: 0 | 1, text: string) =>
    why(r, of) ? <span title={why(r, of)}>{isUnread(r, of) ? "-" : `~${text}`}</span> : text;
  const callsOf = (r: Row) => p.metric.calls?.get(r.label) ?? 0;
  const rows = useMemo(() => {
    const k = sort.down ? 1 : -1;
    const by = {
      self: (a: Row, b: Row) =>
        Number(few(a, 0)) - Number(few(b, 0)) || b.self - a.self || b.total - a.total,
      total: (a: Row, b: Row) =>
        Number(few(a, 1)) - Number(few(b, 1)) || b.total - a.total || b.self - a.self,
      calls: (a: Row, b: Row) => callsOf(b) - callsOf(a) || b.self - a.self,
      method: (a: Row, b: Row) => (p.labels[b.label] > p.labels[a.label] ? 1 : -1),
    }[sort.by];
    return [...p.rows].sort((a, b) => k * by(a, b) || a.label - b.label);
  }, [p.rows, sort]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
    setTop(0);
  }, [rows]);

  const first = Math.max(0, Math.floor(top / ROW) - 5);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + 5);
  const header = (by: Column, title: string, cls = "") => (
    <th
      scope="col"
      class={cls}
      aria-sort={sort.by === by ? (sort.down ? "descending" : "ascending") : "none"}
    >
      <button onClick={() => setSort({ by, down: sort.by === by ? !sort.down : by !== "method" })}>
        {title}
        <span aria-hidden="true">{sort.by === by ? (sort.down ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
  const step = (e: KeyboardEvent, i: number) => {
    const to = {
      ArrowDown: i + 1,
      ArrowUp: i - 1,
      Home: 0,
      End: rows.length - 1,
      PageDown: i + 15,
      PageUp: i - 15,
    }[e.key];
    if (e.key === "Enter") p.onOpen(rows[i].label);
    else if (to !== undefined && rows.length) {
      const n = Math.max(0, Math.min(rows.length - 1, to));
      const b = box.current!;
      const y = n * ROW;
      if (y < b.scrollTop) b.scrollTop = y;
      else if (y + 2 * ROW > b.scrollTop + b.clientHeight - ROW)
        b.scrollTop = y + 3 * ROW - b.clientHeight;
      setTop(b.scrollTop);
      p.onSelect(rows[n].label);
      setTimeout(() => b.querySelector<HTMLElement>(`tr[data-row="${n}"]`)?.focus(), 30);
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const isIn = rows.slice(first, last).some((r) => r.label === p.selected);
  return (
    <div class="methods" ref={box} onScroll={() => setTop(box.current!.scrollTop)}>
      <table class={p.metric.calls ? "with-calls" : ""} aria-rowcount={rows.length + 1}>
        <caption class="sr">Methods ranked by weight. Enter opens callers and callees.</caption>
        <thead>
          <tr>
            {header("self", "Self", "num")}
            <th scope="col" class="num plain minor" aria-label="Self, absolute" />
            {header("total", "Total", "num")}
            <th scope="col" class="num plain minor" aria-label="Total, absolute" />
            {p.metric.calls && header("calls", "Calls", "num calls")}
            {header("method", "Method")}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" style={{ height: `${first * ROW}px` }} />}
          {rows.slice(first, last).map((r, k) => {
            const i = first + k;
            const on = r.label === p.selected;
            return (
              <tr
                key={r.label}
                data-row={i}
                aria-rowindex={i + 2}
                aria-selected={on}
                class={on ? "on" : ""}
                tabIndex={on || (!isIn && k === 0) ? 0 : -1}
                onClick={() => p.onSelect(on ? -1 : r.label)}
                onDblClick={() => p.onOpen(r.label)}
                onKeyDown={(e) => step(e, i)}
              >
                <td class="num">
                  <Bar part={r.self} whole={p.whole} />
                  {mark(r, 0, percent(r.self, p.whole))}
                </td>
                <td class="num dim minor">{mark(r, 0, weight(p.metric.unit, r.self))}</td>
                <td class="num">
                  <Bar part={r.total} whole={p.whole} />
                  {mark(r, 1, percent(r.total, p.whole))}
                </td>
                <td class="num dim minor">{mark(r, 1, weight(p.metric.unit, r.total))}</td>
                {p.metric.calls && <td class="num calls">{count(callsOf(r))}</td>}
                <td class="method" title={p.labels[r.label]}>
                  <div>
                    <i
                      style={{ background: colour(r.kind, 3, isDark) }}
                      title={kindTitles[kinds[r.kind]]}
                    />
                    <Parts code="method" label={p.labels[r.label]} />
                  </div>
                </td>
              </tr>
            );
          })}
          {last < rows.length && (
            <tr aria-hidden="true" style={{ height: `${(rows.length - last) * ROW}px` }} />
          )}
        </tbody>
      </table>
      {!rows.length && <p class="empty">No method matches.</p>}
    </div>
  );
}

function Bar(p: { part: number; whole: number }) {
  return <span class="bar" style={{ width: `${p.whole ? (100 * p.part) / p.whole : 0}%` }} />;
}
