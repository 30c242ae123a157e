// SPDX-License-Identifier: Apache-2.0
// The filter dialog: a table of threads, sortable, with any number of them chosen.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { SortableTable } from "./sortable";
import { duration } from "./format";
import type { TimelineJson } from "./timeline";

interface Props {
  json: TimelineJson;
  chosen: Set<number> | null;
  onChoose: (s: Set<number> | null) => void;
  onClose: () => void;
}

export function ThreadFilter(p: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [set, change] = useState(new Set(p.chosen ?? p.json.threads.map((_, i) => i)));
  useEffect(() => dialog.current!.showModal(), []);
  const rows = useMemo(
    () => p.json.threads.map((x, i) => ({ key: i, cells: [x.id, x.name, x.group, p.json.stats.threads[i]?.blocked_ns ?? 0, p.json.stats.threads[i]?.waited_ns ?? 0] })),
    [p.json],
  );
  const apply = () => {
    p.onChoose(set.size && set.size < rows.length ? set : null);
    dialog.current!.close();
  };
  return (
    <dialog ref={dialog} class="wide" onClose={p.onClose} aria-label="Threads to show">
      <div class="help">
        <h2>Threads to show</h2>
        <SortableTable
          caption="Threads"
          columns={[{ title: "Id", numeric: true }, { title: "Name" }, { title: "Group" }, { title: "Blocked", numeric: true, format: duration }, { title: "Waited", numeric: true, format: duration }]}
          rows={rows}
          selected={set}
          onSelect={change}
        />
        <div class="row">
          <button onClick={() => change(new Set(rows.map((r) => r.key)))}>All</button>
          <button onClick={() => change(new Set())}>None</button>
          <button onClick={() => change(new Set(rows.filter((r) => !p.json.threads[r.key].system && Number(r.cells[3]) + Number(r.cells[4]) > 0).map((r) => r.key)))}>Those that do something</button>
          <span class="grow" />
          <button onClick={() => dialog.current!.close()}>Cancel</button>
          <button class="on" onClick={apply}>Show {set.size}</button>
        </div>
      </div>
    </dialog>
  );
}
