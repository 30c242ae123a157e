// SPDX-License-Identifier: Apache-2.0
// The parts of the page's code that need no browser: numbers, links, calls, trees, exports,
// treemaps, requests to a server, pictures of threads, the fleet's questions.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { folder, root } from "./lab.mjs";

const require = createRequire(join(root, "web/package.json"));
const modules = [
  "asking",
  "calls",
  "choice",
  "data",
  "flamepaint",
  "fleet/ask",
  "fleet/state",
  "format",
  "heapdata",
  "link",
  "palette",
  "picture",
  "pyramid",
  "save",
  "timeline",
  "tree",
  "treemap",
];
const bundled = require("esbuild").buildSync({
  stdin: {
    contents: modules
      .map((m) => `export * as ${m.replace("/", "_")} from "./src/${m}";`)
      .join("\n"),
    resolveDir: join(root, "web"),
    loader: "ts",
  },
  bundle: true,
  write: false,
  format: "esm",
});
const file = join(folder, "page.mjs");
writeFileSync(file, bundled.outputFiles[0].text);
const {
  asking,
  calls,
  choice,
  data,
  flamepaint,
  fleet_ask,
  fleet_state,
  format,
  heapdata,
  link,
  palette,
  picture,
  pyramid,
  save,
  timeline,
  tree,
  treemap,
} = await import(pathToFileURL(file));

const plain = (text) => text.replace(/[\u00a0\u202f]/g, " ");

/** A generator of the same numbers in each run (xorshift32). */
function random(seed) {
  let x = seed;
  return (below) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % below;
  };
}

const varints = (...numbers) => {
  const bytes = [];
  for (let n of numbers) {
    for (; n >= 128; n = Math.floor(n / 128)) bytes.push((n % 128) + 128);
    bytes.push(n);
  }
  return Uint8Array.from(bytes);
};

test("durations, sizes, counts and shares are rounded to what can be read", () => {
  const durations = {
    0: "0 ns",
    0.4: "0 ns",
    999: "999 ns",
    1000: "1.00 µs",
    1234567: "1.23 ms",
    59.94e9: "59.9 s",
    60e9: "1.00 min",
    5400e9: "1.50 h",
    100e9: "1.67 min",
  };
  for (const [ns, text] of Object.entries(durations))
    assert.equal(plain(format.duration(Number(ns))), text);
  const sizes = {
    0: "0 B",
    1023: "1023 B",
    1024: "1.00 KiB",
    1536: "1.50 KiB",
    10485760: "10.0 MiB",
    1.5e15: "1364 TiB",
  };
  for (const [n, text] of Object.entries(sizes)) assert.equal(plain(format.bytes(Number(n))), text);
  assert.equal(plain(format.count(1234567)), "1,234,567");
  assert.equal(plain(format.plural(1, "class", "classes")), "1 class");
  assert.equal(plain(format.plural(0, "thread")), "0 threads");
  assert.deepEqual(
    [1, 2, 1200].map((n) => plain(format.allThreads(n))),
    ["The only thread", "All 2 threads", "All 1,200 threads"],
  );
  assert.equal(plain(format.percent(1, 3)), "33.3 %");
  assert.equal(plain(format.percent(1, 0)), "0.00 %");
  assert.equal(plain(format.moment(281345000)), "0.281345 s");
  assert.equal(
    plain(format.weightLong({ unit: "samples", intervalNs: 1e7 }, 1)),
    "1 sample (10.0 ms)",
  );
  assert.equal(plain(format.weightLong({ unit: "bytes", intervalNs: 0 }, 2048)), "2.00 KiB");
});

test("neighbouring times on an axis differ", () => {
  for (const step of [1, 2, 5, 10, 200, 5e3, 1e6, 5e8, 1e9, 2e9, 10e9, 60e9, 600e9])
    for (const first of [0, step * 7, 59e9 - (59e9 % step), 3600e9 - (3600e9 % step)])
      assert.notEqual(
        format.axisTime(first, step),
        format.axisTime(first + step, step),
        `${first} ns, step ${step} ns`,
      );
});

test("names are split into package, class and method", () => {
  const of = (label) => Object.values(format.split(label)).join(" | ");
  assert.equal(of("java.util.HashMap.get"), "java.util. | HashMap | get");
  assert.equal(of("Main.main"), " | Main | main");
  assert.equal(of("p.C.m(java.lang.String)"), "p. | C | m(java.lang.String)");
  assert.equal(of("libc.so.6.write"), " | libc.so.6 | write");
  assert.equal(of("/usr/lib/libjvm.so.G1.work"), " | /usr/lib/libjvm.so | G1.work");
  assert.equal(of("[not returned]"), " |  | [not returned]");
  assert.equal(format.short("java.util.HashMap.get"), "HashMap.get");
});

