// SPDX-License-Identifier: Apache-2.0
// The call tree and the coverage views: their numbers are those of trace --json and coverage
// --json.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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
  nanoseconds,
  number,
  open,
  root,
  serve,
  served,
} from "./lab.mjs";

const traced = join(folder, "traced.jfr");
const many = join(folder, "many.jfr");
const threads = join(folder, "threads.jfr");
const covered = join(folder, "covered.jfr");
const pageOf = (file) => pathToFileURL(file.replace(/jfr$/, "html")).href;
let browser;
let calls;
let coverage;

before(async () => {
  const { command, classes } = java("Traced", "TracedMany", "TracedThreads", "Covered");
  jvmscope("run", "--trace", "Traced*", "-o", traced, "--", command, "-cp", classes, "Traced");
  jvmscope(
    "run",
    "--cover",
    "--include",
    "Covered*",
    "-o",
    covered,
    "--",
    command,
    "-cp",
    classes,
    "Covered",
  );
  const methods = "TracedMany.inner,TracedMany.outer,TracedMany.late";
  jvmscope("run", "--trace", methods, "-o", many, "--", command, "-cp", classes, "TracedMany");
  jvmscope("convert", many, "-o", many.replace(/jfr$/, "html"));
  const names = "recur,other,step,brief,hold".replace(/\w+/g, "TracedThreads.$&");
  jvmscope("run", "--trace", names, "-o", threads, "--", command, "-cp", classes, "TracedThreads");
  jvmscope("convert", threads, "-o", threads.replace(/jfr$/, "html"));
  jvmscope("convert", traced, "-o", traced.replace(/jfr$/, "html"));
  jvmscope(
    "convert",
    "--sources",
    join(root, "tests/java"),
    covered,
    "-o",
    covered.replace(/jfr$/, "html"),
  );
  ({ calls } = JSON.parse(jvmscope("trace", "--json", traced)));
  coverage = JSON.parse(jvmscope("coverage", "--json", covered));
  browser = await launch();
});
after(() => browser.close());

