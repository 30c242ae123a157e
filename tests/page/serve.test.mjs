// SPDX-License-Identifier: Apache-2.0
// jvmscope serve: the page on loopback, the what-if slider, and what is refused.
import assert from "node:assert/strict";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, java, jvmscope, launch, open, root, serve, served } from "./lab.mjs";

const other = join(folder, "other.collapsed");
let browser;
let server;
let url;
const recording = join(folder, "locks.jfr");
const hostile = join(folder, "b<img src=x>.collapsed");

function get(path, headers = {}, method = "GET") {
  const at = new URL(url);
  return new Promise((resolve, reject) => {
    const r = request({ host: at.hostname, port: at.port, path, headers, method }, (answer) => {
      let body = "";
      answer.on("data", (d) => (body += d));
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, body }));
    });
    r.on("error", reject);
    r.end();
  });
}

before(async () => {
  const { command, classes } = java("ThreadPrograms");
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
    "4",
  );
  writeFileSync(hostile, "a.B.c;d.E.f 3\n");
  writeFileSync(other, "a.B.c;d.E.f 2\na.B.c;x.Y.z 5\n");
  [server, url] = await serve(recording, hostile, other);
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.kill("SIGTERM");
});

test("the address has a token, only loopback listens", async () => {
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
  const page = await open(browser, url);
  assert.match(page.url(), /\/0\/$/);
  assert.deepEqual(page.problems, []);
});

test("files are chosen in the page, their names are text", async () => {
  const page = await open(browser, `${url}0/`);
  await page.selectOption("header select", "1");
  await page.waitForURL(/\/1\//);
  await page.waitForSelector(".methods");
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("tbody tr[data-row]").count(), 2);
  assert.deepEqual(
    page.problems.filter((p) => !/request/.test(p)),
    [],
  );
});

test("two recordings beside each other: the changes are those of jvmscope diff", async () => {
  const page = await open(browser, `${url}1/`);
  await page.selectOption("select[aria-label='Compare with']", "2");
  await page.waitForSelector(".compared tbody tr");
  const { samples } = JSON.parse(jvmscope("diff", "--json", other, hostile));
  const shown = await page.$$eval(".compared tbody tr", (rows) =>
    rows.map((r) => [r.cells[4].textContent, r.cells[0].textContent]),
  );
  assert.equal(shown.length, samples.methods.length);
  for (const [name, change] of shown) {
    const m = samples.methods.find((x) => x.method === name);
    assert.equal(parseFloat(change), Number((100 * m.change).toFixed(2)), name);
  }
  // A search chooses rows of this table, too.
  const names = shown.map(([name]) => name);
  const part = names.at(-1).slice(-6);
  await page.locator("input[aria-label='Search methods']").fill(part);
  await page.waitForFunction(
    (n) => document.querySelectorAll(".compared tbody tr").length === n,
    names.filter((n) => n.includes(part)).length,
  );
  await page.locator("input[aria-label='Search methods']").fill("");
  assert.deepEqual(
    page.problems.filter((p) => !/request/.test(p)),
    [],
  );
});

test("a recording that lacks what is shown is not compared with", async () => {
  const page = await open(browser, `${url}0/#m=locks&b=1`);
  await page.waitForSelector("p.note:has-text('holds no')");
  await page.waitForSelector(".methods tbody tr");
  assert.equal(await page.locator(".legend:has-text('a larger share than')").count(), 0);
  await page.selectOption("select[aria-label='Compare with']", "-1");
  await page.waitForFunction(() => !document.querySelector("p.note"));
  assert.deepEqual(
    page.problems.filter((p) => !/request/.test(p)),
    [],
  );
});

/** A heap dump of no objects. */
function emptyDump(file) {
  const head = Buffer.concat([Buffer.from("JAVA PROFILE 1.0.2\0"), Buffer.alloc(12)]);
  head.writeUInt32BE(8, 19);
  const record = (tag) => Buffer.concat([Buffer.from([tag]), Buffer.alloc(8)]);
  writeFileSync(file, Buffer.concat([head, record(0x1c), record(0x2c)]));
}

test("a heap dump is not offered for comparison with a profile", async () => {
  const dump = join(folder, "some.hprof");
  emptyDump(dump);
  const [another, at] = await serve(other, dump, hostile);
  try {
    const page = await open(browser, `${at}0/`);
    const offered = await page.$$eval("select[aria-label='Compare with'] option", (all) =>
      all.map((o) => o.value),
    );
    assert.deepEqual(offered, ["-1", "2"]);
    assert.equal(await page.locator("header select option").count(), 3);
    // Nor is it compared with if an address says so.
    await page.goto(`${at}0/#b=1`);
    await page.reload();
    await page.waitForSelector(".methods tbody tr");
    assert.equal(await page.locator(".legend:has-text('a larger share than')").count(), 0);
  } finally {
    another.kill("SIGTERM");
  }
  const [alone, there] = await serve(other, dump);
  try {
    const page = await open(browser, `${there}0/`);
    await page.waitForSelector(".methods tbody tr");
    assert.equal(await page.locator("select[aria-label='Compare with']").count(), 0);
  } finally {
    alone.kill("SIGTERM");
  }
});

test("a what-if of sections that are not on the critical path says that nothing is gained, and why", async () => {
  const answer = JSON.parse(
    (await get(`${new URL(url).pathname}0/what-if?class=nosuch&factor=0.5`)).body,
  );
  assert.ok(!answer.on_path && answer.before_ns === answer.after_ns, JSON.stringify(answer));
  const page = await open(browser, `${url}0/`);
  await page.route("**/what-if?*", (r) => r.fulfill({ json: answer }));
  await page.evaluate(() => (location.hash = "#v=monitors"));
  const why = "nothing is gained, because none of these sections lies on the critical path";
  await page.waitForSelector(`.whatif output:has-text("${why}")`);
  const said = jvmscope(
    "threads",
    "what-if",
    "--lock",
    "java.lang.Object",
    "--factor",
    "0.5",
    recording,
  );
  const half = JSON.parse(
    (await get(`${new URL(url).pathname}0/what-if?class=java.lang.Object&factor=0.5`)).body,
  );
  assert.equal(said.includes(why), !half.on_path && half.before_ns === half.after_ns, said);
});

