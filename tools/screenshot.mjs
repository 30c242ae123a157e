#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Pictures of the page in headless Chromium: tools/screenshot.mjs FILE.html|URL OUT.png [light|dark] [FRAGMENT]. What doc/ shows is
// made by `tools/screenshot.mjs --doc`, of the recording that `make demo` left in build/demo.
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { chromium } = createRequire(join(root, "web/package.json"))("playwright-core");

const demo = join(root, "build/demo/h2.html");
const doc = [
  [demo, "doc/page.png", "light", ""],
  [demo, "doc/page-dark.png", "dark", "i=1&u=1"],
  [demo, "doc/threads.png", "light", "v=threads"],
  [demo, "doc/monitors.png", "light", "v=monitors"],
];

async function shoot(browser, [from, to, colorScheme = "light", fragment = ""]) {
  const url = /^https?:/.test(from) ? from : pathToFileURL(resolve(from)).href;
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme });
  await page.goto(`${url}${fragment ? `#${fragment}` : ""}`);
  await page.waitForSelector("#app > *");
  await page.waitForTimeout(500);
  await page.screenshot({ path: resolve(root, to) });
  await page.close();
}

const args = process.argv.slice(2);
const jobs = args[0] === "--doc" ? doc : args.length >= 2 ? [args] : null;
if (!jobs) {
  console.error("usage: tools/screenshot.mjs FILE.html|URL OUT.png [light|dark] [FRAGMENT] | --doc");
  process.exit(2);
}
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
});
for (const job of jobs) await shoot(browser, job);
await browser.close();
