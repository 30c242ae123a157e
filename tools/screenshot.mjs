#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Pictures of the page in headless Chromium: tools/screenshot.mjs FILE.html|URL OUT.png
// [light|dark] [FRAGMENT]. What doc/ shows is made by `tools/screenshot.mjs --doc`: it records a
// shop on an h2 database (Debian's libh2-java) and takes a picture of each view.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { chromium } = createRequire(join(root, "web/package.json"))("playwright-core");

const folder = join(root, "build/screens");

/** The recordings of the pictures, served; the address by name. */
async function record() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const run = (command, ...args) => {
    const done = spawnSync(command, args, { cwd: folder, encoding: "utf8" });
    if (done.status) throw new Error(`${command} ${args.join(" ")}: ${done.stderr}`);
  };
  const jvmscope = join(root, "build/jvmscope");
  const home = spawnSync(join(root, "tools/java-home"), { encoding: "utf8" }).stdout.trim();
  const jar = "/usr/share/java/h2.jar";
  const shop = [join(home, "bin/java"), "-Xmx256m", "-cp", `${folder}:${jar}`, "SqlLoad"];
  run(
    join(home, "bin/javac"),
    "-g",
    "-nowarn",
    "-cp",
    jar,
    "-d",
    folder,
    join(root, "tests/java/SqlLoad.java"),
    ...["HeapPage", "ThreadPrograms"].map((p) => join(root, `tests/java/${p}.java`)),
  );
  run(jvmscope, "run", "--cpu", "--threads", "-o", "h2.jfr", "--", ...shop, "8");
  run(
    jvmscope,
    "run",
    "--threads",
    "-o",
    "pipeline.jfr",
    "--",
    join(home, "bin/java"),
    "-cp",
    folder,
    "ThreadPrograms",
    "7",
  );
  run(jvmscope, "run", "--trace", "SqlLoad*", "-o", "calls.jfr", "--", ...shop, "2");
  run(
    jvmscope,
    "run",
    "--cover",
    "--include",
    "SqlLoad*",
    "-o",
    "coverage.jfr",
    "--",
    ...shop,
    "2",
  );
  run(join(home, "bin/java"), "-cp", folder, "HeapPage", join(folder, "sessions.hprof"));
  const files = ["h2.jfr", "pipeline.jfr", "calls.jfr", "coverage.jfr", "sessions.hprof"];
  const server = spawn(jvmscope, ["serve", "--sources", join(root, "tests/java"), ...files], {
    cwd: folder,
  });
  const url = await new Promise((resolve) =>
    server.stdout.once("data", (d) => resolve(String(d).trim())),
  );
  return { server, at: (name) => `${url}${files.indexOf(name)}/` };
}

const doc = [
  ["h2.jfr", "doc/page.png", "light", ""],
  ["h2.jfr", "doc/page-dark.png", "dark", "i=1&u=1"],
  ["pipeline.jfr", "doc/threads.png", "light", "v=threads&tf=180000000&tt=330000000", [420, 6]],
  ["h2.jfr", "doc/monitors.png", "light", "v=monitors"],
  ["calls.jfr", "doc/calls.png", "light", "call=4"],
  ["coverage.jfr", "doc/coverage.png", "light", "kl=SqlLoad"],
  ["sessions.hprof", "doc/heap-map.png", "light", ""],
  ["sessions.hprof", "doc/heap-dominators.png", "dark", "ht=tree"],
  ["sessions.hprof", "doc/heap-classes.png", "light", "ht=classes&ho=HeapPage$Session"],
  ["sessions.hprof", "doc/heap-suspects.png", "light", "ht=suspects"],
  [
    "sessions.hprof",
    "doc/heap-query.png",
    "light",
    "ht=query&hs=SELECT+id%2C+class%2C+retained%2C+value+FROM+objects+ORDER+BY+retained+DESC+LIMIT+50",
  ],
];

/** A picture of an address, after a click into the threads where one is given, by pixels from the left and number of row. */
async function shoot(browser, [from, to, colorScheme = "light", fragment = "", click = null]) {
  const url = /^https?:/.test(from) ? from : pathToFileURL(resolve(from)).href;
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme });
  await page.goto(`${url}${fragment ? `#${fragment}` : ""}`);
  await page.waitForSelector("#app > *");
  await page.waitForTimeout(1200);
  if (click) {
    const rows = page.locator(".rows canvas");
    const box = await rows.boundingBox();
    await page.mouse.click(
      box.x + click[0],
      box.y + 24 + (click[1] + 0.5) * Number(await rows.getAttribute("data-row")),
    );
    await page.waitForTimeout(500);
  }
  await page.screenshot({ path: resolve(root, to) });
  await page.close();
}

const args = process.argv.slice(2);
const jobs = args[0] === "--doc" ? doc : args.length >= 2 ? [args] : null;
if (!jobs) {
  console.error(
    "usage: tools/screenshot.mjs FILE.html|URL OUT.png [light|dark] [FRAGMENT] | --doc",
  );
  process.exit(2);
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
const made = jobs === doc ? await record() : null;
for (const [from, ...job] of jobs) await shoot(browser, [made ? made.at(from) : from, ...job]);
made?.server.kill("SIGTERM");
await browser.close();
