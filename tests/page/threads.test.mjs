// SPDX-License-Identifier: Apache-2.0
// The thread visualizer and the monitor statistics, on a recording of a program with known answers.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { faults, folder, jvmscope, launch, open, root } from "./lab.mjs";

const recording = join(folder, "pipeline.jfr");
const html = join(folder, "pipeline.html");
const url = pathToFileURL(html).href;
let browser;
let truth;

before(async () => {
  const classes = join(folder, "classes");
  mkdirSync(classes);
  const home = spawnSync(join(root, "tools/java-home"), { encoding: "utf8" }).stdout.trim();
  spawnSync(join(home, "bin/javac"), ["-nowarn", "-d", classes, join(root, "tests/java/ThreadPrograms.java")]);
  jvmscope("run", "--threads", "--cpu", "-o", recording, "--", join(home, "bin/java"), "-Xmx64m", "-cp", classes, "ThreadPrograms", "7");
  assert.ok(existsSync(recording));
  jvmscope("convert", recording, "-o", html);
  truth = {
    path: JSON.parse(jvmscope("threads", "critical-path", "--json", recording)),
    monitors: JSON.parse(jvmscope("threads", "monitors", "--json", recording)),
    timeline: JSON.parse(jvmscope("threads", "timeline", "--json", recording)),
  };
  browser = await launch();
});
after(() => browser.close());

test("the page holds every thread, state change and segment that the command prints", async () => {
  const page = await open(browser, `${url}#v=threads`);
  const data = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).timeline);
  assert.equal(data.path.makespan_ns, truth.path.makespan_ns);
  assert.equal(data.path.length_ns, truth.path.length_ns);
  assert.equal(data.stats.threads.length, truth.monitors.threads.length);
  const names = new Set(data.threads.map((t) => t.name));
  for (const e of truth.timeline.events) assert.ok(names.has(e.thread), e.thread);
  assert.match(await page.textContent(".details"), new RegExp(`${truth.path.segments.length} segments`));
  assert.deepEqual(page.problems, []);
});

test("states, wakers and the critical path by keyboard", async () => {
  const page = await open(browser, `${url}#v=threads`);
  await page.locator(".rows canvas").focus();
  await page.keyboard.press("n");
  await page.waitForFunction((name) => document.querySelector(".details h3").textContent.startsWith(name), `${truth.path.segments[0].thread}:`);
  for (let i = 1; i < Math.min(40, truth.path.segments.length); i++) {
    await page.keyboard.press("n");
    await page.waitForFunction((name) => document.querySelector(".details h3").textContent.startsWith(name), `${truth.path.segments[i].thread}:`);
  }
  await page.keyboard.press("p");
  assert.ok((await page.textContent(".details")).includes("on the critical path"));
  // Somewhere along a pipeline a thread was woken by another; its button and "w" lead there.
  for (let i = 0; i < 40 && !(await page.locator('.details button[title*="waker"]').count()); i++) {
    await page.keyboard.press("ArrowLeft");
    await page.waitForTimeout(60);
  }
  const waker = await page.textContent('.details button[title*="waker"]');
  await page.keyboard.press("w");
  await page.waitForFunction((name) => document.querySelector(".details h3").textContent.startsWith(name), `${waker}:`);
  for (const key of ["+", "+", "-", "0", "g", "c", "ArrowDown", "ArrowUp", "d", "a"]) await page.keyboard.press(key);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".details[aria-label='Critical path']");
  assert.deepEqual(page.problems, []);
});

test("a click shows the state, its stack and what ended it", async () => {
  const page = await open(browser, `${url}#v=threads`);
  // The middle of main's longest wait for another thread's end; rows are 26 pixels under an axis of 24, behind 190 of names, in
  // the order in which the threads appeared, with the VM's own last.
  const { threads } = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).timeline);
  const row = threads.sort((a, b) => Number(a.system) - Number(b.system) || a.start - b.start).findIndex((t) => t.name === "main");
  const main = truth.timeline.events.filter((e) => e.thread === "main" && /Running|Waiting|Sleeping|Dead/.test(e.type));
  let best = [0, 0];
  main.forEach((e, i) => {
    const end = main[i + 1]?.time ?? e.time;
    if (/WaitingForJoin/.test(e.type) && end - e.time > best[1] - best[0]) best = [e.time, end];
  });
  const box = await page.locator(".rows canvas").boundingBox();
  const x = 190 + ((best[0] + best[1]) / 2 / truth.timeline.end_ns) * (box.width - 190);
  await page.mouse.click(box.x + x, box.y + 24 + 26 * row + 13);
  await page.waitForSelector(".details[aria-label='Details']");
  const text = await page.textContent(".details");
  assert.match(text, /main: waiting for a thread's end/);
  assert.match(text, /java\.lang\.Thread\.join/);
  assert.match(text, /ended by join/);
});

test("the filter dialog chooses threads", async () => {
  const page = await open(browser, `${url}#v=threads`);
  await page.click("button:has-text('All') >> nth=-1");
  await page.waitForSelector("dialog[open]");
  await page.click("dialog button:has-text('None')");
  await page.click("dialog th button:has-text('Name')");
  await page.click("dialog tbody tr:has-text('main')");
  await page.click("dialog button.on");
  await page.waitForSelector("button:has-text('1 of')");
  assert.deepEqual(page.problems, []);
});

test("monitor statistics sort, choose, sum and show stacks", async () => {
  const page = await open(browser, `${url}#v=monitors`);
  const waits = truth.monitors.waits;
  const rows = page.locator(".columns section:nth-of-type(3) tbody tr");
  assert.equal(await rows.count(), waits.length);
  await page.click(".columns section:nth-of-type(3) th button:has-text('Count')");
  await page.waitForSelector(".columns section:nth-of-type(3) th:has-text('Count')[aria-sort=descending]");
  const counts = await rows.locator("td:nth-child(3)").allTextContents();
  assert.deepEqual(counts.map(Number), [...counts.map(Number)].sort((a, b) => b - a));
  assert.equal(counts.map(Number).reduce((a, b) => a + b, 0), waits.reduce((s, w) => s + w.times.count, 0));
  await rows.first().click();
  await page.waitForSelector(".stacks ol li");
  assert.match(await page.textContent(".columns section:nth-of-type(3) tfoot"), /chosen: 1/);
  assert.deepEqual(page.problems, []);
});

test("no serious fault for assistive technology, in light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const view of ["threads", "monitors"]) {
      const page = await open(browser, `${url}#v=${view}`, { colorScheme });
      assert.deepEqual(await faults(page), [], `${colorScheme} ${view}`);
    }
  }
});
