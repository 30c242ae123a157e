// SPDX-License-Identifier: Apache-2.0
// Light or dark: the system's setting, unless the reader chooses. On paper always light.
import { useEffect, useState } from "preact/hooks";

export type Theme = "auto" | "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print");
const listeners = new Set<() => void>();
let chosen: Theme = "auto";

export const isDark = () =>
  !paper.matches && (chosen === "auto" ? system.matches : chosen === "dark");
export const theme = () => chosen;

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  listeners.forEach((f) => f());
}

export function setTheme(t: Theme) {
  chosen = t;
  apply();
}

system.addEventListener("change", apply);
paper.addEventListener("change", apply);
apply();

export function useDark(): boolean {
  const [dark, set] = useState(isDark());
  useEffect(() => {
    const f = () => set(isDark());
    listeners.add(f);
    return () => void listeners.delete(f);
  }, []);
  return dark;
}
