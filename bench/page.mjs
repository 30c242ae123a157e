#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// bench/page [--keep DIR] [SCENARIO...]. The page in headless Chromium against its bounds: weight,
// time to the first view, frames while zooming. Scenarios: `file`, a million frames in one file;
// and served, `samples`, a CPU recording of 135 MB; `threads`, 10,000 of them; `events`, ten
// million; `full`, a hundred million (2.7 GB, an index of 9.5 GB, indexed in some minutes). All but
// `full` when none is named. The recordings are made by bench/*_generate.c; with --keep they stay
// in DIR with their indices, for a run that only opens them. Prints a markdown table. Needs cc,
// chromium and the packages of web/package-lock.json.
import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { get } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { chromium } = createRequire(join(root, "web/package.json"))("playwright-core");
const folder = mkdtempSync("/var/tmp/jvmscope-bench-page-");
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const asked = process.argv.slice(2);
const kept = asked[0] === "--keep" ? asked.splice(0, 2)[1] : null;
if (kept) mkdirSync(kept, { recursive: true });

function convert(from, to) {
  const done = spawnSync(join(root, "build/jvmscope"), ["convert", from, "-o", to], {
    encoding: "utf8",
  });
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
    for (let d = 0; d < 16; d++)
      line += `;p${d}.Class${Math.floor(random() * 400)}.method${Math.floor(random() * 8)}`;
    writeSync(out, `${line} ${1 + Math.floor(random() * 50)}\n`);
  }
  closeSync(out);
}

const lib = (name) => join(root, `build/src/${name}/lib${name}.a`);

/** A recording that a generator writes. */
function generate(name, source, ...args) {
  const [tool, file] = [join(folder, source), join(kept ?? folder, name)];
  if (existsSync(file)) return file;
  const run = (command, ...list) => {
    const done = spawnSync(command, list, { encoding: "utf8" });
    if (done.status) throw new Error(done.stderr);
  };
  run(
    "cc",
    "-O2",
    "-std=gnu17",
    "-D_GNU_SOURCE",
    `-I${join(root, "src")}`,
    join(root, `bench/${source}.c`),
    lib("jfr"),
    lib("base"),
    "-lpthread",
    "-lz",
    "-o",
    tool,
  );
  run(tool, `${file}.part`, ...args);
  renameSync(`${file}.part`, file);
  return file;
}

/** Serves a file and asks for its page once; how long that took: from then on it is indexed. */
async function index(file) {
  const at = await start(file);
  const begin = performance.now();
  for (const path of ["ready", "data", "range?from=0&to=1000&threads=0"])
    await new Promise((done, failed) =>
      get(`${at.url}${path}`, (r) => r.resume().on("end", done)).on("error", failed),
    );
  const reading = performance.now() - begin;
  at.server.kill("SIGTERM");
  return reading;
}

async function start(file) {
  const server = spawn(join(root, "build/jvmscope"), ["serve", file]);
  const url = await new Promise((resolve) =>
    server.stdout.once("data", (d) => resolve(`${String(d).trim()}0/`)),
  );
  return { server, url };
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
      c.dispatchEvent(
        new WheelEvent("wheel", {
          bubbles: true,
          cancelable: true,
          ctrlKey: true,
          clientX: box.x + 300 + ((i * 37) % 700),
          clientY: box.y + 100,
          deltaY: i % 20 < 12 ? -200 : 300,
        }),
      );
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
  await page.evaluate(
    () => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))),
  );
  const first = performance.now() - begin;
  const times = await page.evaluate(
    async ([selector, what]) => {
      const c = document.querySelector(selector);
      const box = c.getBoundingClientRect();
      const list = [];
      // Frames that the page asks for are drawn at once: what is measured is the work, not the wait
      // for the screen.
      const real = window.requestAnimationFrame.bind(window);
      const frames = [];
      window.requestAnimationFrame = (f) => frames.push(f);
      for (let i = 0; i < 120; i++) {
        const t0 = performance.now();
        const at = {
          bubbles: true,
          cancelable: true,
          clientX: box.x + box.width * (0.3 + 0.4 * (((i * 37) % 100) / 100)),
          clientY: box.y + 60,
        };
        if (what === "zoom")
          c.dispatchEvent(
            new WheelEvent("wheel", { ...at, ctrlKey: true, deltaY: i % 40 < 20 ? -60 : 60 }),
          );
        c.dispatchEvent(new MouseEvent("mousemove", at));
        await new Promise((r) => setTimeout(r)); // the page's own rendering
        for (const f of frames.splice(0)) f(performance.now());
        c.getContext("2d").getImageData(0, 0, 1, 1); // and the canvas's
        list.push(performance.now() - t0);
        await new Promise((r) => real(r));
      }
      window.requestAnimationFrame = real;
      return list.sort((a, b) => a - b);
    },
    [canvas, act],
  );
  const asked = ready ? await fresh(page) : [];
  await page.close();
  return { first, p50: times[60], p95: times[114], fresh50: asked[20], fresh95: asked[38] };
}

