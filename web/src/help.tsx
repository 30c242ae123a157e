// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { showAtTop } from "./dialog";
import { kinds, PageJson } from "./data";
import { Missing } from "./missing";
import { colour, kindTitles } from "./palette";
import { views } from "./views";

const keys: [string, string][] = [
  ["/", "search methods"],
  ["n N", "next, previous match of the search; in its box Enter, with Shift"],
  ["i", "inverted: the running methods first, their callers below"],
  ["f", "flame (upwards) or icicle (downwards)"],
  ["← ↑ → ↓", "move between frames or rows"],
  ["Enter", "zoom into a frame; on a row: callers and callees"],
  ["Backspace", "zoom out one frame"],
  ["Home", "show everything"],
  ["o", "callers and callees of the frame"],
  ["Ctrl + wheel", "zoom at the pointer"],
  ["d", "light or dark"],
  ["Escape", "back, close, clear"],
  ["?", "this help"],
];

const always: [string, string][] = [
  ["d", "light or dark (in the thread view: later)"],
  ["?", "this help"],
];

export function Help(p: {
  page: PageJson;
  onClose: () => void;
  isDark: boolean;
  view: string;
  metric: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => showAtTop(dialog.current!), []);
  const of = views.find((v) => v.name === p.view) ?? {
    help: <Profile isDark={p.isDark} metric={p.metric} />,
    keys,
  };
  return (
    <dialog
      ref={dialog}
      onClose={p.onClose}
      onClick={(e) => e.target === dialog.current && dialog.current!.close()}
      aria-label="Help"
    >
      <div class="help">
        <h2>How to read this page</h2>
        {of.help}
        <h2>Keys</h2>
        <dl>
          {[...of.keys, ...always.filter(([k]) => !of.keys.some(([o]) => o === k))].map(
            ([k, what]) => (
              <>
                <dt>
                  <kbd>{k}</kbd>
                </dt>
                <dd>{what}</dd>
              </>
            ),
          )}
        </dl>
        <h2>Not in this recording</h2>
        <Missing page={p.page} />
        <form method="dialog">
          <button autofocus>Close</button>
        </form>
      </div>
    </dialog>
  );
}

/** What the width of a box stands for, by the metric's name. */
const counted: Record<string, [what: string, its: string]> = {
  allocations: ["bytes were allocated", "the bytes that the method's own code allocated"],
  locks: ["time threads were blocked", "the time for which the method's own code was blocked"],
};

function Profile({ isDark, metric }: { isDark: boolean; metric: string }) {
  const [what, own] = counted[metric] ?? ["time was spent", "the time of the method's own code"];
  return (
    <>
      <p>
        Each box is a method; below it (above it, in a flame) is what it called. The wider a box,
        the more {what} in it and in what it called. The order from left to right is by weight, not
        by the order of the calls. <b>Self</b> counts {own}, <b>total</b> what it called as well; a
        method that calls itself is counted once.
      </p>
      <p>
        The colour says how the VM ran the method: interpreted, compiled, or inlined into a compiled
        method that called it. If a recording or event does not show this, the method is{" "}
        <b>{kindTitles.java}</b>.
      </p>
      <div class="legend">
        {kinds.map((k, i) => (
          <span key={k}>
            <i style={{ background: colour(i, 3, isDark) }} /> {kindTitles[k]}
          </span>
        ))}
      </div>
    </>
  );
}