test("every call is in the tree, with what it was given and what came back", async () => {
  const page = await open(browser, pageOf(traced));
  await page.waitForSelector(".virtual tbody tr[data-row]");
  assert.equal(
    Number(await page.getAttribute(".virtual table", "aria-rowcount")),
    calls.length + 1,
  );
  const row = (text) => page.locator(`.virtual tr[data-row]:has-text("${text}")`).first();
  assert.match(
    await row("Calls.doubles").first().textContent(),
    /Traced\$Calls\.doubles\(1\.5, 2\.0\) = 3\.0/,
  );
  assert.match(
    await row("Calls.ints").textContent(),
    /Traced\$Calls\.ints\(-1, 300, 'c', 70000, true\) = 70399/,
  );
  // Strings and characters as in Java, other objects as their text.
  assert.match(
    await row("Calls.strings").textContent(),
    /Traced\$Calls\.strings\("café \\"quoted\\"", java\.util\.ArrayList\(\d+\)@[0-9a-f]+[^)]*\) = "café \\"quoted\\"!"/,
  );
  // Starts are seconds with six digits, which tell calls of one millisecond apart.
  const starts = await page.$$eval(".virtual tr[data-row] td:nth-child(2)", (cells) =>
    cells.map((c) => c.textContent.trim()),
  );
  assert.ok(
    starts.length > 5 && starts.every((t) => /^\d+\.\d{6}\u00a0s$/.test(t)),
    starts.slice(0, 3).join(),
  );
  for (const [i, c] of calls.slice(0, 5).entries())
    assert.ok(
      Math.abs(
        parseFloat(starts[i]) - parseFloat(starts[0]) - (c.start_ns - calls[0].start_ns) / 1e9,
      ) < 2.1e-6,
      starts[i],
    );
  await page.fill("input[type=search]", "thrower");
  const throwers = calls.filter((c) => /\.thrower\(/.test(c.method));
  await page.waitForSelector(`output:has-text("${throwers.length} of")`);
  await page.click("button:has-text('Threw')");
  await page.waitForSelector(`output:has-text("${throwers.filter((c) => c.exception).length} of")`);
  // What leads to the calls that match is there as well, paler.
  assert.ok((await page.locator(".virtual tr.context").count()) > 0);
  // "n" and "N" go from one call that matches to the next, past those that only lead there.
  await page.locator(".virtual").focus();
  await page.keyboard.press("Home");
  const chosen = () =>
    page.getAttribute(".virtual tr[aria-selected=true]", "data-row").then(Number);
  const matching = await page.$$eval(".virtual tr[data-row]:not(.context)", (rows) =>
    rows.map((r) => Number(r.dataset.row)),
  );
  await page.keyboard.press("n");
  await page.waitForSelector(`.virtual tr[data-row="${matching[0]}"][aria-selected=true]`);
  assert.equal(await chosen(), matching[0]);
  await row("threw").click();
  await page.waitForSelector(".side h2:has-text('thrower')");
  const { message } = calls.find((c) => /\.thrower\(/.test(c.method) && c.exception);
  const thrown = `java.lang.IllegalStateException: ${JSON.stringify(message)}`;
  assert.ok(message && (await page.textContent(".side")).includes(`threw${thrown}`.slice(5)));
  assert.ok((await row("threw").textContent()).includes(` threw ${thrown}`));
  await page.click("button:has-text('Go to the caller')");
  await page.waitForSelector(".side h2:has-text('catcher')");
  // The address follows a moment later; that of the call before may still be in it.
  const threw = calls.findIndex((c) => /\.thrower\(/.test(c.method) && c.exception);
  const parent = calls.findLastIndex((c, i) => i < threw && /\.catcher\(/.test(c.method));
  await page.waitForURL(new RegExp(`call=${parent}(&|$)`));
  await page.reload();
  await page.waitForSelector(".side h2:has-text('catcher')");
  assert.deepEqual(page.problems, []);
});

test("numbers are shown as the recording has them", async () => {
  const { build } = createRequire(join(root, "web/package.json"))("esbuild");
  const outfile = join(folder, "calls.mjs");
  await build({
    entryPoints: [join(root, "web/src/calls.ts")],
    outfile,
    format: "esm",
    bundle: true,
  });
  const { values } = await import(pathToFileURL(outfile).href);
  const recorded =
    '[1.0,1e300, -0.0,7,"a,]\\"[1.0,",{"object":"x{1.0,2}"},{"number":"NaN"},null,true]';
  const shown = ["1.0", "1e300", "-0.0", "7", '"a,]\\"[1.0,"', "x{1.0,2}", "NaN", "null", "true"];
  assert.deepEqual(values(recorded), shown);
  assert.deepEqual(values("[1.0,1e300]", ["java.lang.Object", "double"]), ["1.0", "1e300"]);
  assert.deepEqual(
    [values("1e300"), values("[]"), values("no JSON")],
    [["1e300"], [], ["no JSON"]],
  );
});

test("the tree by keyboard; its methods add up; it is saved as CSV", async () => {
  const page = await open(browser, pageOf(traced));
  await page.locator(".virtual").focus();
  await page.keyboard.press("Home");
  await page.waitForSelector(".virtual tr[data-row='0'][aria-selected=true]");
  const before = Number(await page.getAttribute(".virtual table", "aria-rowcount"));
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(
    (n) => Number(document.querySelector(".virtual table").getAttribute("aria-rowcount")) < n,
    before,
  );
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(
    (n) => Number(document.querySelector(".virtual table").getAttribute("aria-rowcount")) === n,
    before,
  );
  await page.keyboard.press("Escape");
  await page.waitForSelector(".side table");
  const counts = await page.$$eval(".side tbody tr", (rows) =>
    Object.fromEntries(rows.map((r) => [r.cells[0].textContent, Number(r.cells[1].textContent)])),
  );
  const truth = {};
  for (const c of calls) {
    const name = c.method.replace(/\(.*/s, "");
    truth[name] = (truth[name] ?? 0) + 1;
  }
  assert.deepEqual(counts, truth);
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.click("button:has-text('Save CSV')"),
  ]);
  assert.equal(readFileSync(await file.path(), "utf8").split("\r\n").length, calls.length + 2);
  assert.deepEqual(page.problems, []);
});

test("sums of methods are those of the recording, of which the page has only the first calls", async () => {
  const truth = JSON.parse(jvmscope("trace", "--json", "-n", "1000000", many)).calls;
  const [total, longest] = [{}, {}];
  for (const c of truth) {
    const name = c.method.replace(/\(.*/, "");
    total[name] = (total[name] ?? 0) + c.ns;
    longest[name] = Math.max(longest[name] ?? 0, c.ns);
  }
  const row = (name, calls, self, threw) => ({
    name: `TracedMany.${name}`,
    calls,
    total: total[`TracedMany.${name}`],
    self,
    max: longest[`TracedMany.${name}`],
    threw,
  });
  const inner = total["TracedMany.inner"];
  const expected = [
    row("outer", 9000, total["TracedMany.outer"] - inner, 0),
    row("inner", 18000, inner, 0),
    row("late", 500, total["TracedMany.late"], 500),
  ];
  const [server, site] = await serve(many);
  const url = `${site}0/`;
  try {
    const { trace } = await served(url);
    assert.deepEqual([trace.calls.length, trace.total], [20000, 27500]);
    assert.deepEqual(trace.methods, expected);
    assert.deepEqual(trace.threads, ["main", "later"]);
    const shown = (page, n) => {
      const is = (wanted) => {
        const rows = [...document.querySelectorAll(".side tbody tr")];
        return (
          rows.map((r) => `${r.cells[0].textContent} ${r.cells[1].textContent}`).join() === wanted
        );
      };
      const wanted = Object.entries(n).map(
        ([name, calls]) => `TracedMany.${name} ${calls.toLocaleString("en-US")}`,
      );
      return page.waitForFunction(is, wanted.join());
    };
    const order = (rows) =>
      Object.fromEntries(
        [...rows]
          .sort((a, b) => b.self - a.self)
          .map((r) => [r.name.replace("TracedMany.", ""), r.calls]),
      );
    for (const address of [url, pageOf(many)]) {
      const page = await open(browser, address);
      await page.waitForSelector(".side table");
      await shown(page, order(expected));
      assert.equal(await page.locator(".side p.note").count(), 0);
      // The second thread began after the calls that the page has.
      await page.selectOption("select[aria-label=Thread]", "later");
      if (address === url) {
        await shown(page, { late: 500 });
        await page.selectOption("select[aria-label=Thread]", "");
        await page.click("button:has-text('Threw')");
        await page.waitForSelector('output:has-text("500 of 500 calls")');
        await shown(page, { late: 500 });
        await page.click("button:has-text('Threw')");
        await page.fill("input[type=search]", "outer");
        await shown(page, { outer: 9000 });
        assert.equal(await page.locator(".side p.note").count(), 0);
      } else {
        // The file cannot look further, and says so beside the sums.
        await shown(page, {});
        await page.selectOption("select[aria-label=Thread]", "");
        await page.fill("input[type=search]", "outer");
        await page.waitForSelector(".side p.note:has-text('Among the first 20,000 calls.')");
      }
      assert.deepEqual(page.problems, []);
    }
  } finally {
    server.kill();
  }
});

/** Sums of methods; the total of a recursive one has each moment of its thread once. */
function sumsOf(list) {
  const rows = new Map();
  const outer = new Map();
  for (const c of list) {
    const name = c.method.replace(/\(.*/, "");
    const r = rows.get(name) ?? { calls: 0, total: 0 };
    rows.set(name, r);
    r.calls++;
    const key = `${c.thread} ${name}`;
    const end = c.start_ns + c.ns + (c.reading_ns ?? 0);
    if (!(c.depth > 0 && c.start_ns < outer.get(key))) {
      outer.set(key, end);
      r.total += c.ns;
    }
  }
  return rows;
}

test("a thread and a part of a name select the same calls in the list and in the sums", async () => {
  const truth = JSON.parse(jvmscope("trace", "--json", threads)).calls;
  assert.ok(truth.length > 20000);
  const first = truth.slice(0, 20000);
  const [server, site] = await serve(threads);
  const url = `${site}0/`;
  try {
    const { trace } = await served(url);
    const all = sumsOf(truth);
    assert.deepEqual(
      trace.methods.map((m) => [m.name, m.calls, m.total]),
      [...all].map(([name, m]) => [name, m.calls, m.total]),
    );
    // A thread is not taken for another of the same name: hold called step, while brief ran.
    const of = (name) => trace.methods.find((m) => m.name === `TracedThreads.${name}`);
    const step = truth.find((c) => /step/.test(c.method) && /hold/.test(c.caller));
    assert.equal(of("hold").self, of("hold").total - step.ns);
    const recursive = truth.filter((c) => c.thread === "w-1");
    assert.ok(sumsOf(recursive).get("TracedThreads.recur").total < recursive[0].ns * 1000);
    for (const address of [url, pageOf(threads)]) {
      for (const [filter, wanted] of [
        ["ct=w-1", (c) => c.thread === "w-1"],
        ["ct=a*b%3F%5Bc%5D", (c) => c.thread === "a*b?[c]"],
        ["ct=w-10&cm=OTHER", (c) => c.thread === "w-10" && /other/.test(c.method)],
        ["cm=recur(", () => false],
        ["cm=recur,other", () => false],
        ["cm=*.r%3Fcur&ct=w-1", (c) => c.thread === "w-1" && /recur/.test(c.method)],
      ]) {
        const list = (address === url ? truth : first).filter(wanted);
        const page = await open(browser, `${address}#v=trace&${filter}`);
        const head = `${list.length.toLocaleString("en-US")} of`;
        await page.waitForFunction(
          ([head, n, none]) =>
            document.querySelector("main.trace output")?.textContent.startsWith(head) &&
            document.querySelectorAll(".side tbody tr").length === n &&
            (!none || !document.querySelector(".side tbody tr")),
          [head, sumsOf(list).size, list.length === 0],
        );
        const rows = await page.$$eval(".side tbody tr", (trs) =>
          trs.map((r) => [...r.cells].map((c) => c.textContent)),
        );
        for (const [name, m] of sumsOf(list)) {
          const row = rows.find((r) => r[0] === name);
          assert.equal(number(row[1]), m.calls, `${address} ${filter} ${name}`);
          close(nanoseconds(row[3]), m.total, `${address} ${filter} ${name}`);
        }
        assert.deepEqual(page.problems, []);
        await page.context().close();
      }
    }
  } finally {
    server.kill();
  }
});

test("the page that coverage writes is as wide as a phone", async () => {
  const file = join(folder, "coverage-of-classes.html");
  jvmscope("coverage", "-o", file, covered);
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  await page.goto(pathToFileURL(file).href);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `${width} pixels`);
  await page.close();
});

test("coverage: the table's numbers, and the colours of the source's lines", async () => {
  const page = await open(browser, pageOf(covered));
  const shown = await page.$$eval("section[aria-label=Classes] tbody tr", (rows) =>
    rows.map((r) => [...r.cells].map((c) => c.textContent)),
  );
  assert.equal(shown.length, coverage.classes.length);
  for (const c of coverage.classes) {
    const row = shown.find((r) => r[0] === c.class);
    assert.deepEqual(
      [row[2], row[3], row[5], row[6], row[8]].map(Number),
      [
        c.lines_hit,
        c.lines - c.lines_hit,
        c.methods_hit,
        c.methods - c.methods_hit,
        c.branches - c.branches_hit,
      ],
      c.class,
    );
    // Of methods and branches, too, each class has its share, or none.
    const shares = [
      [c.methods_hit, c.methods],
      [c.branches_hit, c.branches],
    ].map(([hit, all]) => (all ? `${((100 * hit) / all).toFixed(1)} %` : "–"));
    assert.deepEqual(
      [row[4], row[7]].map((t) => t.replace(/\s/, " ")),
      shares,
      c.class,
    );
  }
  // A name after = is this class alone; otherwise it is a part of the name, or a pattern.
  const listed = () =>
    page.$$eval("section[aria-label=Classes] tbody tr", (rows) =>
      rows.map((r) => r.cells[0].textContent),
    );
  const all = coverage.classes.map((c) => c.class).sort();
  for (const [typed, wanted] of [
    ["=covered", ["Covered"]],
    ["=cover", []],
    ["cover", all],
    ["Covered?*", all.filter((c) => c !== "Covered")],
  ]) {
    await page.fill("input[type=search]", typed);
    assert.deepEqual((await listed()).sort(), wanted, typed);
  }
  await page.fill("input[type=search]", "");
  await page.click("section[aria-label=Classes] tr:has-text('Covered') >> nth=1");
  await page.waitForSelector(".lines");
  // The program says of each of its lines what ran: R, N, taken/all.
  const lines = await page.$$eval(".lines > div", (divs) =>
    divs.map((d) => [
      d.className,
      d.querySelector("code").textContent,
      d.querySelector(".hit").textContent,
    ]),
  );
  let told = 0;
  for (const [kind, text, mark] of lines) {
    const m = text.match(/\/\/ ([RN])( (\d)\/(\d))?$/);
    if (!m || /class Unused|never|return 1; \/\/ N$/.test(text)) continue;
    told++;
    assert.equal(kind, m[1] === "N" ? "missed" : m[3] && m[3] !== m[4] ? "partly" : "ran", text);
    if (m[1] === "R" && m[3] && m[3] !== m[4]) assert.equal(mark, `${m[3]}/${m[4]}`, text);
  }
  assert.ok(told > 20);
  assert.deepEqual(page.problems, []);
});

test("the tree of calls has the width of the window, and what is below it is in sight", async () => {
  for (const [width, height] of [
    [1400, 900],
    [1024, 768],
    [390, 844],
  ]) {
    const page = await open(browser, pageOf(traced), { viewport: { width, height } });
    await page.waitForSelector(".virtual tbody tr[data-row]");
    const size = (selector) =>
      page.locator(selector).evaluate((e) => {
        const b = e.getBoundingClientRect();
        return { left: b.left, right: b.right, top: b.top, bottom: b.bottom };
      });
    const tree = await size(".virtual");
    assert.deepEqual([tree.left, tree.right], [0, width], `${width}`);
    assert.ok((await size(".side .sortable")).top < height, `${width}: Methods`);
    // A choice at the lower edge stays in sight, and its values have room.
    const last = page.locator(".virtual tr[data-row]").nth(3);
    const row = await last.getAttribute("data-row");
    await last.click();
    await page.waitForSelector(".facts-list dd");
    await page.waitForTimeout(200);
    const side = await size(".side");
    const chosen = await size(`.virtual tr[data-row="${row}"]`);
    assert.ok(chosen.bottom <= side.top + 1, `${width}: ${chosen.bottom} ${side.top}`);
    for (const wide of await page.$$eval(".facts-list dd", (all) => all.map((e) => e.clientWidth)))
      assert.ok(wide >= 0.4 * width, `${width}: a value has ${wide} px`);
    assert.deepEqual(page.problems, []);
  }
});

test("no serious fault for assistive technology, in light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const url of [
      pageOf(traced),
      `${pageOf(traced)}#call=3`,
      `${pageOf(covered)}#kl=Covered`,
    ]) {
      const page = await open(browser, url, { colorScheme });
      assert.deepEqual(await faults(page), [], `${colorScheme} ${url}`);
    }
  }
});
