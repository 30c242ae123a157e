// SPDX-License-Identifier: Apache-2.0
// The page of a collector: its figures are those of `jvmscope fleet --json` of the same store, by
// mouse and by keyboard.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { faults, folder, java, jvmscope, launch, open, root } from "./lab.mjs";

const store = `sqlite:${join(folder, "fleet.db")}`;
const hostile = `<img src=x onerror="document.title='owned'">`;
let browser;
let collector;
let url;
let recorded;

const fleet = (verb, ...args) =>
  JSON.parse(jvmscope("fleet", verb, "--json", "--store", store, ...args));

/** A minute of an instance, as collapsed stacks; of 100 samples, `slow` are in Price.sum. */
async function send(service, version, host, ago, slow, more = "") {
  const from = Math.floor(Date.now() / 1000) - ago;
  const q = new URLSearchParams({
    service,
    version,
    host,
    instance: `${host}:1`,
    from: String(from),
  });
  const body = `java.lang.Thread.run;Shop.serve;Price.sum ${slow}\njava.lang.Thread.run;Shop.serve;Store.read ${100 - slow}\n${more}`;
  // A connection that is kept would be closed while jvmscope() below blocks this process.
  const r = await fetch(`${url}v1/upload?${q}`, {
    method: "POST",
    body,
    headers: { connection: "close" },
  });
  assert.equal(r.status, 200, await r.text());
}

before(async () => {
  collector = spawn(join(root, "build/jvmscope"), [
    "collect",
    "--store",
    store,
    "--listen",
    "127.0.0.1:0",
    "--recordings",
    join(folder, "kept"),
  ]);
  url = await new Promise((resolve) =>
    collector.stdout.once("data", (d) => resolve(String(d).trim())),
  );
  for (const [version, slow] of [
    ["1.7", 20],
    ["1.8", 60],
  ])
    for (let i = 0; i < 8; i++)
      await send(
        "shop",
        version,
        `web${i % 4}`,
        (version === "1.7" ? 1200 : 600) - 60 * i,
        slow + (i % 3),
      );
  await send("invoices-of-all-countries-and-of-all-their-branches", "1", "web1", 300, 5);
  await send("mail", "2", "mx", 300, 0, `${hostile};Price.sum 7\n`);
  const { command, classes } = java("RequestCauses");
  const recording = join(folder, "requests.jfr");
  jvmscope(
    "run",
    "--requests",
    "--events",
    "-o",
    recording,
    "--",
    command,
    "-Xmx512m",
    "-cp",
    classes,
    "RequestCauses",
  );
  recorded = readFileSync(recording);
  const r = await fetch(`${url}v1/upload?service=causes&version=1&host=web9`, {
    method: "POST",
    body: recorded,
  });
  assert.equal(r.status, 200, await r.text());
  browser = await launch();
});
after(async () => {
  await browser?.close();
  collector?.kill();
});

/** What people read in the place of a cause's name in JSON. */
const inWords = Object.fromEntries(
  [
    ...readFileSync(join(root, "web/src/causes.ts"), "utf8")
      .split("const texts")[1]
      .matchAll(/"?([a-z-]+)"?: "([^"]+)"/g),
  ].map((m) => [m[1], m[2]]),
);

const texts = (page, selector) => page.locator(selector).allTextContents();
const rows = (page) => page.locator("tbody tr");

test("services by cost, and from one to its profile and back", async () => {
  const page = await open(browser, url);
  await rows(page).nth(3).waitFor();
  const { services } = fleet("top");
  assert.deepEqual(
    (await texts(page, "tbody td:nth-child(1)")).sort(),
    services.map((s) => s.service).sort(),
  );
  const names = await texts(page, "tbody td:nth-child(1)");
  const versions = await texts(page, "tbody td:nth-child(2)");
  const samples = await texts(page, "tbody td:nth-child(5)");
  for (const s of services) {
    const at = names.findIndex((n, i) => n === s.service && versions[i] === s.version);
    assert.equal(Number(samples[at].replace(/\D/g, "")), s.cpu_samples);
    // Collapsed stacks do not say how much time a sample is.
    const [cpu, share] = await texts(
      page,
      `tbody tr:nth-child(${at + 1}) td:is(:nth-child(3), :nth-child(4))`,
    );
    assert.deepEqual([cpu === "unknown", share === "unknown"], [!s.cpu_ns, !s.cpu_ns], s.service);
  }
  await page.getByLabel("Price of a CPU hour").fill("3600");
  await page.keyboard.press("Tab");
  await page.waitForSelector("th:has-text('Cost')");
  await rows(page)
    .filter({ has: page.locator("td:nth-child(2)", { hasText: /^1\.8$/ }) })
    .focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(".flame canvas");
  assert.match(page.url(), /service=shop/);
  const methods = fleet("top", "--service", "shop", "--version", "1.8").methods;
  assert.equal(methods[0].method, "Price.sum");
  await page.waitForSelector(`tr[data-row='0'] td.method[title='Price.sum']`);
  assert.match(
    await page.locator(".tools b").textContent(),
    new RegExp(`^${fleet("top", "--service", "shop", "--version", "1.8").cpu_samples} samples`),
  );
  assert.deepEqual(await faults(page), []);
  await page.goBack();
  await page.waitForSelector("th:has-text('Hosts')");
  assert.deepEqual(page.problems, []);
});

