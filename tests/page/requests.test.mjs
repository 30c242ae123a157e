// SPDX-License-Identifier: Apache-2.0
// The view of requests: what the command says of a recording, by mouse and by keyboard.
import assert from "node:assert/strict";
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
} from "./lab.mjs";

let browser;
let url;
let many; // more requests than the page has details of
let table;
let shown;

before(async () => {
  const { command, classes } = java("RequestCauses", "RequestsMany");
  const recording = join(folder, "requests.jfr");
  jvmscope(
    "run",
    "--requests",
    "-o",
    recording,
    "--",
    command,
    "-Xmx512m",
    "-cp",
    classes,
    "RequestCauses",
  );
  jvmscope("convert", recording, "-o", join(folder, "requests.html"));
  table = JSON.parse(jvmscope("requests", "--json", recording)).requests;
  const { groups } = JSON.parse(
    jvmscope("requests", "slow", "--json", "--name", "GET /lock", recording),
  );
  // Of the slowest, one that waited for the lock: on a busy machine another may have waited for a
  // processor for even longer.
  const slowest = groups[0].slowest.map((id) => ({
    id,
    sentence: groups[0].sentence,
    ...JSON.parse(jvmscope("requests", "show", "--json", String(id), recording)),
  }));
  shown = slowest.find((r) => r.parts.some((p) => p.cause === "lock")) ?? slowest[0];
  url = pathToFileURL(join(folder, "requests.html")).href;
  many = join(folder, "many.jfr");
  const methods = "RequestsMany.quick(..),RequestsMany.slow(..)";
  const program = ["-cp", classes, "RequestsMany", "fast", "200000"];
  jvmscope("run", "--requests", methods, "-o", many, "--", command, ...program);
  jvmscope("convert", many, "-o", join(folder, "many.html"));
  browser = await launch();
});
after(() => browser?.close());

const text = (page, selector) => page.locator(selector).allTextContents();

test("names, and why the slow ones of a name are slow", async () => {
  const page = await open(browser, `${url}#v=requests`);
  const names = page.locator("section[aria-label=Names] tbody tr");
  assert.deepEqual(
    await text(page, "section[aria-label=Names] tbody td:first-child"),
    table.map((r) => r.name),
  );
  await names.filter({ hasText: "GET /lock" }).focus();
  await page.keyboard.press("Enter");
  assert.match(await page.locator(".why p").first().textContent(), /GET|requests took/);
  assert.equal(await page.locator(".why p").first().textContent(), `${shown.sentence}.`);
  // A cause's time and share may have an error, which is wider than the column with them.
  const figures = await page.$$eval(".why tbody td.num", (cells) =>
    cells.map((c) => {
      const cut = () => c.scrollWidth > c.clientWidth + 1;
      const was = cut();
      c.textContent = "88.8\u00a0ms ± 88.8\u00a0ms";
      return [was, cut()];
    }),
  );
  assert.ok(figures.length && !figures.flat().some(Boolean), `cut: ${figures}`);
  await page.waitForFunction(() => /rn=GET/.test(location.hash));
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(page.problems, []);
});

test("a time and a range of latencies are chosen by keyboard, and by mouse", async () => {
  const page = await open(browser, `${url}#v=requests`);
  const canvas = page.locator(".heat canvas");
  const listed = () => page.locator("section[aria-label='Chosen requests'] h2 small").textContent();
  const all = await listed();
  await canvas.focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /rb=/.test(location.hash));
  for (let i = 0; i < 240; i++) await page.keyboard.press("Shift+ArrowRight");
  for (let i = 0; i < 80; i++) await page.keyboard.press("Shift+ArrowDown");
  assert.equal(await listed(), all, "everything is chosen again");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !/rb=/.test(location.hash));
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 70, box.y + 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, box.y + box.height / 3, { steps: 5 });
  await page.mouse.up();
  const number = (text) => Number(text.replace(/ of .*/s, "").replace(/\D/g, ""));
  const few = number(await listed());
  assert.ok(few > 0 && few < number(all), `${few} of ${all}`);
  assert.equal(await page.locator(".stacked").count(), 2, "the chosen ones beside the others");
  // How many are chosen is beside what is chosen, and what is of all of them is called so.
  const inAll = number((await listed()).replace(/^.*;/s, ""));
  assert.match(
    await page.locator(".tools > span").textContent(),
    new RegExp(`chosen: ${inAll.toLocaleString("en-US")} from `),
  );
  assert.equal(await page.locator("h2 small:has-text('not only the chosen ones')").count(), 2);
  assert.deepEqual(page.problems, []);
});

