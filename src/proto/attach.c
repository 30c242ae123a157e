/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/attach.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* A VM that is stopped by its debugger or swapped out answers late; one that never answers is reported. */
#define LISTENER_NS (UINT64_C(10) * NS_PER_SECOND)

int attach_as_vm(const struct vm *vm)
{
    if (geteuid() != 0 || (vm->uid == 0 && vm->gid == 0))
        return 0;
    if (setegid(vm->gid) < 0)
        return -errno;
    if (seteuid(vm->uid) < 0) {
        int r = -errno;
        attach_as_self();
        return r;
    }
    return 0;
}

void attach_as_self(void)
{
    if (seteuid(getuid()) < 0 || setegid(getgid()) < 0)
        return; /* the real ids are always allowed */
}

static int say(struct buf *why, int error, const char *text)
{
    buf_string(why, text);
    return error;
}

/* A socket connected to the VM's listener. -ENOENT or -ECONNREFUSED when nobody listens. tmp is the VM's /tmp. */
static int connect_listener(const struct vm *vm, int tmp)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    char name[32];
    snprintf(name, sizeof(name), ".java_pid%d", vm->inner_pid);
    if (fstatat(tmp, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    /* Anyone can make a name in /tmp: what is not the VM's own socket is not talked to. */
    if (!S_ISSOCK(st.st_mode) || st.st_uid != vm->uid)
        return -ECONNREFUSED;
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", tmp, name);
    int r = attach_as_vm(vm);
    if (r < 0)
        return r;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        r = -errno;
    attach_as_self();
    if (r < 0)
        return r;
    return TAKE_FD(fd);
}

/* Makes the file that tells the SIGQUIT that follows from one that asks for a thread dump. */
static int make_trigger(const struct vm *vm, int tmp, char name[32])
{
    int r = attach_as_vm(vm);
    if (r < 0)
        return r;
    snprintf(name, 32, ".attach_pid%d", vm->inner_pid);
    int fd = openat(tmp, name, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0660);
    if (fd < 0)
        r = -errno;
    attach_as_self();
    if (fd >= 0)
        close(fd);
    return r;
}

static bool is_alive(const struct vm *vm)
{
    return kill(vm->pid, 0) == 0 || errno != ESRCH;
}

/* Wakes the listener and waits for its socket. */
static int wake_listener(const struct vm *vm, int tmp, struct buf *why)
{
    char name[32];
    int r = make_trigger(vm, tmp, name);
    if (r == -EROFS)
        return say(why, r, "its /tmp is read-only: it has no place for the socket that attach needs; start it with -agentpath");
    if (r < 0)
        return say(why, r, "cannot make a file in its /tmp");
    r = kill(vm->pid, SIGQUIT) < 0 ? -errno : -ETIMEDOUT;
    uint64_t start = now_ns();
    for (unsigned wait_ms = 1; r == -ETIMEDOUT && now_ns() - start < LISTENER_NS; wait_ms = MIN(wait_ms * 2, 100u)) {
        poll(NULL, 0, (int)wait_ms);
        int fd = connect_listener(vm, tmp);
        if (fd >= 0 || (fd != -ENOENT && fd != -ECONNREFUSED))
            r = fd;
        else if (!is_alive(vm))
            r = -ESRCH;
    }
    if (attach_as_vm(vm) == 0) {
        unlinkat(tmp, name, 0);
        attach_as_self();
    }
    if (r == -ETIMEDOUT)
        say(why, r, "the VM does not answer (attach disabled, or the process is stopped)");
    else if (r == -ESRCH)
        say(why, r, "the VM ended");
    return r;
}

static int open_listener(const struct vm *vm, struct buf *why)
{
    char path[64];
    _cleanup_close_ int tmp = open(vm_path(vm, "/tmp", path, sizeof(path)), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (tmp < 0)
        return say(why, -errno,
                   errno == EACCES ? "belongs to another user: only root and that user may attach" : "cannot see its /tmp");
    int fd = connect_listener(vm, tmp);
    if (fd == -ENOENT || fd == -ECONNREFUSED)
        fd = wake_listener(vm, tmp, why);
    return fd;
}

static int send_request(int fd, const char *command, const char *const args[ATTACH_ARGS], struct buf *why)
{
    _cleanup_(buf_release) struct buf request = BUF((ATTACH_ARGS + 1) * (ATTACH_ARG_MAX + 16));
    buf_bytes(&request, "1", 2);
    buf_bytes(&request, command, strlen(command) + 1);
    for (int i = 0; i < ATTACH_ARGS; i++) {
        const char *arg = args[i] ? args[i] : "";
        if (strlen(arg) > ATTACH_ARG_MAX)
            return say(why, -E2BIG, "the options are longer than the 1,024 bytes that attach can carry");
        buf_bytes(&request, arg, strlen(arg) + 1);
    }
    return buf_error(&request) ? buf_error(&request) : write_all(fd, request.data, request.len);
}

int attach_command(const struct vm *vm, const char *command, const char *const args[ATTACH_ARGS], struct buf *answer,
                   int *ret_status, struct buf *why)
{
    if (vm->attach_disabled)
        return say(why, -EOPNOTSUPP, "attach is disabled (-XX:+DisableAttachMechanism)");
    if (vm->openj9)
        return say(why, -EOPNOTSUPP, "is an OpenJ9 VM, whose attach differs; start it with -agentpath");
    _cleanup_close_ int fd = open_listener(vm, why);
    if (fd < 0)
        return fd;
    /* A VM that ends now must not end us. */
    sighandler_t old = signal(SIGPIPE, SIG_IGN);
    int r = send_request(fd, command, args, why);
    signal(SIGPIPE, old);
    _cleanup_free_ uint8_t *data = NULL;
    size_t len = 0;
    if (r == 0)
        r = read_all(fd, ATTACH_ANSWER_MAX, &data, &len);
    if (r == -EPIPE || r == -ECONNRESET || (r == 0 && !len))
        return say(why, is_alive(vm) ? -ECONNRESET : -ESRCH, is_alive(vm) ? "the VM hung up" : "the VM ended");
    if (r != 0)
        return r;
    const char *newline = memchr(data, '\n', len), *text = newline ? newline + 1 : (char *)data + len;
    *ret_status = atoi((char *)data);
    buf_bytes(answer, text, len - (size_t)(text - (char *)data));
    return buf_error(answer);
}
