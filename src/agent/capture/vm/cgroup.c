/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/vm/cgroup.h"

#include "base/macro.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folders in which version 1 may have the controller "cpu". */
static const char *const cpu_folders[] = {"cpu,cpuacct", "cpu", "cpuacct,cpu"};

bool cgroup_small_file(const char *path, char *ret, int size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, (size_t)size - 1);
    if (fd >= 0)
        close(fd);
    ret[MAX(n, 0)] = 0;
    return n >= 0;
}

int64_t cgroup_line_number(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (strncmp(at, word, len) == 0) {
            const char *digits = at + len + strspn(at + len, " \t:");
            if (digits > at + len && *digits >= '0' && *digits <= '9')
                return strtoll(digits, NULL, 10);
        }
    return -1;
}

/* Returns whether `name` is one of the comma-separated controllers. */
static bool lists(const char *controllers, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = controllers, *end = at + len; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t word = (size_t)((comma ? comma : end) - at);
        if (word == n && memcmp(at, name, n) == 0)
            return true;
        at += word + 1;
    }
    return false;
}

/*
 * Stores in ret the path after "0::" (version 2) or after the controller's name (version 1).
 * Returns false when the list has neither.
 */
static bool path_of(const char *list, const char *controller, char *ret, size_t size)
{
    for (const char *at = list; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        const char *first = strchr(at, ':');
        const char *second = first ? strchr(first + 1, ':') : NULL;
        if (!second)
            return false;
        size_t len = strcspn(second + 1, "\n");
        bool is = controller ? lists(first + 1, (size_t)(second - first - 1), controller)
                             : second == first + 1;
        if (is && len < size) {
            memcpy(ret, second + 1, len);
            ret[len] = 0;
            return true;
        }
    }
    return false;
}

static bool read_in(const char *folder, const char *name, char *ret, int size)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    ret[0] = 0;
    return folder[0] && n < (int)sizeof(path) && cgroup_small_file(path, ret, size);
}

