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
const together = join(folder, "together.jfr"); // every interaction
const togetherUrl = pathToFileURL(together.replace("jfr", "html")).href;
let browser;
let server;
let served;
let truth;

before(async () => {
  const { command, classes } = java("ThreadPrograms", "Interactions");
  jvmscope(
    "run",
    "--threads",
    "-o",
    together,
    "--",
    command,
    "-Xmx64m",
    "-cp",
    classes,
    "Interactions",
  );
  jvmscope("convert", together, "-o", together.replace("jfr", "html"));
  jvmscope(
    "run",
    "--threads",
    "--cpu",
    "-o",
    recording,
    "--",
    command,
    "-Xmx64m",
    "-cp",
    classes,
    "ThreadPrograms",
    "7",
  );
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
  const data = await page.evaluate(
    () => JSON.parse(document.getElementById("data").textContent).timeline,
  );
  assert.equal(data.path.makespan_ns, truth.path.makespan_ns);
  assert.equal(data.path.length_ns, truth.path.length_ns);
  assert.equal(data.stats.threads.length, truth.monitors.threads.length);
  const names = new Set(data.threads.map((t) => t.name));
  for (const e of truth.timeline.events) assert.ok(names.has(e.thread), e.thread);
  assert.match(
    await page.textContent(".details"),
    new RegExp(`${truth.path.segments.length} segments`),
  );
  assert.deepEqual(page.problems, []);
});

test("states, wakers and the critical path by keyboard", async () => {
  const page = await open(browser, `${url}#v=threads`);
  await page.locator(".rows canvas").focus();
  await page.keyboard.press("n");
  await page.waitForFunction(
    (name) => document.querySelector(".details h3").textContent.startsWith(name),
    `${truth.path.segments[0].thread}:`,
  );
  for (let i = 1; i < Math.min(40, truth.path.segments.length); i++) {
    await page.keyboard.press("n");
    await page.waitForSelector(`.details[data-segment="${i}"]`);
    await page.waitForFunction(
      (name) => document.querySelector(".details h3").textContent.startsWith(name),
      `${truth.path.segments[i].thread}:`,
    );
  }
  await page.keyboard.press("p");
  await page.waitForSelector(
    `.details[data-segment="${Math.min(40, truth.path.segments.length) - 2}"]:has-text("on the critical path")`,
  );
  // Somewhere along a pipeline a thread was woken by another; its button and "w" lead there.
  for (let i = 0; i < 40 && !(await page.locator('.details button[title*="waker"]').count()); i++) {
    const before = await page.getAttribute(".details", "data-node");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector(`.details:not([data-node="${before}"])`);
  }
  const waker = await page.textContent('.details button[title*="waker"]');
  await page.keyboard.press("w");
  await page.waitForFunction(
    (name) => document.querySelector(".details h3").textContent.startsWith(name),
    `${waker}:`,
  );
  for (const key of ["+", "+", "-", "0", "g", "c", "ArrowDown", "ArrowUp", "d", "a"])
    await page.keyboard.press(key);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".details[aria-label='Critical path']");
  assert.deepEqual(page.problems, []);
});

/** What people read in the place of a state's name in JSON, as in the text of the command. */
const inWords = {
  io: "I/O",
  gc: "garbage collection",
  preempted: "waiting for a processor",
  throttled: "container out of CPU",
};

