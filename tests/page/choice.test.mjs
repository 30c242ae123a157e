// SPDX-License-Identifier: Apache-2.0
// What is chosen among requests limits the profile, its comparison and the marks of threads: as the
// command does, in a file and in a served page, by mouse and by keyboard.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  close,
  faults,
  folder,
  java,
  jvmscope,
  launch,
  number,
  open,
  root,
  serve,
} from "./lab.mjs";

const require = createRequire(join(root, "web/package.json"));
const bundled = require("esbuild").buildSync({
  stdin: {
    contents: ["choice", "data", "tree"].map((m) => `export * from "./src/${m}";`).join("\n"),
    resolveDir: join(root, "web"),
    loader: "ts",
  },
  bundle: true,
  write: false,
  format: "esm",
});
writeFileSync(join(folder, "choice.mjs"), bundled.outputFiles[0].text);
const code = await import(pathToFileURL(join(folder, "choice.mjs")));

const METHODS = "RequestChoice.list(..),RequestChoice.order(..),RequestChoice.pay(..)";
let browser;
let recording;
let url;
let json; // of the page
let wall; // recording and JSON with samples of waiting threads, some of which are set aside
let server;
let served;

before(async () => {
  const { command, classes } = java("RequestChoice");
  const record = (name, ...options) => {
    const file = join(folder, `${name}.jfr`);
    const program = ["--", command, "-cp", classes, "RequestChoice"];
    jvmscope("run", "--requests", METHODS, ...options, "-o", file, ...program);
    jvmscope("convert", file, "-o", join(folder, `${name}.html`));
    const text = readFileSync(join(folder, `${name}.html`), "utf8");
    const [, data] = text.match(/<script[^>]*type="application\/json"[^>]*>(.*?)<\/script>/s);
    return [file, JSON.parse(data)];
  };
  wall = record("wall", "--cpu=wall");
  [recording, json] = record("choice", "--cpu=samples", "--alloc");
  url = pathToFileURL(join(folder, "choice.html")).href;
  [server, served] = await serve(recording);
  browser = await launch();
});
after(async () => {
  server?.kill();
  await browser?.close();
});

const rows = (name) => {
  const of = new Map();
  const cells = json.requests.heat[name];
  for (let i = 0; i < cells.length; i += 3)
    of.set(cells[i + 1], (of.get(cells[i + 1]) ?? 0) + cells[i + 2]);
  return [...of].sort((a, b) => a[0] - b[0]);
};
const whole = () => ({ c0: 0, c1: json.requests.columns - 1, r0: 0, r1: json.requests.rows - 1 });
const nameOf = (text) => json.requests.names.findIndex((n) => n.name === text);
/**
 * Of a name, a row of the heat map from which on at least the slowest fifth is: a few requests that
 * are slow because they lost their processor may have no sample.
 */
const slowFrom = (name) => {
  const used = rows(name);
  let [i, n] = [used.length, 0];
  do n += used[--i][1];
  while (i > 1 && 5 * n < json.requests.names[name].count);
  return used[i][0];
};

/** The methods of the chosen requests, or of the others, as the page ranks them. */
function ranked(metric, choice, others = false) {
  const chosen = code.chosenSets(json.request_sets, choice);
  const all = code.limitTo(code.decodeMetric(metric), metric, chosen, others);
  const part = all.plain ?? all;
  const tree = code.select(part.shape, part.cells, { threads: null, window: null });
  const methods = code
    .rank(tree, json.labels.length)
    .map((r) => [json.labels[r.label], r.self, r.total]);
  return { total: tree.total[0], methods: new Map(methods.map((m) => [m[0], m.slice(1)])) };
}

/** The same by the command. */
function reported(metric, ...options) {
  const wanted = ["--metric", metric.name, "--limit", "100000"];
  const of = JSON.parse(jvmscope("report", "--json", ...wanted, ...options, recording));
  const { total, methods } = of[metric.name];
  return { total, methods: new Map(methods.map((m) => [m.method, [m.self, m.total]])) };
}

const sorted = (m) => [...m.methods].sort((a, b) => (a[0] < b[0] ? -1 : 1));
function same(a, b, what) {
  assert.ok(b.total > 0, what);
  assert.equal(a.total, b.total, what);
  assert.deepEqual(sorted(a), sorted(b), what);
}

