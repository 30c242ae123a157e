// SPDX-License-Identifier: Apache-2.0
// The thread visualizer and the monitor statistics, on a recording of a program with known answers.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { faults, folder, java, jvmscope, launch, open, serve, served as dataOf } from "./lab.mjs";

const recording = join(folder, "pipeline.jfr");
const html = join(folder, "pipeline.html");
const url = pathToFileURL(html).href;
let browser;
let server;
let served;
let truth;

before(async () => {
  const { command, classes } = java("ThreadPrograms");
  jvmscope("run", "--threads", "--cpu", "-o", recording, "--", command, "-Xmx64m", "-cp", classes, "ThreadPrograms", "7");
  assert.ok(existsSync(recording));
  jvmscope("convert", recording, "-o", html);
  truth = {
    path: JSON.parse(jvmscope("threads", "critical-path", "--json", recording)),
    monitors: JSON.parse(jvmscope("threads", "monitors", "--json", recording)),
    timeline: JSON.parse(jvmscope("threads", "timeline", "--json", recording)),
  };
  [server, served] = await serve(recording);
  served += "0/";
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.kill("SIGTERM");
});

const ready = (page) => page.waitForSelector(".rows canvas[data-fresh=true]");

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
    await page.waitForSelector(`.details[data-segment="${i}"]`);
    await page.waitForFunction((name) => document.querySelector(".details h3").textContent.startsWith(name), `${truth.path.segments[i].thread}:`);
  }
  await page.keyboard.press("p");
  await page.waitForSelector(`.details[data-segment="${Math.min(40, truth.path.segments.length) - 2}"]:has-text("on the critical path")`);
  // Somewhere along a pipeline a thread was woken by another; its button and "w" lead there.
  for (let i = 0; i < 40 && !(await page.locator('.details button[title*="waker"]').count()); i++) {
    const before = await page.getAttribute(".details", "data-node");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector(`.details:not([data-node="${before}"])`);
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
  await ready(page);
  const box = await page.locator(".rows canvas").boundingBox();
  const x = 190 + ((best[0] + best[1]) / 2 / truth.timeline.end_ns) * (box.width - 190);
  await page.mouse.click(box.x + x, box.y + 24 + 26 * row + 13);
  await page.waitForSelector(".details[aria-label='Details']");
  const text = await page.textContent(".details");
  assert.match(text, /main: waiting for a thread's end/);
  assert.match(text, /java\.lang\.Thread\.join/);
  assert.match(text, /ended by join/);
});

/** The time that each thread spends in each state, as the saved table has it. */
async function saved(page) {
  await ready(page);
  await page.click(".save summary");
  const [file] = await Promise.all([page.waitForEvent("download"), page.click('.save button:has-text("CSV")')]);
  const sums = new Map();
  for (const line of readFileSync(await file.path(), "utf8").trim().split("\r\n").slice(1)) {
    const [thread, from, to, state, share] = line.split(",");
    const key = `${thread} ${state}`;
    sums.set(key, (sums.get(key) ?? 0) + (Number(to) - Number(from)) * Number(share));
  }
  return sums;
}

test("what is drawn adds up to what was recorded, in one file and served, at every zoom", async () => {
  const states = { Running: "run", WaitingForObject: "wait-object", WaitingForLock: "wait-lock", Sleeping: "sleep", WaitingForJoin: "wait-join", Parked: "park" };
  const { threads, end_ns: end } = await (await open(browser, url)).evaluate(() => JSON.parse(document.getElementById("data").textContent).timeline);
  for (const [from, to] of [[0, end], [Math.floor(end * 0.4), Math.floor(end * 0.45)]]) {
    // Of each thread the time in each state, from the command's list of events.
    const truthful = new Map();
    const last = new Map();
    const close = (id, until) => {
      const s = last.get(id);
      if (!s) return;
      const ns = Math.min(until, to) - Math.max(s.time, from);
      if (ns > 0) truthful.set(`${s.thread} ${s.state}`, (truthful.get(`${s.thread} ${s.state}`) ?? 0) + ns);
    };
    for (const e of truth.timeline.events) {
      const state = states[e.type.replace(/^TRCThread(.*)Event$/, "$1")];
      if (!state && !/Dead(Event)$/.test(e.type)) continue;
      close(e.threadId, e.time);
      if (state) last.set(e.threadId, { ...e, state });
      else last.delete(e.threadId);
    }
    for (const [id] of [...last]) close(id, Math.max(last.get(id).time, threads.find((t) => t.id === id).end));
    for (const base of [url, served]) {
      const sums = await saved(await open(browser, `${base}#v=threads&tf=${from}&tt=${to}`));
      // A pixel is the unit of what is drawn; its shares are rounded to 1/255.
      const slack = ((to - from) / 1000) * 3 + (to - from) * 0.01;
      for (const [key, ns] of truthful) assert.ok(Math.abs((sums.get(key) ?? 0) - ns) <= slack, `${base} ${from}-${to} ${key}: ${sums.get(key)} instead of ${ns}`);
    }
  }
});

