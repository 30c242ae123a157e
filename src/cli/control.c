/* SPDX-License-Identifier: Apache-2.0 */
/* dump, stop: messages to the agent of a VM that is being recorded. */
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/convert.h"
#include "cli/recording.h"
#include "cli/replaced.h"
#include "cli/report.h"
#include "cli/ring.h"
#include "cli/target.h"
#include "jfr/cut.h"
#include "proto/vm_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct control {
    const char *output;
    uint64_t last_ns; /* 0: all */
};

static const struct arg stop_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct control, output), "FILE",
     "write the recording to this file; its extension picks the format"},
    {0},
};

static const struct arg dump_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct control, output), "FILE",
     "write the recording to this file; its extension picks the format"},
    {"--last", 0, ARG_SPAN, offsetof(struct control, last_ns), "TIME",
     "only the last part of a recording that is always on, such as 30s or 5m"},
    {0},
};

static const struct arg_set stop_set = {"Output", stop_args}, dump_set = {"Output", dump_args};
static const struct arg_set *const stop_sets[] = {&stop_set, NULL}, *const dump_sets[] = {&dump_set,
                                                                                          NULL};

/* Sends a message to the VM that the operand names, and returns its answer. */
static int send_verb(const struct command *self, const char *operand, const char *verb,
                     struct vm *vm, struct buf *answer)
{
    int status = target_open(vm, operand);
    return status ? status : target_query(vm, self->name, verb, false, answer);
}

/*
 * Copies a recording that is still being written, up to its last complete event, or converts such a
 * copy.
 */
static int copy_so_far(int fd, const char *to)
{
    char copy[PATH_MAX];
    bool direct = recording_is_copied(fd, to);
    int n = snprintf(copy, sizeof(copy), direct ? "%s" : "%s.%d.jfr", to, (int)getpid());
    int status =
        n < PATH_MAX ? target_copy(fd, copy) : complain_errno(to, "cannot write", -ENAMETOOLONG);
    if (status)
        return status;
    _cleanup_close_ int written = open(copy, O_RDWR | O_CLOEXEC);
    int r = written < 0 ? -errno : jfr_cut_copy(written);
    if (r < 0)
        status = complain_errno(copy, "cannot truncate it to its final size", r);
    if (!direct) {
        status = status ? status : convert_copy(copy, to);
        unlink(copy);
    }
    return status;
}

/*
 * fd: what the VM wrote at `file`, opened. *ret_missing: as recording_announce returns. Returns the
 * exit status.
 */
static int write_output(const struct vm *vm, const char *file, int fd, const char *to, bool ends,
                        int *ret_missing)
{
    if (!ends && target_is_file(fd, to)) {
        *ret_missing = recording_announce_open(fd, file, "", ends);
        return 0;
    }
    if (!target_is_file(fd, to))
        recording_note_older(to);
    int status = ends ? target_fetch(vm, file, fd, to, target_chose(file)) : copy_so_far(fd, to);
    if (status == 0)
        *ret_missing = recording_announce(NULL, to);
    return status;
}

/* Returns the output of the recording that an answer is about, or NULL if there is none. */
static char *output_of(const struct buf *answer, bool ends)
{
    char *file = agent_answer_value(buf_str(answer), "file", 0);
    return file || !ends ? file : agent_answer_value(buf_str(answer), "last_file", 0);
}

/*
 * For dump and stop: reports where the file is, or copies it to the output that was requested. A
 * recording that the agent could not complete is fetched as far as it goes, and the exit status
 * shows that.
 */
