/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/attach.h"

#include "base/clock.h"
#include "base/file.h"
#include "proto/vm_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/*
 * A VM that is swapped out answers late. One that does not answer at all is reported after the
 * longer limit, one that is stopped after the shorter.
 */
#define LISTENER_NS (UINT64_C(10) * NS_PER_SECOND)
#define STOPPED_NS  (UINT64_C(3) * NS_PER_SECOND)
#define EXIT_NS     (UINT64_C(3) * NS_PER_SECOND)

enum { POLL_MS = 100 };

static int fail(struct buf *why, int error, const char *text)
{
    buf_string(why, text);
    return error;
}

static bool peer_is(int fd, const struct vm *vm)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == vm->uid;
}

/*
 * Returns a socket connected to the VM's listener, or -ENOENT or -ECONNREFUSED if nobody listens.
 * tmp is the VM's /tmp.
 */
static int connect_listener(const struct vm *vm, int tmp)
{
    const struct timeval limit = {.tv_sec = LISTENER_NS / NS_PER_SECOND};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!vm_has_socket(vm, tmp))
        return -ENOENT;
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /*
     * The queue of a VM that no longer accepts connections may be full, and connect() would block.
     */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
        return -errno;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/.java_pid%d", tmp,
             vm->inner_pid);
    int r = vm_user_enter(vm);
    if (r < 0)
        return r;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        r = errno == EAGAIN ? -ETIMEDOUT : -errno;
    vm_user_leave();
    /* The name may have been replaced since it was checked, so check the peer as well. */
    if (r == 0 && !peer_is(fd, vm))
        r = -ECONNREFUSED;
    if (r < 0)
        return r;
    return TAKE_FD(fd);
}

static void trigger_name(const struct vm *vm, char name[32])
{
    snprintf(name, 32, ".attach_pid%d", vm->inner_pid);
}

/*
 * Makes the file by which the VM distinguishes the SIGQUIT that follows from a request for a thread
 * dump.
 */