test("the critical path says what ran and what was idle, as threads critical-path does", async () => {
  for (const at of [url, served]) {
    const page = await open(browser, `${at}#v=threads`);
    await page.waitForSelector(".ran tbody tr");
    const rows = await page.$$eval(".ran tbody tr", (trs) => trs.map((tr) => tr.cells[0].title));
    const known = truth.path.methods.map((m) => m.method);
    assert.ok(rows.includes(truth.path.methods.find((m) => m.self_ns).method));
    assert.deepEqual(rows, known.filter((m) => rows.includes(m)).slice(0, 20));
    const said = (await page.textContent(".ran p")).trim();
    const share = Math.round((100 * truth.path.sampled_run_ns) / truth.path.run_ns);
    assert.match(
      said,
      truth.path.samples
        ? new RegExp(
            `^What ran in ${share} % of the running time is known from ${truth.path.samples} CPU samples?\\.$`,
          )
        : /before and after/,
    );
    const idle = await page.locator('.details th:text-is("idle")').count();
    assert.equal(idle, truth.path.idle_ns > 0 ? 1 : 0);
    const last = truth.path.segments.slice(0, 60).findLastIndex((s) => s.sampled_in || s.idle);
    await page.locator(".rows canvas").focus();
    for (let i = 0; i <= last; i++) {
      await page.keyboard.press("n");
      await page.waitForSelector(`.details[data-segment="${i}"]`);
      const s = truth.path.segments[i];
      const text = await page.textContent(".details");
      const state = s.idle ? "idle" : (inWords[s.state] ?? s.state);
      assert.ok(text.includes(`on the critical path: ${state}`), text);
      assert.equal(text.includes(`, in ${s.sampled_in}`), s.sampled_in !== null, text);
    }
    assert.deepEqual(page.problems, []);
  }
});

test("the keys of a view work without the focus of its picture, and a tab keeps the focus", async () => {
  const page = await open(browser, `${url}#v=threads`, { colorScheme: "light" });
  await ready(page);
  const focus = () => page.evaluate(() => document.activeElement.tagName);
  const pressed = (name, on) =>
    page.waitForSelector(`.tools button:has-text("${name}")[aria-pressed=${on}]`);
  assert.equal(await focus(), "BODY");
  await page.keyboard.press("n");
  await page.waitForSelector(".details[data-segment='0']");
  for (const [key, name, on] of [
    ["g", "Groups", true],
    ["c", "Critical path", false],
    ["m", "Marks", false],
    ["v", "of the VM", true],
  ]) {
    await page.keyboard.press(key);
    await pressed(name, on);
  }
  await page.keyboard.press("+");
  await page.waitForURL(/tf=\d+/);
  const from = Number(new URL(page.url()).hash.match(/tf=(\d+)/)[1]);
  await page.keyboard.press("d"); // later, and not dark
  await page.waitForURL((u) => Number(u.hash.match(/tf=(\d+)/)?.[1] ?? from) > from);
  assert.equal(await page.locator("[aria-label='Light or dark']").textContent(), "☾");
  assert.equal(await focus(), "BODY");
  // The tab that is clicked has the focus in the next view as well.
  const tab = (name) =>
    page.waitForFunction(
      (n) =>
        document.activeElement.textContent === n &&
        document.activeElement.getAttribute("aria-current") === "page",
      name,
    );
  for (const name of ["Monitor statistics", "Threads"]) {
    await page.click(`nav.tabs button:text-is("${name}")`);
    await tab(name);
  }
  await ready(page);
  await page.keyboard.press("c");
  await pressed("Critical path", true);
  await tab("Threads");
  // A field has its letters, a dialog its keys, and a button is pressed by Enter.
  await page.keyboard.press("s");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("c");
  await page.keyboard.press("Escape"); // clears and leaves the field
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await pressed("Critical path", true);
  // The same of a flame graph.
  await page.goto(url);
  await page.reload();
  await page.waitForSelector(".flame canvas[data-still=true]");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() =>
    document.querySelector(".flame .sr").textContent.includes("in it and what it calls"),
  );
  assert.deepEqual(page.problems, []);
});

test("on a phone the help opens at its beginning", async () => {
  const page = await open(browser, `${url}#v=threads`, { viewport: { width: 390, height: 844 } });
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  const [tops, shown, all] = await page.$eval("dialog", (d) => [
    [d.getBoundingClientRect().top, d.querySelector("h2").getBoundingClientRect().top],
    d.clientHeight,
    d.scrollHeight,
  ]);
  assert.ok(all > shown, "there is more than fits");
  assert.ok(
    tops[0] >= 0 && tops[1] >= tops[0],
    `the title is at ${tops[1]}, the dialog at ${tops[0]}`,
  );
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Close");
  assert.deepEqual(page.problems, []);
});

