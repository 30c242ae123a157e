// SPDX-License-Identifier: Apache-2.0
// A recording with more threads, classes and places than a table shows at first and than one file
// has separate figures of: every sum is that of the command's JSON, or the page says of what it is.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { close, folder, java, jvmscope, launch, nanoseconds, number, open, serve } from "./lab.mjs";

const CLASSES = 2500; // a table of coverage shows 2,000 at first, the others 100
const file = (name) => join(folder, name);
let browser;
let server;
let bases; // of each recording: in one file, and served

before(async () => {
  const { command, classes } = java("ManyRows");
  const run = (name, options, ...program) =>
    jvmscope(
      "run",
      ...options,
      "-o",
      file(name),
      "--",
      command,
      "-Xmx128m",
      "-cp",
      classes,
      ...program,
    );
  run("rows.jfr", ["--threads", "--alloc=exact", "--include", "ManyRows"], "ManyRows");
  run("sampled.jfr", ["--alloc"], "ManyRows");
  jvmscope("convert", file("sampled.jfr"), "-o", file("sampled.html"));
  run("covered.jfr", ["--cover", "--include", "ManyRows"], "ManyRows", String(CLASSES));
  for (const name of ["rows", "covered"])
    jvmscope("convert", file(`${name}.jfr`), "-o", file(`${name}.html`));
  let base;
  [server, base] = await serve(file("rows.jfr"), file("covered.jfr"));
  bases = ["rows", "covered"].map((name, i) => [
    pathToFileURL(file(`${name}.html`)).href,
    `${base}${i}/`,
  ]);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.kill("SIGTERM");
});

const json = (...words) => JSON.parse(jvmscope(...words));
const section = (n) => `.columns section:nth-of-type(${n})`;
const foot = (page, n) =>
  page.$$eval(`${section(n)} tfoot td`, (tds) => tds.map((d) => d.textContent));

/** The tables of the monitors' view have the sums of the command's, for all threads or one. */
async function checkMonitors(page, truth, what) {
  const blocks = truth.blocks.reduce((s, b) => s + b.times.count, 0);
  const waits = truth.waits.reduce((s, w) => s + w.times.count, 0);
  // Both, because the tables are empty until the server answers, and a thread may not have waited.
  await page.waitForFunction(
    (wanted) =>
      wanted.every(
        ([selector, n]) =>
          Number(document.querySelector(`${selector} tfoot td:nth-child(3)`)?.textContent) === n,
      ),
    [
      [section(3), blocks],
      [section(4), waits],
    ],
  );
  const [byClass, ofBlocks, ofWaits] = await Promise.all([2, 3, 4].map((n) => foot(page, n)));
  const total = (list) => list.reduce((s, x) => s + x.times.total_ns, 0);
  assert.deepEqual([byClass[1], byClass[6]].map(number), [blocks, waits], what);
  assert.deepEqual([ofBlocks[2], ofWaits[2]].map(number), [blocks, waits], what);
  close(nanoseconds(byClass[2]), total(truth.blocks), what);
  close(nanoseconds(byClass[7]), total(truth.waits), what);
  close(nanoseconds(ofBlocks[3]), total(truth.blocks), what);
  close(nanoseconds(ofWaits[3]), total(truth.waits), what);
}

