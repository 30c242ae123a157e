// SPDX-License-Identifier: Apache-2.0
// The view of requests: what the command says of a recording, by mouse and by keyboard.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { faults, folder, java, jvmscope, launch, open } from "./lab.mjs";

let browser;
let url;
let table;
let shown;

before(async () => {
  const { command, classes } = java("RequestCauses");
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
    /lock: RequestCauses\$Store/,
  );
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(page.problems, []);
});
