// SPDX-License-Identifier: Apache-2.0
// The page of a collector: what all machines did.
import { render } from "preact";
import "../style.css";
import { Fleet } from "./fleet";

document.getElementById("reading")!.remove();
document.title = "jvmscope fleet";
render(<Fleet />, document.getElementById("app")!);