test("an address leads back to the view that made it", () => {
  const state = {
    metric: "cpu",
    view: "threads",
    inverted: true,
    upwards: true,
    search: "a&b=c #é",
    selected: "p.C.m",
    threads: [0, 3, 12],
    window: [5, 900],
    zoom: "1.2.3",
    compare: 2,
    more: { th: "7", call: "x y" },
  };
  assert.deepEqual(link.decode(`#${link.encode(state)}`), state);
  const none = link.decode("");
  assert.equal(link.encode(none), "");
  assert.deepEqual([none.view, none.threads, none.window, none.compare], ["profile", [], null, -1]);
  const wrong = link.decode("t=1,-2,x,3&w=9-3&z=1;2&b=-1&i=2");
  assert.deepEqual(
    [wrong.threads, wrong.window, wrong.zoom, wrong.compare, wrong.inverted],
    [[1, 3], null, "", -1, false],
  );
});

test("values of calls are shown as they were recorded", () => {
  assert.deepEqual(
    calls.values('[1.0, 1e300, "a\\"b", null, true]', [
      "double",
      "double",
      "java.lang.String",
      "Object",
      "boolean",
    ]),
    ["1.0", "1e300", '"a\\"b"', "null", "true"],
  );
  assert.deepEqual(calls.values('["\'", "\\""]', ["char", "char"]), ["'\\''", "'\"'"]);
  assert.deepEqual(calls.values('[{"object":"ArrayList(2)@1{1, 2}"}, {"number":"NaN"}, 3]'), [
    "ArrayList(2)@1{1, 2}",
    "NaN",
    "3",
  ]);
  assert.deepEqual(calls.values("9007199254740993"), ["9007199254740993"]);
  assert.deepEqual(calls.values("[]"), []);
  assert.deepEqual(calls.values("not JSON"), ["not JSON"]);
  assert.deepEqual(calls.types("p.C.m(IJ[[Ljava/lang/String;Z)[D"), {
    parameters: ["int", "long", "java.lang.String[][]", "boolean"],
    result: "double[]",
  });
  assert.deepEqual(calls.types("p.C.m()V"), { parameters: [], result: "void" });
});

test("calls have their callers, and the time of each counts once", () => {
  const call = (method, thread, start_ns, ns, self_ns, depth, exception = null) => ({
    method,
    thread,
    start_ns,
    ns,
    self_ns,
    depth,
    exception,
    args: "[]",
    caller: null,
  });
  const linked = calls.linkCalls({
    total: 6,
    calls: [
      call("p.C.a()V", "t", 0, 100, 50, 3),
      call("p.C.b()V", "t", 10, 30, 30, 5),
      call("p.C.c()V", "u", 15, 5, 5, 4),
      call("p.C.b()V", "t", 50, 20, 10, 5, "E"),
      call("p.C.c()V", "t", 55, 10, 10, 6),
      call("p.C.b()V", "t", 200, 7, 7, 5),
    ],
  });
  assert.deepEqual(
    linked.map((c) => c.parent),
    [-1, 0, -1, 0, 3, -1],
  );
  assert.equal(linked[0].children, 2);
  const rows = calls.methods(linked, new Uint8Array(linked.length).fill(1));
  assert.deepEqual(
    rows.map((r) => [r.name, r.calls, r.total, r.self, r.max, r.threw]),
    [
      ["p.C.a", 1, 100, 50, 100, 0],
      ["p.C.b", 3, 57, 47, 30, 1],
      ["p.C.c", 2, 15, 15, 10, 0],
    ],
  );
  const found = (f) =>
    [...calls.filterCalls(linked, { text: "", thread: "", minNs: 0, threw: false, ...f })].join("");
  assert.equal(found({}), "111111");
  assert.equal(found({ text: "c.B" }), "010101");
  assert.equal(found({ text: "*.c" }), "001010");
  assert.equal(found({ text: "b*" }), "000000");
  assert.equal(found({ thread: "t", minNs: 20 }), "110100");
  assert.equal(found({ threw: true }), "000100");
  assert.deepEqual(
    ["1.5ms", "200us", "3 µs", "0", "", "2s", "1m", "2h", "3", "x", "5xx", "1.2.3ms", "."].map(
      calls.parseTime,
    ),
    [1.5e6, 2e5, 3e3, 0, 0, 2e9, 6e10, 7.2e12, NaN, NaN, NaN, NaN, NaN],
  );
  assert.deepEqual(["1.5ms", "", "5", " 2.5", "5xx"].map(calls.timeFault), [
    "",
    "",
    "5 needs a unit: 5s, 5ms, 5us",
    "2.5 needs a unit: 2.5s, 2.5ms, 2.5us",
    "5xx is not a time such as 1.5ms or 200us",
  ]);
});

test("sentences of the command have the page's units", () => {
  assert.equal(
    format.sentence("had no processor, 664 us of 1.34 ms; us and 5 users, 1.5 us"),
    "had no processor, 664\u00a0µs of 1.34 ms; us and 5 users, 1.5\u00a0µs",
  );
});

