// SPDX-License-Identifier: Apache-2.0
// A long list as a table of which only the visible rows are in the document; one row has the
// keyboard focus.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useSize } from "./size";

const ROW = 26;

interface Props {
  label: string;
  columns: { title: string; numeric?: boolean; width?: string; minor?: boolean }[]; // minor: left out where there is little room
  count: number;
  cursor: number; // row with the keyboard, -1 none
  level?: (row: number) => number; // of a tree, from 1
  expanded?: (row: number) => boolean | undefined;
  onCursor: (row: number) => void;
  onKey?: (e: KeyboardEvent, row: number) => boolean;
  cells: (row: number) => ComponentChildren[];
  rowClass?: (row: number) => string;
  empty?: string;
}

export const cellClass = (c: {
  numeric?: boolean;
  minor?: boolean;
  name?: boolean;
  words?: boolean;
}) =>
  [c.numeric && "n", c.minor && "minor", c.name && "name", c.words && "words"]
    .filter(Boolean)
    .join(" ");

export function VirtualTable(p: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = useSize(box)[1] || 600;
  const isTree = !!p.level;
  useEffect(() => {
    const b = box.current;
    if (!b || p.cursor < 0) return;
    const y = p.cursor * ROW;
    if (y < b.scrollTop) b.scrollTop = y;
    else if (y + 2 * ROW > b.scrollTop + b.clientHeight) b.scrollTop = y + 2 * ROW - b.clientHeight;
  }, [p.cursor, p.count, height]); // also when the table has become lower
  const first = Math.max(0, Math.floor(top / ROW) - 8);
  const last = Math.min(p.count, Math.ceil((top + height) / ROW) + 8);
  const onKey = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -p.count,
      End: p.count,
    };
    if (steps[e.key] && p.count)
      p.onCursor(Math.max(0, Math.min(p.count - 1, p.cursor + steps[e.key])));
    else if (!p.onKey || p.cursor < 0 || !p.onKey(e, p.cursor)) return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div
      class="virtual"
      ref={box}
      data-keys
      tabIndex={0}
      onScroll={(e) => setTop(e.currentTarget.scrollTop)}
      onKeyDown={onKey}
      role="group"
      aria-label={`${p.label}. Arrow keys move.`}
    >
      <table
        role={isTree ? "treegrid" : undefined}
        aria-rowcount={p.count + 1}
        aria-label={p.label}
      >
        <thead>
          <tr>
            {p.columns.map((c) => (
              <th
                scope="col"
                key={c.title}
                class={cellClass(c)}
                style={c.width ? { width: c.width } : undefined}
              >
                {c.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" style={{ height: `${first * ROW}px` }} />}
          {Array.from({ length: Math.max(0, last - first) }, (_, k) => {
            const i = first + k;
            return (
              <tr
                key={i}
                data-row={i}
                aria-rowindex={i + 2}
                aria-selected={i === p.cursor}
                aria-level={p.level?.(i)}
                aria-expanded={p.expanded?.(i)}
                class={`${i === p.cursor ? "on " : ""}${p.rowClass?.(i) ?? ""}`}
                onClick={() => p.onCursor(i)}
              >
                {p.cells(i).map((c, n) => (
                  <td key={n} class={cellClass(p.columns[n])}>
                    {c}
                  </td>
                ))}
              </tr>
            );
          })}
          {last < p.count && (
            <tr aria-hidden="true" style={{ height: `${(p.count - last) * ROW}px` }} />
          )}
        </tbody>
      </table>
      {!p.count && <p class="empty">{p.empty ?? "Nothing matches."}</p>}
    </div>
  );
}
