// SPDX-License-Identifier: Apache-2.0
// Bundles the page of a recording (src/main.tsx) and that of a collector (src/fleet/main.tsx), each
// with its style, and writes them as C: node build.mjs OUT.c
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { build } from "esbuild";

async function bundle(entry) {
  const done = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    outdir: "out",
    target: ["es2020"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    charset: "ascii",
  });
  const text = (end) => done.outputFiles.find((f) => f.path.endsWith(end)).text.trim();
  return { script: text(".js"), style: text(".css") };
}

const hash = (s) => `'sha256-${createHash("sha256").update(s).digest("base64")}'`;

// Only this very script and style run; nothing is loaded from anywhere but, when served, from the
// page's own server.
const policy = ({ script, style }) =>
  `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'`;

const head = (page) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(page)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>jvmscope</title>
<style>${page.style}</style>
<body>
<div id="app"></div>
<p id="reading" role="status"></p>
<noscript>This page needs JavaScript and loads nothing from elsewhere.</noscript>
`;

const tail = (page) => `<script>${page.script}</script>
</body>
</html>
`;

const literal = (s) => {
  const lines = [];
  for (let i = 0; i < s.length; i += 4000)
    lines.push(JSON.stringify(s.slice(i, i + 4000)).replace(/\?\?/g, '?""?'));
  return lines.join("\n    ");
};

const recording = await bundle("src/main.tsx");
const fleet = await bundle("src/fleet/main.tsx");
writeFileSync(
  process.argv[2],
  `/* Made by web/build.mjs. */
#include "page/page.h"

const char page_head[] =
    ${literal(`${head(recording)}<script type="application/json" id="data">`)};
const char page_tail[] =
    ${literal(`</script>\n${tail(recording)}`)};
const char page_of_fleet[] =
    ${literal(head(fleet) + tail(fleet))};
const char page_policy_of_fleet[] =
    ${literal(policy(fleet))};
`,
);
