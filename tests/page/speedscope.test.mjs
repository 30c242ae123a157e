// SPDX-License-Identifier: Apache-2.0
// Chrome JSON of a recording of threads opens in speedscope, an independent reader.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder, java, jvmscope, launch, root } from "./lab.mjs";

const require = createRequire(join(root, "web/package.json"));
const speedscope = join(
  dirname(require.resolve("speedscope/package.json")),
  "dist/release/index.html",
);
const exported = join(folder, "threads.json");
let browser;

before(async () => {
  const { command, classes } = java("ThreadPrograms");
  const recording = join(folder, "threads.jfr");
  jvmscope(
    "run",
    "--threads",
    "-o",
    recording,
    "--",
    command,
    "-Xmx64m",
    "-cp",
    classes,
    "ThreadPrograms",
    "4",
  );
  jvmscope("convert", recording, "-o", exported);
  browser = await launch();
});
after(() => browser.close());

/** As speedscope's own command does it: a script that hands the file over. */
async function openProfile(file) {
  const script = join(folder, "profile.js");
  writeFileSync(
    script,
    `speedscope.loadFileFromBase64("threads.json", ${JSON.stringify(readFileSync(file).toString("base64"))})`,
  );
  const page = await (await browser.newContext()).newPage();
  page.problems = [];
  page.on("dialog", (d) => {
    page.problems.push(d.message());
    d.dismiss();
  });
  page.on("pageerror", (e) => page.problems.push(e.message));
  await page.goto(`${pathToFileURL(speedscope).href}#localProfilePath=${script}`);
  return page;
}

test("speedscope shows the threads of the export", async () => {
  const page = await openProfile(exported);
  await page.waitForFunction(() => /tid 1\) \(1\/\d+\)/.test(document.body.innerText), null, {
    timeout: 30000,
  });
  const events = JSON.parse(readFileSync(exported, "utf8")).traceEvents;
  const threads = new Set(events.filter((e) => e.ph === "X" || e.ph === "B").map((e) => e.tid));
  await page.waitForFunction(() => document.title === "threads.json - speedscope");
  // Threads are numbered in the order in which the recording names them: the VM's own may come
  // before main.
  const first = events.find((e) => e.name === "thread_name" && e.tid === 1).args.name;
  assert.ok(
    (await page.evaluate(() => document.body.innerText)).includes(
      `${first} (pid 1, tid 1) (1/${threads.size})`,
    ),
  );
  assert.ok(events.some((e) => e.name === "thread_name" && e.args.name === "main"));
  assert.deepEqual(page.problems, []);
});

test("what is not a trace is not shown", async () => {
  const broken = join(folder, "broken.json");
  writeFileSync(broken, readFileSync(exported, "utf8").slice(0, 1000));
  const page = await openProfile(broken);
  await page.waitForTimeout(1500);
  assert.notEqual(await page.title(), "threads.json - speedscope");
});
