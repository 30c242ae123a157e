// SPDX-License-Identifier: Apache-2.0
// The strip of the VM's pauses below the threads, against what the command prints of the same
// recording.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { faults, folder, java, jvmscope, launch, open, serve } from "./lab.mjs";

const recording = join(folder, "activity.jfr");
const html = join(folder, "activity.html");
const without = join(folder, "without.html");
let browser;
let server;
let served;
let vm;

before(async () => {
  const { command, classes } = java("VmActivity", "Interactions");
  jvmscope(
    "run",
    "--threads",
    "--events",
    "--cpu",
    "-o",
    recording,
    "--",
    command,
    "-Xmx64m",
    "-cp",
    classes,
    "VmActivity",
    "1",
  );
  jvmscope(
    "run",
    "--threads",
    "-o",
    join(folder, "without.jfr"),
    "--",
    command,
    "-cp",
    classes,
    "Interactions",
  );
  jvmscope("convert", recording, "-o", html);
  jvmscope("convert", join(folder, "without.jfr"), "-o", without);
  vm = JSON.parse(jvmscope("vm", "--json", "-n", "100000", recording));
  [server, served] = await serve(recording);
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.kill("SIGTERM");
});

/** The bands of a kind, decoded here. */
async function decoded(page, kind) {
  const text = await page.evaluate(
    (k) => JSON.parse(document.getElementById("data").textContent).timeline.bands[k],
    kind,
  );
  const bytes = Buffer.from(text, "base64");
  const bands = [];
  const fields = ["start", "length", "stopped", "way", "events", "name"];
  for (let i = 0, start = 0; i < bytes.length;) {
    const band = {};
    for (const f of fields) {
      let [v, scale] = [0, 1];
      for (; bytes[i] >= 128; i++, scale *= 128) v += (bytes[i] & 127) * scale;
      band[f] = v + bytes[i++] * scale;
    }
    band.start = start += band.start;
    bands.push(band);
  }
  return bands;
}

const sum = (list, field) => list.reduce((s, b) => s + b[field], 0);

test("the strip has the pauses and safepoints that the command counts", async () => {
  const page = await open(browser, `${pathToFileURL(html)}#v=threads`);
  const collections = await decoded(page, "collections");
  assert.equal(sum(collections, "events"), vm.collections.pauses);
  assert.equal(sum(collections, "stopped"), vm.collections.pause_ns);
  const safepoints = await decoded(page, "safepoints");
  assert.equal(sum(safepoints, "events"), vm.safepoints.each_known);
  assert.ok(vm.collections.pauses >= 30, `${vm.collections.pauses} pauses`);
  assert.match(
    await page.textContent(".bands p"),
    new RegExp(`^Collections: ${vm.collections.pauses.toLocaleString("en-US")} times, `),
  );
  assert.deepEqual(page.problems, []);
});

test("keys and the pointer show a pause in words", async () => {
  for (const url of [`${pathToFileURL(html)}#v=threads`, `${served}0/#v=threads`]) {
    const page = await open(browser, url);
    await page.waitForSelector(".bands canvas");
    await page.locator(".bands canvas").focus();
    await page.keyboard.press("ArrowRight");
    const first = await page.textContent(".bands p");
    assert.match(first, /^\d+\.\d{6}\u00a0s: collection pause, [\d.]+\u00a0[mµ]s; .*Pause/);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await page.textContent(".bands p"), first);
    await page.keyboard.press("ArrowDown");
    assert.match(await page.textContent(".bands p"), /: safepoint, /);
    await page.keyboard.press("Escape");
    assert.match(await page.textContent(".bands p"), /^Collections: /);
    const box = await page.locator(".bands canvas").boundingBox();
    await page.mouse.click(box.x + box.width * 0.7, box.y + 9);
    assert.match(await page.textContent(".bands p"), /: (\d+ )?collection pause/);
    assert.deepEqual(page.problems, []);
  }
});

test("the strip fits and is accessible at each width, and is not there without data", async () => {
  for (const width of [1400, 1024, 390]) {
    const page = await open(browser, `${pathToFileURL(html)}#v=threads`, {
      viewport: { width, height: 800 },
    });
    const box = await page.locator(".bands canvas").boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= width, JSON.stringify(box));
    assert.ok(box.height >= 36, JSON.stringify(box));
    assert.deepEqual(await faults(page), []);
    assert.deepEqual(page.problems, []);
  }
  const page = await open(browser, `${pathToFileURL(without)}#v=threads`);
  await page.waitForSelector(".rows canvas");
  assert.equal(await page.locator(".bands").count(), 0);
});
