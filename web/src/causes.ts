// SPDX-License-Identifier: Apache-2.0
// Names and colours of what requests spend their time on.

const hues: Record<string, [number, number]> = {
  cpu: [132, 40],
  runnable: [60, 60],
  throttled: [8, 70],
  lock: [350, 62],
  park: [320, 48],
  queue: [28, 80],
  pool: [14, 62],
  io: [208, 58],
  fault: [190, 40],
  sleep: [262, 36],
  gc: [48, 88],
  safepoint: [40, 50],
  "class-load": [172, 42],
  unknown: [220, 6],
};
/** What people read in the place of a cause; src/analysis/request_ledger.c has the same. */
const texts: Record<string, string> = {
  cpu: "CPU",
  runnable: "waiting for a processor",
  throttled: "container out of CPU",
  lock: "lock",
  park: "parked",
  queue: "queue of an executor",
  pool: "connection pool",
  io: "I/O",
  fault: "page faults",
  sleep: "sleep",
  gc: "garbage collection",
  safepoint: "stopped by the VM",
  "class-load": "class loading",
  unknown: "unknown",
};
export const inWords = (cause: string) => texts[cause] ?? cause;

export const causeColour = (cause: string, dark: boolean) => {
  const [h, s] = hues[cause] ?? hues.unknown;
  return `hsl(${h} ${s}% ${dark ? 42 : 62}%)`;
};
