// SPDX-License-Identifier: Apache-2.0
// The heap views, served and in one file: their numbers are those of jvmscope heap VERB --json.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { faults, folder, java, jvmscope, launch, open, root, serve } from "./lab.mjs";

const dump = join(folder, "sessions.hprof");
const html = join(folder, "sessions.html");
let browser;
let server;
let served;
const file = pathToFileURL(html).href;
const ask = (verb, ...args) => JSON.parse(jvmscope("heap", verb, "--json", ...args));

before(async () => {
  const { command, classes } = java("HeapPage");
  spawnSync(command, ["-Xmx64m", "-cp", classes, "HeapPage", dump]);
  assert.ok(existsSync(dump));
  jvmscope("convert", dump, "-o", html);
  [server, served] = await serve("--query-limit", "2s", dump);
  served += "0/";
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.kill("SIGTERM");
});

const size = (text) => {
  const m = text.replace(/\u00a0/g, " ").match(/([\d.]+) (B|KiB|MiB|GiB)/);
  return Number(m[1]) * { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }[m[2]];
};
const near = (a, b) => Math.abs(a - b) <= 0.006 * b + 0.5;

test("classes: counts and sizes are those of heap histogram", async () => {
  const truth = ask("histogram", "--retained", dump).classes;
  for (const url of [file, served]) {
    const page = await open(browser, `${url}#ht=classes`);
    await page.waitForSelector(".sortable tbody tr");
    const rows = await page.$$eval(".sortable tbody tr", (trs) =>
      trs.map((r) => [...r.cells].map((c) => c.textContent)),
    );
    for (const c of truth.slice(0, 200)) {
      const row = rows.find((r) => r[0] === c.class);
      assert.ok(row, c.class);
      assert.equal(Number(row[1].replace(/\D/g, "")), c.objects, c.class);
      assert.ok(
        near(size(row[2]), c.shallow) && near(size(row[3]), c.retained),
        `${c.class}: ${row}`,
      );
    }
    assert.deepEqual(page.problems, []);
  }
});

test("the classes of a page are all of them, or it says how many there are", async () => {
  const { command, classes } = java("HeapManyClasses");
  const large = join(folder, "classes.hprof");
  spawnSync(command, ["-Xmx64m", "-cp", classes, "HeapManyClasses", large]);
  jvmscope("convert", large, "-o", join(folder, "classes.html"));
  const truth = ask("histogram", "--retained", "--limit", "1000000", large);
  const all = truth.classes.length.toLocaleString("en-US");
  assert.ok(truth.classes.length > 2295, all);
  const [other, site] = await serve(large);
  const url = `${site}0/`;
  try {
    for (const address of [url, pathToFileURL(join(folder, "classes.html")).href]) {
      const page = await open(browser, `${address}#ht=classes`);
      await page.waitForSelector(".sortable tbody tr");
      assert.equal(await page.textContent(".tools.inner output"), `${all} classes`);
      const totals = await page.$$eval(".sortable tfoot td, .sortable tfoot th", (cells) =>
        cells.map((c) => c.textContent),
      );
      if (address === url) {
        assert.equal(Number(totals[1].replace(/\D/g, "")), truth.objects);
        assert.ok(near(size(totals[2]), truth.bytes), totals.join());
      } else {
        assert.deepEqual(totals, []);
        await page.waitForSelector(`p.note:has-text("The first 2,000 of ${all} classes.")`);
      }
      assert.deepEqual(page.problems, []);
    }
  } finally {
    other.kill();
  }
});

