// SPDX-License-Identifier: Apache-2.0
// How to read the page of a fleet, and its keys.
import { useEffect, useRef } from "preact/hooks";
import { showAtTop } from "../dialog";
import type { View } from "./state";

const of: Record<View, string> = {
  services:
    "Each row is a version of a service, the one that costs most first. Choose one for its profile.",
  profile:
    "Each box is a method; below it is what it called. The wider a box, the more was counted in it and in what it called, over all machines that are chosen above.",
  difference:
    "What a version does more, or less, than the one it is compared with: methods whose share differs by more than chance.",
  requests:
    "Each field of the chart is a time and a latency; the more requests, the darker it is. The table has a row for each kind of request, with what most of its time went into, and what its slow ones have more of.",
  vm: "What the VMs themselves did: pauses for collections, stops, memory and CPU time.",
  findings:
    "What got slower when a new version came, and what slow requests waited for, the most expensive first. Choose one for its details.",
  method: "Which services and methods call a method, and what that costs.",
};

const keys: [string, string][] = [
  ["↑ ↓", "move between rows; in the chart of Requests also ← →"],
  ["Enter", "choose the row, or the field"],
  ["d", "light or dark"],
  ["?", "this help"],
  ["Escape", "close"],
];

export function Help({ view, onClose }: { view: View; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => showAtTop(dialog.current!), []);
  return (
    <dialog
      ref={dialog}
      onClose={onClose}
      onClick={(e) => e.target === dialog.current && dialog.current!.close()}
      aria-label="Help"
    >
      <div class="help">
        <h2>How to read this page</h2>
        <p>{of[view]}</p>
        <p>
          The fields above the table choose a service, its version, hosts, labels and a time; all
          views are about what is chosen. Times of day are UTC. <code>jvmscope fleet</code> answers
          the same questions.
        </p>
        <h2>Keys</h2>
        <dl>
          {keys.map(([k, what]) => (
            <>
              <dt>
                <kbd>{k}</kbd>
              </dt>
              <dd>{what}</dd>
            </>
          ))}
        </dl>
        <form method="dialog">
          <button autofocus>Close</button>
        </form>
      </div>
    </dialog>
  );
}
