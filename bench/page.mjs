#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// bench/page. The page in headless Chromium: weight, time to the first view, frames while zooming; on a million frames, and served on a
// recording of 10,000 threads with ten million state changes, which takes two minutes to make (or is given: bench/page FILE).
// Prints a markdown table. Needs chromium and the packages of web/package-lock.json.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
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

/** A recording of 10,000 threads that take turns, and the address at which it is served. */
async function serveThreads() {
  let file = process.argv[2];
  if (!file) {
    file = join(folder, "threads.jfr");
    const home = spawnSync(join(root, "tools/java-home"), { encoding: "utf8" }).stdout.trim();
    spawnSync(join(home, "bin/javac"), ["-d", folder, join(root, "tests/java/ManyThreads.java")]);
    const done = spawnSync(join(root, "build/jvmscope"), ["run", "--threads", "-o", file, "--", join(home, "bin/java"), "-Xmx512m", "-cp", folder, "ManyThreads", "10000", "270"], { encoding: "utf8" });
    if (done.status) throw new Error(done.stderr);
  }
  spawnSync(join(root, "build/jvmscope"), ["threads", "summary", file]); // leaves the index
  const server = spawn(join(root, "build/jvmscope"), ["serve", file]);
  const url = await new Promise((resolve) => server.stdout.once("data", (d) => resolve(`${String(d).trim()}0/`)));
  return { server, url: `${url}#v=threads`, size: statSync(file).size };
}

/** Milliseconds from a change of the view to the picture in its resolution, of several. */
async function fresh(page) {
  return page.evaluate(async () => {
    const c = document.querySelector(".rows canvas");
    const box = c.getBoundingClientRect();
    const list = [];
    for (let i = 0; i < 40; i++) {
      const t0 = performance.now();
      c.dataset.fresh = "false";
      c.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ctrlKey: true, clientX: box.x + 300 + ((i * 37) % 700), clientY: box.y + 100, deltaY: i % 20 < 12 ? -200 : 300 }));
      await new Promise((r) => {
        const look = () => (c.dataset.fresh === "true" ? r() : setTimeout(look));
        setTimeout(look);
      });
      list.push(performance.now() - t0);
      await new Promise((r) => requestAnimationFrame(r));
    }
    return list.sort((a, b) => a - b);
  });
}

async function measure(browser, url, canvas, act, ready) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const begin = performance.now();
  await page.goto(url);
  await page.waitForSelector(ready ?? canvas);
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
  const asked = ready ? await fresh(page) : [];
  await page.close();
  return { first, p50: times[60], p95: times[114], fresh50: asked[20], fresh95: asked[38] };
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
const threads = await serveThreads();
const rows = await measure(browser, threads.url, ".rows canvas", "zoom", ".rows canvas[data-fresh=true]");
threads.server.kill("SIGTERM");
await browser.close();

const nodes = JSON.parse(readFileSync(large.replace("collapsed", "html"), "utf8").match(/id="data">([^<]*)/)[1]).metrics[0].nodes;
console.log("| page | bound | measured |\n|---|---|---|");
console.log(`| weight before data | 300 KB | ${(weight / 1000).toFixed(0)} KB |`);
console.log(`| flame graph of ${nodes.toLocaleString("en-US")} frames, file of ${(statSync(large.replace("collapsed", "html")).size / 1e6).toFixed(1)} MB: first view | 1000 ms | ${flame.first.toFixed(0)} ms |`);
console.log(`| the same, an interaction, median / 95th percentile | 16 ms | ${flame.p50.toFixed(1)} / ${flame.p95.toFixed(1)} ms |`);
console.log(`| served: 10,000 threads, a recording of ${(threads.size / 1e6).toFixed(0)} MB with its index: first view | 2000 ms | ${rows.first.toFixed(0)} ms |`);
console.log(`| the same, an interaction, median / 95th percentile | 16 ms | ${rows.p50.toFixed(1)} / ${rows.p95.toFixed(1)} ms |`);
console.log(`| the same, from a zoom to its picture, median / 95th percentile | 50 ms | ${rows.fresh50.toFixed(1)} / ${rows.fresh95.toFixed(1)} ms |`);
