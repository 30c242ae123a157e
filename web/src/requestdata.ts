// SPDX-License-Identifier: Apache-2.0
// What the page holds of requests.

export interface RequestName {
  name: string;
  kind: string;
  count: number;
  kept: number;
  exact: boolean;
  rate: number;
  errors: number;
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
  p999_ns: number;
  upper_bounds: string[]; // percentiles that are only upper bounds
  uncertain_percentiles: string[]; // percentiles that rest on few requests
  max_ns: number;
  total_ns: number;
  cpu_ns: number;
  cpu_error_ns: number;
  most: string;
  causes: Record<string, number>;
  causes_error: Record<string, number>;
  uncertain: string[];
}

export interface GroupCause {
  cause: string;
  slow_ns: number;
  typical_ns: number;
  share: number;
  slow_error_ns: number;
  typical_error_ns: number;
  share_error: number; // errors are half of 95 % intervals
  uncertain: boolean;
  hidden: boolean; // uncertain because of waits that were left out
  sentence: string;
  thread: string | null;
  frames: string[];
  waiting_frames: string[];
}

export interface RequestGroup {
  name: string;
  limit_ns: number;
  slow: { count: number; mean_ns: number };
  typical: { count: number; mean_ns: number };
  causes: GroupCause[];
  sentence: string;
  hidden_note: string | null;
}

export interface OneRequest {
  id: number;
  name: number;
  at: number;
  ns: number;
  status: number;
  exception: string | null;
  parts: number[]; // start, length, cause, thread, object; -1: none
  short_ns: number; // parts that are too short to be among these
  works: number[]; // start, length, time in the queue, thread, its id
  calls: { kind: string; name: string; at: number; ns: number }[];
  works_left?: number; // how many of these the page lacks
  calls_left?: number;
}

declare module "./data" {
  interface PageJson {
    requests?: RequestsJson;
  }
}

export interface RequestsJson {
  cpu_note: string | null; // what the cause cpu includes besides CPU time
  columns: number;
  rows: number;
  rows_of_ten: number;
  end_ns: number;
  timeline_ns: number; // from the start of the timeline to the time 0 of requests
  total: number;
  causes: string[];
  names: RequestName[];
  groups: RequestGroup[];
  heat: number[][]; // per name: column, row, count
  requests: OneRequest[]; // some of each name
  texts: string[];
}