static int make_trigger(const struct vm *vm, int tmp)
{
    char name[32];
    trigger_name(vm, name);
    int r = vm_user_enter(vm);
    if (r < 0)
        return r;
    int fd = openat(tmp, name, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        r = -errno;
    vm_user_leave();
    if (fd >= 0)
        close(fd);
    return r;
}

static void remove_trigger(const struct vm *vm, int tmp)
{
    char name[32];
    trigger_name(vm, name);
    /*
     * Keep the file while the signal is pending. Without it, a VM that was stopped before it saw
     * the signal would print a thread dump.
     */
    if (vm_has_pending(vm, SIGQUIT) || vm_user_enter(vm) < 0)
        return;
    unlinkat(tmp, name, 0);
    vm_user_leave();
}

static int fail_stopped(struct buf *why)
{
    return fail(why, -EAGAIN,
                "the process is stopped (SIGSTOP or a debugger) and will answer when it continues");
}

/* Wakes the VM's attach listener and waits for its socket. */
static int wake_listener(const struct vm *vm, int tmp, struct buf *why)
{
    if (vm_refusal_to_wake(vm))
        return fail(why, -EOPNOTSUPP, vm_refusal_to_wake(vm));
    int r = make_trigger(vm, tmp);
    if (r < 0) {
        buf_printf(why, "cannot make a file in its /tmp: %s", strerror(-r));
        return r;
    }
    r = kill(vm->pid, SIGQUIT) < 0 ? -errno : -ETIMEDOUT;
    uint64_t start = now_ns();
    for (unsigned wait_ms = 1; r == -ETIMEDOUT && now_ns() - start < LISTENER_NS;
         wait_ms = MIN(wait_ms * 2, 100u)) {
        poll(NULL, 0, (int)wait_ms);
        int fd = connect_listener(vm, tmp);
        if (fd >= 0 || (fd != -ENOENT && fd != -ECONNREFUSED))
            r = fd;
        else if (vm_has_ended(vm))
            r = -ESRCH;
    }
    remove_trigger(vm, tmp);
    if (r == -ETIMEDOUT && vm_is_stopped(vm))
        return fail_stopped(why);
    if (r == -ETIMEDOUT)
        fail(why, r, "the VM does not answer (attach disabled, or it is too busy)");
    else if (r == -ESRCH)
        fail(why, r, "the VM ended");
    else if (r == -EPERM)
        fail(why, r, VM_NOT_SIGNALLED);
    return r;
}

int attach_check_tmp(const struct vm *vm, struct buf *why)
{
    char name[64];
    _cleanup_close_ int tmp = vm_open_folder(vm, "/tmp");
    if (tmp == -ENOENT)
        return fail(why, tmp, "it has no /tmp, where the attach socket lies: mount one");
    if (tmp == -EPERM)
        return fail(why, tmp, VM_USER_REFUSED);
    if (tmp < 0) {
        buf_printf(why, "its /tmp cannot be opened: %s", strerror(-tmp));
        return tmp;
    }
    if (vm_has_socket(vm, tmp))
        return 0;
    int r = vm_user_enter(vm);
    if (r < 0)
        return fail(why, r, VM_USER_REFUSED);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", tmp);
    r = faccessat(AT_FDCWD, name, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
    vm_user_leave();
    if (r == -EROFS)
        return fail(why, r,
                    "its /tmp is read-only, and the attach socket must lie there: mount a "
                    "writable one");
    return r < 0 ? fail(why, r,
                        "its user may not write to its /tmp, where the attach socket must lie: "
                        "give it the mode 1777")
                 : 0;
}

static int open_listener(const struct vm *vm, struct buf *why)
{
    int r = attach_check_tmp(vm, why);
    _cleanup_close_ int tmp = r < 0 ? r : vm_open_folder(vm, "/tmp");
    if (tmp < 0)
        return tmp;
    int fd = connect_listener(vm, tmp);
    if (fd == -ENOENT || fd == -ECONNREFUSED)
        fd = wake_listener(vm, tmp, why);
    return fd;
}

static int send_request(int fd, const char *command, const char *const args[ATTACH_ARGS],
                        struct buf *why)
{
    _cleanup_(buf_release) struct buf request = BUF((ATTACH_ARGS + 1) * (ATTACH_ARG_MAX + 16));
    buf_bytes(&request, "1", 2);
    buf_bytes(&request, command, strlen(command) + 1);
    for (int i = 0; i < ATTACH_ARGS; i++) {
        const char *arg = args[i] ? args[i] : "";
        if (strlen(arg) > ATTACH_ARG_MAX)
            return fail(why, -E2BIG,
                        "the options are longer than the 1,024 bytes that attach can carry");
        buf_bytes(&request, arg, strlen(arg) + 1);
    }
    return buf_error(&request) ? buf_error(&request)
                               : file_write_all(fd, request.data, request.len);
}

int attach_wait_on(const struct vm *vm, struct attach_wait *w, struct buf *why)
{
    uint64_t now = now_ns();
    w->stopped_ns = !vm_is_stopped(vm) ? 0 : w->stopped_ns ? w->stopped_ns : now;
    if (w->stopped_ns && now - w->stopped_ns > STOPPED_NS)
        return fail_stopped(why);
    if (now - w->start_ns <= w->limit_ns)
        return 0;
    buf_printf(why, "the VM gave no answer within %u s", (unsigned)(w->limit_ns / NS_PER_SECOND));
    return -ETIMEDOUT;
}

/* Reads the answer to its end. Gives up if the VM is stopped meanwhile or silent for too long. */
static int read_answer(const struct vm *vm, int fd, uint64_t limit_ns,
                       const struct attach_waiting *waiting, struct buf *ret, struct buf *why)
{
    struct attach_wait wait = {now_ns(), limit_ns, 0};
    for (;;) {
        char bytes[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, POLL_MS) > 0) {
            ssize_t n = read(fd, bytes, sizeof(bytes));
            if (n < 0 && errno != EINTR)
                return -errno;
            if (n == 0)
                return 0;
            buf_bytes(ret, bytes, n < 0 ? 0 : (size_t)n);
            if (buf_error(ret))
                return buf_error(ret);
        }
        if (waiting)
            waiting->poll(waiting->context);
        int r = attach_wait_on(vm, &wait, why);
        if (r < 0)
            return r;
    }
}

/*
 * Reports that the VM closed the connection. A process that ends closes its files before it is
 * visible that it has ended, so this waits for a moment.
 */
static int connection_closed(const struct vm *vm, struct buf *why)
{
    uint64_t start = now_ns();
    while (!vm_has_ended(vm)) {
        if (now_ns() - start > EXIT_NS)
            return fail(why, -ECONNRESET, "the VM hung up");
        poll(NULL, 0, POLL_MS / 10);
    }
    return fail(why, -ESRCH, "the VM ended");
}

int attach_command(const struct vm *vm, const char *command, const char *const args[ATTACH_ARGS],
                   uint64_t limit_ns, const struct attach_waiting *waiting, struct buf *answer,
                   int *ret_status, struct buf *why)
{
    if (vm_refusal(vm))
        return fail(why, -EOPNOTSUPP, vm_refusal(vm));
    /* A stopped VM would carry the command out when it continues, at a time that nobody expects. */
    if (vm_is_stopped(vm))
        return fail_stopped(why);
    _cleanup_close_ int fd = open_listener(vm, why);
    if (fd < 0)
        return fd;
    /* The VM may exit now; writing to its socket must not kill us. */
    sighandler_t old = signal(SIGPIPE, SIG_IGN);
    int r = send_request(fd, command, args, why);
    signal(SIGPIPE, old);
    _cleanup_(buf_release) struct buf read = BUF(ATTACH_ANSWER_MAX);
    if (r == 0)
        r = read_answer(vm, fd, limit_ns, waiting, &read, why);
    if (r == -EPIPE || r == -ECONNRESET || (r == 0 && !read.len))
        return connection_closed(vm, why);
    if (r != 0)
        return r;
    const char *text = buf_str(&read), *newline = strchr(text, '\n');
    *ret_status = atoi(text);
    buf_string(answer, newline ? newline + 1 : "");
    return buf_error(answer);
}
