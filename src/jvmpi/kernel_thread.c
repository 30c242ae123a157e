/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/kernel_thread.h"
#include "jvmpi/ids.h"

#include "base/file.h"
#include "base/macro.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROC_MAX = 1 << 16, NONE = -1 };

static bool is_service_thread(const char *tid)
{
    char path[64];
    _cleanup_free_ uint8_t *name = NULL;
    size_t len;
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", tid);
    return file_read_path(path, PROC_MAX, &name, &len) >= 0 &&
           strcmp((const char *)name, "Service Thread\n") == 0;
}

static int find(void)
{
    int found = NONE;
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    while (tasks && found == NONE && (task = readdir(tasks)))
        if (is_service_thread(task->d_name))
            found = atoi(task->d_name);
    if (tasks)
        closedir(tasks);
    return found;
}

/* Returns the number after a key at the start of a line of /proc/PID/status, or 0. */
static unsigned long long number_of(const char *status, const char *key)
{
    const char *at = strstr(status, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

bool kernel_thread_slept(pid_t tid, uint64_t *last)
{
    char path[64];
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
    if (tid <= 0 || file_read_path(path, PROC_MAX, &text, &len) < 0)
        return false;
    const char *status = (const char *)text;
    uint64_t switches = number_of(status, "\nvoluntary_ctxt_switches:") +
                        number_of(status, "\nnonvoluntary_ctxt_switches:");
    bool asleep = strstr(status, "\nState:\tS") != NULL, same = asleep && switches == *last;
    *last = asleep ? switches : 0;
    return same;
}

bool layer_service_thread_slept(uint64_t *last)
{
    /* this needs no lock, because only the delivering thread calls this function */
    static pid_t tid;
    if (!tid)
        tid = find();
    return kernel_thread_slept(tid, last);
}