test("a click shows the state, its stack and what ended it", async () => {
  const page = await open(browser, `${url}#v=threads`);
  // The middle of main's longest wait for another thread's end; rows are under an axis of 24
  // pixels, behind 190 of names, in the order in which the threads appeared, with the VM's own
  // last.
  const { threads } = await page.evaluate(
    () => JSON.parse(document.getElementById("data").textContent).timeline,
  );
  const row = threads
    .sort((a, b) => Number(a.system) - Number(b.system) || a.start - b.start)
    .findIndex((t) => t.name === "main");
  const main = truth.timeline.events.filter(
    (e) => e.thread === "main" && /Running|Waiting|Sleeping|Dead/.test(e.type),
  );
  let best = [0, 0];
  main.forEach((e, i) => {
    const end = main[i + 1]?.time ?? e.time;
    if (/WaitingForJoin/.test(e.type) && end - e.time > best[1] - best[0]) best = [e.time, end];
  });
  await ready(page);
  const box = await page.locator(".rows canvas").boundingBox();
  const rowHeight = Number(await page.getAttribute(".rows canvas", "data-row"));
  const x = 190 + ((best[0] + best[1]) / 2 / truth.timeline.end_ns) * (box.width - 190);
  await page.mouse.click(box.x + x, box.y + 24 + (row + 0.5) * rowHeight);
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
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.click('.save button:has-text("CSV")'),
  ]);
  const sums = new Map();
  for (const line of readFileSync(await file.path(), "utf8")
    .trim()
    .split("\r\n")
    .slice(1)) {
    const [thread, from, to, state, share] = line.split(",");
    const key = `${thread} ${state}`;
    sums.set(key, (sums.get(key) ?? 0) + (Number(to) - Number(from)) * Number(share));
  }
  return sums;
}

test("what is drawn adds up to what was recorded, in one file and served, at every zoom", async () => {
  const states = {
    Running: "run",
    WaitingForObject: "wait-object",
    WaitingForLock: "wait-lock",
    Sleeping: "sleep",
    WaitingForJoin: "wait-join",
    Parked: "park",
  };
  const { threads, end_ns: end } = await (
    await open(browser, url)
  ).evaluate(() => JSON.parse(document.getElementById("data").textContent).timeline);
  for (const [from, to] of [
    [0, end],
    [Math.floor(end * 0.4), Math.floor(end * 0.45)],
  ]) {
    // Of each thread the time in each state, from the command's list of events.
    const truthful = new Map();
    const last = new Map();
    const close = (id, until) => {
      const s = last.get(id);
      if (!s) return;
      const ns = Math.min(until, to) - Math.max(s.time, from);
      if (ns > 0)
        truthful.set(`${s.thread} ${s.state}`, (truthful.get(`${s.thread} ${s.state}`) ?? 0) + ns);
    };
    for (const e of truth.timeline.events) {
      const state = states[e.type.replace(/^TRCThread(.*)Event$/, "$1")];
      if (!state && !/Dead(Event)$/.test(e.type)) continue;
      close(e.threadId, e.time);
      if (state) last.set(e.threadId, { ...e, state });
      else last.delete(e.threadId);
    }
    for (const [id] of [...last])
      close(id, Math.max(last.get(id).time, threads.find((t) => t.id === id).end));
    for (const base of [url, served]) {
      const sums = await saved(await open(browser, `${base}#v=threads&ty=1&tf=${from}&tt=${to}`));
      // A pixel is the unit of what is drawn; its shares are rounded to 1/255.
      const slack = ((to - from) / 1000) * 3 + (to - from) * 0.01;
      for (const [key, ns] of truthful)
        assert.ok(
          Math.abs((sums.get(key) ?? 0) - ns) <= slack,
          `${base} ${from}-${to} ${key}: ${sums.get(key)} instead of ${ns}`,
        );
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
  await page.waitForFunction(
    (h) => document.querySelector(".details h3")?.textContent === h,
    heading,
  );
  // A notifyAll says whom it woke: nobody here, or threads that lead on.
  const all = truth.timeline.events.find((e) => e.type === "TRCThreadNotifyAllEvent");
  if (all) {
    const at = await (await fetch(`${served}node?i=${all.id}`)).json();
    assert.deepEqual(
      at.woken.map((w) => w.node),
      all.runningEvents,
    );
  }
  for (const bad of [
    "node?i=999999999",
    "segment?i=999999999",
    "range?from=9&to=1",
    "at?thread=99999",
    "range?from=0&to=99999999999999999",
  ])
    assert.ok([400, 404].includes((await fetch(`${served}${bad}`)).status), bad);
  assert.deepEqual(page.problems, []);
});

/** Saves the picture as SVG. */
async function picture(page) {
  await ready(page);
  await page.click(".save summary");
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.click('.save button:has-text("SVG")'),
  ]);
  return readFileSync(await file.path(), "utf8");
}