test("waits of many threads: the sums are those of all, and those of a thread are its own", async () => {
  const all = json("threads", "monitors", "--json", file("rows.jfr"));
  const used = all.threads.filter((t) => t.blocked || t.waited);
  assert.ok(used.length > 100 && all.waits.length > 100 && all.blocks.length > 100);
  for (const url of bases[0]) {
    const page = await open(browser, `${url}#v=monitors`);
    await page.waitForSelector(`${section(1)} tfoot`);
    await checkMonitors(page, all, url);
    const sum = (key) => all.threads.reduce((s, t) => s + t[key], 0);
    const threads = await foot(page, 1);
    assert.deepEqual([threads[3], threads[5]].map(number), [sum("blocked"), sum("waited")]);
    close(nanoseconds(threads[4]), sum("blocked_ns"), url);
    close(nanoseconds(threads[6]), sum("waited_ns"), url);
    close(nanoseconds(threads[8]), sum("io_ns"), url);
    for (const [n, rows] of [
      [3, all.blocks],
      [4, all.waits],
    ]) {
      const notes = (await page.locator(`${section(n)} .cut`).allTextContents()).join("");
      const of = (key) => rows.reduce((s, x) => s + x.times[key], 0);
      const shown = (text) => number(notes.match(text)?.[1] ?? "0");
      assert.equal(shown(/Of these, ([\d,]+) w/), of("cut"), url);
      assert.equal(shown(/What ended ([\d,]+) of them/), of("unknown"), url);
    }
    assert.match(await page.textContent(section(1)), /… and \d+ more/);

    await page.click(`${section(1)} tbody tr:nth-child(2)`);
    const name = await page.textContent(`${section(1)} tbody tr:nth-child(2) td`);
    const of = json("threads", "monitors", "--json", "--thread", name, file("rows.jfr"));
    const inFile = url.startsWith("file:");
    await page.waitForSelector(`h2:has-text('Classes of ${inFile ? "all threads" : "1 thread"}')`);
    assert.equal(await page.locator(".note:has-text('all threads')").count(), inFile ? 1 : 0);
    await checkMonitors(page, inFile ? all : of, `${url} ${name}`);
    assert.deepEqual(page.problems, []);
  }
});

test("allocations at many places: the methods' own bytes are all that was allocated", async () => {
  const { allocations } = json("report", "--json", file("rows.jfr"));
  assert.ok(allocations.sites.length > 100);
  for (const url of bases[0]) {
    const page = await open(browser, `${url}#v=profile&m=allocations`);
    await page.waitForSelector(".methods tbody tr");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.click(".save summary").then(() => page.click('.save button:has-text("Table, CSV")')),
    ]);
    const [head, ...lines] = readFileSync(await download.path(), "utf8")
      .trim()
      .split("\r\n");
    assert.equal(head, "method,self,total,kind");
    const sum = lines.reduce((s, l) => s + Number(l.split(",").at(-3)), 0);
    const { total, unattributed, profiler } = allocations;
    assert.equal(sum, total - unattributed - profiler, url);
    assert.deepEqual(page.problems, []);
  }
});

test("sampled allocations that few samples show are marked as rough, as in the report", async () => {
  const page = await open(
    browser,
    `${pathToFileURL(file("sampled.html")).href}#v=profile&m=allocations`,
  );
  await page.waitForSelector(".methods tbody tr");
  const rows = await page.$$eval(".methods tbody tr:not([aria-hidden])", (list) =>
    list.map((r) => [r.querySelector(".method").title, r.cells[1].textContent]),
  );
  const marked = jvmscope("report", "--metric", "allocations", file("sampled.jfr"))
    .split("\n")
    .map((line) => line.match(/% +(~?)[\d.]+ \w+  (\S.*)$/))
    .filter(Boolean);
  assert.ok(marked.some((m) => m[1]) && rows.length);
  for (const [, mark, method] of marked) {
    const row = rows.find(([name]) => name === method);
    if (row) assert.equal(row[1].startsWith("~"), mark === "~", `${method}: ${row[1]}`);
  }
  assert.ok(marked.some(([, mark, method]) => mark && rows.some(([name]) => name === method)));
});

test("coverage of many classes: the meters and rows are those of all classes", async () => {
  const truth = json("coverage", "--json", file("covered.jfr"));
  assert.ok(truth.classes.length > 2000);
  for (const url of bases[1]) {
    const page = await open(browser, `${url}#v=coverage`);
    await page.waitForSelector(".coverage tbody tr");
    const { total } = truth;
    assert.deepEqual(
      await page.$$eval(".meters .meter", (all) => all.map((m) => m.title)),
      ["lines", "methods", "branches"].map((k) => `${total[`${k}_hit`]} of ${total[k]} ${k}`),
    );
    const rows = await page.locator(".coverage tbody tr").count();
    assert.equal(rows, 2001);
    assert.match(
      await page.textContent(".coverage tbody tr:last-child"),
      new RegExp(`… and ${truth.classes.length - 2000} more`),
    );
    assert.deepEqual(page.problems, []);
  }
});
