/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control groups of this process, of version 2 or 1 of the kernel's interface: limits of the
 * container, and what it was denied because of them.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct cgroup {
    bool v2;
    char cpu[PATH_MAX], memory[PATH_MAX]; /* folders; "": none */
};

/*
 * Finds the groups that a file such as /proc/self/cgroup lists, below a folder such as
 * /sys/fs/cgroup. Of the nested groups of a process the innermost one that has a limit counts.
 */
void cgroup_find(struct cgroup *ret, const char *list, const char *root);

/* Limits, counts, bytes and times, as the names say. -1: unknown, or there is no limit. */
struct cgroup_figures {
    int64_t quota_us, period_us, shares;
    int64_t slices, throttled_slices, throttled_ns;
    int64_t memory_limit, memory_used, memory_failures;
};

void cgroup_read(const struct cgroup *c, struct cgroup_figures *ret);
/*
 * Reads the slices and the throttled time alone, from one file. Returns false when they are
 * unknown.
 */
bool cgroup_read_throttling(const struct cgroup *c, struct cgroup_figures *ret);
/*
 * Returns how long at least one task was stalled for lack of "cpu", "memory" or "io", in ns: in
 * the container, or on the whole machine when that is unknown; -1: unknown.
 */
int64_t cgroup_pressure_ns(const struct cgroup *c, const char *what);

/*
 * Calls f with the folders of the group that a controller such as "cpu" has for the process, in
 * either version, and of the groups around it, each of which limits it too. list and root are as
 * for cgroup_find. A container sees its own group as the root, while its path may be that of the
 * host: folders that do not exist are passed too.
 */
typedef void cgroup_visit(const char *folder, void *context);
void cgroup_each(const char *list, const char *root, const char *controller, cgroup_visit *f,
                 void *context);
/* Returns how many processors the quotas of all these groups allow; infinity: no quota. */
double cgroup_processors(const char *list, const char *root);

/*
 * Stores the beginning of a small file as text in ret[size]. Returns false, having stored "", when
 * there is none.
 */
bool cgroup_small_file(const char *path, char *ret, int size);
/*
 * Returns the number after a word at the beginning of a line ("nr_throttled 12"); -1: there is
 * none.
 */
int64_t cgroup_line_number(const char *text, const char *word);
