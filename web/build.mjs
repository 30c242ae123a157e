// SPDX-License-Identifier: Apache-2.0
// Bundles src/main.tsx and its style into one page and writes it as C: node build.mjs OUT.c
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { build } from "esbuild";

const done = await build({
  entryPoints: ["src/main.tsx"],
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
const script = text(".js");
const style = text(".css");
const hash = (s) => `'sha256-${createHash("sha256").update(s).digest("base64")}'`;

// Only this very script and style run; nothing is loaded from anywhere but, when served, from the page's own server.
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
const head = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>jvmscope</title>
<style>${style}</style>
<body>
<div id="app"></div>
<p id="reading" role="status"></p>
<noscript>This page needs JavaScript; it runs offline and loads nothing.</noscript>
<script type="application/json" id="data">`;
const tail = `</script>
<script>${script}</script>
</body>
</html>
`;

const literal = (s) => {
  const lines = [];
  for (let i = 0; i < s.length; i += 4000)
    lines.push(JSON.stringify(s.slice(i, i + 4000)).replace(/\?\?/g, '?""?'));
  return lines.join("\n    ");
};
writeFileSync(process.argv[2], `/* Made by web/build.mjs. */
#include "export/page.h"

const char page_head[] =
    ${literal(head)};
const char page_tail[] =
    ${literal(tail)};
`);
