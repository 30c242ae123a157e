// SPDX-License-Identifier: Apache-2.0
// A table that sorts by any column and whose rows can be selected by mouse or keyboard.
import { useMemo, useState } from "preact/hooks";
import { Code, Parts } from "./parts";
import { cellClass } from "./virtual";

export interface Column {
  title: string;
  numeric?: boolean;
  format?: (v: number) => string;
  minor?: boolean; // left out where there is little room
  name?: boolean; // takes the room that the others leave, and is cut before a number is
  words?: boolean; // may take two lines
  code?: Code; // names whose ends stay where there is little room
}

export interface TableRow {
  key: number;
  cells: (string | number)[];
}

interface Props {
  caption: string;
  columns: Column[];
  rows: TableRow[];
  selected: Set<number>;
  onSelect: (s: Set<number>) => void;
  totals?: boolean; // a last line that sums the numeric columns of what is chosen (of all, when nothing is)
  by?: number;
  ties?: number; // the column by which rows that are equal are sorted, the largest first
  natural?: boolean; // in the order given until a column is chosen
  limit?: number; // rows that are shown at first; a button shows more
  cards?: boolean; // on a phone, each row is a card with all columns instead of a line with some
}

export function SortableTable(p: Props) {
  const [sort, setSort] = useState({ by: p.natural ? -1 : (p.by ?? 0), down: p.by !== undefined });
  const [anchor, setAnchor] = useState(-1);
  const [limit, setLimit] = useState(p.limit ?? 1000);
  const rows = useMemo(
    () =>
      sort.by < 0
        ? p.rows
        : [...p.rows].sort((a, b) => {
            const x = a.cells[sort.by];
            const y = b.cells[sort.by];
            const c =
              typeof x === "number" && typeof y === "number"
                ? x - y
                : String(x).localeCompare(String(y));
            const tie =
              p.ties === undefined ? 0 : Number(b.cells[p.ties]) - Number(a.cells[p.ties]);
            return (sort.down ? -c : c) || tie || a.key - b.key;
          }),
    [p.rows, sort],
  );
  const shown = rows.slice(0, limit);
  const pick = (i: number, e: { shiftKey: boolean }) => {
    const s = new Set(p.selected);
    if (e.shiftKey && anchor >= 0)
      for (let k = Math.min(i, anchor); k <= Math.max(i, anchor); k++) s.add(rows[k].key);
    else if (!s.delete(rows[i].key)) s.add(rows[i].key);
    setAnchor(i);
    p.onSelect(s);
  };
  const counted = p.selected.size ? rows.filter((r) => p.selected.has(r.key)) : rows;
  const names = p.columns.filter((c) => c.name).length;
  const format = (c: Column, v: string | number) =>
    c.format && typeof v === "number" ? c.format(v) : String(v);
  return (
    <div
      class={`sortable${p.cards ? " cards" : ""}${names > 2 ? " even" : ""}`}
      style={names > 2 ? { "--names": names } : undefined}
    >
      <table>
        <caption class="sr">{p.caption}</caption>
        <thead>
          <tr>
            {p.columns.map((c, i) => (
              <th
                scope="col"
                key={c.title}
                class={cellClass(c)}
                aria-sort={sort.by === i ? (sort.down ? "descending" : "ascending") : "none"}
              >
                <button
                  onClick={() => setSort({ by: i, down: sort.by === i ? !sort.down : !!c.numeric })}
                >
                  {c.title}
                  <span aria-hidden="true">{sort.by === i ? (sort.down ? " ↓" : " ↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((r, i) => (
            <tr
              key={r.key}
              tabIndex={0}
              aria-selected={p.selected.has(r.key)}
              class={p.selected.has(r.key) ? "on" : ""}
              onClick={(e) => pick(i, e)}
              onKeyDown={(e) => {
                const row = e.currentTarget as HTMLElement;
                if (e.key === " " || e.key === "Enter") pick(i, e);
                else if (e.key === "ArrowDown") (row.nextElementSibling as HTMLElement)?.focus();
                else if (e.key === "ArrowUp") (row.previousElementSibling as HTMLElement)?.focus();
                else return;
                e.preventDefault();
                e.stopPropagation();
              }}
            >
              {p.columns.map((c, k) => (
                <td
                  key={k}
                  class={cellClass(c)}
                  data-column={c.title.trim()}
                  title={c.numeric ? undefined : String(r.cells[k])}
                >
                  {c.code ? (
                    <Parts code={c.code} label={String(r.cells[k])} />
                  ) : (
                    format(c, r.cells[k])
                  )}
                </td>
              ))}
            </tr>
          ))}
          {rows.length > shown.length && (
            <tr>
              <td colSpan={p.columns.length} class="dim">
                … and {rows.length - shown.length} more{" "}
                <button class="link" onClick={() => setLimit(limit + 1000)}>
                  Show more
                </button>
              </td>
            </tr>
          )}
        </tbody>
        {p.totals && (
          <tfoot>
            <tr>
              {p.columns.map((c, k) => (
                <td key={k} class={cellClass(c)}>
                  {k === 0 && !c.numeric
                    ? `${p.selected.size ? "chosen" : "all"}: ${counted.length}`
                    : c.numeric &&
                        /count|blocks|waits|blocked|waited|i\/o|total|shallow/i.test(c.title)
                      ? format(
                          c,
                          counted.reduce((s, r) => s + Number(r.cells[k]), 0),
                        )
                      : ""}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}