test("the samples of chosen requests are those that the command selects", () => {
  const metrics = json.metrics.filter((m) => m.by_request);
  assert.deepEqual(metrics.map((m) => m.name).sort(), ["allocations", "samples"]);
  for (const m of metrics) {
    // A sample in a request within another one counts once.
    const all = ranked(m, { name: -1, box: whole() });
    same(all, reported(m, "--request", "*"), `all, ${m.name}`);
    json.requests.names.forEach(({ name, count }, i) => {
      const choice = { name: i, box: null };
      const what = `${m.name} of ${name}`;
      const of = ranked(m, choice);
      same(of, reported(m, "--request", `=${name}`), what);
      assert.equal(of.total + ranked(m, choice, true).total, all.total, what);
      const slow = { name: i, box: { ...whole(), r0: slowFrom(i) } };
      const n = code.countOf(json.requests, slow);
      assert.ok(n > 0 && n < count, what);
      const share = `${((100 * n) / count).toFixed(9)}%`;
      const slowest = reported(m, "--request", `=${name}`, "--slowest", share);
      same(ranked(m, slow), slowest, `${what}, the slowest ${n}`);
    });
  }
});

test("the strip of time reaches to the end of the recording", async () => {
  for (const m of [...json.metrics, ...wall[1].metrics].filter((m) => !m.untimed)) {
    const of = wall[1].metrics.includes(m) ? wall[1] : json;
    const end = m.buckets * m.bucket_ns;
    assert.ok(end >= of.duration_ns && end - m.bucket_ns <= of.duration_ns, m.name);
  }
  const page = await open(browser, url);
  const [m] = json.metrics.filter((x) => x.name === json.metric);
  assert.equal(await page.getAttribute(".ruler canvas", "aria-valuemax"), String(m.buckets));
});

test("waiting threads that have nothing to do are left out, as the command does", () => {
  const [file, page] = wall;
  const [m] = page.metrics.filter((x) => x.name === "wall");
  assert.ok(m.aside > 0);
  page.requests.names.forEach(({ name }, i) => {
    const what = ["--metric", "wall", "--limit", "100000", "--request", `=${name}`];
    const of = JSON.parse(jvmscope("report", "--json", ...what, file)).wall;
    const chosen = code.chosenSets(page.request_sets, { name: i, box: null });
    const all = code.limitTo(code.decodeMetric(m), m, chosen, false);
    const part = all.plain ?? all;
    const tree = code.select(part.shape, part.cells, { threads: null, window: null });
    assert.equal(tree.total[0], of.total, name);
  });
});

test("a part of time has the samples of the requests that began in it", () => {
  const [m] = json.metrics.filter((x) => x.name === "allocations");
  const half = json.requests.columns / 2;
  const name = nameOf("RequestChoice.list"); // one after the other, so that no sample is of two
  const early = { name, box: { ...whole(), c1: half - 1 } };
  const late = { name, box: { ...whole(), c0: half } };
  const sum = ranked(m, early).total + ranked(m, late).total;
  assert.ok(ranked(m, early).total > 0 && ranked(m, late).total > 0);
  assert.equal(sum, ranked(m, { name, box: null }).total);
  assert.equal(
    code.countOf(json.requests, early) + code.countOf(json.requests, late),
    json.requests.names[name].count,
  );
});

const weight = async (page) =>
  number((await page.textContent(".facts b")).replace(/ samples.*/s, ""));

