// SPDX-License-Identifier: Apache-2.0
// The heap as areas: each box is an object with everything that it keeps alive; a large box
// contains the objects that it dominates.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Names } from "./flamepaint";
import { bytes, percent } from "./format";
import { Ask, HeapObject, Summary, simple, titleOf } from "./heapdata";
import { seedOf } from "./palette";
import { useSize } from "./size";
import { useDark } from "./theme";
import { Box, squarify } from "./treemap";

interface Props {
  ask: Ask;
  summary: Summary;
  chosen: string;
  zoom: string; // addresses from the outside in, with "." between them; "" is everything
  onChoose: (object: string) => void;
  onZoom: (zoom: string) => void;
}

interface Area extends Box<HeapObject> {
  inner: Box<HeapObject>[];
}

const HEAD = 18;

/** A colour for a package, the same for all its classes, with enough contrast for text. */
export const hue = (name: string) => (seedOf(name.replace(/[^.]*$/, "")) * 47) % 360;
const fillOf = (name: string, dark: boolean, level: number) =>
  `hsl(${hue(name)} ${dark ? 32 : 46}% ${dark ? 24 + 7 * level : 84 - 9 * level}%)`;

export function HeapMap(p: Props) {
  const dark = useDark();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(box);
  const [top, setTop] = useState<HeapObject[]>([]);
  const [inner, setInner] = useState<Record<string, HeapObject[]>>({});
  const [hover, setHover] = useState<{ o: HeapObject; x: number; y: number } | null>(null);
  const [cursor, setCursor] = useState(0);
  const [trail, setTrail] = useState<HeapObject[]>([]);
  const here = p.zoom.split(".").pop() ?? "";
  const wholeOf = here
    ? (trail.find((o) => o.object === here)?.retained ?? top.reduce((a, o) => a + o.retained, 0))
    : p.summary.reachableBytes;
  useEffect(() => {
    let gone = false;
    setCursor(0);
    p.ask<{ dominators: HeapObject[] }>("dominators", { children: here || "root" }).then(
      async ({ dominators }) => {
        if (gone) return;
        setTop(dominators);
        const large = dominators
          .filter(
            (o) => o.children && o.retained > 0.04 * dominators.reduce((a, x) => a + x.retained, 0),
          )
          .slice(0, 14);
        const lists = await Promise.all(
          large.map((o) =>
            p
              .ask<{ dominators: HeapObject[] }>("dominators", { children: o.object })
              .catch(() => ({ dominators: [] })),
          ),
        );
        if (!gone)
          setInner(Object.fromEntries(large.map((o, i) => [o.object, lists[i].dominators])));
      },
      () => gone || setTop([]),
    );
    return () => void (gone = true);
  }, [here, p.ask]);
  useEffect(() => {
    // A link into the map: the objects of its path are requested once.
    const ids = p.zoom ? p.zoom.split(".") : [];
    if (ids.every((id) => trail.some((o) => o.object === id))) return;
    let gone = false;
    (async () => {
      const known: HeapObject[] = [];
      for (let i = 0; i < ids.length; i++) {
        const { dominators } = await p.ask<{ dominators: HeapObject[] }>("dominators", {
          children: i ? ids[i - 1] : "root",
        });
        const o = dominators.find((x) => x.object === ids[i]);
        if (o) known.push(o);
      }
      if (!gone) setTrail(known);
    })().catch(() => {});
    return () => void (gone = true);
  }, [p.zoom]);
  const areas = useMemo<Area[]>(() => {
    const whole = Math.max(
      wholeOf,
      top.reduce((a, o) => a + o.retained, 0),
      1,
    );
    return squarify(
      top.map((o) => ({ size: o.retained, item: o })),
      whole,
      0,
      0,
      size[0],
      size[1],
    ).map((a) => ({
      ...a,
      inner:
        a.w > 60 && a.h > HEAD + 24 && inner[a.item.object]
          ? squarify(
              inner[a.item.object].map((o) => ({ size: o.retained, item: o })),
              a.item.retained,
              a.x + 2,
              a.y + HEAD,
              a.w - 4,
              a.h - HEAD - 2,
            )
          : [],
    }));
  }, [top, inner, size, wholeOf]);
  useEffect(() => {
    const c = canvas.current;
    const [w, h] = size;
    if (!c || !w) return;
    const ratio = devicePixelRatio || 1;
    c.width = w * ratio;
    c.height = h * ratio;
    const ctx = c.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = dark ? "#1b2424" : "#e6ecea";
    ctx.fillRect(0, 0, w, h);
    ctx.textBaseline = "middle";
    for (const a of areas) {
      paint(ctx, a, dark, 0, p.chosen, a.inner.length > 0);
      for (const b of a.inner) paint(ctx, b, dark, 1, p.chosen, false);
    }
    const at = areas[cursor];
    if (at && document.activeElement === c) {
      ctx.strokeStyle = dark ? "#8cc8ff" : "#0b57d0";
      ctx.lineWidth = 2.5;
      ctx.strokeRect(at.x + 1.5, at.y + 1.5, Math.max(at.w - 3, 1), Math.max(at.h - 3, 1));
    }
  });
  const hit = (e: MouseEvent): { o: HeapObject; parent: HeapObject | null } | null => {
    const r = canvas.current!.getBoundingClientRect();
    const inside = (b: Box<HeapObject>) =>
      e.clientX - r.left >= b.x &&
      e.clientX - r.left < b.x + b.w &&
      e.clientY - r.top >= b.y &&
      e.clientY - r.top < b.y + b.h;
    const a = areas.find(inside);
    const b = a?.inner.find(inside);
    return a ? { o: b ? b.item : a.item, parent: b ? a.item : null } : null;
  };
  const into = (o: HeapObject, parent: HeapObject | null) => {
    if (!o.children) return;
    const steps = parent ? [parent, o] : [o];
    setTrail((t) => [...t.filter((x) => !steps.includes(x)), ...steps]);
    p.onZoom([...(p.zoom ? [p.zoom] : []), ...steps.map((s) => s.object)].join("."));
  };
  const out = () => p.onZoom(p.zoom.split(".").slice(0, -1).join("."));
  const onKey = (e: KeyboardEvent) => {
    const o = areas[cursor]?.item;
    const acts: Record<string, () => void> = {
      ArrowRight: () => setCursor(Math.min(areas.length - 1, cursor + 1)),
      ArrowDown: () => setCursor(Math.min(areas.length - 1, cursor + 1)),
      ArrowLeft: () => setCursor(Math.max(0, cursor - 1)),
      ArrowUp: () => setCursor(Math.max(0, cursor - 1)),
      Home: () => p.onZoom(""),
      Enter: () => o && into(o, null),
      " ": () => o && p.onChoose(o.object),
      Backspace: out,
    };
    if (!acts[e.key] || (e.key === "Backspace" && !p.zoom)) return;
    acts[e.key]();
    e.preventDefault();
    e.stopPropagation();
  };
  const o = areas[cursor]?.item;
  const steps = p.zoom ? p.zoom.split(".") : [];
  return (
    <div class="heapmap">
      <nav class="crumbs" aria-label="Where in the tree of dominators">
        <button onClick={() => p.onZoom("")} disabled={!p.zoom}>
          Heap {bytes(p.summary.reachableBytes)}
        </button>
        {steps.map((id, i) => {
          const x = trail.find((y) => y.object === id);
          return (
            <>
              <span aria-hidden="true">›</span>
              <button
                disabled={i === steps.length - 1}
                title={x ? titleOf(x) : id}
                onClick={() => p.onZoom(steps.slice(0, i + 1).join("."))}
              >
                {x ? `${simple(x.class)} ${bytes(x.retained)}` : id}
              </button>
            </>
          );
        })}
      </nav>
      <div class="map" ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          data-keys
          role="application"
          aria-roledescription="treemap"
          aria-label="Map of the objects that hold the memory. Arrow keys move from larger to smaller objects, Enter shows what an object holds, Backspace goes back, Space inspects the object."
          style={{ width: `${size[0]}px`, height: `${size[1]}px` }}
          onKeyDown={onKey}
          onFocus={() => setCursor((c) => c)}
          onMouseMove={(e) => {
            const h = hit(e);
            setHover(h ? { o: h.o, x: e.clientX, y: e.clientY } : null);
          }}
          onMouseLeave={() => setHover(null)}
          onClick={(e) => {
            const h = hit(e);
            if (h) p.onChoose(h.o.object);
          }}
          onDblClick={(e) => {
            const h = hit(e);
            if (h) into(h.o, h.parent);
          }}
        />
      </div>
      <p class="dim key">
        An area is an object with what it keeps; the areas in it are what it dominates. Classes of
        one package have one colour.
      </p>
      <div class="sr" aria-live="polite">
        {o
          ? `${titleOf(o)} keeps ${bytes(o.retained)}, ${percent(o.retained, p.summary.reachableBytes)} of the heap`
          : ""}
      </div>
      {hover && (
        <div
          class="tip"
          style={{
            left: `${Math.min(hover.x + 14, innerWidth - 420)}px`,
            top: `${Math.min(hover.y + 16, innerHeight - 110)}px`,
          }}
        >
          <b>{hover.o.class}</b>
          {hover.o.value && <span class="break">{hover.o.value.slice(0, 200)}</span>}
          <span>
            keeps {bytes(hover.o.retained)} · {percent(hover.o.retained, p.summary.reachableBytes)}{" "}
            of the heap
          </span>
          <span class="dim">
            {hover.o.children
              ? "click: what it is; double click: what it holds"
              : "click: what it is"}
          </span>
        </div>
      )}
    </div>
  );
}

