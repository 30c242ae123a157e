/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/check.h"

#include "base/file.h"
#include "base/parse.h"
#include "hotspot/hsperf.h"
#include "proto/agent.h"
#include "proto/attach.h"
#include "proto/namespace.h"
#include "proto/scratch.h"
#include "proto/vm_files.h"
#include "proto/vm_flags.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROC_MAX = 16 << 20, CAP_SYS_ADMIN_BIT = 21, CAP_PERFMON_BIT = 38 };

/* Reads the number after "Name:" in /proc/PID/status; `base` is as for strtoull. */
static bool status_number(const struct vm *vm, const char *name, int base, uint64_t *ret)
{
    char path[64];
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    snprintf(path, sizeof(path), "/proc/%d/status", vm->pid);
    if (file_read_path(path, PROC_MAX, &text, &len) < 0 || !text)
        return false;
    const char *at = strstr((const char *)text, name);
    if (!at)
        return false;
    *ret = strtoull(at + strlen(name), NULL, base);
    return true;
}

/* ---- the checks ---- */

static enum check_verdict no(struct buf *why, const char *text)
{
    buf_string(why, text);
    return CHECK_NO;
}

static enum check_verdict check_attach(const struct vm *vm, struct buf *why)
{
    if (vm_refusal(vm))
        return no(why, vm_refusal(vm));
    if (vm_is_stopped(vm))
        return no(why, "the process is stopped (SIGSTOP or a debugger): continue it");
    if (geteuid() && geteuid() != vm->uid)
        return no(why, "it belongs to another user: run the command as that user or as root");
    if (kill(vm->pid, 0) < 0)
        return no(why, errno == EPERM ? VM_NOT_SIGNALLED : "it has ended");
    return attach_check_tmp(vm, why) < 0 ? CHECK_NO : CHECK_YES;
}

static int java_release(const struct vm *vm)
{
    if (!vm->version)
        return 0;
    return strncmp(vm->version, "1.", 2) == 0 ? atoi(vm->version + 2) : atoi(vm->version);
}

/* Reports how little room there is where the VM writes the files that are fetched from it. */
static void put_room(const struct scratch *s, const char *what, struct buf *why)
{
    char size[24];
    buf_printf(why, "only %s are left in its %.*s, where %s goes",
               format_size(size, scratch_room(s)), (int)(s->name - s->path - 1), s->path, what);
}

uint64_t check_dump_size(const struct vm *vm)
{
    enum { GENERATIONS = 3, SPACES = 4 };

    _cleanup_free_ uint8_t *counters = NULL;
    size_t len;
    uint64_t sum = 0;
    if (vm_counters(vm, &counters, &len) < 0)
        return DUMP_LEAST;
    for (int i = 0; i < GENERATIONS * SPACES; i++) {
        char name[64];
        int64_t used;
        snprintf(name, sizeof(name), "sun.gc.generation.%d.space.%d.used", i / SPACES, i % SPACES);
        if (hsperf_number(counters, len, name, &used) == 0 && used > 0)
            sum += (uint64_t)used;
    }
    return MAX(sum, DUMP_LEAST);
}

static enum check_verdict check_record(const struct vm *vm, struct buf *why)
{
    enum check_verdict attach = check_attach(vm, why);
    if (attach != CHECK_YES)
        return attach;
    struct vm_flags flags;
    vm_flags_open(&flags, vm);
    bool refused = vm_flags_switch(&flags, "EnableDynamicAgentLoading") == 0;
    bool is_given = arguments_switch(&flags.arguments, "EnableDynamicAgentLoading") >= 0;
    const char *archive = vm_flags_archive(&flags);
    vm_flags_close(&flags);
    if (refused)
        return no(why, AGENTS_REFUSED);
    _cleanup_(scratch_release) struct scratch scratch = SCRATCH;
    if (agent_placeable(vm, why) < 0 || scratch_make_roomy(&scratch, vm, RECORDING_ROOM, why) < 0)
        return CHECK_NO;
    uint64_t room = scratch_room(&scratch);
    if (room < RECORDING_ROOM)
        put_room(&scratch, "a recording that the VM cannot write to its output", why);
    if (room < RECORDING_LEAST)
        return CHECK_PERHAPS;
    if (archive)
        buf_printf(
            why,
            "%scaptures that change classes are refused, because the VM archives its classes "
            "for later starts (-XX:%s) and the archive would be lost",
            why->len ? "; " : "", archive);
    if (!is_given && java_release(vm) >= 21)
        buf_printf(why,
                   "%sthe VM prints a warning to its standard error when an agent is loaded; "
                   "-XX:+EnableDynamicAgentLoading prevents this",
                   why->len ? "; " : "");
    return CHECK_YES;
}