test("each interaction has its legend, whose button shows and hides its arrows", async () => {
  const colours = {
    start: "#0b7a4b",
    join: "#7b4fa3",
    notify: "#1f6fb2",
    notifyAll: "#0b2f6b",
    "lock hand-off": "#b3261e",
    interrupt: "#8a6d00",
    unpark: "#a1317f",
  };
  const page = await open(browser, `${togetherUrl}#v=threads`);
  const arrows = async () => {
    const svg = await picture(page);
    return Object.fromEntries(
      Object.entries(colours).map(([name, c]) => [name, svg.split(`stroke="${c}"`).length - 1]),
    );
  };
  const all = await arrows();
  // The program says how many there are at least; the VM's own threads may add some.
  const least = {
    start: 7,
    join: 6,
    notify: 1,
    notifyAll: 3,
    "lock hand-off": 1,
    interrupt: 1,
    unpark: 1,
  };
  for (const [name, n] of Object.entries(least)) assert.ok(all[name] >= n, `${name}: ${all[name]}`);
  const buttons = await page.$$eval(".tools .toggle[title^=Arrows]", (list) =>
    list.map((b) => b.textContent.trim()),
  );
  assert.deepEqual(buttons.filter((b) => colours[b]).sort(), Object.keys(colours).sort());
  for (const name of Object.keys(colours)) {
    const button = page.locator(`.tools .toggle[title="Arrows: ${name}"]`);
    await button.click();
    assert.equal(await button.getAttribute("aria-pressed"), "false");
    assert.deepEqual(await arrows(), { ...all, [name]: 0 });
    await button.click();
  }
  assert.deepEqual(await arrows(), all);
  const states = await page.$$eval(".legend span", (list) => list.map((s) => s.textContent.trim()));
  for (const state of [
    "running or ready",
    "waiting (Object.wait)",
    "blocked on a monitor",
    "sleeping",
    "waiting for a thread's end",
    "parked",
  ])
    assert.ok(states.includes(state), `${state} of ${states}`);
  assert.deepEqual(page.problems, []);
});

