// SPDX-License-Identifier: Apache-2.0
// Every view at the widths of a desk, a small laptop and a phone: no error in the console while
// views change, nothing beyond the window's edges, no control on top of another. With PICTURES=DIR
// each view is saved there as a PNG.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, java, jvmscope, launch, open, root, serve } from "./lab.mjs";

const pictures = process.env.PICTURES;
const sizes = [
  [1400, 900],
  [1024, 768],
  [390, 844],
];
let browser;
let server;
let base;
let views;

before(async () => {
  const { command, classes } = java(
    "Amounts",
    "Traced",
    "Covered",
    "HeapPage",
    "ThreadPrograms",
    "RequestCauses",
    "EveryView",
  );
  const file = (name) => join(folder, name);
  const run = (options, name, ...program) =>
    jvmscope(
      "run",
      ...options,
      "-o",
      file(name),
      "--",
      command,
      "-Xmx64m",
      "-cp",
      classes,
      ...program,
    );
  run(["--cpu", "--threads", "--alloc"], "mixed.jfr", "ThreadPrograms", "7");
  run(["--cpu", "--threads", "--alloc"], "other.jfr", "ThreadPrograms", "7");
  run(["--cpu=wall"], "wall.jfr", "ThreadPrograms", "7");
  run(["--cpu=times"], "times.jfr", "ThreadPrograms", "7");
  run(["--trace", "Traced*"], "calls.jfr", "Traced");
  run(["--cover", "--include", "Covered*"], "cover.jfr", "Covered");
  jvmscope(
    "run",
    "--requests",
    "-o",
    file("requests.jfr"),
    "--",
    command,
    "-Xmx512m",
    "-cp",
    classes,
    "RequestCauses",
  );
  run(
    [
      "--cpu",
      "--alloc",
      "--threads",
      "--requests",
      "--exceptions=stacks",
      "--events",
      "--trace",
      "EveryView.answer",
      "--cover",
      "--include",
      "EveryView*",
    ],
    "every.jfr",
    "EveryView",
  );
  const dump = spawnSync(command, ["-cp", classes, "HeapPage", file("sessions.hprof")], {
    encoding: "utf8",
  });
  assert.equal(dump.status, 0, dump.stderr);
  const files = [
    "mixed.jfr",
    "other.jfr",
    "wall.jfr",
    "times.jfr",
    "calls.jfr",
    "cover.jfr",
    "sessions.hprof",
    "requests.jfr",
    "every.jfr",
  ].map(file);
  [server, base] = await serve("--sources", join(root, "tests/java"), ...files);
  // Views of one file follow each other without loading the page anew, as a reader's do.
  views = [
    [
      0,
      [
        "v=profile&m=samples",
        "v=profile&m=allocations",
        "v=threads",
        "v=profile&m=samples&b=1",
        "v=monitors",
        "v=profile&m=samples&i=1&u=1",
        "v=profile&m=samples&q=Thread",
        "v=threads&tg=1",
        "v=coverage",
      ],
    ],
    [2, ["v=profile"]],
    [3, ["v=profile"]],
    [4, ["v=trace", "v=trace&call=4", "v=trace&cx=1"]],
    [5, ["v=coverage", "v=coverage&kl=Covered"]],
    [
      6,
      [
        "v=heap",
        "v=heap&ht=tree",
        "v=heap&ht=classes",
        "v=heap&ht=classes&ho=HeapPage$Session",
        "v=heap&ht=suspects",
        "v=heap&ht=query",
        "v=heap&ht=reports",
        "v=heap&ht=reports&hr=collections",
        ...["strings", "arrays", "references", "classes", "components", "unreachable"].map(
          (r) => `v=heap&ht=reports&hr=${r}`,
        ),
      ],
    ],
    [7, ["v=requests", "v=requests&rn=GET+%2Flock&ri=100", "v=requests&rb=10.190.0.71"]],
    [
      8,
      [
        "v=profile&m=samples",
        "v=method&m=samples&s=EveryView.work",
        "v=profile&m=allocations",
        "v=profile&m=locks",
        "v=threads",
        "v=monitors",
        "v=requests",
        "v=trace",
        "v=coverage",
        "v=profile&b=0",
      ],
    ],
  ];
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.kill("SIGTERM");
});