test("numbers of any length are decoded, as bytes and as base64", () => {
  const numbers = [0, 1, 127, 128, 16383, 16384, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER];
  const bytes = varints(...numbers);
  for (const from of [bytes, Buffer.from(bytes).toString("base64")]) {
    const v = new data.Varints(from);
    const read = [];
    while (v.more) read.push(v.next());
    assert.deepEqual(read, numbers);
  }
});

test("a metric is decoded, and what is set aside is left out of its plain form", () => {
  const m = data.decodeMetric({
    name: "cpu",
    title: "CPU",
    unit: "samples",
    interval_ns: 1,
    pruned: 0,
    threads_merged: false,
    bucket_ns: 10,
    buckets: 4,
    from_ns: 0,
    nodes: 3,
    n_cells: 3,
    aside: 7,
    tree: varints(1, 5, 0, 1, 6, 4),
    cells: varints(0, 0, 1 << 1, 4, 2, 1, (2 << 1) | 1, 7, 0, 1, 2 << 1, 9),
    by_readings: true,
    calls: [5, 70, 11, 12, 2],
  });
  assert.deepEqual([...m.shape.parent], [0, 0, 1]);
  assert.deepEqual([...m.shape.label], [-1, 5, 6]);
  assert.deepEqual(
    [[...m.cells.bucket], [...m.cells.node], [...m.cells.weight], m.cells.buckets],
    [[0, 2, 2], [1, 2, 2], [4, 7, 9], 4],
  );
  assert.deepEqual([[...m.plain.cells.weight], m.plain.cells.n], [[4, 9], 2]);
  assert.deepEqual(m.readings.get(5), { of: [11, 12], known: [false, true] });
  assert.equal(m.calls.get(5), 70);
});

test("a choice of requests: its sets, its cells, those of the others, and the work for it", () => {
  const requests = {
    columns: 10,
    rows: 72,
    rows_of_ten: 8,
    end_ns: 1000,
    timeline_ns: 100,
    names: [{ name: "a" }, { name: "b" }],
    heat: [
      [0, 3, 2, 5, 9, 1],
      [5, 9, 4],
    ],
    requests: [
      { name: 0, at: 40, ns: 2500, works: [0, 50, 0, 0, 7, 20, 60, 0, 0, 7, 10, 5, 0, 0, 8] },
      { name: 1, at: 999, ns: 10, works: [0, 10, 0, 0, 7] },
    ],
  };
  assert.equal(choice.choiceOf(requests, {}), null);
  assert.equal(choice.choiceOf(requests, { rn: "c" }), null, "no such name");
  assert.equal(choice.choiceOf(undefined, { rn: "a" }), null);
  assert.deepEqual(choice.choiceOf(requests, { rn: "b" }), { name: 1, box: null });
  const box = { c0: 5, c1: 6, r0: 9, r1: 9 };
  assert.deepEqual(choice.choiceOf(requests, { rb: "6.5.9.9" }), { name: -1, box });
  assert.equal(choice.countOf(requests, { name: -1, box }), 5);
  assert.equal(choice.countOf(requests, { name: 0, box: null }), 3);
  assert.deepEqual(
    choice
      .chosenRequests(requests, { name: -1, box: { c0: 9, c1: 9, r0: 0, r1: 0 } })
      .map((r) => r.at),
    [999],
  );
  const worked = choice.workedFor(requests, requests.requests);
  assert.deepEqual(
    [[...worked.get(7).from], [...worked.get(7).to]],
    [
      [140, 1099],
      [220, 1109],
    ],
  );
  assert.deepEqual([...worked.get(8).from], [150]);
  // Three sets: {a 0 3}, {a 5 9, b 5 9}, {b 5 9}.
  const sets = (names_only) => ({
    n: 3,
    names_only,
    sets: varints(1, 0, 0, 3, 2, 0, 5, 9, 1, 5, 9, 1, 1, 5, 9),
  });
  const chosen = (c, only = false) => [...choice.chosenSets(sets(only), c)];
  assert.deepEqual(chosen({ name: 0, box: null }), [1, 1, 0]);
  assert.deepEqual(chosen({ name: -1, box }), [0, 1, 1]);
  assert.deepEqual(chosen({ name: 0, box }), [0, 1, 0]);
  assert.deepEqual(
    chosen({ name: 0, box }, true),
    [1, 1, 0],
    "of names alone, the box says nothing",
  );
  const metric = { cells: {}, pruned: 2, aside: 9, plain: {}, calls: new Map() };
  const json = {
    aside: 9,
    by_request: {
      threads_merged: false,
      pruned: 1,
      n_cells: 4,
      // set, thread, node and whether it is set aside, weight
      cells: varints(0, 1, 1 << 1, 3, 1, 1, (2 << 1) | 1, 5, 0, 2, 2 << 1, 7, 1, 2, 1 << 1, 11),
    },
  };
  const weights = (m) => [[...m.cells.weight], [...m.cells.node], m.cells.n, m.aside];
  const ours = choice.limitTo(metric, json, Uint8Array.of(1, 1, 0), false);
  assert.deepEqual(weights(ours), [[3, 5, 7], [1, 2, 2], 3, 5]);
  assert.deepEqual([[...ours.plain.cells.weight], ours.pruned, ours.calls], [[3, 7], 3, null]);
  const others = choice.limitTo(metric, json, Uint8Array.of(1, 1, 0), true);
  assert.deepEqual(weights(others), [[11], [1], 1, 0]);
  assert.equal(others.plain, undefined);
});

