/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/lend.h"

#include "base/file.h"
#include "proto/namespace.h"
#include "proto/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8U
#endif

/* The name in maps is "/memfd:" and the name that was given. */
#define MAPPED "memfd:"
#define NAME   SCRATCH_PREFIX "%016" PRIx64 ".%d.%d.so"

enum { FD_FIRST = 100, FDS = 900 };

/* What the lender reports when it is ready: an errno, or the library's path. */
struct lent {
    int error;
    pid_t pid; /* in the VM's namespace */
    int fd;
    dev_t dev;
    ino_t ino;
};

/* ---- in the lender ---- */

static int set_capabilities(bool all)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, data) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
        data[i].permitted = all ? data[i].permitted : 0;
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/*
 * Becomes the VM's user, with no capability that the VM lacks: to open this process's files through
 * /proc, the VM must have its user, its user namespace and all of its capabilities. as_root: the
 * command runs as root, which the user id within the VM's user namespace does not show.
 */
static int become(const struct vm *vm, bool as_root)
{
    if (as_root && (vm->uid != 0 || vm->gid != 0)) {
        if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(vm->n_groups, vm->groups) < 0 ||
            setresgid(vm->gid, vm->gid, vm->gid) < 0 || setresuid(vm->uid, vm->uid, vm->uid) < 0)
            return -errno;
        int r = set_capabilities(true);
        if (r < 0)
            return r;
    }
    int r = namespace_join(vm, "user", CLONE_NEWUSER);
    if (r == 0)
        r = set_capabilities(false);
    /*
     * After a change of user, its new user may inspect the process only once it is dumpable again.
     */
    return r == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : r;
}

static int make_memory_file(const char *name, const void *data, size_t len)
{
    /*
     * Loading a library requires no right to execute it; some systems permit no other kind of file.
     */
    _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC);
    int r = fd < 0 ? -errno : file_write_all(fd, data, len);
    if (r < 0)
        return r;
    return TAKE_FD(fd);
}

static int hold(const struct vm *vm, bool as_root, uint64_t hash, const void *data, size_t len,
                struct lent *lent)
{
    char name[64];
    uint16_t number;
    struct stat st;
    int r = become(vm, as_root);
    if (r < 0)
        return r;
    /*
     * The descriptor's number is random, so that the path is new even if another build's lender
     * once had this process id.
     */
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return -errno;
    lent->pid = getpid();
    lent->fd = FD_FIRST + number % FDS;
    snprintf(name, sizeof(name), NAME, hash, lent->pid, lent->fd);
    _cleanup_close_ int fd = make_memory_file(name, data, len);
    if (fd < 0)
        return fd;
    if (dup2(fd, lent->fd) < 0 || fstat(fd, &st) < 0)
        return -errno;
    lent->dev = st.st_dev;
    lent->ino = st.st_ino;
    return 0;
}

/*
 * Runs the lender, and the process that joins the VM's namespaces and waits for it. There are two
 * processes because joining a pid namespace affects only children that are forked afterwards. Never
 * returns.
 */
static void lend(const struct vm *vm, uint64_t hash, const void *data, size_t len, int channel)
{
    struct lent lent = {0};
    bool as_root = geteuid() == 0;
    char byte;
    /* An interruption of the command must not remove what the VM is about to load. */
    for (size_t i = 0; i < 4; i++)
        signal((const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i], SIG_IGN);
    int r = namespace_join_any(vm, "pid", CLONE_NEWPID);
    pid_t child = r < 0 ? -1 : fork();
    if (child > 0) {
        close(channel);
        waitpid(child, NULL, 0);
        _exit(0);
    }
    lent.error = r < 0 ? r : child < 0 ? -errno : hold(vm, as_root, hash, data, len, &lent);
    if (write(channel, &lent, sizeof(lent)) == sizeof(lent) && lent.error == 0)
        while (read(channel, &byte, 1) < 0 && errno == EINTR)
            continue;
    _exit(0);
}

/* ---- in the command ---- */

/*
 * Returns whether the library is visible in the VM's /proc, which it is not when that /proc belongs
 * to another pid namespace.
 */
static bool is_visible(const struct vm *vm, const struct lent *lent)
{
    char name[32];
    struct statfs fs;
    struct stat st;
    snprintf(name, sizeof(name), "%d/fd/%d", lent->pid, lent->fd);
    _cleanup_close_ int proc = vm_open_folder(vm, "/proc");
    if (proc < 0 || fstatfs(proc, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
        return false;
    return fstatat(proc, name, &st, 0) == 0 && st.st_dev == lent->dev && st.st_ino == lent->ino;
}

int lend_library(const struct vm *vm, uint64_t hash, const void *data, size_t len, char *path,
                 size_t size, struct lender *ret, struct buf *why)
{
    int ends[2];
    struct lent lent = {.error = -EIO};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    struct lender l = {fork(), ends[0]};
    if (l.process == 0) {
        close(ends[0]);
        lend(vm, hash, data, len, ends[1]);
    }
    close(ends[1]);
    if (l.process > 0 && read(l.end, &lent, sizeof(lent)) != sizeof(lent))
        lent.error = -EIO;
    int r = l.process < 0 ? -EAGAIN : lent.error;
    if (r == 0 && !is_visible(vm, &lent))
        r = -ENOENT;
    if (r < 0) {
        lender_release(&l);
        if (r == -EPERM)
            buf_string(why, ", and passing it the agent in memory needs CAP_SYS_ADMIN");
        else if (r == -ENOENT)
            buf_string(why, ", and the agent cannot be passed to it in memory: it has no /proc");
        else
            buf_printf(why, ", and the agent cannot be passed to it in memory: %s", strerror(-r));
        buf_string(why, "; start it with -agentpath");
        return r;
    }
    snprintf(path, size, "/proc/%d/fd/%d", lent.pid, lent.fd);
    *ret = l;
    return 0;
}

void lender_release(struct lender *l)
{
    close_descriptor(&l->end);
    if (l->process > 0)
        while (waitpid(l->process, NULL, 0) < 0 && errno == EINTR)
            continue;
    *l = LENDER;
}

bool lend_path(const char *base_name, char *path, size_t size)
{
    char again[96];
    uint64_t hash;
    int pid, fd;
    if (sscanf(base_name, MAPPED SCRATCH_PREFIX "%16" SCNx64 ".%d.%d.so", &hash, &pid, &fd) != 3)
        return false;
    snprintf(again, sizeof(again), MAPPED NAME, hash, pid, fd);
    if (strcmp(again, base_name) != 0)
        return false;
    snprintf(path, size, "/proc/%d/fd/%d", pid, fd);
    return true;
}
