// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { kinds } from "./data";
import { colour, kindTitles } from "./palette";

const keys: [string, string][] = [
  ["/", "search methods"],
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

const threadKeys: [string, string][] = [
  ["← →", "the thread's state before, after; or move in time"],
  ["↑ ↓", "the thread above, below"],
  ["+ - 0", "zoom in, out, everything; Ctrl + wheel zooms at the pointer, dragging moves"],
  ["a d", "earlier, later"],
  ["w", "go to the waker"],
  ["n p", "next, previous segment of the critical path"],
  ["c", "show or hide the critical path"],
  ["g", "group by thread group"],
  ["Escape", "back, close, clear"],
  ["?", "this help"],
];

export function Help(p: { onClose: () => void; isDark: boolean; view: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} onClose={p.onClose} onClick={(e) => e.target === dialog.current && dialog.current!.close()} aria-label="Help">
      <div class="help">
        <h2>How to read this page</h2>
        {p.view !== "profile" ? (
          <p>
            Each row is a thread, each colour a state; narrow bars are waits that cost no processor. An arrow leads from the thread that
            ended a wait to the one that went on; it is dashed where the cause was concluded and not recorded. The thick line is the{" "}
            <b>critical path</b>: the chain of activities that the whole time depends on. Only what lies on it can make the program faster.
            Click a state for its lock, its owner and both stacks.
          </p>
        ) : (
          <Profile isDark={p.isDark} />
        )}
        <h2>Keys</h2>
        <dl>
          {(p.view !== "profile" ? threadKeys : keys).map(([k, what]) => (
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
