/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ring.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "cli/contents.h"
#include "cli/convert.h"
#include "cli/losses.h"
#include "cli/recording.h"
#include "cli/replaced.h"
#include "cli/target.h"
#include "jfr/ring_read.h"
#include "options/rings.h"
#include "proto/vm_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t number_of(const char *answer, const char *key)
{
    _cleanup_free_ char *text = agent_answer_value(answer, key, 0);
    return text ? strtoull(text, NULL, 10) : 0;
}

bool ring_status_read(const char *answer, struct ring_status *ret)
{
    _cleanup_free_ char *memory = agent_answer_value(answer, "ring.descriptor", 0);
    _cleanup_free_ char *file = agent_answer_value(answer, "ring.file_descriptor", 0);
    *ret = (struct ring_status){
        .in_memory = memory,
        .moved = number_of(answer, "ring.moved") != 0,
        .descriptor = memory ? atoi(memory)
                      : file ? atoi(file)
                             : -1,
        .size = number_of(answer, "ring.size"),
        .used = number_of(answer, "ring.used"),
        .rate = number_of(answer, "ring.bytes_per_second"),
        .from_ms = number_of(answer, "ring.from_ms"),
        .to_ms = number_of(answer, "ring.to_ms"),
        .keep_ms = number_of(answer, "ring.keep_ms"),
        .own_ns = number_of(answer, "cost.threads_ns") + number_of(answer, "cost.handlers_ns") +
                  number_of(answer, "cost.waits_ns") + number_of(answer, "cost.allocations_ns") +
                  number_of(answer, "cost.requests_ns"),
        .process_ns = number_of(answer, "cost.process_ns"),
        .memory = number_of(answer, "memory.tables_bytes") + number_of(answer, "names.bytes") +
                  number_of(answer, "ring.name_bytes")};
    return ret->size != 0;
}

const char *ring_time(char text[32], uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm local;
    if (!localtime_r(&seconds, &local) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S", &local))
        snprintf(text, 32, "%llu", (unsigned long long)ms);
    return text;
}

/* Opens the ring of a VM with the rights of the VM's user. Returns -1 after a complaint. */
static int open_ring(const struct vm *vm, const struct ring_status *ring, const char *file)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int fd = -1;
    /* The ring may also be a file: its name may no longer exist, or belong to another VM's ring. */
    if (ring->descriptor >= 0) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", vm->pid, ring->descriptor);
        int r = vm_user_enter(vm);
        if (r == 0) {
            fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
            r = fd < 0 ? -errno : 0;
            vm_user_leave();
        }
        if (r < 0 && (ring->in_memory || ring->moved))
            buf_string(&why, strerror(-r));
    }
    if (fd < 0 && !ring->in_memory && !ring->moved)
        fd = vm_open_written(vm, file, &why);
    if (fd >= 0 && !jfr_is_ring(fd)) {
        close_descriptor(&fd);
        fd = -1;
        buf_string(&why, "it is not a ring");
    }
    if (fd < 0)
        complain(file, "cannot read the ring", buf_str(&why));
    return fd;
}

/* Reports what was extracted, and whether that is everything that was requested. */
static void report_part(const char *output, const struct jfr_ring_part *part, uint64_t last_ns)
{
    char from[32], to[32], size[24], has[24], asked[24];
    struct stat st;
    uint64_t lasts = (uint64_t)MAX(part->end_ns - part->start_ns, INT64_C(0));
    fprintf(stderr, "jvmscope: wrote %s (%s)%s: %s to %s (%s)", output,
            format_size(size, stat(output, &st) == 0 ? (uint64_t)st.st_size : 0),
            replaced_words(output), ring_time(from, (uint64_t)part->start_ns / NS_PER_MS),
            ring_time(to, (uint64_t)part->end_ns / NS_PER_MS), format_duration(has, lasts));
    const char *shown_by =
        file_name_ends_in(output, ".jfr") ? contents_shown_by(output, NULL) : NULL;
    if (shown_by)
        fprintf(stderr, "; see it with: jvmscope %s %s", shown_by, output);
    fputc('\n', stderr);
    /* A chunk's beginning is stored a moment before its first event. */
    if (last_ns && lasts + NS_PER_MS < last_ns)
        fprintf(stderr, "jvmscope: %s: the ring goes back %s, not %s\n", output,
                format_duration(has, lasts), format_limit(asked, last_ns));
    if (part->damaged)
        fprintf(stderr, "jvmscope: %s: left out %s of the ring, damaged\n", output,
                COUNT_TEXT(part->damaged, "parts"));
}

