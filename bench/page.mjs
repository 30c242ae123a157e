#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The page in headless Chromium: weight, time to the first view, frames while zooming; on a million frames and 10,000 threads.
// Prints a markdown table. Needs chromium and the packages of web/package-lock.json.
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { chromium } = createRequire(join(root, "web/package.json"))("playwright-core");
const folder = mkdtempSync(join(tmpdir(), "jvmscope-bench-page-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

function convert(from, to) {
  const done = spawnSync(join(root, "build/jvmscope"), ["convert", from, "-o", to], { encoding: "utf8" });
  if (done.status) throw new Error(done.stderr);
}

/** Stacks whose tree has about a million frames. */
function millionFrames(path) {
  const out = openSync(path, "w");
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < 62500; i++) {
    let line = "java.lang.Thread.run";
    for (let d = 0; d < 3; d++) line += `;app.Router${Math.floor(random() * 20)}.handle`;
    for (let d = 0; d < 16; d++) line += `;p${d}.Class${Math.floor(random() * 400)}.method${Math.floor(random() * 8)}`;
    writeSync(out, `${line} ${1 + Math.floor(random() * 50)}\n`);
  }
  closeSync(out);
}

/** The same page with a timeline of many threads in its data: no program here runs 10,000 of them in a minute. */
async function manyThreads(page, count) {
  return page.evaluate((n) => {
    const data = JSON.parse(document.getElementById("data").textContent);
    const varints = [];
    const put = (v) => {
      for (; v >= 128; v = Math.floor(v / 128)) varints.push((v % 128) | 128);
      varints.push(v);
    };
    for (let i = 0; i < n * 30; i++) {
      put(1000);
      varints.push(i < n ? 0 : i % 3);
      put(0);
      put(i % n);
      put(0);
      put(0);
    }
    let text = "";
    for (const b of varints) text += String.fromCharCode(b);
    const threads = Array.from({ length: n }, (_, i) => ({ name: `worker-${i}`, group: "main", id: i, start: 0, end: n * 30000, system: false }));
    data.timeline = { end_ns: n * 30000, lost: 0, deadlocks: 0, exact: true, cut_ns: 0,
      kinds: ["run", "wait-object", "wait-lock", "sleep", "timeout"], edges: ["none"], path_states: [], threads, nodes: btoa(text),
      contexts: btoa("\0\0\0\0"), objects: "", stacks: "", strings: [], stats: { threads: [], sites: [] } };
    return document.documentElement.outerHTML.includes("") && JSON.stringify(data);
  }, count);
}

async function measure(browser, url, canvas, act) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const begin = performance.now();
  await page.goto(url);
  await page.waitForSelector(canvas);
  await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
  const first = performance.now() - begin;
  const times = await page.evaluate(async ([selector, what]) => {
    const c = document.querySelector(selector);
    const box = c.getBoundingClientRect();
    const list = [];
    for (let i = 0; i < 120; i++) {
      const t0 = performance.now();
      const at = { bubbles: true, cancelable: true, clientX: box.x + box.width * (0.3 + 0.4 * ((i * 37 % 100) / 100)), clientY: box.y + 60 };
      if (what === "zoom") c.dispatchEvent(new WheelEvent("wheel", { ...at, ctrlKey: true, deltaY: i % 40 < 20 ? -60 : 60 }));
      c.dispatchEvent(new MouseEvent("mousemove", at));
      await new Promise((r) => setTimeout(r)); // the page's own rendering
      c.getContext("2d").getImageData(0, 0, 1, 1); // and the canvas's
      list.push(performance.now() - t0);
      await new Promise((r) => requestAnimationFrame(r));
    }
    return list.sort((a, b) => a - b);
  }, [canvas, act]);
  await page.close();
  return { first, p50: times[60], p95: times[114] };
}

const small = join(folder, "small.collapsed");
const large = join(folder, "large.collapsed");
writeFileSync(small, "a.B.c 1\n");
millionFrames(large);
convert(small, small.replace("collapsed", "html"));
convert(large, large.replace("collapsed", "html"));
const weight = statSync(small.replace("collapsed", "html")).size;

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
});
const largeUrl = pathToFileURL(large.replace("collapsed", "html")).href;
const flame = await measure(browser, largeUrl, ".flame canvas", "zoom");
const helper = await browser.newPage();
await helper.goto(pathToFileURL(small.replace("collapsed", "html")).href);
const json = await manyThreads(helper, 10000);
const threads = join(folder, "threads.html");
const { readFileSync } = await import("node:fs");
const text = readFileSync(small.replace("collapsed", "html"), "utf8");
writeFileSync(threads, text.replace(/(<script type="application\/json" id="data">)[^<]*/, (_, tag) => tag + json));
const rows = await measure(browser, `${pathToFileURL(threads).href}#v=threads`, ".rows canvas", "zoom");
await browser.close();

const nodes = JSON.parse(readFileSync(large.replace("collapsed", "html"), "utf8").match(/id="data">([^<]*)/)[1]).metrics[0].nodes;
console.log("| page | bound | measured |\n|---|---|---|");
console.log(`| weight before data | 300 KB | ${(weight / 1000).toFixed(0)} KB |`);
console.log(`| flame graph of ${nodes.toLocaleString("en-US")} frames, file of ${(statSync(large.replace("collapsed", "html")).size / 1e6).toFixed(1)} MB: first view | 1000 ms | ${flame.first.toFixed(0)} ms |`);
console.log(`| the same, an interaction, median / 95th percentile | 16 ms | ${flame.p50.toFixed(1)} / ${flame.p95.toFixed(1)} ms |`);
console.log(`| timeline of 10,000 threads, 300,000 states: first view | 1000 ms | ${rows.first.toFixed(0)} ms |`);
console.log(`| the same, an interaction, median / 95th percentile | 16 ms | ${rows.p50.toFixed(1)} / ${rows.p95.toFixed(1)} ms |`);