test("the tree of dominators opens level by level, by keyboard too", async () => {
  const page = await open(browser, `${served}#ht=tree`);
  const top = ask("dominators", "--children", "root", "--limit", "3", dump).dominators;
  await page.waitForSelector(".virtual tr[data-row]");
  const cells = await page.$$eval(".virtual tr[data-row='0'] td", (t) =>
    t.map((c) => c.textContent),
  );
  assert.ok(near(size(cells[1]), top[0].retained), cells.join());
  const before = Number(await page.getAttribute(".virtual table", "aria-rowcount"));
  await page.locator(".virtual").focus();
  await page.keyboard.press("Home");
  await page.waitForSelector(".inspector");
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector(".virtual tr[data-row='0'][aria-expanded=true]");
  assert.equal(
    Number(await page.getAttribute(".virtual table", "aria-rowcount")),
    before + top[0].children,
  );
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector(".virtual tr[data-row='0'][aria-expanded=false]");
  assert.deepEqual(page.problems, []);
});

test("the pages of verbs fit on a phone, and that of diff names both dumps", async () => {
  for (const [verb, ...files] of [
    ["summary", dump],
    ["dominators", dump],
    ["histogram", dump],
    ["leaks", dump],
    ["diff", dump, dump],
  ]) {
    const out = join(folder, `${verb}.html`);
    jvmscope("heap", verb, "-o", out, ...files);
    const context = await browser.newContext({ viewport: { width: 390, height: 800 } });
    const page = await context.newPage();
    const problems = [];
    page.on("console", (m) => m.type() === "error" && problems.push(m.text()));
    await page.goto(pathToFileURL(out).href);
    assert.ok((await page.evaluate("document.documentElement.scrollWidth")) <= 390, verb);
    if (verb === "diff") {
      assert.match(await page.title(), /, compared with /);
      assert.match(await page.textContent("body"), /\(none\)/);
      assert.equal(await page.locator("table").count(), 0); // two equal dumps
    } else {
      const names = await page.$$eval("td:not([class])", (all) =>
        all.map((td) => td.getBoundingClientRect().width),
      );
      assert.ok(Math.min(...names, Infinity) > 200, `${verb}: ${names}`); // narrower names are torn
    }
    assert.deepEqual(problems, []);
    await context.close();
  }
});

test("a class after = is listed alone", async () => {
  for (const url of [file, served]) {
    const page = await open(browser, `${url}#ht=classes`);
    await page.waitForSelector("input[aria-label=Class]");
    for (const [typed, found] of [
      ["HeapPage$Session", true],
      ["=heappage$session", true],
      ["=HeapPage$Sessio", false],
      ["*$Session", true],
    ]) {
      await page.fill("input[aria-label=Class]", typed);
      const said = (await page.textContent(".tools.inner output")).split(" ")[0];
      if (typed.startsWith("=")) assert.equal(said, found ? "1" : "0", typed);
      else assert.ok(Number(said) >= 1, typed);
    }
    assert.deepEqual(page.problems, []);
  }
});

test("an object: what it holds, who refers to it, why it lives; its text is text", async () => {
  const [session] = ask("objects", "--limit", "1", dump, "HeapPage$Session").objects;
  const truth = ask("objects", dump, session.object);
  const path = ask("paths", dump, session.object).path;
  const page = await open(browser, `${served}#ho=${session.object}`);
  await page.waitForSelector(".inspector .path li");
  assert.ok(near(size(await page.textContent(".inspector p")), truth.retained));
  assert.equal(await page.locator(".inspector .path li").count(), path.length);
  assert.equal(
    await page.locator(".inspector table").nth(0).locator("tbody tr").count(),
    truth.fields.length,
  );
  assert.equal(
    await page.locator(".inspector table").nth(1).locator("tbody tr").count(),
    truth.incoming.length,
  );
  assert.match(await page.textContent(".inspector"), /<img src=x onerror=/);
  assert.equal(await page.locator("img").count(), 0);
  // Along a reference and into the list.
  await page.click(".inspector table >> nth=0 >> button.link:has-text('ArrayList')");
  await page.waitForSelector(".inspector h2:has-text('java.util.ArrayList')");
  await page.waitForFunction(
    (id) => location.hash.includes("ho=0x") && !location.hash.includes(id),
    session.object,
  );
  assert.equal(await page.title(), "sessions.hprof — jvmscope");
  assert.deepEqual(page.problems, []);
});

