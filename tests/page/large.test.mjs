// SPDX-License-Identifier: Apache-2.0
// More state changes than one file holds: its pictures are those of the server, and below them it
// says what is needed.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder, jvmscope, launch, open, root, serve } from "./lab.mjs";

const recording = join(folder, "large.jfr");
const html = join(folder, "large.html");
const url = pathToFileURL(html).href;
let browser;
let server;
let served;

before(async () => {
  const make = join(folder, "generate");
  const lib = (name) => join(root, `build/src/${name}/lib${name}.a`);
  const built = spawnSync(
    "cc",
    [
      "-O2",
      "-std=gnu17",
      "-D_GNU_SOURCE",
      `-I${join(root, "src")}`,
      join(root, "bench/threads_generate.c"),
      lib("jfr"),
      lib("base"),
      "-lpthread",
      "-lz",
      "-o",
      make,
    ],
    { encoding: "utf8" },
  );
  assert.equal(built.status, 0, built.stderr);
  assert.equal(spawnSync(make, [recording, "300000"]).status, 0);
  jvmscope("convert", recording, "-o", html);
  [server, served] = await serve(recording);
  served += "0/";
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.kill("SIGTERM");
});

const ready = (page) => page.waitForSelector(".rows canvas[data-fresh=true]");

/** The time of each thread in each state, of the rows in sight. */
async function saved(page) {
  await ready(page);
  await page.click(".save summary");
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.click('.save button:has-text("CSV")'),
  ]);
  const sums = new Map();
  for (const line of readFileSync(await file.path(), "utf8")
    .trim()
    .split("\r\n")
    .slice(1)) {
    const [thread, from, to, state, share] = line.split(",");
    sums.set(
      `${thread} ${state}`,
      (sums.get(`${thread} ${state}`) ?? 0) + (Number(to) - Number(from)) * Number(share),
    );
  }
  return sums;
}

test("with more arrows than a picture has room for, only those of the selected thread have lines", async () => {
  const page = await open(browser, `${url}#v=threads`);
  const lines = async () => {
    await ready(page);
    await page.click(".save summary");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.click('.save button:has-text("SVG")'),
    ]);
    return readFileSync(await file.path(), "utf8")
      .split("<line ")
      .slice(1)
      .map((l) => ["y1", "y2"].map((y) => Number(l.match(`${y}="([^"]*)"`)[1])));
  };
  assert.equal((await lines()).length, 0);
  assert.match(
    await page.locator(".small-note").last().textContent(),
    /only the heads of arrows are drawn\. Choose a thread/,
  );
  await page.locator(".rows canvas").click({ position: { x: 700, y: 100 } });
  await page.waitForSelector(".details:not(:has-text('Critical path:'))");
  const own = await lines();
  assert.ok(own.length > 5, String(own.length));
  // Each begins or ends in one row, that of the selected thread.
  assert.ok(
    own[0].some((y) => own.every((l) => l.includes(y))),
    String(own),
  );
  assert.deepEqual(page.problems, []);
});

test("one file stays under its cap and shows what the server shows, whole and zoomed", async () => {
  assert.ok(statSync(html).size < 40e6, String(statSync(html).size));
  const data = JSON.parse(readFileSync(html, "utf8").match(/id="data">([^<]*)/)[1]).timeline;
  assert.ok(data.pyramid && data.n_nodes > 400000 && !data.nodes);
  const end = data.end_ns;
  for (const [from, to] of [
    [0, end],
    [Math.floor(end * 0.3), Math.floor(end * 0.6)],
    [Math.floor(end * 0.49), Math.floor(end * 0.51)],
  ]) {
    const [a, b] = [
      await saved(await open(browser, `${url}#v=threads&tf=${from}&tt=${to}`)),
      await saved(await open(browser, `${served}#v=threads&tf=${from}&tt=${to}`)),
    ];
    const rows = new Set([...a.keys()].map((k) => k.split(" ")[0])); // one less in sight, for the note
    assert.ok(rows.size > 15);
    for (const [key, ns] of b)
      if (rows.has(key.split(" ")[0]))
        assert.ok(
          Math.abs((a.get(key) ?? 0) - ns) < (to - from) * 0.02,
          `${from}-${to} ${key}: ${a.get(key)} in the file, ${ns} served`,
        );
  }
});

test("what the pictures do not hold is said; a state that can be seen has its details", async () => {
  const page = await open(browser, `${url}#v=threads`);
  await ready(page);
  assert.match(
    await page.textContent(".note"),
    /pictures of [\d\s.,\u00a0\u202f]+ state changes.*jvmscope serve/s,
  );
  assert.equal(await page.locator(".note.warn").count(), 0);
  await page.locator(".rows canvas").focus();
  for (let i = 0; i < 14; i++) await page.keyboard.press("+");
  await page.waitForSelector(".note.warn");
  // Of states that are named the file knows what the server knows.
  const { nodes } = JSON.parse(readFileSync(html, "utf8").match(/id="data">([^<]*)/)[1]).timeline
    .pyramid;
  const bytes = Buffer.from(nodes, "base64");
  let at = 0;
  const next = () => {
    for (let v = 0, scale = 1; ; scale *= 128) {
      const b = bytes[at++];
      v += (b & 127) * scale;
      if (b < 128) return v;
    }
  };
  const named = [];
  for (let i = 0; at < bytes.length;) {
    named.push((i += next()));
    for (let k = 0; k < 9; k++) next();
  }
  assert.ok(named.length > 1000 && named.length <= 300000, String(named.length));
  for (const node of [named[0], named[named.length >> 1], named[named.length - 1]]) {
    const text = [];
    for (const base of [url, served]) {
      const one = await open(browser, `${base}#v=threads&tn=${node}`);
      await one.waitForSelector(`.details[data-node="${node}"]`);
      text.push(
        await one.textContent(".details h3"),
        await one.textContent(".details .stack >> nth=0"),
      );
    }
    assert.deepEqual(text.slice(0, 2), text.slice(2), String(node));
  }
  assert.deepEqual(page.problems, []);
});

test("what is kept beside the recording shows the same in another server, and is made anew when it is damaged", async () => {
  const recording = join(folder, "larger.jfr");
  assert.equal(spawnSync(join(folder, "generate"), [recording, "1000000"]).status, 0);
  const questions = [
    "range?from=0&to=300000000&width=900&threads=0,5,63",
    "range?from=100000000&to=100400000&width=900&threads=1,2",
    "node?i=5000",
    "at?thread=7&time=90000000",
    "segment?i=100",
    "monitors?threads=3",
  ];
  const answers = async () => {
    const [again, at] = await serve(recording);
    const list = [];
    for (const q of questions)
      list.push(Buffer.from(await (await fetch(`${at}0/${q}`)).arrayBuffer()));
    again.kill("SIGTERM");
    return list;
  };
  const first = await answers(); // of the view that was made just now
  const kept = readFileSync(`${recording}.view`);
  assert.deepEqual(await answers(), first);
  assert.ok(first.every((a) => a.length > 50));
  writeFileSync(`${recording}.view`, kept.subarray(0, 50000));
  assert.deepEqual(await answers(), first);
  assert.deepEqual(readFileSync(`${recording}.view`), kept);
});