function paint(
  ctx: CanvasRenderingContext2D,
  b: Box<HeapObject>,
  dark: boolean,
  level: number,
  chosen: string,
  head: boolean,
) {
  const { item: o } = b;
  ctx.fillStyle = fillOf(o.class, dark, level);
  ctx.fillRect(b.x, b.y, Math.max(b.w - 1, 0.6), Math.max(b.h - 1, 0.6));
  if (o.object === chosen) {
    ctx.strokeStyle = dark ? "#fff" : "#000";
    ctx.lineWidth = 2;
    ctx.strokeRect(b.x + 1, b.y + 1, Math.max(b.w - 3, 1), Math.max(b.h - 3, 1));
  }
  if (b.w < 44 || b.h < 15) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(b.x, b.y, b.w - 4, b.h);
  ctx.clip();
  ctx.fillStyle = dark ? "#eef2f2" : "#12211f";
  ctx.font = `${level ? "" : "600 "}12px system-ui, sans-serif`;
  const title = titleOf(o).slice(0, 120);
  ctx.fillText(
    new Names(ctx).fit(`${title}${head ? `  ${bytes(o.retained)}` : ""}`, () => title, b.w - 9),
    b.x + 5,
    b.y + 9.5,
  );
  if (!head && b.h > 32) {
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillText(
      new Names(ctx).fit(bytes(o.retained), () => "", b.w - 9),
      b.x + 5,
      b.y + 25,
    );
  }
  ctx.restore();
}