test("a timeout is a box with its stack; a notifyAll has its stack and whom it woke", async () => {
  const { events, end_ns: end } = JSON.parse(jvmscope("threads", "timeline", "--json", together));
  const { threads } = await (
    await open(browser, togetherUrl)
  ).evaluate(() => JSON.parse(document.getElementById("data").textContent).timeline);
  const row = threads
    .sort((a, b) => Number(a.system) - Number(b.system) || a.start - b.start)
    .findIndex((t) => t.name === "main");
  const clicked = async (event) => {
    const each = Math.min(1e6, end - event.time); // the event is in the middle of what is shown, also when the program ends soon
    const page = await open(
      browser,
      `${togetherUrl}#v=threads&tf=${event.time - each}&tt=${event.time + each}`,
    );
    await ready(page);
    const box = await page.locator(".rows canvas").boundingBox();
    const rowHeight = Number(await page.getAttribute(".rows canvas", "data-row"));
    await page.mouse.click(
      box.x + 190 + (box.width - 190) / 2,
      box.y + 24 + (row + 0.5) * rowHeight,
    );
    await page.waitForSelector(`.details[data-node="${event.id}"]`);
    return page;
  };
  const timeout = events.find(
    (e) => e.type === "TRCThreadWaitTimeoutExceedEvent" && e.thread === "main",
  );
  let page = await clicked(timeout);
  assert.match(await page.textContent(".details h3"), /main: a wait's time ran out/);
  assert.deepEqual(
    await page.$$eval(".details .stack li", (list) => list.map((l) => l.textContent)),
    timeout.frames,
  );
  assert.match(timeout.frames.join(), /Object.wait.*Interactions\.main/);
  const notify = events.find(
    (e) => e.type === "TRCThreadNotifyAllEvent" && e.runningEvents.length === 3,
  );
  page = await clicked(notify);
  assert.deepEqual(
    await page.$$eval(".details .stack li", (list) => list.map((l) => l.textContent)),
    notify.frames,
  );
  assert.match(await page.textContent(".woken h3"), /Woke 3 threads/);
  assert.deepEqual(
    (await page.$$eval(".woken button", (list) => list.map((b) => b.textContent))).sort(),
    ["awaiting-0", "awaiting-1", "awaiting-2"],
  );
  await page.click(".woken button:has-text('awaiting-1')");
  await page.waitForSelector(".details h3:has-text('awaiting-1:')");
  assert.match(await page.textContent(".details"), /notifyAll by main/);
  assert.deepEqual(page.problems, []);
});

test("rows are grouped by thread group, or not", async () => {
  const page = await open(browser, `${togetherUrl}#v=threads`);
  const titles = async () =>
    [...(await picture(page)).matchAll(/<text x="(8|14)" y="[\d.]+">([^<]*)</g)].map((m) =>
      m[1] === "8" ? `[${m[2]}]` : m[2],
    );
  const flat = await titles();
  assert.ok(flat.includes("main") && !flat.some((t) => t.startsWith("[")));
  await page.click("button:has-text('Groups')");
  assert.equal(await page.getAttribute("button:has-text('Groups')", "aria-pressed"), "true");
  const grouped = await titles();
  const of = (group) =>
    grouped
      .slice(grouped.indexOf(`[${group}]`) + 1)
      .join("\n")
      .split("\n[")[0]
      .split("\n");
  // In the order in which they began to run, which is not that in which they were started.
  assert.deepEqual(of("waiters").sort(), ["awaiting-0", "awaiting-1", "awaiting-2", "notified"]);
  assert.deepEqual(of("others").sort(), ["blocked", "interrupted", "parked"]);
  assert.ok(of("main").includes("main"));
  await page.locator(".rows canvas").focus();
  await page.keyboard.press("g");
  assert.deepEqual(await titles(), flat);
  assert.deepEqual(page.problems, []);
});

test("the picture is saved as SVG and PNG", async () => {
  const page = await open(browser, `${url}#v=threads`);
  await ready(page);
  const save = async (what) => {
    await page.click(".save summary");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.click(`.save button:has-text("${what}")`),
    ]);
    return readFileSync(await file.path());
  };
  const svg = String(await save("SVG"));
  assert.ok(
    svg.startsWith("<svg") && svg.includes(">main<") && (svg.match(/<rect/g) ?? []).length > 20,
  );
  assert.equal((await save("PNG")).subarray(1, 4).toString(), "PNG");
});