/* Extracts the part from an open ring. shown: the ring's name. Returns the exit status. */
static int take(int fd, const char *shown, const struct jfr_ring_cut *cut, const char *output)
{
    char copy[PATH_MAX];
    const char *why = NULL;
    struct jfr_ring_part part;
    bool direct = file_name_ends_in(output, ".jfr");
    if (!direct && (recording_is_direct(output) || !recording_check_output(output)))
        return recording_is_direct(output)
                   ? complain(output, "a ring cannot be written as HPROF", "write a .jfr")
                   : 2;
    int n = snprintf(copy, sizeof(copy), direct ? "%s" : "%s.%d.jfr", output, (int)getpid());
    if (n >= PATH_MAX)
        return complain_errno(output, "cannot write", -ENAMETOOLONG);
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    recording_note_older(output);
    int r = out_file_open_private(&out, copy);
    if (r < 0)
        return complain_errno(output, "cannot write", r);
    r = jfr_ring_take(fd, cut, out.fd, &part, &why);
    if (r == -EBADMSG)
        return complain(shown, "cannot be read", why);
    if (r == -EAGAIN)
        return complain(shown, "it is overwritten faster than it can be read",
                        "use a shorter --last or a larger --max-size");
    if (r == 0)
        r = out_file_commit(&out);
    if (r < 0)
        return complain_errno(output, "cannot write", r);
    int status = 0;
    if (!direct)
        status = convert_copy(copy, output);
    if (status == 0)
        report_part(output, &part, cut->last_ns);
    if (!direct)
        unlink(copy);
    return status;
}

/* Returns whether the agent chose this place itself (options/rings.h). */
static bool agent_chose(const char *file)
{
    static const char *const folders[] = {"/var/tmp/", "/tmp/"};
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        size_t head = strlen(folders[i]);
        if (strncmp(file, folders[i], head) == 0 &&
            strncmp(file + head, RING_PREFIX, strlen(RING_PREFIX)) == 0 &&
            !strchr(file + head, '/') && file_name_ends_in(file, RING_SUFFIX))
            return true;
    }
    return false;
}

/* Reports how a ring that has ended is read. In a folder of the VM's own it ends with the VM. */
static void report_left(const struct vm *vm, const char *file)
{
    char root[32] = "";
    bool own = *target_seen(vm, file);
    if (own)
        snprintf(root, sizeof(root), "/proc/%d/root", vm->pid);
    fprintf(stderr,
            "jvmscope: %d: the recording has ended; take the last minutes out of %s%s%s with: "
            "jvmscope dump --last 5m -o FILE.jfr %s%s\n",
            vm->pid, root, file, own ? " before the VM ends" : "", root, file);
}

int ring_send(const struct command *self, const struct vm *vm, const char *verb,
              const struct ring_status *ring, const char *file, const char *output,
              uint64_t last_ns, bool ends)
{
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20);
    if (!output && !ends)
        return complain(self->name, "the recording is always on",
                        "name the output with -o FILE.jfr");
    /* Held open, because a ring in memory disappears with the recording. */
    _cleanup_close_ int fd = output ? open_ring(vm, ring, file) : -1;
    if (output && fd < 0)
        return 1;
    int status = target_message(vm, self->name, verb, false, &answer);
    if (output) {
        struct jfr_ring_cut cut = {.last_ns = last_ns, .flushed = status == 0};
        int taken = take(fd, file, &cut, output);
        status = status ? status : taken;
        /* everything is in the output now */
        if (ends && status == 0 && !ring->in_memory && !ring->moved && agent_chose(file))
            vm_unlink(vm, file);
    }
    if (ends && status == 0 && !ring->in_memory && !output)
        report_left(vm, file);
    if (!ends && status == 0)
        fprintf(stderr, "jvmscope: %d: the recording goes on\n", vm->pid);
    return status;
}

int ring_dump_file(const char *path, const char *output, uint64_t last_ns)
{
    struct jfr_ring_cut cut = {.last_ns = last_ns};
    _cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return complain_errno(path, "cannot be read", -errno);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !jfr_is_ring(fd))
        return complain(path, "neither a process id nor the ring of a recording that is always on",
                        NULL);
    if (!output)
        return complain("dump", "a recording from a ring needs a name", "-o FILE.jfr");
    if (target_is_file(fd, output))
        return complain(output, "the output is the ring itself", NULL);
    if (!replaced_check(output, NULL))
        return 2;
    return take(fd, path, &cut, output);
}
