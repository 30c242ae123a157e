// SPDX-License-Identifier: Apache-2.0
// Every view reports what a recording lost; what is idle is hidden by default with its sum, and
// shown by a switch.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder, java, jvmscope, launch, open, root, serve } from "./lab.mjs";

const file = (name) => join(folder, name);
const recordings = ["lost.jfr", "wall.jfr", "threads.jfr", "times.jfr", "killed.jfr"];
let browser;
let server;
let base;

/** Waits until the condition is true; an error counts as false. */
async function until(condition) {
  for (const limit = Date.now() + 60_000; ; await new Promise((done) => setTimeout(done, 100))) {
    try {
      if (condition()) return;
      if (Date.now() > limit) throw new Error("not within a minute");
    } catch (e) {
      if (Date.now() > limit) throw e;
    }
  }
}

before(async () => {
  const { command, classes } = java("Traced", "ThreadPrograms", "Ticks");
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
  run(["--trace", "Traced*", "--limit", "20", "--cpu", "--threads"], "lost.jfr", "Traced");
  run(["--cpu=wall"], "wall.jfr", "ThreadPrograms", "7");
  run(["--threads"], "threads.jfr", "ThreadPrograms", "7");
  run(["--cpu=times"], "times.jfr", "ThreadPrograms", "7");
  const agent = `-agentpath:${join(root, "build/libhprof.so")}=format=r,alloc=exact,cover=y,include=Ticks,file=${file("killed.jfr")}`;
  const program = spawn(command, [agent, "-Xmx64m", "-cp", classes, "Ticks"], { stdio: "ignore" });
  await until(() =>
    JSON.parse(jvmscope("report", "--json", file("killed.jfr"))).allocations.sites.some((s) =>
      s.trace[0]?.startsWith("Ticks."),
    ),
  );
  program.kill("SIGKILL");
  await once(program, "exit");
  for (const name of recordings)
    jvmscope("convert", file(name), "-o", file(name).replace("jfr", "html"));
  [server, base] = await serve(...recordings.map(file));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.kill("SIGTERM");
});

/** In one file and served. */
const both = (i) => [
  pathToFileURL(file(recordings[i]).replace("jfr", "html")).href,
  `${base}${i}/`,
];
const plain = (text) => text.replace(/[\u00a0\u202f]/g, " ");

test("what was lost is told in every view, by how much and of which capture", async () => {
  const { lost, losses } = JSON.parse(jvmscope("trace", "--json", file("lost.jfr")));
  assert.ok(lost > 0 && losses.length === 1);
  for (const url of both(0)) {
    for (const view of ["profile", "threads", "monitors", "trace"]) {
      const page = await open(browser, `${url}#v=${view}`);
      const told = plain(await page.locator(".lost").first().textContent());
      assert.match(told, new RegExp(`trace.*\\b${lost} calls`), `${url} ${view}`);
      assert.equal(
        await page.locator(".lost:has-text('Lost here')").count(),
        view === "trace" ? 1 : 0,
        view,
      );
      if (view === "trace") assert.ok(told.includes(losses[0].reason), told);
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  }
  // Where nothing was lost, nothing is said.
  const page = await open(browser, both(2)[0]);
  assert.equal(await page.locator(".lost").count(), 0);
});

test("samples of threads with nothing to do are hidden, with their sum; a switch shows them", async () => {
  const { wall } = JSON.parse(jvmscope("report", "--json", file("wall.jfr")));
  const all = JSON.parse(jvmscope("report", "--json", "--idle", file("wall.jfr"))).wall;
  assert.ok(wall.idle > 0 && wall.total > 0 && all.total === wall.total + wall.idle);
  for (const url of both(1)) {
    const page = await open(browser, url);
    const total = async () =>
      Number(
        plain(await page.textContent(".facts b"))
          .match(/^([\d ]+) samples?/)[1]
          .replace(/ /g, ""),
      );
    const first = () =>
      page
        .locator(".methods tbody tr[data-row]")
        .first()
        .locator("td.method")
        .getAttribute("title");
    assert.equal(await total(), wall.total);
    assert.equal(await first(), wall.methods[0].method);
    const button = page.locator("button:has-text('idle')");
    assert.match(plain(await button.textContent()), new RegExp(`^Include ${wall.idle} samples`));
    await button.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("button[aria-pressed=true]:has-text('idle')");
    assert.equal(await total(), all.total);
    assert.equal(await first(), all.methods[0].method);
    await page.waitForURL(/id=1/);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("idle waits are hidden in monitor statistics as in threads monitors, with their sum and a switch", async () => {
  const without = JSON.parse(jvmscope("threads", "monitors", "--json", file("threads.jfr")));
  const all = JSON.parse(jvmscope("threads", "monitors", "--json", "--idle", file("threads.jfr")));
  const idle = without.threads.reduce((n, t) => n + t.idle, 0);
  assert.ok(idle > 0 && all.waits.length > without.waits.length);
  for (const url of both(2)) {
    const page = await open(browser, `${url}#v=monitors`);
    const rows = (n) =>
      page.waitForFunction(
        (n) => document.querySelectorAll(".columns section:nth-of-type(4) tbody tr").length === n,
        n,
      );
    await rows(without.waits.length);
    const button = page.locator("button:has-text('idle wait')");
    assert.match(plain(await button.textContent()), new RegExp(`^Include ${idle} idle wait`));
    await button.click();
    await rows(all.waits.length);
    await page.waitForURL(/mi=1/);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("times that are not known are marked and stand behind the others, and calls are shown, as in report", async () => {
  const { methods } = JSON.parse(jvmscope("report", "--json", file("times.jfr"))).times;
  const known = new Map(
    methods.map((m) => [m.method, m.self_ns_95 !== null && m.self_ns_95[0] > 0]),
  );
  const calls = new Map(methods.map((m) => [m.method, m.calls]));
  for (const url of both(3)) {
    const page = await open(browser, `${url}#m=times`);
    const rows = await page.$$eval(".methods tbody tr[data-row]", (list) =>
      list.map((r) => [
        r.querySelector("td.method").title,
        r.cells[0].textContent,
        r.querySelector("td.calls").textContent,
      ]),
    );
    const marked = rows.map(([, self]) => self.includes("~") || self === "-");
    assert.ok(marked.includes(true), "a program of half a second has methods of few readings");
    rows.forEach(([method, , count], i) => {
      assert.equal(marked[i], !known.get(method), method);
      assert.equal(Number(count.replace(/,/g, "")), calls.get(method), method);
    });
    assert.deepEqual(marked, [...marked].sort());
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("a recording of a killed program says in every view of when its counts are", async () => {
  const { counted } = JSON.parse(jvmscope("report", "--json", file("killed.jfr")));
  assert.deepEqual(counted.map((c) => c.capture).sort(), ["alloc", "coverage"]);
  for (const url of both(4)) {
    for (const view of ["profile", "coverage"]) {
      const page = await open(browser, `${url}#v=${view}`);
      const told = plain(await page.locator(".lost").first().textContent());
      assert.match(
        told,
        /not ended: everything after .* is missing; the counts of .*(alloc|coverage).* those of [\d.]+ m?s\.$/,
        `${url} ${view}`,
      );
      assert.ok(told.includes("alloc") && told.includes("coverage"), told);
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  }
});
