// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { kinds, PageJson } from "./data";
import { Missing } from "./missing";
import { colour, kindTitles } from "./palette";

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

const threadKeys: [string, string][] = [
  ["← →", "the thread's state before, after; or move in time"],
  ["↑ ↓", "the thread above, below"],
  ["+ - 0", "zoom in, out, everything; Ctrl + wheel zooms at the pointer, dragging moves"],
  ["a d", "earlier, later"],
  ["w e", "go to the waker, to what ended the state"],
  ["n p", "next, previous segment of the critical path"],
  ["c", "show or hide the critical path"],
  ["g m v s", "group by thread group; marks, threads of the VM on or off; choose threads"],
  ["Escape", "back, close, clear"],
  ["?", "this help"],
];

const callKeys: [string, string][] = [
  ["/", "search methods"],
  ["↑ ↓ PgUp PgDn Home End", "move between calls"],
  ["→ ←", "open and close a call; to its first call, to its caller"],
  ["n N", "next, previous call that matches the filter"],
  ["Escape", "back, close, clear"],
];

const heapKeys: [string, string][] = [
  ["↑ ↓ → ←", "move between objects; in the tree, open and close"],
  ["Enter", "in the map: go into what an object holds"],
  ["Backspace", "in the map: out again"],
  ["Space", "in the map: inspect the object"],
  ["Ctrl + Enter", "run the query"],
];

const always: [string, string][] = [
  ["d", "light or dark (in the thread view: later)"],
  ["?", "this help"],
];

const about: Record<string, { text: preact.ComponentChildren; keys: [string, string][] }> = {
  threads: {
    text: (
      <p>
        Each row is a thread, each colour a state; narrow bars are waits that cost no processor. A column of several colours is a moment of
        many states, by their shares. An arrow leads from the thread that ended a wait to the one that went on; it is dashed where the cause
        was concluded and not recorded. The thick line is the <b>critical path</b>: the chain of activities that the whole time depends on.
        Only what lies on it can make the program faster. A yellow box is a wait whose time ran out, a blue one a notifyAll; ticks above are
        notify and locks taken, below locks let go. Click a state for its lock, its owner and both stacks.
      </p>
    ),
    keys: threadKeys,
  },
  monitors: {
    text: (
      <p>
        Choose threads to see the classes whose monitors they used, choose classes to see where they blocked and waited, choose a place for
        its call stack. Nothing chosen means all. Shift chooses a range; the last line adds up what is chosen.
      </p>
    ),
    keys: [["↑ ↓", "move between rows"], ["Space", "choose the row"], ["Escape", "back, close, clear"]],
  },
  requests: {
    text: (
      <p>
        Each field of the picture is a moment and a latency, the stronger the more requests. Drag over fields, or choose a name, to see what
        these requests waited for beside the others. The <b>typical</b> requests are the middle half of a name, the <b>slow</b> ones its
        slowest hundredth. Choose a request for its waterfall: the parts add up to its latency.
      </p>
    ),
    keys: [["← ↑ → ↓", "in the picture: move; with Shift choose more"], ["Enter", "choose the field, or the row"], ["↑ ↓", "move between rows"], ["Escape", "choose nothing"]],
  },
  trace: { text: <p>Each line is a call that was recorded, with its arguments and what came back, below the call that made it.</p>, keys: callKeys },
  coverage: { text: <p>Green lines ran, red ones did not, yellow ones ran without taking every branch: the number says how many of them.</p>, keys: [["/", "search classes"], ["↑ ↓", "move between rows"], ["Space", "choose the row"]] },
  heap: {
    text: (
      <p>
        An object <b>retains</b> what would be freed if it went. Each box of the map is an object with all that it retains, and in a large box
        lie those that it keeps alive. The tree of dominators says the same in rows. Choose an object to see what is in it, who refers to it
        and the path from a GC root on which it lives.
      </p>
    ),
    keys: heapKeys,
  },
};

export function Help(p: { page: PageJson; onClose: () => void; isDark: boolean; view: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const of = about[p.view] ?? { text: <Profile isDark={p.isDark} />, keys };
  return (
    <dialog ref={dialog} onClose={p.onClose} onClick={(e) => e.target === dialog.current && dialog.current!.close()} aria-label="Help">
      <div class="help">
        <h2>How to read this page</h2>
        {of.text}
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