test("the what-if slider shows what the command says", async () => {
  const page = await open(browser, `${url}0/#v=monitors`);
  assert.equal(await page.inputValue(".whatif select"), "java.lang.Object");
  const shown = (ns) =>
    ns >= 1e9
      ? `${(ns / 1e9).toFixed(2)}\u00a0s`
      : `${(ns / 1e6).toFixed(ns >= 1e8 ? 0 : 1)}\u00a0ms`;
  for (const factor of [0, 75, 200]) {
    await page.locator(".whatif input").fill(String(factor));
    const [truth] = JSON.parse(
      jvmscope(
        "threads",
        "what-if",
        "--json",
        "--lock",
        "java.lang.Object",
        "--factor",
        String(factor / 100),
        recording,
      ),
    );
    await page.waitForFunction(
      (text) => document.querySelector(".whatif output").textContent.startsWith(text),
      shown(truth.after_ns),
    );
  }
  assert.deepEqual(page.problems, []);
});

test("the page of a large file is kept beside it, and made anew when that is another or damaged", async () => {
  const large = join(folder, "large.collapsed");
  writeFileSync(large, `${"p.".repeat(30000)}c;d.E.f 3\n`.repeat(600)); // more than SERVE_CACHE_BYTES
  const ask = async () => {
    const [again, at] = await serve(large);
    const page = await served(`${at}0/`);
    again.kill("SIGTERM");
    return page;
  };
  const first = await ask();
  const kept = readFileSync(`${large}.page`);
  assert.ok(kept.length > 60000 && kept.length < 100000, `${kept.length}`);
  assert.deepEqual(await ask(), first);
  assert.deepEqual(readFileSync(`${large}.page`), kept);
  writeFileSync(`${large}.page`, kept.subarray(0, 30000));
  assert.deepEqual(await ask(), first);
  appendFileSync(large, "g.H.i 7\n");
  assert.ok((await ask()).labels.includes("g.H.i"));
});

test("what is not the reader's own request is refused, and the server goes on", async () => {
  const at = new URL(url);
  const wrong = `/${"0".repeat(32)}/0/`;
  assert.equal((await get("/")).status, 403);
  assert.equal((await get(wrong)).status, 403);
  assert.equal((await get(`${at.pathname}0/`, { Host: "evil.example" })).status, 403);
  assert.equal((await get(`${at.pathname}0/`, { Origin: "http://evil.example" })).status, 403);
  assert.equal((await get(`${at.pathname}0/`, { "Sec-Fetch-Site": "cross-site" })).status, 403);
  // Every question of the page is guarded alike.
  for (const path of [
    "0/data",
    "0/weights",
    "0/range?from=0&to=1000",
    "0/node?i=0",
    "0/monitors",
    "0/calls",
    "0/heap/summary",
    "0/what-if?class=a&factor=1",
  ]) {
    assert.equal((await get(`/${"0".repeat(32)}/${path}`)).status, 403, path);
    assert.equal((await get(`${at.pathname}${path}`, { Host: "evil.example" })).status, 403, path);
    assert.equal(
      (await get(`${at.pathname}${path}`, { Origin: "https://evil.example" })).status,
      403,
      path,
    );
    assert.equal((await get(`${at.pathname}${path}`, { Origin: "null" })).status, 403, path);
    assert.equal(
      (await get(`${at.pathname}${path}`, { "Sec-Fetch-Site": "same-site" })).status,
      403,
      path,
    );
  }
  assert.equal((await get(`${at.pathname}0/`, {}, "POST")).status, 405);
  for (const path of [
    "../../etc/passwd",
    "0/../../../etc/passwd",
    "%2e%2e/%2e%2e/etc/passwd",
    "9/",
    "0/x",
    "-1/",
    "0/what-if?factor=x",
    "99999999999999999999/",
  ]) {
    const r = await get(`${at.pathname}${path}`);
    assert.ok(r.status === 404 || r.status === 400 || r.status === 403, `${path}: ${r.status}`);
    assert.ok(!r.body.includes("root:"));
  }
  const good = await get(`${at.pathname}0/`);
  assert.equal(good.status, 200);
  assert.equal(good.headers["x-frame-options"], "DENY");
  assert.equal(good.headers["referrer-policy"], "no-referrer");
  assert.match(good.body, /Content-Security-Policy/);
});

test("slow connections fill their bound and no more", async () => {
  const at = new URL(url);
  const resident = () =>
    Number(readFileSync(`/proc/${server.pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1]);
  const before = resident();
  const sockets = [];
  for (let i = 0; i < 2000; i++) {
    const s = connect(Number(at.port), at.hostname);
    s.on("error", () => {});
    s.write("GET / HT");
    sockets.push(s);
  }
  await new Promise((r) => setTimeout(r, 800));
  const open = readdirSync(`/proc/${server.pid}/fd`).length;
  assert.ok(open <= 256 + 32, `${open} descriptors`); // SERVER_STRANGERS and its own
  assert.ok(resident() - before < 32 * 1024, `${resident() - before} KiB`);
  sockets.forEach((s) => s.destroy());
  await new Promise((r) => setTimeout(r, 300));
  assert.equal((await get(`${at.pathname}1/`)).status, 200);
});