test("leak suspects are said in the command's sentences", async () => {
  const truth = ask("leaks", dump);
  for (const url of [file, served]) {
    const page = await open(browser, `${url}#ht=suspects`);
    await page.waitForSelector(".suspects article");
    assert.equal(await page.locator(".suspects article").count(), truth.suspects.length);
    const text = await page.textContent(".suspects");
    for (const s of truth.suspects) {
      assert.ok(
        text.includes(s.class === "java.lang.Class" ? `class ${s.value}` : s.class),
        s.text,
      );
      assert.ok(text.includes(s.percent.toFixed(1)));
    }
    await page.click(".suspects article button >> nth=0");
    await page.waitForSelector(".inspector h2");
    assert.deepEqual(page.problems, []);
  }
});

test("the map by mouse and keyboard; links lead into it", async () => {
  for (const url of [file, served]) {
    const page = await open(browser, url);
    const canvas = page.locator(".map canvas");
    await page.waitForFunction(() =>
      document.querySelector(".heapmap .sr")?.textContent.includes("keeps"),
    );
    // What areas and colours stand for; and no option of the command, which a page does not have.
    const legend = (await page.textContent(".heapmap .key")).replace(/\s+/g, " ");
    assert.match(legend, /one package have one colour\./);
    const facts = await page.textContent(".facts-list");
    assert.match(facts, /weak references ?retain what nothing else holds, as in Eclipse MAT/);
    assert.doesNotMatch(legend + facts, /--/);
    await canvas.focus();
    await page.keyboard.press("Space");
    await page.waitForSelector(".inspector h2:has-text('HeapPage')");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".crumbs button:nth-of-type(2)");
    await page.waitForURL(/hz=0x/);
    await page.reload();
    await page.waitForSelector(".crumbs button:has-text('Class')");
    await page.locator(".map canvas").focus();
    await page.keyboard.press("Backspace");
    await page.waitForSelector(".crumbs button:nth-of-type(2)", { state: "detached" });
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + 40, box.y + 60);
    await page.waitForSelector(".tip:has-text('keeps')");
    assert.deepEqual(page.problems, []);
  }
});

test("a query in SQL, its answer as a table; a wrong one is answered in a sentence", async () => {
  const sql = "SELECT class, count(*) AS n FROM objects GROUP BY class ORDER BY n DESC LIMIT 5";
  const truth = ask("query", dump, sql);
  const page = await open(browser, `${served}#ht=query`);
  await page.fill("textarea", sql);
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector(".query tbody tr");
  const rows = await page.$$eval(".query tbody tr", (trs) =>
    trs.map((r) => [...r.cells].map((c) => c.textContent)),
  );
  assert.deepEqual(
    rows,
    truth.rows.map((r) => r.map(String)),
  );
  await page.fill("textarea", "SELECT nonsense FROM nowhere");
  await page.click("button:has-text('Run')");
  await page.waitForSelector(".note[role=alert]:has-text('no such table')");
  // What a person typed is no error of the page: nothing is in the browser's console.
  assert.deepEqual(page.problems, []);
});

