/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/rings.h"

#include "base/macro.h"
#include "options/rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT = 2, RINGS_MAX = 256 };

void ring_hold(int fd)
{
    /*
     * On a file system without locks, the ring looks as if its VM had ended; among such rings it is
     * the newest.
     */
    (void)!flock(fd, LOCK_EX | LOCK_NB);
}

/*
 * Returns whether a VM is writing the ring, which is open. On a file system without locks this is
 * not known.
 */
static bool is_held(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

bool ring_is_held(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && is_held(fd);
}

static bool is_named_so(const char *name)
{
    size_t n = strlen(name), before = strlen(RING_PREFIX), behind = strlen(RING_SUFFIX);
    return n > before + behind && strncmp(name, RING_PREFIX, before) == 0 &&
           strcmp(name + n - behind, RING_SUFFIX) == 0;
}

/*
 * Returns when a ring that no VM is writing was last written, or 0 for anything else. The lock
 * shows whether a VM has ended; process ids do not show that for VMs of other containers.
 */
static time_t ended_at(int folder, const char *name)
{
    struct stat st;
    _cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        flock(fd, LOCK_SH | LOCK_NB) < 0)
        return 0;
    return st.st_mtime;
}

struct ended {
    char name[256];
    time_t at;
};

void rings_tidy(const char *folder)
{
    static struct ended all[KEPT]; /* the newest rings so far; under the session's lock */
    unsigned n = 0, seen = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && seen < RINGS_MAX && (e = readdir(dir));) {
        time_t at = is_named_so(e->d_name) ? ended_at(dirfd(dir), e->d_name) : 0;
        if (!at)
            continue;
        seen++;
        struct ended this = {.at = at};
        snprintf(this.name, sizeof(this.name), "%s", e->d_name);
        /* If there is no room, the oldest of these rings is replaced. */
        unsigned oldest = 0;
        for (unsigned i = 1; i < n; i++)
            oldest = all[i].at < all[oldest].at ? i : oldest;
        if (n < KEPT) {
            all[n++] = this;
            continue;
        }
        if (all[oldest].at < this.at) {
            struct ended other = all[oldest];
            all[oldest] = this;
            this = other;
        }
        (void)!unlinkat(dirfd(dir), this.name, 0);
    }
    if (dir)
        closedir(dir);
}
