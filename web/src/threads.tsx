// SPDX-License-Identifier: Apache-2.0
// Selects threads in a list with weights that pops up.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Metric } from "./data";
import { allThreads, percent } from "./format";
import { nameTest } from "./tree";

interface Props {
  metric: Metric;
  names: string[];
  chosen: Set<number> | null;
  onChoose: (s: Set<number> | null) => void;
}

const SHOWN = 300;

export function ThreadPicker(p: Props) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const ranked = useMemo(() => {
    const w = new Map<number, number>();
    const c = p.metric.cells;
    for (let i = 0; i < c.n; i++) w.set(c.thread[i], (w.get(c.thread[i]) ?? 0) + c.weight[i]);
    return [...w].sort((a, b) => b[1] - a[1]);
  }, [p.metric]);
  const whole = ranked.reduce((s, r) => s + r[1], 0);
  useEffect(() => {
    if (!open) return;
    const away = (e: Event) => !box.current?.contains(e.target as Node) && setOpen(false);
    addEventListener("pointerdown", away);
    box.current?.querySelector("input")?.focus();
    return () => removeEventListener("pointerdown", away);
  }, [open]);
  if (ranked.length < 2) return null;
  const name = (t: number) => p.names[t] || "(no name)";
  const toggle = (t: number) => {
    const s = new Set(p.chosen ?? []);
    if (!s.delete(t)) s.add(t);
    p.onChoose(s.size ? s : null);
  };
  const test = nameTest(text, true);
  const rows = ranked.filter(([t]) => test(name(t)));
  const title = !p.chosen
    ? allThreads(ranked.length)
    : p.chosen.size === 1
      ? name([...p.chosen][0])
      : `${p.chosen.size} threads`;
  return (
    <div
      class="picker"
      ref={box}
      onKeyDown={(e) => {
        if (e.key === "Escape" && open) {
          setOpen(false);
          button.current?.focus();
          e.stopPropagation();
        }
      }}
    >
      <button
        ref={button}
        class={p.chosen ? "on" : ""}
        aria-expanded={open}
        aria-haspopup="dialog"
        onClick={() => setOpen(!open)}
      >
        <span class="cut">{title}</span> ▾
      </button>
      {open && (
        <div class="pop" role="dialog" aria-label="Threads">
          <input
            type="search"
            placeholder="Filter threads"
            aria-label="Filter threads"
            value={text}
            onInput={(e) => setText(e.currentTarget.value)}
          />
          <div class="row">
            <button onClick={() => p.onChoose(null)}>All</button>
            <button onClick={() => p.onChoose(rows.length ? new Set(rows.map((r) => r[0])) : null)}>
              Those shown
            </button>
          </div>
          <ul>
            {rows.slice(0, SHOWN).map(([t, w]) => (
              <li key={t}>
                <label>
                  <input type="checkbox" checked={!!p.chosen?.has(t)} onChange={() => toggle(t)} />
                  <span class="cut">{name(t)}</span>
                  <span class="dim">{percent(w, whole)}</span>
                </label>
              </li>
            ))}
            {rows.length > SHOWN && <li class="dim">… and {rows.length - SHOWN} more: filter</li>}
          </ul>
        </div>
      )}
    </div>
  );
}