/** The page without data. */
function weigh() {
  const small = join(folder, "small.collapsed");
  writeFileSync(small, "a.B.c 1\n");
  convert(small, small.replace("collapsed", "html"));
  return statSync(small.replace("collapsed", "html")).size;
}

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
  ],
});

/** The medians of three looks, each with a server that begins anew; interactions of all of them together. */
async function looks(url, canvas, ready, file) {
  const list = [];
  for (let i = 0; i < 3; i++) {
    const at = file ? await start(file) : null;
    list.push(await measure(browser, at ? `${at.url}${url}` : url, canvas, "zoom", ready));
    at?.server.kill("SIGTERM");
  }
  const sorted = (key) => list.map((x) => x[key]).sort((a, b) => a - b);
  const all = Object.fromEntries(Object.keys(list[0]).map((k) => [k, sorted(k)[1]]));
  const [low, first, high] = sorted("first").map((ms) => ms.toFixed(0));
  return { ...all, first: `${first} ms (${low} to ${high})` };
}

const rowsReady = ".rows canvas[data-fresh=true]";
const MB = (n) => `${(n / 1e6).toFixed(0)} MB`;
console.log(
  "## The page\n\nDebian's Chromium, headless, 1440 by 900, painted by the processor. Medians of three visits (least to most); of the 120 interactions of each",
);
console.log("the median and the 95th percentile, from the event to the picture.\n");
console.log("| page | bound | measured |\n|---|---|---|");
console.log(`| weight before data | 300 KB | ${(weigh() / 1000).toFixed(0)} KB |`);

async function oneFile() {
  const large = join(folder, "large.collapsed");
  const html = large.replace("collapsed", "html");
  millionFrames(large);
  convert(large, html);
  const flame = await looks(pathToFileURL(html).href, ".flame canvas");
  const nodes = JSON.parse(readFileSync(html, "utf8").match(/id="data">([^<]*)/)[1]).metrics[0]
    .nodes;
  console.log(
    `| one file, a flame graph of ${nodes.toLocaleString("en-US")} frames (${MB(statSync(html).size)}): first view | 1000 ms | ${flame.first} |`,
  );
  console.log(
    `| the same, an interaction | 16 ms | ${flame.p50.toFixed(1)} / ${flame.p95.toFixed(1)} ms |`,
  );
}

async function served(what, file, view, canvas, ready, bound) {
  const reading = await index(file);
  const x = await looks(view, canvas, ready, file);
  console.log(
    `| served, ${what} (${MB(statSync(file).size)}): read for the first time | | ${reading > 1000 || !kept ? `${reading.toFixed(0)} ms` : "before"} |`,
  );
  console.log(`| the same, opened again by a new server: first view | ${bound} ms | ${x.first} |`);
  console.log(
    `| the same, an interaction | 16 ms | ${x.p50.toFixed(1)} / ${x.p95.toFixed(1)} ms |`,
  );
  if (ready)
    console.log(
      `| the same, from a zoom to its own picture | 50 ms | ${x.fresh50.toFixed(1)} / ${x.fresh95.toFixed(1)} ms |`,
    );
  if (!kept)
    for (const suffix of ["", ".page", ".timeline", ".view"])
      rmSync(file + suffix, { force: true });
}

const threads = (what, name, bound, ...args) =>
  served(
    what,
    generate(name, "threads_generate", ...args),
    "#v=threads",
    ".rows canvas",
    rowsReady,
    bound,
  );
const scenarios = {
  file: oneFile,
  samples: () =>
    served(
      "5,000,000 samples of 64 threads",
      generate("samples.jfr", "samples_generate"),
      "",
      ".flame canvas",
      undefined,
      1000,
    ),
  threads: () =>
    threads("10,000 threads, 4,000,000 events", "threads.jfr", 1000, "4000000", "10000"),
  events: () => threads("64 threads, 10,000,000 events", "events.jfr", 2000, "10000000"),
  full: () => threads("64 threads, 100,000,000 events", "full.jfr", 2000, "100000000"),
};
for (const name of asked.length ? asked : ["file", "samples", "threads", "events"]) {
  if (!scenarios[name])
    throw new Error(`${name}: no such scenario (${Object.keys(scenarios).join(", ")})`);
  await scenarios[name]();
}
await browser.close();