/** A random tree with its cells, and the same weights as a list of stacks. */
function sampleTree(seed) {
  const r = random(seed);
  const n = 2 + r(60);
  const labels = 1 + r(9);
  const shape = { n, parent: new Int32Array(n), label: new Int32Array(n), kind: new Uint8Array(n) };
  shape.label[0] = -1;
  for (let i = 1; i < n; i++)
    [shape.parent[i], shape.label[i], shape.kind[i]] = [r(i), r(labels), r(7)];
  const count = r(200);
  const cells = {
    n: count,
    buckets: 10,
    bucket: new Int32Array(count),
    thread: new Int32Array(count),
    node: new Int32Array(count),
    weight: new Float64Array(count),
  };
  for (let i = 0; i < count; i++)
    [cells.bucket[i], cells.thread[i], cells.node[i], cells.weight[i]] = [
      r(10),
      r(4),
      r(n),
      1 + r(5),
    ];
  const stackOf = (node) => (node ? [...stackOf(shape.parent[node]), shape.label[node]] : []);
  const stacks = (selection) =>
    Array.from({ length: count }, (_, i) => i)
      .filter(
        (i) =>
          (!selection.threads || selection.threads.has(cells.thread[i])) &&
          (!selection.window ||
            (cells.bucket[i] >= selection.window[0] && cells.bucket[i] < selection.window[1])),
      )
      .map((i) => ({ stack: stackOf(cells.node[i]), weight: cells.weight[i] }));
  return { shape, cells, labels, stacks };
}

const sum = (list) => list.reduce((a, b) => a + b, 0);
const weights = (stacks, when) =>
  sum(stacks.filter(({ stack }) => when(stack)).map(({ weight }) => weight));

/** The weight of each whole stack of a tree, by its text; a node's children have to be in order of weight. */
function paths(t) {
  const found = {};
  const texts = [""];
  for (let i = 0; i < t.n; i++) {
    if (i) texts[i] = `${texts[t.parent[i]]}/${t.label[i]}`;
    if (t.self[i]) found[texts[i]] = (found[texts[i]] ?? 0) + t.self[i];
    let last = Infinity;
    for (let c = t.firstChild[i]; c; c = t.nextSibling[c]) {
      assert.equal(t.parent[c], i);
      assert.ok(t.total[c] > 0 && t.total[c] <= last);
      last = t.total[c];
    }
  }
  return found;
}

const byText = (stacks) => {
  const found = {};
  for (const { stack, weight } of stacks)
    found[stack.map((l) => `/${l}`).join("")] =
      (found[stack.map((l) => `/${l}`).join("")] ?? 0) + weight;
  return found;
};

test("selections, rankings, inversions and callers are what the stacks add up to", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const { shape, cells, labels, stacks } = sampleTree(seed);
    for (const selection of [
      { threads: null, window: null },
      { threads: new Set([1, 3]), window: null },
      { threads: null, window: [2, 6] },
      { threads: new Set(), window: [0, 10] },
    ]) {
      const t = tree.select(shape, cells, selection);
      const all = stacks(selection);
      assert.equal(
        t.total[0],
        weights(all, () => true),
      );
      assert.deepEqual(paths(t), byText(all));
      assert.deepEqual(
        paths(tree.invert(t, labels)),
        byText(all.map(({ stack, weight }) => ({ stack: [...stack].reverse(), weight }))),
      );
      const rows = new Map(tree.rank(t, labels).map((r) => [r.label, r]));
      for (let label = 0; label < labels; label++) {
        const has = (s) => s.includes(label);
        const runs = (s) => s[s.length - 1] === label;
        assert.deepEqual(
          [rows.get(label)?.self ?? 0, rows.get(label)?.total ?? 0],
          [weights(all, runs), weights(all, has)],
          `seed ${seed}`,
        );
        assert.equal(
          tree.matched(
            t,
            Uint8Array.from({ length: labels }, (_, i) => (i === label ? 1 : 0)),
          ),
          weights(all, has),
        );
        const { callers, callees, weight, self } = tree.sandwich(t, label, labels);
        const with_ = all.filter(({ stack }) => has(stack));
        assert.deepEqual([weight, self], [weights(all, has), weights(all, runs)]);
        assert.deepEqual(
          paths(callees),
          byText(
            with_.map(({ stack, weight }) => ({
              stack: stack.slice(stack.indexOf(label)),
              weight,
            })),
          ),
        );
        assert.deepEqual(
          paths(callers),
          byText(
            with_.map(({ stack, weight }) => ({
              stack: stack.slice(0, stack.indexOf(label) + 1).reverse(),
              weight,
            })),
          ),
        );
      }
    }
  }
});

