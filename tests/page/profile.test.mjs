// SPDX-License-Identifier: Apache-2.0
// The one-file page of convert -o x.html: its numbers are those of report --json, it runs nothing
// but itself, keys do all.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { faults, folder, jvmscope, launch, open } from "./lab.mjs";

const hostile = `<img src=x onerror="document.title='owned'">`;
const stacks = join(folder, "stacks.collapsed");
const html = join(folder, "stacks.html");
const url = pathToFileURL(html).href;
let browser;

before(async () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const lines = new Map();
  for (let i = 0; i < 3000; i++) {
    const path = ["java.lang.Thread.run_[j]"];
    for (let d = 0; d < 2 + random() * 12; d++)
      path.push(
        `p${Math.floor(random() * 3)}.C${Math.floor(random() * 6)}.m${Math.floor(random() * 4)}${random() < 0.5 ? "_[i]" : ""}`,
      );
    lines.set(path.join(";"), Math.ceil(random() * 40));
  }
  lines.set(`java.lang.Thread.run;${hostile}.m`, 5000);
  lines.set(`java.lang.Thread.run;</script><script>document.title='owned'</script>.m`, 300);
  lines.set("java.lang.Thread.run;[not walkable: x]", 77);
  lines.set(`java.lang.Thread.run;${"x".repeat(65536)}.long`, 33);
  const bytes = Buffer.concat([
    Buffer.from([...lines].map(([k, v]) => `${k} ${v}\n`).join("")),
    Buffer.from([0x61, 0xff, 0xfe, 0xc3]),
    Buffer.from(".broken 11\n"),
  ]);
  writeFileSync(stacks, bytes);
  jvmscope("convert", stacks, "-o", html);
  browser = await launch();
});
after(() => browser.close());

/** The table as the page has it: scrolled through to its end. */
async function table(page) {
  const rows = new Map();
  const box = page.locator(".methods");
  const height = await box.evaluate((b) => b.scrollHeight);
  for (let y = 0; y <= height; y += 200) {
    await box.evaluate((b, top) => (b.scrollTop = top), y);
    // The rows in sight follow at the next frame: the one in the middle of the box must be there.
    await page.waitForFunction(() => {
      const b = document.querySelector(".methods");
      const last = Number(b.querySelector("table").getAttribute("aria-rowcount")) - 2;
      const i = Math.min(last, Math.floor((b.scrollTop + b.clientHeight / 2) / 28));
      return b.querySelector(`tr[data-row="${i}"]`);
    });
    for (const r of await page.$$eval("tbody tr[data-row]", (trs) =>
      trs.map((tr) => ({
        method: tr.querySelector("td.method").title,
        self: tr.cells[1].textContent,
        total: tr.cells[3].textContent,
      })),
    ))
      rows.set(r.method, r);
  }
  return rows;
}

const number = (text) => Number(text.replace(/[^\d]/g, ""));

test("the table's numbers are those of report --json", async () => {
  const page = await open(browser, url);
  const { samples } = JSON.parse(jvmscope("report", "--json", stacks));
  const shown = await table(page);
  assert.equal(shown.size, samples.methods.length);
  for (const m of samples.methods) {
    const row = shown.get(m.method);
    assert.ok(row, m.method.slice(0, 80));
    assert.equal(number(row.self), m.self, m.method.slice(0, 80));
    assert.equal(number(row.total), m.total, m.method.slice(0, 80));
  }
  assert.match(
    await page.textContent(".facts"),
    new RegExp(String(samples.total).replace(/\B(?=(\d{3})+$)/g, ".")),
  );
  assert.deepEqual(page.problems, []);
});

test("names are text and nothing else runs", async () => {
  const page = await open(browser, url);
  assert.equal(await page.title(), "stacks.collapsed — jvmscope");
  assert.equal(await page.locator("img").count(), 0);
  assert.ok((await table(page)).has(`${hostile}.m`));
  await page.fill("input[type=search]", "<img");
  await page.waitForSelector("output:has-text('in 1 method')");
  // A script that gets into the page in spite of all is refused by the policy.
  await page.evaluate(() => {
    const s = document.createElement("script");
    s.textContent = "document.title = 'owned'";
    document.body.append(s);
  });
  assert.equal(await page.title(), "stacks.collapsed — jvmscope");
  assert.equal(page.problems.filter((p) => !/Content Security Policy/.test(p)).length, 0);
});

