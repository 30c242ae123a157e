// SPDX-License-Identifier: Apache-2.0
// The views in addition to the profile, in the order of their tabs.
import { coverageView } from "./coverage";
import { heapView } from "./heap";
import { monitorsView } from "./monitors";
import { requestsView } from "./requests";
import { threadsView } from "./threadview";
import { traceView } from "./trace";
import type { View } from "./view";

export const views: View[] = [
  threadsView,
  monitorsView,
  requestsView,
  heapView,
  traceView,
  coverageView,
];
