// SPDX-License-Identifier: Apache-2.0
// What a recording does not contain, and what would record it.
import type { PageJson } from "./data";
import { views } from "./views";

interface Part {
  views: string[];
  title: string;
  is: string;
  by: string;
  has: (p: PageJson) => boolean;
}

const metric = (name: RegExp) => (p: PageJson) => p.metrics.some((m) => name.test(m.name));

function parts(): Part[] {
  const all: Part[] = [
    {
      views: ["profile", "method"],
      title: "CPU profile",
      is: "which methods the time goes to",
      by: "jvmscope run --cpu -o app.jfr -- java ...",
      has: metric(/samples|wall|times/),
    },
    {
      views: [],
      title: "Allocation",
      is: "which methods allocate the memory",
      by: "jvmscope run --alloc -o app.jfr -- java ...",
      has: metric(/alloc/),
    },
  ];
  for (const v of views) {
    const same = all.find((p) => p.title === v.missing.title);
    if (same) same.views.push(v.name);
    else all.push({ ...v.missing, views: [v.name], has: v.has });
  }
  return all;
}

/** A command, which is broken between its words alone: dashes are part of them. */
const Command = ({ line }: { line: string }) => (
  <code>
    {line.split(" ").map((word, i) => (
      <>
        {i > 0 && " "}
        <span>{word}</span>
      </>
    ))}
  </code>
);

/** The list of what is missing, starting with the view that was asked for. */
export function Missing({ page, view }: { page: PageJson; view?: string }) {
  const missing = parts().filter((p) => !p.has(page));
  const first = view && missing.find((p) => p.views.includes(view));
  const rest = missing.filter((p) => p !== first);
  return (
    <>
      {first && (
        <p>
          This recording does not say {first.is}. It is recorded by <Command line={first.by} />
        </p>
      )}
      {rest.length > 0 && (
        <dl class="missing">
          {rest.map((p) => (
            <>
              <dt>{p.title}</dt>
              <dd>
                {p.is}: <Command line={p.by} />
              </dd>
            </>
          ))}
        </dl>
      )}
    </>
  );
}