static int64_t number_in(const char *folder, const char *name)
{
    char text[64];
    if (!read_in(folder, name, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
        return -1; /* "max" too */
    errno = 0;
    int64_t v = strtoll(text, NULL, 10);
    /* Version 1 writes a number near the largest one for "no limit". */
    return errno || v >= INT64_C(1) << 60 ? -1 : v;
}

/* Returns whether the file of a group states a limit. */
static bool limits(const char *folder, const char *name)
{
    return number_in(folder, name) > 0;
}

/*
 * Sets ret to the group, or to the nearest group around it that has the limit, if there is one. A
 * path that does not exist below root stands for root; a container that sees only its own groups
 * has such a path.
 */
static void settle(char ret[PATH_MAX], const char *root, const char *path, const char *file)
{
    char at[PATH_MAX], text[64];
    int n = snprintf(at, sizeof(at), "%s%s", root, path);
    size_t shortest = strlen(root);
    if (n >= (int)sizeof(at) || (access(at, R_OK) < 0))
        snprintf(at, sizeof(at), "%s", root);
    while (strlen(at) > shortest && at[strlen(at) - 1] == '/')
        at[strlen(at) - 1] = 0;
    snprintf(ret, PATH_MAX, "%s", at);
    while (!limits(at, file)) {
        char *slash = strrchr(at, '/');
        if (!slash || strlen(at) <= shortest)
            return;
        *slash = 0;
        if (!read_in(at, file, text, sizeof(text)))
            return;
    }
    snprintf(ret, PATH_MAX, "%s", at);
}

void cgroup_find(struct cgroup *ret, const char *list, const char *root)
{
    char text[4096], path[PATH_MAX], base[PATH_MAX];
    *ret = (struct cgroup){0};
    if (!cgroup_small_file(list, text, sizeof(text)))
        return;
    snprintf(base, sizeof(base), "%s/cgroup.controllers", root);
    ret->v2 = access(base, R_OK) == 0;
    if (ret->v2) {
        if (!path_of(text, NULL, path, sizeof(path)))
            return;
        settle(ret->cpu, root, path, "cpu.max");
        settle(ret->memory, root, path, "memory.max");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(cpu_folders) && !ret->cpu[0]; i++) {
        int n = snprintf(base, sizeof(base), "%s/%s", root, cpu_folders[i]);
        if (n < (int)sizeof(base) && access(base, R_OK) == 0 &&
            path_of(text, "cpu", path, sizeof(path)))
            settle(ret->cpu, base, path, "cpu.cfs_quota_us");
    }
    int n = snprintf(base, sizeof(base), "%s/memory", root);
    if (n < (int)sizeof(base) && access(base, R_OK) == 0 &&
        path_of(text, "memory", path, sizeof(path)))
        settle(ret->memory, base, path, "memory.limit_in_bytes");
}

/* Calls f for the group at a path below root, and for each of its ancestors. */
static void each_upwards(const char *root, char *path, cgroup_visit *f, void *context)
{
    char folder[2 * PATH_MAX];
    for (char *end = path + strlen(path); end >= path; end--) {
        if (*end != '/' && *end != 0)
            continue;
        *end = 0;
        snprintf(folder, sizeof(folder), "%s%s", root, path);
        f(folder, context);
    }
}

void cgroup_each(const char *list, const char *root, const char *controller, cgroup_visit *f,
                 void *context)
{
    char text[8192], path[PATH_MAX], base[PATH_MAX];
    if (!cgroup_small_file(list, text, sizeof(text)))
        return;
    if (path_of(text, NULL, path, sizeof(path)))
        each_upwards(root, path, f, context);
    bool is_cpu = strcmp(controller, "cpu") == 0;
    for (size_t i = 0; i < (is_cpu ? ARRAY_SIZE(cpu_folders) : 1); i++) {
        int n = snprintf(base, sizeof(base), "%s/%s", root, is_cpu ? cpu_folders[i] : controller);
        if (n < (int)sizeof(base) && access(base, R_OK) == 0 &&
            path_of(text, controller, path, sizeof(path)))
            each_upwards(base, path, f, context);
    }
}

static void least_processors(const char *folder, void *context)
{
    double *least = context;
    char text[64];
    long long quota = 0, period = 0;
    if (read_in(folder, "cpu.max", text, sizeof(text))) {
        if (sscanf(text, "%lld %lld", &quota, &period) != 2)
            return; /* "max 100000" */
    } else {
        quota = number_in(folder, "cpu.cfs_quota_us");
        period = number_in(folder, "cpu.cfs_period_us");
    }
    if (quota > 0 && period > 0)
        *least = MIN(*least, (double)quota / (double)period);
}

double cgroup_processors(const char *list, const char *root)
{
    double least = HUGE_VAL;
    cgroup_each(list, root, "cpu", least_processors, &least);
    return least;
}

static void read_v2(const struct cgroup *c, struct cgroup_figures *f)
{
    char text[2048];
    if (read_in(c->cpu, "cpu.max", text, sizeof(text))) {
        char *end;
        int64_t quota = strtoll(text, &end, 10); /* "max 100000" begins with no number */
        if (end > text) {
            f->quota_us = quota;
            f->period_us = strtoll(end, NULL, 10);
        }
    }
    f->shares = number_in(c->cpu, "cpu.weight");
    f->memory_limit = number_in(c->memory, "memory.max");
    f->memory_used = number_in(c->memory, "memory.current");
    if (read_in(c->memory, "memory.events", text, sizeof(text)))
        f->memory_failures = cgroup_line_number(text, "max");
}

static void read_v1(const struct cgroup *c, struct cgroup_figures *f)
{
    f->quota_us = number_in(c->cpu, "cpu.cfs_quota_us");
    f->period_us = number_in(c->cpu, "cpu.cfs_period_us");
    f->shares = number_in(c->cpu, "cpu.shares");
    f->memory_limit = number_in(c->memory, "memory.limit_in_bytes");
    f->memory_used = number_in(c->memory, "memory.usage_in_bytes");
    f->memory_failures = number_in(c->memory, "memory.failcnt");
}

bool cgroup_read_throttling(const struct cgroup *c, struct cgroup_figures *ret)
{
    char text[2048];
    *ret = (struct cgroup_figures){-1, -1, -1, -1, -1, -1, -1, -1, -1};
    if (!read_in(c->cpu, "cpu.stat", text, sizeof(text)))
        return false;
    int64_t time = cgroup_line_number(text, c->v2 ? "throttled_usec" : "throttled_time");
    ret->slices = cgroup_line_number(text, "nr_periods");
    ret->throttled_slices = cgroup_line_number(text, "nr_throttled");
    ret->throttled_ns = time < 0 ? -1 : c->v2 ? time * 1000 : time;
    return ret->throttled_ns >= 0;
}

void cgroup_read(const struct cgroup *c, struct cgroup_figures *ret)
{
    (void)cgroup_read_throttling(c, ret);
    if (c->v2)
        read_v2(c, ret);
    else
        read_v1(c, ret);
}

int64_t cgroup_pressure_ns(const struct cgroup *c, const char *what)
{
    char name[64], text[512];
    snprintf(name, sizeof(name), "%s.pressure", what);
    if (!c->v2 || !read_in(c->cpu, name, text, sizeof(text))) {
        snprintf(name, sizeof(name), "/proc/pressure/%s", what);
        if (!cgroup_small_file(name, text, sizeof(text)))
            return -1;
    }
    /* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456" */
    const char *total = strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
    return total ? strtoll(total + 6, NULL, 10) * 1000 : -1;
}
