// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import { load } from "./data";
import { decode } from "./link";
import "./style.css";

const reading = document.getElementById("reading")!;
const wait = setTimeout(() => (reading.textContent = "Reading the recording …"), 150);
const { view } = decode(location.hash);
load(document.getElementById("data")!.textContent!, view === "profile" || view === "method").then(
  (page) => {
    clearTimeout(wait);
    reading.remove();
    document.title = `${page.file} — jvmscope`;
    render(<App page={page} />, document.getElementById("app")!);
  },
  (e: Error) => {
    clearTimeout(wait);
    reading.className = "failed";
    reading.textContent = e.message;
  },
);