test("the waterfall of a request has its parts", async () => {
  const page = await open(browser, `${url}#v=requests&rn=GET+%2Flock&ri=${shown.id}`);
  const rows = page.locator(".waterfall tbody tr");
  assert.equal(
    await rows.count(),
    shown.parts.length + (shown.works.length > 1 ? shown.works.length : 0) + shown.calls.length,
  );
  assert.match(
    (await text(page, ".waterfall tbody td:last-child")).join(" "),
    /lock: RequestCauses\$Store in RequestCauses/,
  );
  // A cause is called what the sentences call it, not what it is in JSON.
  const shownWords = (
    await text(page, ".legend span, section[aria-label='Chosen requests'] td")
  ).join("\n");
  assert.match(shownWords, /CPU/);
  assert.doesNotMatch(shownWords, /runnable|class-load|\bgc\b|\bcpu\b/);
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(page.problems, []);
});

test("averages are those of all requests, and the page says of how many it has the causes", async () => {
  const names = JSON.parse(jvmscope("requests", "--json", many)).requests;
  const sum = (list, key) => list.reduce((s, n) => s + n[key], 0);
  const is = (name) => names.filter((n) => n.name === name);
  const [quick, slow] = [is("RequestsMany.quick"), is("RequestsMany.slow")];
  assert.deepEqual([sum(quick, "count"), sum(slow, "count")], [200000, 2]);
  const file = pathToFileURL(join(folder, "many.html")).href;
  const check = (shown, label, list) => {
    const [, what, average, few, of] = shown
      .replace(/[\u00a0\u202f]/g, " ")
      .match(/^([^:]+): (.+) on average(?:; causes of ([\d,]+) of ([\d,]+) requests)?$/);
    assert.equal(what, label);
    close(nanoseconds(average), sum(list, "total_ns") / sum(list, "count"), shown);
    if (few === undefined) return assert.deepEqual(list, slow);
    assert.ok(number(few) > 0 && number(few) < 5000, shown);
    assert.equal(number(of), sum(list, "count"), shown);
  };
  for (const [filter, ...rows] of [
    ["", ["all", names]],
    ["&rn=RequestsMany.quick", ["chosen", quick], ["the others", slow]],
  ]) {
    const page = await open(browser, `${file}#v=requests${filter}`);
    await page.waitForSelector(".stacked");
    const shown = await text(page, ".causes > span");
    assert.equal(shown.length, rows.length);
    rows.forEach(([label, list], i) => check(shown[i], label, list));
    assert.match(
      await page.textContent("section[aria-label='Chosen requests'] h2 small"),
      new RegExp(`; ${sum(rows[0][1], "count").toLocaleString("en-US")} in the recording$`),
    );
    assert.deepEqual(page.problems, []);
  }
  // Of a part of the picture no sum is known: the average is of the details, and says so.
  const page = await open(browser, `${file}#v=requests&rb=0.199.0.71`);
  await page.waitForSelector(".stacked");
  const [chosen] = await text(page, ".causes > span");
  const [, few, of] = chosen.match(/^chosen: .* on average over ([\d,]+) of ([\d,]+) requests$/);
  assert.ok(number(few) < number(of), chosen);
  assert.equal(number(of), sum(names, "kept"), chosen);
});
