// SPDX-License-Identifier: Apache-2.0
// Recordings of real programs, h2 under load, Tomcat 10 serving and javac: the page's numbers are
// those of report --json and threads --json.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { faults, folder, java, jvmscope, launch, open, root } from "./lab.mjs";

const jar = "/usr/share/java/h2.jar";
let browser;
const recordings = [];

before(async () => {
  const got = spawnSync(join(root, "tools/jars"), ["tomcat10"], { encoding: "utf8" });
  assert.equal(got.status, 0, got.stderr);
  const tomcat = got.stdout.trim().split(/\s+/);
  process.env.CLASSPATH = [jar, ...tomcat].join(":");
  const { command, classes } = java("SqlLoad", "ServesFiles", "Ready");
  const record = (name, ...args) => {
    const file = join(folder, `${name}.jfr`);
    jvmscope("run", "--cpu", "--threads", "-o", file, "--", command, ...args);
    jvmscope("convert", file, "-o", file.replace("jfr", "html"));
    recordings.push(file);
  };
  assert.ok(existsSync(jar), "libh2-java is missing (tools/setup check)");
  record("h2", "-Xmx256m", "-cp", `${classes}:${jar}`, "SqlLoad", "3");
  record(
    "tomcat",
    "-Xmx256m",
    "-cp",
    [classes, ...tomcat].join(":"),
    "Ready",
    "ServesFiles",
    join(folder, "served"),
    "4000",
  );
  record(
    "javac",
    "-m",
    "jdk.compiler/com.sun.tools.javac.Main",
    "-nowarn",
    "-d",
    join(folder, "out"),
    ...["ThreadPrograms", "Traced", "Covered", "HeapGraph"].map((p) =>
      join(root, `tests/java/${p}.java`),
    ),
  );
  browser = await launch();
});
after(() => browser.close());

const number = (text) => Number(text.replace(/[^\d]/g, ""));

test("the ranked methods are those of report --json", async () => {
  for (const file of recordings) {
    const { samples } = JSON.parse(jvmscope("report", "--json", file));
    const page = await open(browser, pathToFileURL(file.replace("jfr", "html")).href);
    await page.waitForSelector(".methods tr[data-row]");
    assert.equal(
      number((await page.textContent(".facts b")).split("sample")[0]),
      samples.total,
      file,
    );
    const rows = await page.$$eval(".methods tbody tr[data-row]", (trs) =>
      trs.map((tr) => ({
        method: tr.querySelector("td.method").title,
        self: tr.cells[1].textContent,
        total: tr.cells[3].textContent,
      })),
    );
    assert.ok(rows.length > 5);
    for (const r of rows) {
      const m = samples.methods.find((x) => x.method === r.method);
      assert.ok(m, r.method);
      assert.deepEqual([number(r.self), number(r.total)], [m.self, m.total], `${file} ${r.method}`);
    }
    const aside = page.locator('button:has-text("of the VM\'s threads")');
    const vm = number((await aside.textContent()).split("sample")[0]);
    assert.ok(vm > 0);
    await aside.click();
    await page.waitForFunction(
      (n) =>
        Number(
          document.querySelector(".facts b").textContent.split("sample")[0].replace(/[^\d]/g, ""),
        ) === n,
      samples.total + vm,
    );
    assert.deepEqual(await faults(page), [], file);
    assert.deepEqual(page.problems, []);
  }
});

test("the threads, their waits and the critical path are those of threads --json", async () => {
  for (const file of recordings) {
    const monitors = JSON.parse(jvmscope("threads", "monitors", "--json", file));
    const path = JSON.parse(jvmscope("threads", "critical-path", "--json", file));
    const page = await open(
      browser,
      `${pathToFileURL(file.replace("jfr", "html")).href}#v=monitors`,
    );
    const rows = await page.$$eval(".columns section:nth-of-type(1) tbody tr", (trs) =>
      trs.map((r) => [...r.cells].map((c) => c.textContent)),
    );
    assert.equal(rows.length, monitors.threads.length, dirname(file));
    for (const t of monitors.threads) {
      const row = rows.find((r) => Number(r[1]) === t.id && r[0] === (t.name || "?"));
      assert.ok(row, t.name);
      assert.deepEqual([Number(row[3]), Number(row[5])], [t.blocked, t.waited], t.name);
    }
    await page.goto(`${pathToFileURL(file.replace("jfr", "html")).href}#v=threads`);
    await page.waitForSelector(".details[aria-label='Critical path']");
    assert.match(
      (await page.textContent(".details")).replaceAll(",", ""),
      new RegExp(`${path.segments.length} segments`),
    );
    const ran = await page.$$eval(".ran tbody tr", (trs) => trs.map((tr) => tr.cells[0].title));
    assert.ok(ran.length > 5 && ran.length <= 20 && new Set(ran).size === ran.length);
    assert.deepEqual(
      ran,
      path.methods.map((m) => m.method).filter((m) => ran.includes(m)),
      file,
    );
    assert.deepEqual(page.problems, []);
  }
});
