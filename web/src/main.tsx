// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import type { PageJson } from "./data";
import "./style.css";

const page: PageJson = JSON.parse(document.getElementById("data")!.textContent!);
document.title = `${page.file} — jvmscope`;
render(<App page={page} />, document.getElementById("app")!);