test("the filter dialog chooses threads", async () => {
  const page = await open(browser, `${url}#v=threads`);
  await page.click("button:has-text('All') >> nth=-1");
  await page.waitForSelector("dialog[open]");
  await page.click("dialog button:has-text('None')");
  const names = () =>
    page.$$eval("dialog tbody tr", (rows) => rows.map((r) => r.cells[1].textContent));
  for (const down of [false, true]) {
    await page.click("dialog th button:has-text('Name')");
    await page.waitForSelector(
      `dialog th[aria-sort=${down ? "descending" : "ascending"}]:has-text('Name')`,
    );
    const sorted = (await names()).sort((a, b) => a.localeCompare(b));
    assert.deepEqual(await names(), down ? sorted.reverse() : sorted);
  }
  await page.click("dialog th button:has-text('Waited')");
  const { threads } = truth.monitors;
  const longest = Math.max(...threads.map((t) => t.waited_ns));
  assert.equal(
    await page.locator("dialog tbody tr").first().locator("td").first().textContent(),
    String(threads.find((t) => t.waited_ns === longest).id),
  );
  // Some by click, a run of them with the shift key.
  await page.locator("dialog tbody tr").nth(1).click();
  await page
    .locator("dialog tbody tr")
    .nth(3)
    .click({ modifiers: ["Shift"] });
  await page.click("dialog tbody tr:has-text('main') >> nth=0");
  const wanted = (
    await page.$$eval("dialog tbody tr[aria-selected=true]", (rows) =>
      rows.map((r) => r.cells[1].textContent),
    )
  ).sort();
  assert.ok(wanted.length >= 2);
  await page.click("dialog button.on");
  await page.waitForSelector(`button:has-text('${wanted.length} of')`);
  const shown = [...(await picture(page)).matchAll(/<text x="14" y="[\d.]+">([^<]*)</g)]
    .map((m) => m[1])
    .sort();
  assert.deepEqual(
    shown,
    wanted.map((n) => n.slice(0, 26)),
  );
  assert.deepEqual(page.problems, []);
});

test("several threads chosen in monitor statistics: their totals, and the tables of them together", async () => {
  const page = await open(browser, `${served}#v=monitors`);
  const rows = page.locator(".columns section:nth-of-type(1) tbody tr");
  await rows.nth(2).waitFor();
  // The most blocked first, and of those that were not, the one that waited longest.
  const ids = await rows.evaluateAll((trs) => trs.map((r) => Number(r.cells[1].textContent)));
  const shown = ids.map((id) => truth.monitors.threads.find((t) => t.id === id));
  for (let i = 1; i < shown.length; i++) {
    const less = shown[i - 1].blocked_ns - shown[i].blocked_ns;
    assert.ok(less > 0 || (less === 0 && shown[i - 1].waited_ns >= shown[i].waited_ns), `${ids}`);
  }
  await rows.nth(0).click();
  await rows.nth(2).click();
  const chosen = await page.$$eval(
    ".columns section:nth-of-type(1) tbody tr[aria-selected=true]",
    (trs) => trs.map((r) => Number(r.cells[1].textContent)),
  );
  assert.equal(chosen.length, 2);
  const those = truth.monitors.threads.filter((t) => chosen.includes(t.id));
  const foot = await page.$$eval(".columns section:nth-of-type(1) tfoot td", (tds) =>
    tds.map((d) => d.textContent),
  );
  const sum = (key) => those.reduce((a, t) => a + t[key], 0);
  assert.deepEqual(
    [foot[0], Number(foot[3]), Number(foot[5])],
    ["chosen: 2", sum("blocked"), sum("waited")],
  );
  await page.waitForSelector("h2:has-text('Classes of 2 threads')");
  const waits = sum("waited");
  await page.waitForFunction(
    (n) =>
      [...document.querySelectorAll(".columns section:nth-of-type(4) tbody tr")].reduce(
        (a, r) => a + Number(r.cells[2].textContent),
        0,
      ) === n,
    waits,
  );
  assert.deepEqual(page.problems, []);
});

