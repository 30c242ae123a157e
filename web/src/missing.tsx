// SPDX-License-Identifier: Apache-2.0
// What a recording does not contain, and what would record it.
import type { PageJson } from "./data";
import type { View } from "./link";

interface Part {
  views: View[];
  title: string;
  is: string;
  by: string;
  has: (p: PageJson) => boolean;
}

const metric = (name: RegExp) => (p: PageJson) => p.metrics.some((m) => name.test(m.name));

const parts: Part[] = [
  { views: ["profile", "method"], title: "CPU profile", is: "which methods the time goes to", by: "jvmscope run --cpu -o app.jfr -- java ...", has: metric(/samples|wall|times/) },
  { views: [], title: "Allocation", is: "which methods allocate the memory", by: "jvmscope run --alloc -o app.jfr -- java ...", has: metric(/alloc/) },
  { views: ["threads", "monitors"], title: "Threads and locks", is: "what each thread did, who waited for whom, the critical path", by: "jvmscope run --threads -o app.jfr -- java ...", has: (p) => !!p.timeline },
  { views: ["requests"], title: "Requests", is: "which requests a server handled, and why the slow ones are slow", by: "jvmscope run --requests -o app.jfr -- java ...", has: (p) => !!p.requests },
  { views: ["trace"], title: "Calls", is: "the calls of chosen methods with arguments and what came back", by: "jvmscope run --trace 'com.example.*' -o app.jfr -- java ...", has: (p) => !!p.trace },
  { views: ["coverage"], title: "Coverage", is: "which lines and branches ran", by: "jvmscope run --cover -o app.jfr -- java ...", has: (p) => !!p.coverage },
  { views: ["heap"], title: "Heap", is: "what holds the memory", by: "jvmscope heap dump -o app.hprof PID", has: (p) => !!p.heap },
];

/** The list of what is missing, starting with the view that was asked for. */
export function Missing({ page, view }: { page: PageJson; view?: View }) {
  const missing = parts.filter((p) => !p.has(page));
  const first = view && missing.find((p) => p.views.includes(view));
  const rest = missing.filter((p) => p !== first);
  return (
    <>
      {first && (
        <p>
          This recording does not say {first.is}. It is recorded by <code>{first.by}</code>
        </p>
      )}
      {rest.length > 0 && (
        <dl class="missing">
          {rest.map((p) => (
            <>
              <dt>{p.title}</dt>
              <dd>
                {p.is}: <code>{p.by}</code>
              </dd>
            </>
          ))}
        </dl>
      )}
    </>
  );
}
