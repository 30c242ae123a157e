/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target.h"

#include "base/file.h"
#include "base/parse.h"
#include "cli/convert.h"
#include "cli/json_view.h"
#include "cli/recording.h"
#include "proto/control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

int target_open(struct vm *ret, const char *pid)
{
    uint64_t n;
    if (parse_u64(pid, 1, INT_MAX, &n) < 0) {
        complain(pid, "not a process id", "jvmscope list shows the VMs");
        return 2;
    }
    int r = vm_read(ret, (pid_t)n);
    switch (r) {
    case 0:
        return 0;
    case -ESRCH:
        return complain(pid, "no such process", NULL);
    case -ENOEXEC:
        return complain(pid, "not a Java VM", "jvmscope list shows the VMs");
    case -EACCES:
        return complain(pid, "may not be looked at",
                        geteuid() ? "it belongs to another user: only root and that user may attach"
                                  : "root needs CAP_SYS_PTRACE for that");
    case -EAGAIN:
        return complain(pid, "does not take SIGQUIT", "it is still starting, or runs with -Xrs: attach would end it");
    default:
        return complain_errno(pid, "cannot look at it", r);
    }
}

void target_print_messages(const struct buf *answer)
{
    for (unsigned i = 0;; i++) {
        _cleanup_free_ char *text = answer->len ? agent_answer_value((const char *)answer->data, "message", i) : NULL;
        if (!text)
            return;
        complain("note", text, NULL);
    }
}

int target_message(const struct vm *vm, const char *what, const char *options, bool load, struct buf *answer)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    int r = agent_message(vm, options, load, answer, &why);
    if (r < 0)
        return why.len ? complain(pid, what, buf_str(&why)) : complain_errno(pid, what, r);
    buf_str(answer);
    target_print_messages(answer);
    return 0;
}

int target_show(const struct vm *vm, const char *what, const char *options, bool load, bool as_json)
{
    _cleanup_(buf_release) struct buf answer = BUF(CONTROL_ANSWER_MAX);
    int status = target_message(vm, what, options, load, &answer);
    if (status)
        return status;
    _cleanup_free_ char *json = agent_answer_value(buf_str(&answer), "json", 0);
    if (json && as_json)
        puts(json);
    else if (!json || json_view(stdout, json) < 0)
        return complain(what, "the agent's answer is not understood", NULL);
    return 0;
}

bool target_can_write(const struct vm *vm, const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s", (int)MAX(strrchr(path, '/') - path, 1), path);
    if (vm->other_root || attach_as_vm(vm) < 0)
        return false;
    bool can = faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 &&
               (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) < 0 || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0);
    attach_as_self();
    return can;
}

int target_copy(const char *from, const char *to)
{
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    _cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return complain_errno(from, "cannot read", -errno);
    int r = out_file_open(&out, to);
    static uint8_t bytes[1 << 16];
    for (ssize_t n; r == 0 && (n = read(in, bytes, sizeof(bytes))) != 0;)
        r = n < 0 ? -errno : write_all(out.fd, bytes, (size_t)n);
    if (r == 0)
        r = out_file_commit(&out);
    return r < 0 ? complain_errno(to, "cannot write", r) : 0;
}

int target_fetch(const struct vm *vm, const char *path, int fd, const char *to, bool remove)
{
    char from[PATH_MAX + 64], named[PATH_MAX + 64];
    vm_path(vm, path, named, sizeof(named));
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    if (fd < 0)
        snprintf(from, sizeof(from), "%s", named);
    int status = recording_is_direct(to) ? target_copy(from, to) : convert_file(&(struct selection){0}, from, to);
    /* What could not be written stays where it is, and is named. */
    if (status)
        return complain("the recording is still at", path, vm->other_root ? "as the VM sees it" : NULL);
    if (remove)
        unlink(named);
    return 0;
}
