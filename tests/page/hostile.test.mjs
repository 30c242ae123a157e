// SPDX-License-Identifier: Apache-2.0
// Names that would be markup, 64 KiB of one, what is not text, recordings and dumps that are cut:
// shown as text, as far as they go.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder, java, jvmscope, launch, open } from "./lab.mjs";

const recording = join(folder, "hostile.jfr");
const url = (name) => pathToFileURL(join(folder, name)).href;
let browser;
let tools;

before(async () => {
  tools = java("HostileNames", "HeapPage");
  jvmscope(
    "run",
    "--threads",
    "--cpu",
    "--trace",
    "HostileNames.say",
    "-o",
    recording,
    "--",
    tools.command,
    "-cp",
    tools.classes,
    "HostileNames",
  );
  jvmscope("convert", recording, "-o", join(folder, "hostile.html"));
  browser = await launch();
});
after(() => browser.close());

test("hostile thread names are text in every view, and none is lost", async () => {
  const { threads } = JSON.parse(jvmscope("threads", "monitors", "--json", recording));
  const markup = threads.find((t) => t.name.startsWith("<img src=x"));
  const long = threads.find((t) => t.name.startsWith("long-x"));
  assert.ok(
    markup && long && long.name.length === 65536,
    threads.map((t) => t.name.slice(0, 30)).join(),
  );
  for (const view of ["threads", "monitors", "trace", "profile"]) {
    const page = await open(browser, `${url("hostile.html")}#v=${view}`);
    await page.waitForTimeout(300);
    assert.equal(await page.locator("img").count(), 0, view);
    assert.equal(await page.title(), "hostile.jfr — jvmscope", view);
    if (view === "monitors") {
      const names = await page.$$eval(
        ".columns section:nth-of-type(1) tbody tr td:first-child",
        (c) => c.map((x) => x.textContent),
      );
      for (const t of threads) assert.ok(names.includes(t.name || "?"), t.name.slice(0, 40));
    }
    if (view === "trace")
      assert.match(await page.textContent(".virtual"), /say.*<img src=x onerror=/s);
    if (view === "threads") {
      await page.locator(".rows canvas").focus();
      await page.keyboard.press("s");
      await page.waitForSelector("dialog[open] tbody tr:has-text('<img src=x')");
    }
    assert.deepEqual(page.problems, [], view);
  }
});

test("a recording that is cut says so and shows what is there", async () => {
  const bytes = readFileSync(recording);
  const cut = join(folder, "cut.jfr");
  writeFileSync(cut, bytes.subarray(0, Math.floor(bytes.length * 0.6)));
  jvmscope("convert", cut, "-o", join(folder, "cut.html"));
  const page = await open(browser, url("cut.html"));
  await page.waitForSelector(".note:has-text('Only part of it could be read')");
  assert.deepEqual(page.problems, []);
});

test("a dump that is cut says so and shows what is there", async () => {
  const dump = join(folder, "whole.hprof");
  const cut = join(folder, "cut.hprof");
  spawnSync(tools.command, ["-Xmx64m", "-cp", tools.classes, "HeapPage", dump]);
  writeFileSync(cut, readFileSync(dump).subarray(0, Math.floor(statSync(dump).size * 0.7)));
  jvmscope("convert", cut, "-o", join(folder, "cutheap.html"));
  const page = await open(browser, url("cutheap.html"));
  await page.waitForSelector(".note:has-text('PARTIAL')");
  await page.waitForSelector(".map canvas");
  assert.deepEqual(page.problems, []);
});

test("what a recording lacks is said with what records it", async () => {
  const empty = join(folder, "empty.collapsed");
  writeFileSync(empty, "a;b 1\n");
  jvmscope("convert", empty, "-o", join(folder, "empty.html"));
  const page = await open(browser, `${url("empty.html")}#v=threads`);
  await page.waitForSelector(".nothing:has-text('jvmscope run --threads')");
  const text = await page.textContent(".nothing");
  for (const option of ["--alloc", "--requests", "--cover", "heap dump"])
    assert.ok(text.includes(option), text);
  await page.keyboard.press("?");
  await page.waitForSelector("dialog .missing:has-text('Coverage')");
  assert.deepEqual(page.problems, []);
});

test("before any data the page weighs less than 300 KB", () => {
  const bytes = readFileSync(join(folder, "empty.html")).length;
  assert.ok(bytes < 300_000, String(bytes));
});