/** What is cut off at the window's edges, and controls and texts that lie on top of each other. */
function misplaced() {
  const bad = [];
  const name = (e) =>
    `<${e.tagName.toLowerCase()} ${e.className}> ${(e.getAttribute("aria-label") ?? e.textContent ?? "").trim().slice(0, 40)}`;
  const seen = (e) =>
    e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    !e.closest(".sr, [hidden]");
  const scrolls = (e) =>
    /auto|scroll/.test(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth;
  // A table that scrolls sideways shows its columns; what hides its overflow does not, and nobody
  // scrolls to a button.
  const hidden = (e, r) => {
    for (let p = e.parentElement; p; p = p.parentElement) {
      if (scrolls(p) && e.closest("table")) return false;
      if (p.classList.contains("cut") || getComputedStyle(p).textOverflow === "ellipsis")
        return false;
      const b = p.getBoundingClientRect();
      if (
        getComputedStyle(p).overflowX !== "visible" &&
        (r.right > b.right + 1 || r.left < b.left - 1)
      )
        return true;
    }
    return r.right > innerWidth + 1 || r.left < -1;
  };
  if (document.scrollingElement.scrollWidth > innerWidth)
    bad.push(`the page is ${document.scrollingElement.scrollWidth} pixels wide`);
  // Its parts scroll: a second scroll bar next to theirs would lead to empty room.
  if (document.scrollingElement.scrollHeight > innerHeight)
    bad.push(`the page is ${document.scrollingElement.scrollHeight} pixels high`);
  // Of a name that has no room, the package gives way before the method.
  for (const parts of [...document.querySelectorAll(".parts")].filter(seen)) {
    const [end, room] = [parts.querySelector("b"), parts.querySelector(".pkg")];
    const edge = parts.closest("td").getBoundingClientRect().right;
    if (
      (end.scrollWidth > end.clientWidth + 1 || end.getBoundingClientRect().right > edge + 1) &&
      room?.getBoundingClientRect().width > 20
    )
      bad.push(`the method is cut before its package: ${name(parts)}`);
  }
  // No part of a name is wider than its text.
  const text = document.createRange();
  for (const part of [...document.querySelectorAll(".parts > *")].filter(seen)) {
    text.selectNodeContents(part);
    if (part.getBoundingClientRect().width > text.getBoundingClientRect().width + 1)
      bad.push(`a gap in a name: ${name(part.parentElement)}`);
  }
  // The shares of a coverage stand together.
  const meters = [...document.querySelectorAll(".meter")]
    .filter(seen)
    .map((e) => e.getBoundingClientRect().top);
  if (innerWidth > 1000 && meters.length && Math.max(...meters) > Math.min(...meters) + 4)
    bad.push("a share of the coverage stands alone on its line");
  const parts = [
    ...document.querySelectorAll(
      "button, input, select, summary, textarea, h1, h2, h2 > small, h3, th, output, .legend > span, .facts > span, .note, canvas, .field",
    ),
  ].filter(seen);
  const boxes = [];
  // What is scrolled out of sight, or the part that is, lies over nothing.
  const visible = (e) => {
    let { left, right, top, bottom } = e.getBoundingClientRect();
    for (let p = e.parentElement; p; p = p.parentElement) {
      const box = p.getBoundingClientRect();
      if (getComputedStyle(p).overflowY === "visible") continue;
      top = Math.max(top, box.top);
      bottom = Math.min(bottom, box.bottom);
    }
    return { left, right, top, bottom };
  };
  for (const e of parts) {
    const r = e.getBoundingClientRect();
    if (!r.width || !r.height) continue;
    if (hidden(e, r))
      bad.push(`beyond the edge: ${name(e)} ${Math.round(r.left)}..${Math.round(r.right)}`);
    if (
      e.tagName !== "CANVAS" &&
      !e.closest("table, .virtual, .sortable, dialog, .zoom-out, .chip")
    )
      boxes.push([e, visible(e)]);
  }
  boxes.forEach(([a, r], i) => {
    for (const [b, s] of boxes.slice(i + 1)) {
      if (a.contains(b) || b.contains(a)) continue;
      const w = Math.min(r.right, s.right) - Math.max(r.left, s.left);
      const h = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
      if (w > 1.5 && h > 1.5)
        bad.push(`${name(a)} and ${name(b)} overlap by ${Math.round(w)} times ${Math.round(h)}`);
    }
  });
  for (const th of document.querySelectorAll("main th[aria-sort]:not([aria-sort=none])"))
    if (!seen(th)) bad.push(`sorted by a column that is not shown: ${name(th)}`);
  // Of every table the columns of names are to be read, and so are the titles of all columns.
  for (const table of [...document.querySelectorAll("main table:not(.refs)")].filter(seen)) {
    for (const th of [...table.querySelectorAll("thead th")].filter(seen)) {
      const r = th.getBoundingClientRect();
      const isName = !/\b(n|num)\b/.test(th.className);
      const cells = [...table.querySelectorAll("tbody tr")]
        .map((tr) => tr.cells[th.cellIndex])
        .filter(Boolean);
      if (
        isName &&
        r.width < (innerWidth > 1200 ? 140 : 90) &&
        cells.some((c) => c.scrollWidth > c.clientWidth + 1)
      )
        bad.push(`a column of names is ${Math.round(r.width)} pixels wide: ${name(th)}`);
      if (!isName && cells.some((c) => c.scrollWidth > c.clientWidth + 1))
        bad.push(`a number is cut: ${name(th)}`);
      const isMoment = (c) => /^\s*\d+\.\d{6}\u00a0s\s*$/.test(c.textContent); // to be compared with others
      if (!isName && cells.some((c) => /\d\.\d{4}/.test(c.textContent) && !isMoment(c)))
        bad.push(`a number has more digits than one reads: ${name(th)}`);
      if (th.scrollWidth > th.clientWidth + 1) bad.push(`a title is cut: ${name(th)}`);
      if (th.clientHeight > 40) bad.push(`a title wraps: ${name(th)}`);
      // Only where the columns are what was asked for, a table may be wider than its place; what a
      // row is about stays in sight then.
      const place = (
        table.closest(".sortable, .virtual, .methods, .details") ?? table.parentElement
      ).getBoundingClientRect();
      if (!table.closest(".query, .suspects") && r.right > place.right + 1)
        bad.push(`a column lies beyond the edge of its table: ${name(th)}`);
      if (
        innerWidth < 900 &&
        table.closest(".suspects") &&
        th.cellIndex === 0 &&
        th.nextElementSibling &&
        r.width > 0.6 * place.width
      )
        bad.push(`the first column leaves no room for the next: ${name(th)}`);
      if (
        innerWidth < 900 &&
        table.closest(".query, .suspects") &&
        th.cellIndex === 0 &&
        getComputedStyle(th).left !== "0px"
      )
        bad.push(`the first column scrolls out of sight: ${name(th)}`);
    }
  }
  // A command is broken between its words.
  for (const e of [...document.querySelectorAll("code span")].filter(seen))
    if (e.getClientRects().length > 1) bad.push(`a word is broken: ${name(e)}`);
  // A note is whole, and what saves a view does not stand alone on a line of its own where there is
  // room next to it.
  for (const e of [...document.querySelectorAll(".note")].filter(seen))
    if (e.scrollHeight > e.clientHeight + 1) bad.push(`a note is cut: ${name(e)}`);
  for (const tools of [...document.querySelectorAll(".tools")].filter(seen)) {
    const r = [...tools.children].map((e) => e.getBoundingClientRect()).filter((b) => b.height);
    const last = r.at(-1);
    if (
      innerWidth > 1000 &&
      r.length > 2 &&
      last.width < 120 &&
      !r.slice(0, -1).some((b) => b.bottom > last.top + 1 && b.top < last.bottom)
    )
      bad.push(`alone on its line: ${name(tools.lastElementChild)}`);
  }
  // What is known of a view stands next to each other where there is room.
  const facts = [...document.querySelectorAll("header .facts > span")]
    .filter(seen)
    .map((e) => e.getBoundingClientRect());
  if (
    innerWidth > 1000 &&
    facts.length &&
    Math.max(...facts.map((r) => r.top)) > Math.min(...facts.map((r) => r.top)) + 4
  )
    bad.push("the facts of a view are on several lines");
  // Some of the view itself is to be seen, not controls alone.
  const main = document.querySelector("main")?.getBoundingClientRect();
  if (!main || main.height < innerHeight * 0.3)
    bad.push(`the view is ${Math.round(main?.height ?? 0)} pixels high`);
  // A few threads fill their half of the page with higher rows, and what is known of them comes
  // right below.
  const rows = document.querySelector(".rows");
  const { lines, row } = rows?.querySelector("canvas").dataset ?? {};
  if (rows && rows.clientHeight > row * lines + 24 + Number(lines))
    bad.push("empty room below the rows of threads");
  if (
    rows &&
    row < 65 &&
    rows.clientHeight < innerHeight * 0.45 &&
    document.querySelector(".details").clientHeight > 180
  )
    bad.push(`rows of ${row} pixels take ${rows.clientHeight} of ${innerHeight}`);
  // The names leave most of the width to the time: a line one pixel wide stands behind them.
  const drawn = rows?.querySelector("canvas");
  if (drawn) {
    const line = drawn.getContext("2d").getImageData(0, drawn.height - 3, drawn.width, 1).data;
    let x = 0;
    while (
      x < drawn.width &&
      !(line[4 * x] === 0xdb && line[4 * x + 1] === 0xe4 && line[4 * x + 2] === 0xe2)
    )
      x++;
    if (x < 60 || x > drawn.width * 0.3) bad.push(`names take ${x} of ${drawn.width} pixels`);
  }
  const link = new URLSearchParams(location.hash.slice(1)).get("call");
  if (link && !document.querySelector(".virtual tr[aria-selected=true]"))
    bad.push("the call that the address names is not chosen");
  // Two entries of a legend look different.
  for (const legend of document.querySelectorAll(".legend")) {
    const looks = [...legend.children].map(
      (s) => getComputedStyle(s.querySelector("i")).background,
    );
    if (new Set(looks).size < looks.length)
      bad.push(`two entries of one colour: ${legend.textContent}`);
  }
  return bad;
}

/** Texts that hardly stand out from what is behind them: a contrast below 4.5, or 3 for large ones. */
function faint() {
  const bad = new Set();
  const context = Object.assign(document.createElement("canvas"), {
    width: 1,
    height: 1,
  }).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const pixel = (colour) => {
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      known.set(
        colour,
        [...context.getImageData(0, 0, 1, 1).data].map((v) => v / 255),
      );
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  const light = (c) =>
    c
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) =>
    e ? over(pixel(getComputedStyle(e).backgroundColor), behind(e.parentElement)) : [1, 1, 1];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (
      !n.data.trim() ||
      !e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ||
      e.closest(".sr, :disabled, script, style, option")
    )
      continue;
    const style = getComputedStyle(e);
    const back = behind(e);
    let opacity = 1;
    for (let p = e; p; p = p.parentElement) opacity *= Number(getComputedStyle(p).opacity);
    const [r, g, b, a] = pixel(style.color);
    const [one, other] = [light(over([r, g, b, a * opacity], back)), light(back)].sort(
      (x, y) => y - x,
    );
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < (parseFloat(style.fontSize) >= 18 ? 3 : 4.5))
      bad.add(
        `contrast ${contrast.toFixed(2)}: <${e.tagName.toLowerCase()} ${e.className}> ${n.data.trim().slice(0, 40)}`,
      );
  }
  return [...bad];
}

