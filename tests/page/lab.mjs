// SPDX-License-Identifier: Apache-2.0
// What the page's tests share: Debian's Chromium, without a network, and the command.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach } from "node:test";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const require = createRequire(join(root, "web/package.json"));
const { chromium } = require("playwright-core");
export const axe = require.resolve("axe-core/axe.min.js");

export const folder = mkdtempSync(join(tmpdir(), "jvmscope-page-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Runs the command; its standard output, or an error with what it said. */
export function jvmscope(...args) {
  const done = spawnSync(join(root, "build/jvmscope"), args, {
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (done.status !== 0)
    throw new Error(
      `jvmscope ${args.join(" ")}: ${done.error ?? done.signal ?? `exit ${done.status}`}: ${done.stderr}`,
    );
  return done.stdout;
}

/** The java command and the class path of these programs of tests/java, which test_page.py has compiled, or which are compiled here. */
export function java(...programs) {
  const home = spawnSync(join(root, "tools/java-home"), { encoding: "utf8" }).stdout.trim();
  const compiled = JSON.parse(process.env.JVMSCOPE_TEST_CLASSES ?? "{}");
  if (programs.every((p) => compiled[p]))
    return { command: join(home, "bin/java"), classes: programs.map((p) => compiled[p]).join(":") };
  const classes = join(folder, "classes");
  mkdirSync(classes, { recursive: true });
  const done = spawnSync(
    join(home, "bin/javac"),
    ["-g", "-nowarn", "-d", classes, ...programs.map((p) => join(root, `tests/java/${p}.java`))],
    { encoding: "utf8" },
  );
  if (done.status !== 0) throw new Error(done.stderr);
  return { command: join(home, "bin/java"), classes };
}

/** `jvmscope serve` of these files, and the address that it prints. */
export async function serve(...files) {
  const server = spawn(join(root, "build/jvmscope"), ["serve", ...files]);
  return [
    server,
    await new Promise((resolve) => server.stdout.once("data", (d) => resolve(String(d).trim()))),
  ];
}

/** The JSON that a served page asks for. */
export async function served(url) {
  return (await fetch(`${url}data`)).json();
}

export const launch = () =>
  chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });

// A page that nobody looks at any more still draws and runs its timers.
const opened = [];
afterEach(() => Promise.all(opened.splice(0).map((context) => context.close())));

/**
 * A page that fails the test for any script error and any request but for itself; `first` runs in it before its own scripts. It is
 * closed after the test.
 */
export async function open(browser, url, options = {}, first = () => {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    acceptDownloads: true,
    ...options,
  });
  opened.push(context);
  const page = await context.newPage();
  await page.addInitScript(first);
  page.problems = [];
  page.on("pageerror", (e) => page.problems.push(e.message));
  page.on("console", (m) => m.type() === "error" && page.problems.push(m.text()));
  page.on("request", (r) => {
    const u = r.url();
    if (
      !u.startsWith(
        url
          .split("#")[0]
          .replace(/\?.*/, "")
          .replace(/[^/]*$/, ""),
      ) &&
      !/^(data|blob):/.test(u)
    )
      page.problems.push(`request ${u}`);
  });
  await page.goto(url);
  await page.waitForSelector("#app > *");
  return page;
}

export const number = (text) => Number(text.replace(/[^\d.]/g, ""));

/** The nanoseconds of a duration as the page shows it. */
export function nanoseconds(text) {
  const units = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12 };
  if (text === "–") return 0;
  const [, value, unit] = text.replace(/[\u00a0\u202f]/g, " ").match(/^([\d.,]+) (\S+)$/);
  return number(value) * units[unit];
}

/** Fails unless a figure of the page is the other one, but for its rounding. */
export const close = (a, b, what) =>
  assert.ok(Math.abs(a - b) <= 0.01 * b + 1, `${what}: ${a}, ${b}`);

/** Serious faults that axe-core finds. */
export async function faults(page) {
  await page.evaluate((await import("node:fs")).readFileSync(axe, "utf8"));
  const result = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  return result.violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
}
