// SPDX-License-Identifier: Apache-2.0
// The filter dialog: a sortable table of threads, of which any number can be selected.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { parseTime, timeFault } from "./calls";
import { SortableTable } from "./sortable";
import { count, duration } from "./format";
import { useStats } from "./monitors";
import type { TimelineJson } from "./timeline";
import { nameTest } from "./tree";

interface Props {
  json: TimelineJson;
  chosen: Set<number> | null;
  onChoose: (s: Set<number> | null) => void;
  onClose: () => void;
  lock?: string; // class of locks that is chosen at first
}

const nobody = new Set<number>();

export function ThreadFilter(p: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [set, change] = useState(new Set(p.chosen ?? p.json.threads.map((_, i) => i)));
  const [text, setText] = useState("");
  const [blocked, setBlocked] = useState("");
  const [lock, setLock] = useState(p.lock ?? "");
  useEffect(() => dialog.current?.showModal(), []);
  const stats = useStats(p.json, nobody);
  const rows = useMemo(
    () =>
      p.json.threads.map((x, i) => ({
        key: i,
        cells: [
          x.id,
          x.name,
          x.group,
          stats.threads[i]?.blocked_ns ?? 0,
          stats.threads[i]?.waited_ns ?? 0,
        ],
      })),
    [p.json, stats],
  );
  const shown = useMemo(() => {
    let test = nameTest(text, true);
    try {
      const re = new RegExp(text, "i");
      if (!text.startsWith("=")) test = (s) => re.test(s);
    } catch {
      // Not a regular expression (yet): taken as a part of the name.
    }
    const least = parseTime(blocked);
    const users = lock ? new Set(stats.classes.find((c) => c.class === lock)?.users ?? []) : null;
    return rows.filter(
      (r) =>
        test(String(r.cells[1])) && Number(r.cells[3]) >= least && (!users || users.has(r.key)),
    );
  }, [rows, text, blocked, lock, stats]);
  const locks = useMemo(
    () =>
      stats.classes
        .filter((c) => c.users?.length)
        .map((c) => c.class)
        .sort(),
    [stats],
  );
  useEffect(() => {
    if (p.lock && locks.includes(p.lock))
      change(new Set(stats.classes.find((c) => c.class === p.lock)!.users));
  }, [p.lock, locks]);
  const apply = () => {
    p.onChoose(set.size && set.size < rows.length ? set : null);
    dialog.current!.close();
  };
  return (
    <dialog ref={dialog} class="wide" onClose={p.onClose} aria-label="Threads to show">
      <div class="help">
        <h2>Threads to show</h2>
        <div class="row">
          <input
            type="search"
            placeholder="Name (regular expression)"
            aria-label="Name, a regular expression"
            value={text}
            onInput={(e) => setText(e.currentTarget.value)}
          />
          <label class="field">
            blocked at least
            <input
              type="text"
              size={7}
              placeholder="1ms"
              aria-label="Blocked at least"
              aria-invalid={!!timeFault(blocked)}
              value={blocked}
              onInput={(e) => setBlocked(e.currentTarget.value)}
            />
          </label>
          {locks.length > 0 && (
            <select
              aria-label="Uses locks of"
              value={lock}
              onChange={(e) => setLock(e.currentTarget.value)}
            >
              <option value="">any lock</option>
              {locks.map((c) => (
                <option key={c} value={c}>
                  {c.slice(0, 120)}
                </option>
              ))}
            </select>
          )}
          <output aria-live="polite">
            {timeFault(blocked) ||
              (shown.length < rows.length ? `${count(shown.length)} of ${count(rows.length)}` : "")}
          </output>
        </div>
        <SortableTable
          caption="Threads"
          columns={[
            { title: "Id", numeric: true },
            { title: "Name" },
            { title: "Group" },
            { title: "Blocked", numeric: true, format: duration },
            { title: "Waited", numeric: true, format: duration },
          ]}
          rows={shown}
          selected={set}
          onSelect={change}
        />
        <div class="row">
          <button onClick={() => change(new Set(rows.map((r) => r.key)))}>All</button>
          {shown.length < rows.length && (
            <button onClick={() => change(new Set(shown.map((r) => r.key)))}>Those listed</button>
          )}
          <button onClick={() => change(new Set())}>None</button>
          <button
            onClick={() =>
              change(
                new Set(
                  rows
                    .filter(
                      (r) =>
                        !p.json.threads[r.key].system &&
                        Number(r.cells[3]) + Number(r.cells[4]) > 0,
                    )
                    .map((r) => r.key),
                ),
              )
            }
          >
            Active ones
          </button>
          <span class="grow" />
          <button onClick={() => dialog.current!.close()}>Cancel</button>
          <button class="on" onClick={apply}>
            Show {set.size}
          </button>
        </div>
      </div>
    </dialog>
  );
}
