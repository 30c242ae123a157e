/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/triggers/machine.h"

#include "agent/capture/vm/cgroup.h"
#include "base/file.h"
#include "base/macro.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PROC_MAX = 1 << 16 };

#define LIST    "/proc/self/cgroup"
#define CGROUPS "/sys/fs/cgroup"

/* Returns the first number of a file; UINT64_MAX for "max", and for a file that cannot be read. */
static uint64_t number_in(const char *path)
{
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    if (file_read_path(path, PROC_MAX, &text, &len) < 0 || !len || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    return strtoull((const char *)text, NULL, 10);
}

static void least_memory(const char *folder, void *context)
{
    static const char *const names[] = {"memory.max", "memory.limit_in_bytes"};
    uint64_t *least = context;
    char path[2 * PATH_MAX + 32];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        uint64_t limit = number_in(path);
        *least = MIN(*least, limit);
    }
}

uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t least = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
    cgroup_each(LIST, CGROUPS, "memory", least_memory, &least);
    return least == UINT64_MAX ? 0 : least;
}

double machine_cpus(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    double least = online > 0 ? (double)online : 1;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        least = MIN(least, (double)CPU_COUNT(&set));
    least = MIN(least, cgroup_processors(LIST, CGROUPS));
    return least > 0 ? least : 1;
}

uint64_t machine_rss(void)
{
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    unsigned long long all, resident;
    if (file_read_path("/proc/self/statm", PROC_MAX, &text, &len) < 0 ||
        sscanf((const char *)text, "%llu %llu", &all, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t machine_threads(void)
{
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    if (file_read_path("/proc/self/status", PROC_MAX, &text, &len) < 0)
        return 0;
    const char *line = strstr((const char *)text, "\nThreads:");
    return line ? strtoull(line + 9, NULL, 10) : 0;
}

static void least_threads(const char *folder, void *context)
{
    uint64_t *least = context;
    char path[2 * PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/pids.max", folder);
    uint64_t limit = number_in(path);
    *least = MIN(*least, limit);
}

uint64_t machine_thread_limit(void)
{
    uint64_t least = UINT64_MAX;
    cgroup_each(LIST, CGROUPS, "pids", least_threads, &least);
    return least == UINT64_MAX ? 0 : least;
}

uint64_t machine_descriptors(void)
{
    uint64_t n = 0;
    DIR *all = opendir("/proc/self/fd");
    if (!all)
        return 0;
    for (struct dirent *e; (e = readdir(all));)
        n += e->d_name[0] != '.';
    closedir(all);
    return n - 1; /* without the descriptor of this folder */
}

uint64_t machine_descriptor_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

uint64_t machine_descriptor_most(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY ? limit.rlim_max
                                                                                    : 0;
}