test("the frame below the pointer is the one that is drawn there", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const { shape, cells } = sampleTree(seed);
    const t = tree.select(shape, cells, { threads: null, window: null });
    const start = flamepaint.starts(t);
    const level = (node) => (node ? 1 + level(t.parent[node]) : 0);
    for (let node = 0; node < t.n; node++)
      if (t.total[node])
        assert.equal(
          flamepaint.frameAt(t, start, level(node), start[node] + t.total[node] / 2, 0),
          node,
          `seed ${seed}`,
        );
    assert.equal(flamepaint.frameAt(t, start, 0, t.total[0], 0), null);
    assert.equal(flamepaint.frameAt(t, start, 0, -1, 0), null);
  }
});

test("a search takes parts of names, and whole names with * and ?", () => {
  const labels = ["p.Foo.bar", "p.foo.baz", "q.[x]", "a\nb"];
  const found = (text) => [...tree.search(labels, text)].join("");
  assert.equal(tree.search(labels, ""), null);
  assert.equal(found("foo"), "1100");
  assert.equal(found("Foo"), "1000");
  assert.equal(found("*.ba?"), "1100");
  assert.equal(found("ba*"), "0000");
  assert.equal(found("q.[x]"), "0010");
  assert.equal(found("a*b"), "0001");
});