test("search, inverted view, callers and callees", async () => {
  const page = await open(browser, url);
  await page.keyboard.press("/");
  await page.keyboard.type("p1.C2.m3");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr[data-row]").length === 1);
  const { samples } = JSON.parse(jvmscope("report", "--json", stacks));
  const truth = samples.methods.find((m) => m.method === "p1.C2.m3");
  const share = ((100 * truth.total) / samples.total).toFixed(2);
  assert.ok(
    (await page.textContent("output")).startsWith(
      Number(share) >= 10 ? Number(share).toFixed(1) : share,
    ),
  );
  await page.keyboard.press("Escape");
  await page.keyboard.press("i");
  await page.waitForSelector("button:has-text('Inverted')[aria-pressed=true]");
  await page.waitForURL(/i=1/);
  await page.goto(`${url}#v=method&s=p1.C2.m3`);
  await page.reload();
  await page.waitForSelector(".sandwich");
  assert.equal(await page.locator(".sandwich canvas").count(), 2);
  const heading = await page.textContent(".sandwich h2");
  assert.ok(
    heading.includes("p1.C2.m3") && heading.replace(/\D/g, "").includes(String(truth.total)),
  );
  await page.keyboard.press("Escape");
  await page.waitForSelector(".split");
  assert.deepEqual(page.problems, []);
});

test("Enter, and n outside the box, go through what a search found", async () => {
  const page = await open(browser, url);
  await page.keyboard.press("/");
  await page.keyboard.type("p1.C");
  const text = () => page.textContent(".flame .sr");
  const shows = (same, a) =>
    page.waitForFunction(
      ([want, other]) => {
        const now = document.querySelector(".flame .sr").textContent;
        return now.startsWith("p1.C") && (now === other) === want;
      },
      [same, a],
    );
  await page.keyboard.press("Enter");
  await shows(false, "");
  const first = await text();
  await page.keyboard.press("Enter");
  await shows(false, first);
  await page.keyboard.press("Shift+Enter");
  await shows(true, first);
  await page.locator(".flame canvas").focus();
  await page.keyboard.press("n");
  await shows(false, first);
  await page.keyboard.press("N");
  await shows(true, first);
  assert.deepEqual(page.problems, []);
});

test("frames by keyboard and mouse, links keep the zoom", async () => {
  const page = await open(browser, url);
  const canvas = page.locator(".flame canvas");
  await canvas.focus();
  const said = (test, arg) =>
    page.waitForFunction(
      ([code, a]) =>
        new Function("text", "a", `return ${code}`)(
          document.querySelector(".flame .sr").textContent,
          a,
        ),
      [test, arg],
    );
  await page.keyboard.press("ArrowDown");
  await said("/^java\\.lang\\.Thread\\.run: 100\\.0/.test(text)");
  await page.keyboard.press("ArrowDown");
  await said("!text.startsWith('java.lang.Thread.run:')");
  const first = await page.textContent(".flame .sr");
  await page.keyboard.press("ArrowRight");
  await said("text !== a", first);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".zoom-out");
  await page.waitForURL(/z=[\d.]+/);
  await page.reload();
  await page.waitForSelector(".zoom-out");
  await page.click(".zoom-out");
  await page.waitForSelector(".zoom-out", { state: "detached" });
  const box = await canvas.boundingBox();
  await page.waitForSelector(".flame canvas[data-still=true]"); // the zoom's way out is at its end
  await page.mouse.move(box.x + 200, box.y + 30);
  await page.waitForSelector(".tip:has-text('java.lang.Thread.run')");
  await page.mouse.click(box.x + 200, box.y + 50);
  await page.waitForSelector(".zoom-out");
  assert.deepEqual(page.problems, []);
});

test("sorting, and what is saved", async () => {
  const page = await open(browser, url);
  await page.click("th button:has-text('Total')");
  await page.waitForSelector("th:has-text('Total')[aria-sort=descending]");
  await page.waitForSelector("tr[data-row='0'] td.method[title='java.lang.Thread.run']");
  const save = async (name) => {
    await page.click("summary");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.click(`.save button:has-text("${name}")`),
    ]);
    return readFileSync(await file.path(), "utf8");
  };
  const { samples } = JSON.parse(jvmscope("report", "--json", stacks));
  assert.equal((await save("CSV")).trim().split("\r\n").length, samples.methods.length + 1);
  const again = join(folder, "again.collapsed");
  writeFileSync(again, await save("collapsed"));
  assert.equal(JSON.parse(jvmscope("report", "--json", again)).samples.total, samples.total);
  const svg = await save("SVG");
  assert.ok(svg.startsWith("<svg") && !svg.includes("<img"));
  assert.deepEqual(page.problems, []);
});

test("no serious fault for assistive technology, in light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(browser, url, { colorScheme });
    assert.deepEqual(await faults(page), [], colorScheme);
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    assert.deepEqual(await faults(page), [], `${colorScheme}, help`);
    await page.goto(`${url}#v=method&s=p1.C2.m3`);
    await page.reload();
    assert.deepEqual(await faults(page), [], `${colorScheme}, sandwich`);
  }
});

test("a dark page is light on paper", async () => {
  const page = await open(browser, url, { colorScheme: "dark" });
  const shown = (light) =>
    page.waitForFunction(
      (light) =>
        light === (getComputedStyle(document.body).backgroundColor === "rgb(255, 255, 255)"),
      light,
    );
  await shown(false);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await shown(true);
  await page.emulateMedia({ media: "screen", colorScheme: "dark" });
  await shown(false);
});
