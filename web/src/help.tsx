// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
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

export function Help(p: { page: PageJson; onClose: () => void; isDark: boolean; view: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const of = views.find((v) => v.name === p.view) ?? { help: <Profile isDark={p.isDark} />, keys };
  return (
    <dialog ref={dialog} onClose={p.onClose} onClick={(e) => e.target === dialog.current && dialog.current!.close()} aria-label="Help">
      <div class="help">
        <h2>How to read this page</h2>
        {of.help}
        <h2>Keys</h2>
        <dl>
          {[...of.keys, ...always.filter(([k]) => !of.keys.some(([o]) => o === k))].map(([k, what]) => (
            <>
              <dt>
                <kbd>{k}</kbd>
              </dt>
              <dd>{what}</dd>
            </>
          ))}
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

function Profile({ isDark }: { isDark: boolean }) {
  return (
    <>
      <p>
        Each box is a method; below it (above it, in a flame) is what it called. The wider a box, the more time was spent in it and in what
        it called. The order from left to right is by weight, not by time. <b>Self</b> is the time of the method's own code, <b>total</b>{" "}
        that of what it called as well; a method that calls itself is counted once.
      </p>
      <div class="legend">
        {kinds.slice(1).map((k, i) => (
          <span key={k}>
            <i style={{ background: colour(i + 1, 3, isDark) }} /> {kindTitles[k]}
          </span>
        ))}
      </div>
    </>
  );
}