test("served, the page holds what it shows and no more, and links lead to a moment and a state", async () => {
  const page = await open(browser, `${served}#v=threads`);
  await ready(page);
  const { timeline: data } = await dataOf(served);
  assert.ok(data.served && !data.nodes && !data.stacks && !data.strings);
  await page.locator(".rows canvas").focus();
  for (const key of ["+", "+", "+", "n", "n"]) await page.keyboard.press(key);
  await page.waitForSelector(".details[data-segment='1']");
  const node = await page.getAttribute(".details", "data-node");
  await page.waitForURL((u) => /tf=\d+/.test(u.hash) && new RegExp(`tn=${node}(&|$)`).test(u.hash));
  await ready(page);
  const heading = await page.textContent(".details h3");
  await page.reload();
  await page.waitForFunction((h) => document.querySelector(".details h3")?.textContent === h, heading);
  // A notifyAll says whom it woke: nobody here, or threads that lead on.
  const all = truth.timeline.events.find((e) => e.type === "TRCThreadNotifyAllEvent");
  if (all) {
    const at = await (await fetch(`${served}node?i=${all.id}`)).json();
    assert.deepEqual(at.woken.map((w) => w.node), all.runningEvents);
  }
  for (const bad of ["node?i=999999999", "segment?i=999999999", "range?from=9&to=1", "at?thread=99999", "range?from=0&to=99999999999999999"])
    assert.ok([400, 404].includes((await fetch(`${served}${bad}`)).status), bad);
  assert.deepEqual(page.problems, []);
});

test("the picture is saved as SVG and PNG", async () => {
  const page = await open(browser, `${url}#v=threads`);
  await ready(page);
  const save = async (what) => {
    await page.click(".save summary");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(`.save button:has-text("${what}")`)]);
    return readFileSync(await file.path());
  };
  const svg = String(await save("SVG"));
  assert.ok(svg.startsWith("<svg") && svg.includes(">main<") && (svg.match(/<rect/g) ?? []).length > 20);
  assert.equal((await save("PNG")).subarray(1, 4).toString(), "PNG");
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

test("the filter lists the threads that use a lock, as threads monitors --lock has them", async () => {
  for (const base of [url, served]) {
    const page = await open(browser, `${base}#v=threads`);
    await page.locator(".rows canvas").focus();
    await page.keyboard.press("s");
    const { class: lock } = truth.monitors.waits.find((w) => /ConditionObject/.test(w.class));
    await page.selectOption("dialog select", lock);
    await page.waitForSelector("dialog output:has-text(' of ')");
    const { threads } = JSON.parse(jvmscope("threads", "monitors", "--json", "--lock", lock, recording));
    const users = threads.filter((t) => t.blocked || t.waited).map((t) => t.id);
    assert.ok(users.length);
    const ids = await page.$$eval("dialog tbody tr", (rows) => rows.map((r) => Number(r.cells[0].textContent)));
    for (const id of users) assert.ok(ids.includes(id), `${lock}: ${id} of ${ids}`);
    assert.ok(ids.length < truth.monitors.threads.length);
    await page.click("dialog button:has-text('Those listed')");
    await page.click("dialog button.on");
    await page.waitForSelector(`button:has-text("${ids.length} of")`);
    assert.deepEqual(page.problems, []);
  }
});

test("monitor statistics sort, choose, sum and show stacks", async () => {
  const page = await open(browser, `${url}#v=monitors`);
  const waits = truth.monitors.waits;
  const rows = page.locator(".columns section:nth-of-type(4) tbody tr");
  assert.equal(await rows.count(), waits.length);
  await page.click(".columns section:nth-of-type(4) th button:has-text('Count')");
  await page.waitForSelector(".columns section:nth-of-type(4) th:has-text('Count')[aria-sort=descending]");
  const counts = await rows.locator("td:nth-child(3)").allTextContents();
  assert.deepEqual(counts.map(Number), [...counts.map(Number)].sort((a, b) => b - a));
  assert.equal(counts.map(Number).reduce((a, b) => a + b, 0), waits.reduce((s, w) => s + w.times.count, 0));
  await rows.first().click();
  await page.waitForSelector(".stacks ol li");
  assert.match(await page.textContent(".columns section:nth-of-type(4) tfoot"), /chosen: 1/);
  assert.deepEqual(page.problems, []);
});

test("statistics are those of the threads and classes that are chosen", async () => {
  const thread = truth.monitors.threads.find((t) => t.name === "main");
  const { threads } = await (await open(browser, url)).evaluate(() => JSON.parse(document.getElementById("data").textContent).timeline);
  const number = threads.findIndex((t) => t.id === thread.id);
  const all = JSON.parse(jvmscope("threads", "monitors", "--json", "--thread", thread.name, recording)).waits;
  for (const base of [url, served]) {
    const ids = threads.map((t, i) => [t.name, i]).filter(([name]) => name === thread.name).map(([, i]) => i);
    assert.ok(ids.includes(number));
    const page = await open(browser, `${base}#v=monitors&mt=${ids.join(",")}`);
    const rows = page.locator(".columns section:nth-of-type(4) tbody tr");
    await page.waitForFunction((n) => document.querySelectorAll(".columns section:nth-of-type(4) tbody tr").length === n, all.length);
    const counts = await rows.locator("td:nth-child(3)").allTextContents();
    assert.equal(counts.map(Number).reduce((a, b) => a + b, 0), all.reduce((a, w) => a + w.times.count, 0), base);
    const name = await page.locator(".columns section:nth-of-type(2) tbody tr td").first().textContent();
    await page.locator(".columns section:nth-of-type(2) tbody tr").first().click();
    await page.waitForURL(/mc=/);
    const of = await rows.locator("td:nth-child(2)").allTextContents();
    assert.ok(of.every((c) => c === name), of.join());
    assert.deepEqual(page.problems, []);
  }
});

test("no serious fault for assistive technology, in light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const view of ["threads", "monitors"]) {
      const page = await open(browser, `${url}#v=${view}`, { colorScheme });
      assert.deepEqual(await faults(page), [], `${colorScheme} ${view}`);
    }
  }
});