test("what a version changed, and no change where there is none", async () => {
  const page = await open(
    browser,
    `${url}#v=difference&service=shop&version=1.8&base=version%3D1.7`,
  );
  await rows(page).first().waitFor();
  const changed = fleet(
    "diff",
    "--service",
    "shop",
    "--version",
    "1.8",
    "--base",
    "version=1.7",
    "--from",
    "24h",
  ).methods.filter((m) => m.self.verdict !== "no change" || m.total.verdict !== "no change");
  assert.deepEqual(
    (await texts(page, "tbody td:last-child")).sort(),
    changed.map((m) => m.method).sort(),
  );
  assert.ok(changed.some((m) => m.method === "Price.sum"));
  assert.match(await page.textContent("[role=status]"), /methods? changed/);
  assert.equal(
    (await page.textContent("[role=status] + .dim")).split(/, \d+ methods?/)[0],
    "Base: version 1.7, 800 samples; new: version 1.8, 800 samples",
  );
  await page.goto(`${url}#v=difference&service=shop&version=1.8&base=host%3Dweb1&host=web2`);
  await page.waitForSelector("[role=status]:has-text('No change')");
  assert.deepEqual(page.problems, []);
});

test("what got slower with a version leads to the difference", async () => {
  const page = await open(browser, `${url}#v=findings&service=shop`);
  await page.waitForSelector("main p:has-text('compared')");
  const { findings, compared } = fleet("findings", "--service", "shop", "--from", "24h");
  assert.equal(compared.length, 1);
  assert.match(
    await page.textContent("main"),
    /One new version was .* at most 1\.00\s% of the cases/,
  );
  assert.deepEqual(
    (await texts(page, "tbody td:last-child")).sort(),
    findings.map((f) => f.method).sort(),
  );
  assert.ok(findings.some((f) => f.method === "Price.sum"));
  // Collapsed stacks do not say how much time a sample is.
  assert.deepEqual(
    await texts(page, "tbody td:nth-child(2)"),
    findings.map(() => "unknown"),
  );
  await rows(page).filter({ hasText: "Price.sum" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/v=difference.*version=1\.8/);
  assert.deepEqual(page.problems, []);
  const nothing = await open(browser, `${url}#v=findings&service=mail`);
  await nothing.waitForSelector("main .empty:has-text('nothing was compared')");
  assert.deepEqual(nothing.problems, []);
});

test("requests with their latencies over time", async () => {
  const page = await open(browser, `${url}#v=requests&service=causes`);
  await rows(page).first().waitFor();
  const { requests } = fleet("requests", "--service", "causes");
  assert.deepEqual(
    (await texts(page, "tbody td:nth-child(2)")).sort(),
    requests.map((r) => r.request).sort(),
  );
  await page.waitForFunction(() =>
    /: [1-9]\d* of/.test(document.querySelector(".heat canvas").getAttribute("aria-label")),
  );
  await page.waitForSelector("main[aria-busy=false]");
  assert.equal(await page.locator(".note.lost").count(), 0, "each request is in one column");
  // When they came is a time of day, as everywhere in this page.
  await page.locator(".heat canvas").focus();
  await page.keyboard.press("ArrowRight");
  const span = await page.textContent(".heat output");
  const [, from, to] = span.match(/ from (\d\d:\d\d:\d\d) to (\d\d:\d\d:\d\d) UTC, /) ?? [];
  const second = (text) => Date.parse(`${new Date().toISOString().slice(0, 11)}${text}Z`) / 1000;
  const ago = (Date.now() / 1000 - second(from) + 86400) % 86400;
  assert.ok(to && ago < 3600 && (second(to) - second(from)) % 10 === 0, span);
  await rows(page).filter({ hasText: "GET /lock" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/request=GET/);
  await page.waitForSelector("tr[aria-selected=true]:has-text('GET /lock')");
  await page.goto(`${url}#v=requests&service=causes`);
  const { slowest } = fleet("requests", "--service", "causes");
  assert.equal(slowest.length, 3);
  const links = page.locator("section[aria-label^='Slow requests'] li");
  await links.nth(2).waitFor();
  for (const [i, s] of slowest.entries()) {
    assert.ok((await links.nth(i).textContent()).includes(`${s.request}, causes 1,`));
    const kept = await fetch(new URL(await links.nth(i).locator("a").getAttribute("href"), url));
    assert.equal(kept.status, 200);
    assert.deepEqual(Buffer.from(await kept.arrayBuffer()), recorded);
  }
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(page.problems, []);
});

test("help by key and by button, in every view", async () => {
  const page = await open(browser, url);
  await rows(page).first().waitFor();
  const seen = new Set();
  for (const view of [
    "services",
    "profile",
    "difference",
    "requests",
    "vm",
    "findings",
    "method",
  ]) {
    await page.goto(`${url}#v=${view}`);
    if (seen.size % 2) await page.getByRole("button", { name: "Help" }).click();
    else await page.keyboard.press("?");
    await page.waitForSelector("dialog[open][aria-label=Help]");
    seen.add(await page.textContent("dialog p"));
    assert.match(await page.textContent("dialog dl"), /light or dark/);
    if (view === "services") assert.deepEqual(await faults(page), []);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
  }
  assert.equal(seen.size, 7);
  await page.getByLabel("Host").fill("?d");
  assert.equal(await page.locator("dialog").count(), 0);
  assert.deepEqual(page.problems, []);
});

test("causes of requests, findings and figures of the VM", async () => {
  const page = await open(browser, `${url}#v=requests&service=causes`);
  await rows(page).first().waitFor();
  const { requests } = fleet("requests", "--service", "causes");
  for (const r of requests) {
    const cells = rows(page).filter({ hasText: r.request }).locator("td");
    const { cause } = r.causes.reduce((a, b) =>
      b.slow_ns - b.typical_ns > a.slow_ns - a.typical_ns ? b : a,
    );
    assert.ok((await cells.nth(-2).textContent()).startsWith(`${inWords[r.causes[0].cause]} `));
    assert.ok((await cells.last().textContent()).startsWith(`${inWords[cause]} `));
  }
  await page.goto(`${url}#v=findings&service=causes`);
  const reported = page.locator("section[aria-label='What recordings report'] tbody tr");
  await reported.first().waitFor();
  assert.deepEqual(
    (await texts(page, "section[aria-label='What recordings report'] td:nth-child(3)")).sort(),
    fleet("findings", "--service", "causes")
      .reported.map((f) => f.text)
      .sort(),
  );
  await page.goto(`${url}#v=vm&service=causes`);
  await rows(page).first().waitFor();
  const { services } = fleet("vm", "--service", "causes");
  assert.deepEqual(
    (await texts(page, "tbody td:nth-child(3)")).map((t) => Number(t.replace(/\D/g, ""))),
    services.map((s) => s.pauses.count),
  );
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(page.problems, []);
});

test("an answer that holds nothing says which filter chose nothing", async () => {
  for (const view of ["services", "profile", "requests", "vm"]) {
    const page = await open(browser, `${url}#v=${view}&service=shop&label=zone%3Dnowhere`);
    await page.waitForSelector(
      "main .empty:has-text('Label zone=nowhere matches nothing'), p.empty:has-text('Label zone=nowhere matches nothing')",
    );
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("who calls a method; names are text, whatever they hold", async () => {
  const page = await open(browser, `${url}#v=method&q=Price.sum`);
  const places = "section[aria-label='Services that call it'] tbody td:first-child",
    callers = "section[aria-label='Callers'] tbody td:first-child";
  await page.locator(callers).first().waitFor();
  const answer = fleet("query", "--method", "*Price.sum*", "--from", "24h");
  assert.deepEqual((await texts(page, places)).sort(), [
    "invoices-of-all-countries-and-of-all-their-branches 1",
    "mail 2",
    "shop 1.7",
    "shop 1.8",
  ]);
  assert.deepEqual(
    (await texts(page, callers)).sort(),
    answer.callers.map((r) => r.caller || "(none)").sort(),
  );
  await page.goto(`${url}#service=mail&v=profile`);
  await page.waitForSelector(".flame canvas");
  assert.equal(await page.title(), "jvmscope fleet");
  assert.deepEqual(page.problems, []);
});

/** Tables without a row in sight, names beyond the edge, and columns beyond the edge of which no name stays in sight. */
function misplaced() {
  const bad = [];
  for (const table of document.querySelectorAll("main table, .columns table")) {
    const place = table.closest(".sortable")?.getBoundingClientRect();
    const row = table.querySelector("tbody tr")?.getBoundingClientRect();
    if (!place || !row) continue;
    const name = table.caption.textContent.slice(0, 30);
    if (row.bottom > place.bottom) bad.push(`no row is in sight: ${name}`);
    const titles = [...table.querySelectorAll("thead th")].filter((th) => th.checkVisibility());
    const beyond = titles.filter((th) => th.getBoundingClientRect().right > place.right + 1);
    if (beyond.some((th) => th.classList.contains("name")))
      bad.push(`a name lies beyond the edge: ${name}`);
    if (
      beyond.length &&
      (innerWidth > 900 || !titles.some((th) => getComputedStyle(th).left === "0px"))
    )
      bad.push(`${beyond.length} columns beyond the edge: ${name}`);
    for (const th of titles)
      if (th.scrollWidth > th.clientWidth + 1) bad.push(`a title is cut: ${th.textContent}`);
  }
  return bad;
}

/** Figures of the first row of each table that are hidden, cut, or beyond the edge. */
function unseen() {
  const bad = [];
  for (const table of document.querySelectorAll(".columns table")) {
    const place = table.closest(".sortable").getBoundingClientRect();
    const titles = [...table.querySelectorAll("thead th")].map((th) => th.textContent);
    for (const [i, td] of [...table.querySelector("tbody tr").cells].entries()) {
      const { right, width } = td.getBoundingClientRect();
      if (!td.checkVisibility() || !width || right > place.right + 1)
        bad.push(`${titles[i]} is out of sight`);
      else if (!td.querySelector(".parts") && td.scrollWidth > td.clientWidth + 1)
        bad.push(`${titles[i]} is cut`);
    }
  }
  return bad;
}

for (const [width, height] of [
  [1400, 900],
  [1024, 700],
  [390, 800],
])
  test(`nothing is off the screen at ${width} pixels`, async () => {
    for (const view of [
      "services",
      "profile",
      "difference",
      "requests",
      "vm",
      "findings",
      "method",
    ]) {
      const page = await open(
        browser,
        `${url}#v=${view}&service=${{ services: "", requests: "causes", vm: "causes" }[view] ?? "shop"}&version=${view === "difference" ? "1.8" : ""}&q=${view === "method" ? "Price" : ""}`,
        { viewport: { width, height } },
      );
      await page.waitForFunction(
        () => !document.getElementById("app").textContent.includes("Querying the store"),
      );
      assert.ok(
        (await page.evaluate(() => document.documentElement.scrollWidth)) <= width,
        `${view} is wider than the screen`,
      );
      if (process.env.SHOTS)
        await page.screenshot({ path: join(process.env.SHOTS, `${view}-${width}.png`) });
      assert.deepEqual(await page.evaluate(misplaced), [], `${view} at ${width}`);
      if (width < 700) assert.deepEqual(await page.evaluate(unseen), [], `${view} at ${width}`);
      const ends = await page
        .locator(".tools :is(input, select, button)")
        .evaluateAll((all) => all.map((e) => e.getBoundingClientRect().right));
      assert.ok(
        Math.max(...ends) <= width,
        `a field of ${view} ends at ${Math.max(...ends)} of ${width}`,
      );
      assert.deepEqual(page.problems, [], view);
      await page.context().close();
    }
  });

test("figures that were not recorded are no zeros, and a wrong label or price is marked", async () => {
  const { command, classes } = java("Busy");
  const plain = join(folder, "plain.jfr");
  jvmscope("run", "--cpu", "-o", plain, "--", command, "-cp", classes, "Busy", "0.3");
  const r = await fetch(`${url}v1/upload?service=plain&version=1&host=web9`, {
    method: "POST",
    body: readFileSync(plain),
    headers: { connection: "close" },
  });
  assert.equal(r.status, 200, await r.text());
  // Nothing is known of when a recording was made that holds nothing.
  const bare = join(folder, "bare.jfr");
  const busy = [command, "-cp", classes, "Busy", "0.1"];
  jvmscope("run", "--exceptions=counts", "-o", bare, "--", ...busy);
  const sent = await fetch(`${url}v1/upload?service=bare`, {
    method: "POST",
    body: readFileSync(bare),
    headers: { connection: "close" },
  });
  assert.equal((await sent.json()).samples, 0);
  for (const view of ["services", "profile", "difference", "requests", "vm", "findings", "method"])
    for (const service of ["", "&service=bare"]) {
      const page = await open(browser, `${url}#v=${view}${service}&range=`);
      await page.waitForLoadState("networkidle");
      if (view === "requests" && !service) {
        await page.waitForSelector("main[aria-busy=false]");
        const seen = await page.locator(".heat canvas").getAttribute("aria-label");
        assert.match(seen, /: [1-9]\d* of/);
      }
      assert.deepEqual(page.problems, [], view + service);
      await page.context().close();
    }
  let page = await open(browser, `${url}#v=vm`);
  await rows(page).first().waitFor();
  const { services } = fleet("vm");
  const figures = ["pauses", "pauses", "pauses", "pauses", "safepoints", "throttled", "cpu"];
  let unknown = 0;
  for (const s of services) {
    const cells = await rows(page)
      .filter({ has: page.locator("td:nth-child(1)", { hasText: new RegExp(`^${s.service}$`) }) })
      .filter({ has: page.locator("td:nth-child(2)", { hasText: new RegExp(`^${s.version}$`) }) })
      .locator("td")
      .allTextContents();
    for (const [i, figure] of figures.entries()) {
      assert.equal(cells[i + 2] === "-", !s[figure], `${s.service} ${figure}: ${cells}`);
      unknown += !s[figure];
    }
  }
  assert.ok(unknown > 0);
  page = await open(browser, `${url}#v=services&service=shop`);
  await rows(page).first().waitFor();
  for (const [label, wrong] of [
    ["Label", "zzz"],
    ["Label", "=b"],
    ["Label", "="],
    ["Label", "a=1,=b"],
    ["Label", ",".repeat(3)],
    ["Label", Array.from({ length: 40 }, (_, i) => `k${i}=1`).join()],
    ["Price of a CPU hour", "-1"],
    ["Price of a CPU hour", "9".repeat(330)],
  ]) {
    const field = page.getByLabel(label);
    await field.fill(wrong);
    await page.keyboard.press("Tab");
    await page.waitForSelector("[role=alert]");
    assert.equal(await page.locator("input[aria-invalid=true]").count(), 1, label);
    await page.getByLabel(label).fill("");
    await page.keyboard.press("Tab");
    await page.waitForSelector("[role=alert]", { state: "detached" });
  }
  // The hosts of a choice are those that it has.
  const host = page.getByLabel("Host", { exact: true });
  await host.fill("web1");
  await page.keyboard.press("Tab");
  const known = fleet("services", "--service", "shop", "--host", "web1").services;
  assert.equal(known.length, 2);
  const figure = async (title) => {
    const at = (await texts(page, "thead th")).findIndex((t) => t.startsWith(title)) + 1;
    return texts(page, `tbody td:nth-child(${at})`);
  };
  await page.waitForFunction(
    () => document.querySelectorAll("tbody tr").length === 2 && location.hash.includes("web1"),
  );
  const versions = await figure("Version");
  const of = (member) => versions.map((v) => String(known.find((k) => k.version === v)[member]));
  for (const [title, member] of [
    ["Hosts", "hosts"],
    ["Instances", "instances"],
  ]) {
    assert.deepEqual(await figure(title), of(member), title);
    assert.deepEqual(new Set(of(member)), new Set(["1"]));
  }
  assert.deepEqual(page.problems, []);
});

test("without CPU samples the page shows what was sent, and says what that is", async () => {
  const r = await fetch(`${url}v1/upload?service=waiting&version=1&host=web1`, {
    method: "POST",
    body: "# jvmscope: wall 0\njava.lang.Thread.run;Shop.idle 12\n",
    headers: { connection: "close" },
  });
  assert.equal(r.status, 200, await r.text());
  const answer = fleet("top", "--service", "waiting");
  assert.deepEqual([answer.metric, answer.wall_samples], ["wall", 12]);
  const page = await open(browser, `${url}#v=profile&service=waiting&range=`);
  await page.waitForSelector(".flame canvas");
  assert.match(await page.textContent(".tools b"), /^12 samples/);
  await page.selectOption("select >> nth=-1", "cpu");
  await page.waitForSelector("text=metric cpu matches nothing");
  assert.deepEqual(page.problems, []);
});