test("reports: every table of the verbs", async () => {
  const page = await open(browser, `${served}#ht=reports`);
  for (const verb of [
    "threads",
    "strings",
    "collections",
    "arrays",
    "references",
    "classes",
    "components",
    "unreachable",
  ]) {
    await page.selectOption("select[aria-label=Report]", verb);
    const truth = ask(verb, dump);
    const tables = Object.entries(truth).filter(
      ([, v]) => Array.isArray(v) && v.length && typeof v[0] === "object",
    );
    await page.waitForFunction(
      (n) => document.querySelectorAll(".suspects .sortable").length === n,
      tables.length,
    );
    // Every column is on the screen; of a table of 1,664 pixels the last seven were not.
    for (const width of [1400, 1024, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const wide = await page.$$eval(".suspects .sortable", (boxes) =>
        boxes
          .filter((b) => b.scrollWidth > b.clientWidth + 1)
          .map((b) => `${b.querySelector("caption").textContent} ${b.scrollWidth}`),
      );
      assert.deepEqual(wide, [], `${verb} at ${width}`);
      const cut = await page.$$eval(".suspects .sortable td.n", (cells) =>
        cells.filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.textContent),
      );
      assert.deepEqual(cut, [], `${verb} at ${width}`);
    }
  }
  assert.deepEqual(page.problems, []);
});

test("what one file does not hold is said; a wrong question is refused", async () => {
  const page = await open(browser, `${file}#ht=query`);
  await page.waitForSelector(".empty:has-text('jvmscope serve')");
  await page.goto(`${file}#ho=0x1`);
  await page.reload();
  await page.waitForSelector(".side:has-text('jvmscope serve')");
  const status = async (path) => (await fetch(`${served}${path}`)).status;
  assert.match(
    (await (await fetch(`${served}heap/objects?operand=0x1`)).json()).refused,
    /no object of the dump/,
  );
  assert.equal(await status("heap/nonsense"), 404);
  assert.equal(await status("heap/"), 404);
  assert.equal(await status("heap/summary"), 200);
});

test("a link that is followed stays in the address, whatever was about to be written there", async () => {
  const page = await open(browser, `${file}#ht=tree`, {}, () => {
    window.requestAnimationFrame = (f) => setTimeout(f, 300); // a busy machine paints late
  });
  for (let delay = 60; delay <= 200; delay += 10) {
    const wrong = await page.evaluate(async (delay) => {
      const pause = (ms) => new Promise((r) => setTimeout(r, ms));
      document.querySelector("button[aria-pressed=false]").click();
      await pause(delay);
      const link = `#ht=query&hs=${delay}`;
      location.hash = link;
      for (let i = 0; i < 20; i++) {
        await pause(10);
        if (location.hash !== link) return location.hash;
      }
    }, delay);
    assert.equal(wrong, undefined, `after ${delay} ms`);
  }
});

test("one file stays small, and no serious fault for assistive technology", async () => {
  assert.ok(readFileSync(html).length < 7 << 20);
  for (const colorScheme of ["light", "dark"]) {
    // In the dark the colours alone differ: where most of them are.
    for (const view of colorScheme === "dark"
      ? ["ht=suspects"]
      : ["", "ht=tree", "ht=classes", "ht=suspects", "ht=reports", "ht=query"]) {
      const page = await open(
        browser,
        `${["ht=query", "ht=reports"].includes(view) ? served : file}#${view}`,
        { colorScheme },
      );
      await page.waitForSelector(".heap");
      await page.waitForTimeout(150);
      assert.deepEqual(await faults(page), [], `${colorScheme} ${view}`);
    }
    const [session] = ask("objects", "--limit", "1", dump, "HeapPage$Session").objects;
    const page = await open(browser, `${served}#ho=${session.object}`, { colorScheme });
    await page.waitForSelector(".inspector");
    assert.deepEqual(await faults(page), [], `${colorScheme}, an object`);
  }
});

test("a query that takes long holds up nobody else, nor do many of them", async () => {
  // Each takes its two seconds, one after the other; there are more of them than threads that
  // answer.
  let answered = 0;
  const endless = encodeURIComponent(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
  );
  for (let i = 0; i < 6; i++)
    fetch(`${served}heap/query?sql=${endless}`).then(
      () => answered++,
      () => {},
    );
  for (const path of ["", "data", "ready", "", "data"])
    assert.equal((await fetch(`${served}${path}`)).status, 200, path);
  assert.ok(answered < 3, `${answered} of them came first`);
});