test("states, arrows and marks of threads have colours that differ clearly, light and dark", () => {
  const lab = (hex) => {
    const [r, g, b] = [1, 3, 5]
      .map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    const xyz = [
      (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
      0.2126 * r + 0.7152 * g + 0.0722 * b,
      (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    ];
    const [x, y, z] = xyz.map((t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116));
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const source = readFileSync(join(root, "web/src/threadpaint.ts"), "utf8");
  const bad = [];
  for (const table of ["stateColours", "edgeColours", "markColours"]) {
    const entries = [
      ...source
        .match(new RegExp(`${table}[^{]*\\{([^}]*)\\}`))[1]
        .matchAll(/"?([\w-]+)"?: \["(#\w+)", "(#\w+)"\]/g),
    ];
    assert.ok(entries.length >= 5, table);
    entries.forEach((one, i) =>
      entries.slice(i + 1).forEach((other) =>
        [2, 3].forEach((theme) => {
          const [a, b] = [lab(one[theme]), lab(other[theme])];
          const distance = Math.hypot(...a.map((v, k) => v - b[k])); // CIE 1976; about 2 can just be seen side by side
          if (distance < 16) bad.push(`${table}: ${one[1]} and ${other[1]} ${distance.toFixed(1)}`);
        }),
      ),
    );
  }
  assert.deepEqual(bad, []);
});

test("names stand out from the colours of their frames, light and dark", async () => {
  const source = readFileSync(join(root, "web/src/palette.ts"), "utf8");
  const tables = [...source.matchAll(/const (?:light|dark): [^{]*\{([^}]*)\}/g)].map((m) => [
    ...m[1].matchAll(/(\w+): \[(\d+), (\d+), (\d+)\]/g),
  ]);
  const inks = source
    .match(/const ink .*\? "(#\w+)" : "(#\w+)"/)
    .slice(1)
    .reverse();
  assert.deepEqual(
    tables.map((t) => t.length),
    [8, 8],
  );
  const page = await open(browser, `${base}0/#v=profile`);
  const bad = await page.evaluate(
    ([all, texts]) => {
      const context = document
        .createElement("canvas")
        .getContext("2d", { willReadFrequently: true });
      const light = (colour) => {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const c = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255);
        return c
          .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
          .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      };
      const found = [];
      all.forEach((table, dark) =>
        table.forEach(([kind, h, s, l]) =>
          [-3, 3].forEach((shift) => {
            const [one, other] = [
              light(texts[dark]),
              light(`hsl(${h + shift * 1.5} ${s}% ${l + shift * (dark ? 1.1 : 1.4)}%)`),
            ].sort((x, y) => y - x);
            if ((one + 0.05) / (other + 0.05) < 4.5)
              found.push(
                `${kind} ${dark ? "dark" : "light"}: ${((one + 0.05) / (other + 0.05)).toFixed(2)}`,
              );
          }),
        ),
      );
      return found;
    },
    [tables.map((t) => t.map(([, kind, ...numbers]) => [kind, ...numbers.map(Number)])), inks],
  );
  await page.context().close();
  assert.deepEqual(bad, []);
});

for (const [width, height] of sizes) {
  test(`every view at ${width} pixels: no errors, nothing cut off, nothing on top of something else`, async () => {
    const bad = [];
    for (const [file, list] of views) {
      const page = await open(browser, `${base}${file}/#${list[0]}`, {
        viewport: { width, height },
        reducedMotion: "reduce",
      });
      // To compare, the page asks for the other recording of its own server.
      const problems = () =>
        page.problems.splice(0).filter((p) => !p.startsWith(`request ${base}`));
      for (const view of list) {
        await page.evaluate((hash) => (location.hash = hash), view);
        await page.waitForFunction(
          () => !/Reading the/.test(document.querySelector("#app").textContent),
        );
        await page.waitForTimeout(250);
        const label = `${width} ${file} ${view}`;
        bad.push(...(await page.evaluate(misplaced)).map((b) => `${label}: ${b}`));
        bad.push(...problems().map((b) => `${label}: console: ${b}`));
        // Colours do not depend on the size: the system's light and dark are compared at one.
        for (const colorScheme of pictures || width === 1400 ? ["dark", "light"] : []) {
          await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
          await page.waitForTimeout(50);
          bad.push(...(await page.evaluate(faint)).map((b) => `${label} ${colorScheme}: ${b}`));
          if (!pictures) continue;
          mkdirSync(pictures, { recursive: true });
          await page.screenshot({
            path: join(
              pictures,
              `${width}-${colorScheme}-${file}-${view.replace(/[^a-z0-9]+/gi, "-")}.png`,
            ),
          });
        }
      }
      // The same by clicks, faster than anything is drawn, and with the window changing meanwhile.
      const tabs = page.locator(".tabs button");
      for (let turn = 0; turn < 2; turn++)
        for (let i = 0; i < (await tabs.count()); i++) {
          await page.setViewportSize({ width: width + (turn ? 0 : 7), height });
          await tabs.nth(i).evaluate((b) => b.click());
        }
      await page.waitForTimeout(250);
      bad.push(...problems().map((b) => `${width} ${file} by clicks: console: ${b}`));
      await page.context().close();
    }
    assert.deepEqual(bad, []);
  });
}