test("by keyboard: a choice, its flame graph, the comparison, and back", async () => {
  const [m] = json.metrics.filter((x) => x.name === "samples");
  for (const address of [url, served]) {
    const page = await open(browser, `${address}#v=requests`);
    const row = page.locator("section[aria-label=Names] tbody tr");
    await row.filter({ hasText: "RequestChoice.list" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("button", { hasText: "Their flame graph" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("section[aria-label='Flame graph']");
    const choice = { name: nameOf("RequestChoice.list"), box: null };
    assert.equal(await weight(page), ranked(m, choice).total);
    assert.match(
      await page.textContent(".note.choice"),
      /200 chosen requests: RequestChoice\.list/,
    );
    assert.match(await page.textContent("section[aria-label='Ranked methods']"), /slowly/);
    assert.doesNotMatch(await page.textContent("section[aria-label='Ranked methods']"), /order/);
    await page.waitForFunction(() => /rn=RequestChoice.list/.test(location.hash));
    await page.locator("button", { hasText: "Compare with the others" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("section[aria-label='Differential flame graph']");
    const list = page.locator(".compared tbody tr", { hasText: /RequestChoice\.list$/ });
    const change = await list.locator("td").nth(3).textContent();
    const part = (of) => (of.methods.get("RequestChoice.list")?.[1] ?? 0) / of.total;
    const by = 100 * (part(ranked(m, choice)) - part(ranked(m, choice, true)));
    close(number(change), by, change);
    await page.waitForFunction(() => /rc=1/.test(location.hash));
    // The address alone shows the same.
    const again = await open(browser, page.url());
    await again.waitForSelector("section[aria-label='Differential flame graph']");
    assert.equal(await weight(again), ranked(m, choice).total);
    assert.deepEqual(again.problems, []);
    await page.locator("button", { hasText: "Show all samples" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !/r[nbc]=/.test(location.hash));
    assert.ok((await weight(page)) > ranked(m, choice).total);
    assert.equal(await page.locator(".note.choice").count(), 0);
    assert.deepEqual(page.problems, []);
  }
});

test("a drag in the heat map limits every metric of the page", async () => {
  const page = await open(browser, `${url}#v=requests`);
  const box = await page.locator(".heat canvas").boundingBox();
  await page.mouse.move(box.x + 70, box.y + 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, box.y + box.height / 3, { steps: 5 });
  await page.mouse.up();
  await page.click("nav >> text=CPU");
  await page.waitForSelector(".note.choice");
  // The address follows a little later, and may have had an earlier part of the drag before.
  await page.waitForFunction(() => !/v=requests/.test(location.hash));
  const kept = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("rb");
  const choice = { name: -1, box: code.readBox(kept) };
  const [m] = json.metrics.filter((x) => x.name === "samples");
  assert.equal(await weight(page), ranked(m, choice).total);
  await page.click("nav >> text=Allocated bytes");
  await page.waitForFunction(() => /MiB|KiB/.test(document.querySelector(".facts b").textContent));
  const n = code.countOf(json.requests, choice);
  assert.match(await page.textContent(".note.choice"), new RegExp(`one of ${n} chosen request`));
  assert.deepEqual(page.problems, []);
});

/** How many pixels of the picture of threads have the colour of marks, by the row's title. */
const marked = (page) =>
  page.$eval("main.threads .rows canvas", (c) => {
    const colour = getComputedStyle(document.querySelector(".note.choice i") ?? c).backgroundColor;
    const [r, g, b] = (colour.match(/\d+/g) ?? []).map(Number);
    const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
    const row = Number(c.dataset.row) * devicePixelRatio;
    const rows = {};
    for (let i = 0; i < data.length; i += 4)
      if (data[i] === r && data[i + 1] === g && data[i + 2] === b) {
        const at = Math.floor((Math.floor(i / 4 / c.width) - 24 * devicePixelRatio) / row);
        rows[at] = (rows[at] ?? 0) + 1;
      }
    return rows;
  });

test("the threads show when each worked for the chosen requests", async () => {
  for (const address of [url, served]) {
    const page = await open(browser, `${address}#v=requests&rn=RequestChoice.order`);
    await page.locator("button", { hasText: "Their threads" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("main.threads canvas[data-fresh=true]");
    assert.match(
      await page.textContent(".note.choice"),
      /60 chosen requests \(RequestChoice\.order\)/,
    );
    // Those of order work on main and on the pool's thread, those of list on theirs.
    const both = await marked(page);
    assert.equal(Object.keys(both).length, 2, JSON.stringify(both));
    await page.evaluate(() => (location.hash = "#v=threads&rn=RequestChoice.list"));
    await page.waitForFunction(() =>
      /list/.test(document.querySelector(".note.choice").textContent),
    );
    // The marks are painted with the next picture.
    let lists = {};
    for (const end = Date.now() + 30000; Date.now() < end; await page.waitForTimeout(50)) {
      lists = await marked(page);
      if (Object.keys(lists).length === 1) break;
    }
    assert.equal(Object.keys(lists).length, 1, JSON.stringify(lists));
    assert.ok(!Object.keys(both).includes(Object.keys(lists)[0]));
    await page.locator("button", { hasText: "No marks" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !/rn=/.test(location.hash));
    assert.equal(await page.locator(".note.choice").count(), 0);
    assert.deepEqual(page.problems, []);
  }
});

test("the marks lie where the requests were", () => {
  const { requests, timeline } = json;
  const choice = { name: nameOf("RequestChoice.pay"), box: null };
  const chosen = code.chosenRequests(requests, choice);
  assert.equal(chosen.length, 60);
  const worked = code.workedFor(requests, chosen);
  assert.equal(worked.size, 1);
  const [[id, { from, to }]] = worked;
  const thread = timeline.threads.find((t) => t.id === id);
  assert.equal(thread.name, "main");
  const sum = to.reduce((s, t, i) => s + t - from[i], 0);
  close(sum, requests.names[choice.name].total_ns, "the time of the marks");
  assert.ok(from[0] >= thread.start && to[to.length - 1] <= thread.end);
});

test("choices look right in every width, light and dark", async () => {
  const views = ["v=requests", "v=profile&m=samples", "v=profile&m=samples&rc=1", "v=threads"];
  for (const [width, colorScheme, examined] of [
    [1400, "light", true],
    [1024, "dark", false],
    [390, "dark", true],
    [390, "light", false],
  ])
    for (const view of views) {
      const options = { viewport: { width, height: 800 }, colorScheme };
      const page = await open(browser, `${url}#${view}&rn=RequestChoice.list`, options);
      await page.waitForSelector(view === "v=requests" ? ".follow button" : ".note.choice button");
      const over = () => document.documentElement.scrollWidth - innerWidth;
      const what = `${view}, ${width}, ${colorScheme}`;
      assert.ok((await page.evaluate(over)) <= 0, `${what}: wider than the window`);
      if (examined) assert.deepEqual(await faults(page), [], what);
      assert.deepEqual(page.problems, [], what);
      await page.context().close();
    }
});

test("Back leads to the view and the metric before", async () => {
  const page = await open(browser, `${url}#v=requests`);
  const titles = ["Allocated bytes", "Threads"];
  for (const title of titles) {
    await page.click(`nav >> text="${title}"`);
    await page.waitForTimeout(300); // the address follows a little later
  }
  assert.match(page.url(), /v=threads/);
  await page.goBack();
  await page.waitForSelector("section[aria-label='Flame graph']");
  assert.match(page.url(), /m=allocations/);
  await page.goBack();
  await page.waitForSelector("main.requests");
  await page.goForward();
  await page.waitForSelector("section[aria-label='Flame graph']");
  // The letters of a search are no steps.
  await page.fill("input[type=search]", "order");
  await page.waitForFunction(() => /q=order/.test(location.hash));
  await page.goBack();
  await page.waitForSelector("main.requests");
  assert.deepEqual(page.problems, []);
});

test("a view that does not follow the choice says so, and a name without requests too", async () => {
  const page = await open(browser, `${url}#v=monitors&rn=RequestChoice.list`);
  assert.match(
    await page.textContent(".note.choice"),
    /The chosen requests \(RequestChoice\.list\) do not limit this view/,
  );
  for (const view of ["profile", "requests", "threads", "monitors"]) {
    const wrong = await open(browser, `${url}#v=${view}&rn=nosuch`);
    assert.match(await wrong.textContent(".note.choice"), /No request has this name: nosuch\./);
    await wrong.click(".note.choice button");
    await wrong.waitForFunction(() => !/rn=/.test(location.hash));
    assert.equal(await wrong.locator(".note.choice").count(), 0);
    assert.deepEqual(wrong.problems, []);
  }
  const chosen = await open(browser, `${url}#m=allocations&rn=RequestChoice.list`);
  assert.match(await chosen.textContent("header"), /in the whole recording: estimated from/);
  assert.deepEqual(chosen.problems, []);
});

test("what the page lacks of a request's work is counted in the waterfall and beside the marks", async () => {
  const { command, classes } = java("ManyWorks");
  const file = join(folder, "works.jfr");
  const program = ["--", command, "-cp", classes, "ManyWorks"];
  jvmscope("run", "--threads", "--requests=ManyWorks.request(..)", "-o", file, ...program);
  jvmscope("convert", file, "-o", join(folder, "works.html"));
  const text = readFileSync(join(folder, "works.html"), "utf8");
  const [, data] = text.match(/<script[^>]*type="application\/json"[^>]*>(.*?)<\/script>/s);
  const { requests } = JSON.parse(data).requests;
  // Each of the 3 requests has its own work, on main, and 100 in the pool.
  assert.deepEqual(
    requests.map((r) => r.works.length / 5 + r.works_left),
    [101, 101, 101],
  );
  const left = requests[0].works_left;
  const page = await open(
    browser,
    `${pathToFileURL(join(folder, "works.html")).href}#v=requests&ri=${requests[0].id}`,
  );
  await page.waitForSelector(
    `.waterfall p:has-text("Not in this page: ${left} more pieces of work.")`,
  );
  await page.evaluate(() => (location.hash = "#v=threads&rn=ManyWorks.request"));
  await page.waitForSelector(
    `.note.choice:has-text("without ${3 * left} pieces of work that this page lacks")`,
  );
  assert.deepEqual(page.problems, []);
});
