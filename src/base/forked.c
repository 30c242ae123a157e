/* SPDX-License-Identifier: Apache-2.0 */
#include "base/forked.h"

#include "base/macro.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CLOSE_RANGE = 436 }; /* the number of the system call on every architecture */

struct entry64 { /* as getdents64 returns it */
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};

static bool is_kept(int fd, const int *keep, size_t n)
{
    bool kept = fd <= 2;
    for (size_t i = 0; i < n; i++)
        kept = kept || keep[i] == fd;
    return kept;
}

/* Closes the descriptors that /proc lists, where the kernel has no close_range. */
static void close_listed(const int *keep, size_t n_kept)
{
    uint64_t buffer[512];
    int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool closed = dir >= 0;
    while (closed) {
        closed = false;
        (void)lseek(dir, 0, SEEK_SET);
        for (long n; (n = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) > 0;) {
            for (long at = 0; at < n;) {
                const struct entry64 *e =
                    (const struct entry64 *)(const void *)((const char *)buffer + at);
                int fd = 0;
                for (const char *p = e->name; *p >= '0' && *p <= '9'; p++)
                    fd = 10 * fd + (*p - '0');
                if (fd != dir && !is_kept(fd, keep, n_kept))
                    closed = close(fd) == 0 || closed;
                at += e->length;
            }
        }
    }
    if (dir >= 0)
        close(dir);
}

void forked_close_others(const int *keep, size_t n)
{
    unsigned first = 3;
    for (size_t i = 0; i <= n; i++) {
        unsigned end = i < n ? (unsigned)keep[i] : ~0U;
        if (first < end && syscall(CLOSE_RANGE, first, i < n ? end - 1 : end, 0) < 0) {
            close_listed(keep, n);
            return;
        }
        first = i < n && end >= first ? end + 1 : first;
    }
}

void forked_end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
}