test("exports are what other programs read, whatever the names", () => {
  const labels = ['=cmd("x")', "a;b,c", "new\nline<&>"];
  const shape = {
    n: 4,
    parent: Int32Array.from([0, 0, 1, 1]),
    label: Int32Array.from([-1, 0, 1, 2]),
    kind: Uint8Array.from([0, 0, 4, 2]),
  };
  const t = tree.select(
    shape,
    { n: 2, buckets: 1, bucket: [0, 0], thread: [0, 0], node: [2, 3], weight: [5, 7] },
    { threads: null, window: null },
  );
  assert.equal(save.collapsed(t, labels), '=cmd("x");a,b,c 5\n=cmd("x");new?line<&> 7\n');
  const rows = tree.rank(t, 3);
  assert.equal(
    save.csv(rows, labels),
    'method,self,total,kind\r\n"new\nline<&>",7,7,compiled\r\n"a;b,c",5,5,native\r\n"\'=cmd(""x"")",0,12,java\r\n',
  );
  assert.equal(
    save.table(
      ["a", "b"],
      [
        ["-1+1", -1],
        ["x", 2],
      ],
    ),
    "a,b\r\n'-1+1,-1\r\nx,2\r\n",
  );
  const svg = save.svg(t, labels, "<title>", false, false);
  assert.match(svg, /new\n?line&#60;&#38;&#62;: 7|new\ufffdline&#60;&#38;&#62;: 7/);
  assert.ok(!/<title><title>/.test(svg) && svg.includes("&#60;title&#62;"));
  assert.equal(svg.match(/<rect x=/g).length, 4);
});

test("a treemap has the areas of its items, inside its rectangle and without overlaps", () => {
  const r = random(7);
  for (let round = 0; round < 100; round++) {
    const items = Array.from({ length: 1 + r(40) }, (_, item) => ({
      size: 50 + r(1000),
      item,
    })).sort((a, b) => b.size - a.size);
    const whole = sum(items.map((i) => i.size)) * (1 + r(3));
    const [w, h] = [600 + r(400), 300 + r(400)];
    const boxes = treemap.squarify(items, whole, 10, 20, w, h);
    assert.equal(boxes.length, items.length);
    for (const [i, b] of boxes.entries()) {
      assert.equal(b.item, items[i].item);
      assert.ok(Math.abs((b.w * b.h) / (w * h) - items[i].size / whole) < 1e-9);
      assert.ok(
        b.x >= 10 - 1e-6 &&
          b.y >= 20 - 1e-6 &&
          b.x + b.w <= 10 + w + 1e-6 &&
          b.y + b.h <= 20 + h + 1e-6,
      );
      for (const c of boxes.slice(0, i))
        assert.ok(
          Math.min(b.x + b.w, c.x + c.w) - Math.max(b.x, c.x) < 1e-6 ||
            Math.min(b.y + b.h, c.y + c.h) - Math.max(b.y, c.y) < 1e-6,
        );
    }
  }
  assert.deepEqual(treemap.squarify([], 0, 0, 0, 10, 10), []);
  assert.deepEqual(treemap.squarify([{ size: 0, item: 1 }], 10, 0, 0, 10, 10), []);
});

test("a picture of threads is decoded with its runs, instants, arrows and path", () => {
  const shares = [9, 200, 8, 55];
  const v = new data.Varints(
    Uint8Array.of(
      ...varints(2, 2 * 5, 10, 4, 3, 2 * 1 + 1, 6, 2),
      ...shares,
      ...varints(1, 7, 2, 11),
      ...varints(5, 2, 1, 30, 4, 1, 2, 3, 4, 16 + 3, 1, 2, 20, 6, 7, 1),
    ),
  );
  const p = picture.decodePicture(v, new picture.Picture(100, 200), [42]);
  assert.ok(!v.more);
  assert.deepEqual(p.rows.get(42), { lo: 0, hi: 2, markLo: 0, markHi: 1 });
  assert.deepEqual([p.runFrom[0], p.runTo[0], p.runKind[0], p.runNode[0]], [105, 115, 3, 4]);
  assert.deepEqual(
    [p.runFrom[1], p.runTo[1], p.runKind[1], p.runKinds[1]],
    [116, 122, picture.MANY, 2],
  );
  assert.deepEqual([...p.shares.slice(p.runShare[1], p.runShare[1] + 4)], shares);
  assert.deepEqual([p.markTime[0], p.markKind[0], p.markNode[0]], [107, 2, 11]);
  assert.deepEqual(p.arrows, [
    { time: 130, cause: 126, node: 1, waker: 2, thread: 3, from: 4, edge: 3, inferred: true },
  ]);
  assert.deepEqual([p.arrowsInAll, p.arrowEvery, p.arrows.length], [5, 2, 1]);
  assert.deepEqual(p.path, [{ start: 2, end: 22, thread: 6, index: 7, edge: 1, inferred: false }]);
});

test("one request for a picture is in flight, and of the others the last is sent", async () => {
  const sent = [];
  const source = {
    range: (from, to, pixels, threads) =>
      new Promise((done) =>
        sent.push({
          from,
          to,
          pixels,
          threads,
          done: () => {
            const p = new picture.Picture(from, to);
            for (const t of threads) p.rows.set(t, { lo: 0, hi: 0, markLo: 0, markHi: 0 });
            done(p);
          },
        }),
      ),
  };
  let pictures = 0;
  const a = new asking.Asking(source, () => pictures++);
  a.want([800, 1600], 1, [1]);
  a.want([800, 1600], 1, [1]);
  a.want([8000, 16000], 10, [1]);
  a.want([80000, 160000], 100, [1, 2]);
  assert.deepEqual(
    sent.map(({ from, to }) => [from, to]),
    [[700, 1700]],
  );
  sent[0].done();
  await new Promise(setImmediate);
  assert.equal(pictures, 1);
  assert.ok(
    a.covers([800, 1600], 1, [1]) &&
      !a.covers([800, 1600], 2, [1]) &&
      !a.covers([800, 1600], 1, [1, 2]) &&
      !a.covers([600, 1600], 1, [1]),
  );
  assert.deepEqual(
    sent.slice(1).map(({ from, to, threads }) => [from, to, threads]),
    [[70000, 170000, [1, 2]]],
  );
  sent[1].done();
  await new Promise(setImmediate);
  assert.ok(a.covers([80000, 160000], 100, [1, 2]));
  assert.equal(sent.length, 2);
});

test("the path's segment at a time is found", () => {
  const path = [
    [0, 10],
    [10, 15],
    [20, 30],
  ].map(([start, end], index) => ({ start, end, index }));
  assert.deepEqual(
    [-1, 0, 9, 10, 15, 19, 20, 29, 30].map((time) => timeline.segmentBehind(path, time)),
    [0, 0, 0, 1, 2, 2, 2, 2, 3],
  );
});

test("colours are opaque pixels, the same in both notations", () => {
  assert.equal(palette.pixel("#ff8000"), 0xff0080ff);
  assert.equal(palette.pixel("hsl(0 100% 50%)"), 0xff0000ff);
  assert.equal(palette.pixel("hsl(120 100% 25%)") >>> 24, 255);
  for (const isDark of [false, true]) {
    const all = palette.kindPixels(isDark);
    assert.equal(all.length, data.kinds.length * 7);
    for (let kind = 0; kind < data.kinds.length; kind++)
      assert.equal(new Set(all.slice(kind * 7, kind * 7 + 7)).size, 7, data.kinds[kind]);
  }
});

/** Runs f while every request of the page is answered by `answer`; returns what was asked. */
async function answering(answer, f) {
  const asked = [];
  const real = globalThis.fetch;
  globalThis.fetch = async (url) => {
    asked.push(String(url));
    return answer(String(url));
  };
  try {
    await f();
  } finally {
    globalThis.fetch = real;
  }
  return asked;
}

test("the fleet's view survives in an address, and an address that is wrong is harmless", () => {
  const usual = fleet_state.decode("");
  assert.deepEqual(
    [usual.view, usual.range, usual.metric, fleet_state.encode(usual)],
    ["services", "24h", "", ""],
  );
  const state = {
    ...usual,
    view: "difference",
    service: "shop & co",
    version: "1.8",
    range: "7d",
    label: "zone=eu,pod=a",
    base: "version=1.7",
    search: "a#b",
  };
  assert.deepEqual(fleet_state.decode(`#${fleet_state.encode(state)}`), state);
  assert.deepEqual(fleet_state.decode("#v=nosuch&range=1w&service=x"), { ...usual, service: "x" });
  assert.deepEqual(fleet_state.decode("#range="), { ...usual, range: "" });
  assert.deepEqual(["", "90h", "7d"].map(fleet_state.seconds), [0, 324000, 604800]);
  const choice = fleet_state.choice({ ...state, label: "zone=eu,nonsense,pod=a" });
  assert.deepEqual(
    [choice.service, choice.from, choice.label],
    ["shop & co", "10080m", ["zone=eu", "pod=a"]],
  );
  assert.equal(fleet_state.choice({ ...state, range: "" }).from, undefined);
});

test("a question to the collector has its parameters, and a refusal is an error with its reason", async () => {
  const asked = await answering(
    () => new Response('{"rows":[1]}'),
    async () => {
      assert.deepEqual(
        await fleet_ask.question("top", {
          service: "a&b",
          label: ["x=1", "y=2"],
          from: undefined,
          host: "",
        }),
        { rows: [1] },
      );
    },
  );
  assert.deepEqual(asked, ["v1/fleet/top?service=a%26b&label=x%3D1&label=y%3D2"]);
  await answering(
    () => new Response("no such metric\n", { status: 400 }),
    () => assert.rejects(fleet_ask.question("top", {}), { message: "no such metric" }),
  );
  assert.equal(fleet_ask.metricOf("nosuch").name, "cpu");
  assert.equal(new Set(fleet_ask.metrics.map((m) => m.name)).size, fleet_ask.metrics.length);
});

test("a tree of the fleet's stacks has their sums, and equal names one label", () => {
  const leaf = (name, self) => ({ name, self, total: self, children: [] });
  const root = {
    name: "",
    self: 0,
    total: 17,
    children: [
      {
        name: "a",
        self: 1,
        total: 11,
        children: [leaf("b", 4), { name: "a", self: 0, total: 6, children: [leaf("[idle]", 6)] }],
      },
      leaf("b", 6),
    ],
  };
  const { tree: t, labels } = fleet_ask.treeOf(root);
  const name = (i) => labels[t.label[i]];
  assert.deepEqual([...labels].sort(), ["[idle]", "a", "b"]);
  const nodes = Array.from({ length: t.n }, (_, i) => i).slice(1);
  assert.deepEqual(nodes.map((i) => `${name(i)} ${t.self[i]} ${t.total[i]}`).sort(), [
    "[idle] 6 6",
    "a 0 6",
    "a 1 11",
    "b 4 4",
    "b 6 6",
  ]);
  assert.equal(t.total[0], 17);
  assert.ok(
    nodes.every((i) => t.parent[i] < i && (t.kind[i] === data.MARK) === name(i).startsWith("[")),
  );
  assert.deepEqual(
    [...fleet_ask.readingsOf([{ label: 3, self: 25, total: 49 }], 10)],
    [[3, { of: [2, 4], known: [true, true] }]],
  );
});

test("answers about a heap are asked for once, and those of a page of one file are never asked for", async () => {
  assert.equal(heapdata.key("path", { object: "0x10", all: "y" }), "path all=y object=0x10");
  const inFile = heapdata.asker({ answers: { summary: { objects: 7 } } });
  let failing = true;
  const asked = await answering(
    (url) =>
      url.startsWith("heap/bad") && failing
        ? new Response("no object 0x1", { status: 404 })
        : new Response('{"n":1}'),
    async () => {
      assert.deepEqual(await inFile("summary"), { objects: 7 });
      await assert.rejects(inFile("summary", { object: "0x1" }), heapdata.NotInPage);
      const ask = heapdata.asker({});
      assert.deepEqual(
        await Promise.all([ask("summary"), ask("summary"), ask("path", { object: "0x1" })]),
        [{ n: 1 }, { n: 1 }, { n: 1 }],
      );
      await assert.rejects(ask("bad"), { message: "no object 0x1" });
      failing = false;
      assert.deepEqual(await ask("bad"), { n: 1 });
    },
  );
  assert.deepEqual(asked, ["heap/summary?", "heap/path?object=0x1", "heap/bad?", "heap/bad?"]);
  assert.deepEqual(["com.example.Outer$Inner", "int[]", "a.b[]"].map(heapdata.simple), [
    "Outer$Inner",
    "int[]",
    "b[]",
  ]);
  assert.equal(heapdata.titleOf({ class: "java.lang.String", value: '"x"' }), 'String "x"');
});

test("a page of one file composes pictures of threads from its parts", async () => {
  // Two levels of parts 1,000 and 500 ns long, groups of two threads; thread 2 is alone in its
  // group.
  const run = (gap, length, node, kind) => varints(2 * gap, length, node, kind);
  const row = (...runs) =>
    Uint8Array.of(...varints(runs.length), ...runs.flatMap((r) => [...r]), 0);
  const rows = (...all) => Uint8Array.of(...all.flatMap((r) => [...r]));
  const across = (inAll, every, ...rest) =>
    Uint8Array.of(...varints(inAll, every, rest.length ? 1 : 0), ...rest.flatMap((r) => [...r]), 0);
  const empty = row();
  const arrow = varints(600, 100, 4, 0, 1, 0, 1); // at 600, caused at 500 by node 0 of thread 0: node 4 of thread 1
  const json = {
    kinds: ["running", "blocked", "timeout", "notify"],
    edges: ["", "unlock"],
    path_states: ["running"],
    threads: [{ name: "a" }, { name: "b" }, { name: "c" }],
    strings: ["java.lang.Object", "a.B.c"],
    contexts: Uint8Array.of(...varints(0, 0, 0, 0, 1, 1, 0, 250)),
    objects: varints(1),
    stacks: Uint8Array.of(...varints(1, 2, 17)),
    path: {
      ran: [],
      segments: Uint8Array.of(
        ...varints(0, 500, 0, 1, 0, 0, 0),
        ...varints(500, 500, 1, 5, 0, 1, 0),
      ),
    },
    pyramid: {
      group: 2,
      width: 10,
      levels: [
        {
          span: 1000,
          parts: [
            {
              rows: [
                rows(row(run(0, 1000, 0, 0)), row(run(0, 600, 3, 1), run(0, 400, 4, 0))),
                rows(empty),
              ],
              across: across(3, 2, arrow),
            },
          ],
        },
        {
          span: 500,
          parts: [
            {
              rows: [rows(row(run(0, 500, 0, 0)), row(run(0, 500, 3, 1))), rows(empty)],
              across: across(1, 1),
            },
            {
              rows: [
                rows(row(run(0, 500, 0, 0)), row(run(0, 100, 3, 1), run(0, 400, 4, 0))),
                rows(row(varints(2 * 10 + 1, 20, 2, 0, 100, 1, 155))),
              ],
              across: across(2, 1),
            },
          ],
        },
      ],
      // Node 0 runs in thread 0; node 3 waits in thread 1 for the class of context 1 until node 4
      // runs, which node 0 woke.
      nodes: Uint8Array.of(
        ...varints(0, 0, 1000, 0, 0, 0, 0, 0, 0, 0),
        ...varints(3, 0, 600, 1, 0, 1, 0, 1, 0, 1),
        ...varints(1, 600, 400, 0, 17, 1, 4, 0, 1, 0),
      ),
    },
  };
  const p = new pyramid.Pyramid(json);
  assert.equal(p.finest, 50);
  const runs = (q, thread) =>
    Array.from(
      { length: q.rows.get(thread).hi - q.rows.get(thread).lo },
      (_, k) => k + q.rows.get(thread).lo,
    ).map((k) => [q.runFrom[k], q.runTo[k], q.runKind[k]]);
  const coarse = await p.range(0, 1000, 10, [0, 1]);
  assert.deepEqual(
    [runs(coarse, 0), runs(coarse, 1)],
    [
      [[0, 1000, 0]],
      [
        [0, 600, 1],
        [600, 1000, 0],
      ],
    ],
  );
  assert.deepEqual(
    [coarse.arrowsInAll, coarse.arrowEvery, coarse.arrows.length, coarse.arrows[0].cause],
    [3, 2, 1, 500],
  );
  assert.equal((await p.range(0, 1000, 10, [2])).arrows.length, 0);
  const fine = await p.range(0, 1000, 20, [1, 2]);
  assert.deepEqual(
    [runs(fine, 1), runs(fine, 2)],
    [
      [
        [0, 500, 1],
        [500, 600, 1],
        [600, 1000, 0],
      ],
      [[510, 530, picture.MANY]],
    ],
  );
  assert.deepEqual([...fine.shares], [0, 100, 1, 155]);
  assert.deepEqual([fine.arrowsInAll, fine.arrowEvery], [3, 1]);
  const waits = await p.at(1, 550);
  assert.deepEqual(
    [waits.node, waits.kind, waits.start, waits.end, waits.lock, waits.timeout_ms, waits.after],
    [3, 1, 0, 600, "java.lang.Object", 250, 4],
  );
  assert.deepEqual(waits.frames, [{ method: "a.B.c", line: 17 }]);
  assert.deepEqual(waits.ended, { edge: 1, inferred: true, node: 0, thread: 0, frames: [] });
  assert.equal(waits.segment, 1);
  assert.deepEqual(
    [await p.at(2, 520), await p.at(0, 5000), await p.node(99), await p.segment(2)],
    [null, null, null, null],
  );
  assert.deepEqual([(await p.segment(0)).node, (await p.segment(1)).node], [0, 4]);
});