static enum check_verdict check_heap(const struct vm *vm, struct buf *why)
{
    _cleanup_(scratch_release) struct scratch scratch = SCRATCH;
    enum check_verdict attach = check_attach(vm, why);
    if (attach != CHECK_YES)
        return attach;
    uint64_t need = check_dump_size(vm);
    if (scratch_make_roomy(&scratch, vm, need, why) < 0)
        return CHECK_NO;
    if (scratch_room(&scratch) >= need)
        return CHECK_YES;
    put_room(&scratch, "a dump that the VM cannot write to its output", why);
    return CHECK_PERHAPS;
}

/* Checks what perf_event_open requires of a user who wants kernel frames. */
static enum check_verdict check_kernel(const struct vm *vm, struct buf *why)
{
    _cleanup_free_ uint8_t *text = NULL;
    uint64_t capabilities = 0, seccomp = 0;
    size_t len;
    if (file_read_path("/proc/sys/kernel/perf_event_paranoid", 64, &text, &len) < 0 || !text)
        return no(why, "this kernel has no perf_event");
    int paranoid = atoi((const char *)text);
    bool capable =
        namespace_is_ours(vm, "user") && status_number(vm, "\nCapEff:", 16, &capabilities) &&
        capabilities & (UINT64_C(1) << CAP_PERFMON_BIT | UINT64_C(1) << CAP_SYS_ADMIN_BIT);
    if (paranoid > 1 && !capable) {
        buf_printf(why,
                   "kernel.perf_event_paranoid is %d: it must be at most 1, or the VM must have "
                   "CAP_PERFMON; otherwise samples lack kernel frames",
                   paranoid);
        return CHECK_NO;
    }
    if (status_number(vm, "\nSeccomp:", 10, &seccomp) && seccomp == 2) {
        buf_string(why, "the VM runs with a seccomp filter, which must permit perf_event_open");
        return CHECK_PERHAPS;
    }
    return CHECK_YES;
}

const char *check_why_no_counters(const struct vm *vm)
{
    struct vm_flags flags;
    vm_flags_open(&flags, vm);
    bool off = vm_flags_switch(&flags, "UsePerfData") == 0;
    vm_flags_close(&flags);
    return off ? "it was started with -XX:-UsePerfData"
               : "its counters (/tmp/hsperfdata_USER/PID) are not there";
}

static enum check_verdict check_top(const struct vm *vm, struct buf *why)
{
    _cleanup_free_ uint8_t *counters = NULL;
    size_t len;
    if (vm_counters(vm, &counters, &len) == 0)
        return CHECK_YES;
    return no(why, check_why_no_counters(vm));
}

static const struct {
    const char *name;
    enum check_verdict (*of)(const struct vm *vm, struct buf *why);
} rows[CHECKS] = {
    {"attach", check_attach},        {"record", check_record}, {"heap dump", check_heap},
    {"kernel frames", check_kernel}, {"top", check_top},
};

int check_vm(const struct vm *vm, struct check ret[CHECKS])
{
    struct check all[CHECKS] = {0};
    for (size_t i = 0; i < CHECKS; i++) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        all[i].name = rows[i].name;
        all[i].verdict = rows[i].of(vm, &why);
        if (why.len && !(all[i].why = strdup(buf_str(&why)))) {
            check_release(all);
            return -ENOMEM;
        }
    }
    memcpy(ret, all, sizeof(all));
    return 0;
}

void check_release(struct check checks[CHECKS])
{
    for (size_t i = 0; i < CHECKS; i++)
        free(checks[i].why);
}

/* ---- native images ---- */

static bool read_at(int fd, uint64_t at, void *to, size_t len)
{
    return at <= INT64_MAX && pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

bool check_is_native_image(pid_t pid)
{
    static const char heap[] =
        ".svm_heap"; /* the section with the objects that exist from the start */
    char path[64], name[sizeof(heap)];
    Elf64_Ehdr file;
    Elf64_Shdr names, section;
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || !read_at(fd, 0, &file, sizeof(file)) ||
        memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.e_shentsize != sizeof(section) ||
        !read_at(fd, file.e_shoff + (uint64_t)file.e_shstrndx * sizeof(names), &names,
                 sizeof(names)))
        return false;
    for (unsigned i = 0; i < file.e_shnum; i++)
        if (read_at(fd, file.e_shoff + (uint64_t)i * sizeof(section), &section, sizeof(section)) &&
            read_at(fd, names.sh_offset + section.sh_name, name, sizeof(name)) &&
            memcmp(name, heap, sizeof(heap)) == 0)
            return true;
    return false;
}