test("the filter lists the threads that use a lock, as threads monitors --lock has them", async () => {
  for (const base of [url, served]) {
    const page = await open(browser, `${base}#v=threads`);
    await page.locator(".rows canvas").focus();
    await page.keyboard.press("s");
    const { class: lock } = truth.monitors.waits.find((w) => /^condition of/.test(w.class));
    await page.selectOption("dialog select", lock);
    await page.waitForSelector("dialog output:has-text(' of ')");
    const { threads } = JSON.parse(
      jvmscope("threads", "monitors", "--json", "--lock", lock, recording),
    );
    const users = threads.filter((t) => t.blocked || t.waited).map((t) => t.id);
    assert.ok(users.length);
    const ids = await page.$$eval("dialog tbody tr", (rows) =>
      rows.map((r) => Number(r.cells[0].textContent)),
    );
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
  await page.waitForSelector(
    ".columns section:nth-of-type(4) th:has-text('Count')[aria-sort=descending]",
  );
  const counts = await rows.locator("td:nth-child(3)").allTextContents();
  assert.deepEqual(
    counts.map(Number),
    [...counts.map(Number)].sort((a, b) => b - a),
  );
  assert.equal(
    counts.map(Number).reduce((a, b) => a + b, 0),
    waits.reduce((s, w) => s + w.times.count, 0),
  );
  await rows.first().click();
  await page.waitForSelector(".stacks ol li");
  assert.match(await page.textContent(".columns section:nth-of-type(4) tfoot"), /chosen: 1/);
  assert.deepEqual(page.problems, []);
});

test("the view of monitor statistics scrolls, and no table within it", async () => {
  for (const [width, height] of [
    [1400, 800],
    [1024, 700],
    [390, 800],
  ]) {
    const page = await open(browser, `${url}#v=monitors`, { viewport: { width, height } });
    await page.waitForSelector(".monitors .sortable tbody tr");
    const within = await page.evaluate(() =>
      [...document.querySelectorAll(".monitors .sortable")]
        .filter((t) => t.scrollHeight > t.clientHeight + 2)
        .map((t) => t.querySelector("caption").textContent),
    );
    assert.deepEqual(within, [], `${width} pixels`);
    assert.ok(
      await page.evaluate(
        () =>
          document.querySelector(".monitors .columns").scrollHeight >
          document.querySelector(".monitors .columns").clientHeight,
      ),
    );
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("statistics are those of the threads and classes that are chosen", async () => {
  const thread = truth.monitors.threads.find((t) => t.name === "main");
  const { threads } = await (
    await open(browser, url)
  ).evaluate(() => JSON.parse(document.getElementById("data").textContent).timeline);
  const number = threads.findIndex((t) => t.id === thread.id);
  const all = JSON.parse(
    jvmscope("threads", "monitors", "--json", "--thread", thread.name, recording),
  ).waits;
  for (const base of [url, served]) {
    const ids = threads
      .map((t, i) => [t.name, i])
      .filter(([name]) => name === thread.name)
      .map(([, i]) => i);
    assert.ok(ids.includes(number));
    const page = await open(browser, `${base}#v=monitors&mt=${ids.join(",")}`);
    const rows = page.locator(".columns section:nth-of-type(4) tbody tr");
    await page.waitForFunction(
      (n) => document.querySelectorAll(".columns section:nth-of-type(4) tbody tr").length === n,
      all.length,
    );
    const counts = await rows.locator("td:nth-child(3)").allTextContents();
    assert.equal(
      counts.map(Number).reduce((a, b) => a + b, 0),
      all.reduce((a, w) => a + w.times.count, 0),
      base,
    );
    const name = await page
      .locator(".columns section:nth-of-type(2) tbody tr td")
      .first()
      .textContent();
    await page.locator(".columns section:nth-of-type(2) tbody tr").first().click();
    await page.waitForURL(/mc=/);
    const of = await rows.locator("td:nth-child(2)").allTextContents();
    assert.ok(
      of.every((c) => c === name),
      of.join(),
    );
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