static int send_and_fetch(const struct command *self, const char *operand,
                          const struct control *options, const char *verb, bool ends)
{
    struct timespec began;
    bool vm_ended = false;
    int missing = 0;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    _cleanup_(buf_release) struct buf before = BUF(1 << 20), answer = BUF(1 << 20),
                                      ignored = BUF(4096);
    clock_gettime(CLOCK_REALTIME_COARSE, &began);
    /*
     * An agent that has stopped no longer knows the file, unless the recording ended by its own
     * duration. What a fast program does while the request is made does not belong to the
     * recording.
     */
    const char *first = ends && !options->last_ns ? "control=ending" : "control=status";
    int status = send_verb(self, operand, first, &vm, &before);
    if (status)
        return status;
    if (ends)
        target_print_messages(&before); /* they belong to the recording */
    _cleanup_free_ char *file = output_of(&before, ends);
    _cleanup_free_ char *state = agent_answer_value(buf_str(&before), "state", 0);
    bool recorded = state && strcmp(state, "idle") != 0;
    struct ring_status ring;
    if (ring_status_read(buf_str(&before), &ring))
        return ring_send(self, &vm, verb, &ring, file, options->output, options->last_ns, ends);
    /* The agent reports what ended a recording that was always on. */
    _cleanup_free_ char *failed = agent_answer_value(buf_str(&before), "last_error", 0);
    if (options->last_ns && !failed)
        return complain(self->name, "--last needs a recording that is always on",
                        "begin one with: jvmscope attach --always PID");
    /* Kept open, because a VM that ends takes its mounts with it. */
    _cleanup_close_ int fd = file ? vm_open_written(&vm, file, &ignored) : -1;
    status = target_ask_last(&vm, self->name, verb, false, &answer, ends ? &vm_ended : NULL);
    if (vm_ended)
        complain("note", ENDED_MEANWHILE, NULL);
    else if (status == 0)
        target_print_messages(&answer);
    if (!file || (status && !recorded))
        return status;
    if (fd < 0 || !vm_file_is_output(fd)) {
        close_descriptor(&fd);
        int opened = target_open_written(&vm, file, &fd);
        if (opened)
            return status ? status : opened;
    }
    bool ours = target_is_file(fd, file); /* compared through fd, because the VM may have ended */
    if (options->output) {
        int written = write_output(&vm, file, fd, options->output, ends, &missing);
        status = status ? status : written;
    } else {
        missing = recording_announce_open(fd, file, ours ? "" : AS_THE_VM_SEES_IT, ends);
    }
    bool fetched = options->output && ends && target_chose(file);
    if (status == 0 && (ours || fetched))
        recording_announce_dumps(fetched ? options->output : file, &began);
    const char *readable = ours ? file : options->output;
    if (!ends && status == 0 && readable && contents_requested(readable, OPT_JFR))
        complain("note", "the VM's own events (--jfr) follow when the recording ends", NULL);
    if (!ends && status == 0)
        fprintf(stderr, "jvmscope: %d: the recording goes on\n", vm.pid);
    /* What a recording that goes on does not hold yet may still come. */
    return status || !ends ? status : missing;
}

static int cmd_dump(const struct command *self, int argc, char **argv)
{
    struct control options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    const char *operand = operands.list[0];
    if (operand[strspn(operand, "0123456789")])
        return ring_dump_file(operand, options.output, options.last_ns);
    if (options.output && !replaced_check(options.output, NULL))
        return 2;
    return send_and_fetch(self, operand, &options, "control=dump", false);
}

static int cmd_stop(const struct command *self, int argc, char **argv)
{
    struct control options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    if (options.output && !replaced_check(options.output, NULL))
        return 2;
    return send_and_fetch(self, operands.list[0], &options, "control=stop", true);
}

const struct command command_dump = {
    .name = "dump",
    .run = cmd_dump,
    .operands = "PID|RING",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "write out what was recorded so far; the recording goes on",
    .related = "attach status stop report",
    .description =
        "Use it to look at a recording without ending it.\n\n"
        "Makes the agent write out what it has recorded so far, and prints where, how much, and "
        "what was lost. *-o* makes a complete copy of the recording up to now.\n\n"
        "For a recording that is always on (*--always*), *--last* TIME with *-o* writes only "
        "the events that ended within that time. Its ring is a file, which can be read in the same "
        "way after the VM "
        "has ended, even after a crash.",
    .caveats =
        "Requests that are still in progress are not in the copy. *--last* reaches back to the "
        "beginning of the ring at most: what the ring has overwritten is lost.",
    .examples = "  jvmscope dump -o so-far.html 4711\n"
                "  jvmscope dump --last 5m -o spike.jfr 4711           the last five minutes\n"
                "  jvmscope dump --last 5m -o crash.jfr "
                "/var/tmp/jvmscope-4711-20261124-070000.ring\n",
    .sets = dump_sets,
};

const struct command command_stop = {
    .name = "stop",
    .run = cmd_stop,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "end a recording",
    .related = "attach status dump report",
    .description =
        "Use it to end a recording that has no time limit, or before its time is over.\n\n"
        "Ends the recording that *jvmscope attach* or *jvmscope run* began, and writes it out. A "
        "recording whose time is over is fetched as well, with *-o*.",
    .caveats =
        "Requests that are still in progress when the recording ends are not in it. The agent's"
        " library stays loaded in the VM, but no part of it is active.",
    .examples = "  jvmscope stop 4711\n"
                "  jvmscope stop -o app.html 4711\n",
    .sets = stop_sets,
};
