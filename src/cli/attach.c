/* SPDX-License-Identifier: Apache-2.0 */
/* attach: starts the agent in a running VM, waits, stops it and fetches what it wrote. */
#include "cli/attach.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/pattern.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/push.h"
#include "cli/recording.h"
#include "cli/replaced.h"
#include "cli/target.h"
#include "proto/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct choice {
    bool all;
    const char *match;
};

static const struct arg choice_args[] = {
    {"--all", 0, ARG_FLAG, offsetof(struct choice, all), NULL,
     "record every VM that can be attached to, each into a file of its own"},
    {"--match", 0, ARG_LIST, offsetof(struct choice, match), "PATTERN",
     "record the VMs whose main class or jar matches: 'com.shop.*'"},
    {0},
};

static const struct arg_set choice_set = {"Which VMs", choice_args};
static const struct arg_set *const attach_sets[] = {&choice_set, &push_set, &capture_set, NULL};

static volatile sig_atomic_t interrupted;

/* The command that started this process for one of several VMs; 0: none did. */
static pid_t starter;

/*
 * Returns whether that command has been killed. A signal at its end (base/forked.h) would not do:
 * the kernel forgets it when the process takes on the user of its VM.
 */
static bool starter_has_ended(void)
{
    return starter && getppid() != starter;
}

static void on_signal(int signal_number)
{
    interrupted = 1;
}

/*
 * Chooses the file that the VM writes: the output itself if the VM can write it, so that nothing is
 * lost when this process is killed. Otherwise it is a file in a folder that the VM sees, to be
 * fetched at the end; that is a folder of `scratch` when this process waits for the end. file has
 * PATH_MAX bytes. Returns 0 or the exit status.
 */
static int choose_file(const struct vm *vm, const char *output, bool waits, struct scratch *scratch,
                       bool *ret_fetch, char *file)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    char cwd[PATH_MAX] = "", folder[PATH_MAX], pid[16], size[24];
    if (output[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return complain_errno(output, "cannot write", -errno);
    int n = snprintf(file, PATH_MAX, "%s%s%s", cwd, *cwd ? "/" : "", output);
    if (n >= PATH_MAX)
        return complain_errno(output, "cannot write", -ENAMETOOLONG);
    *ret_fetch = !recording_is_direct(output) || !target_can_write(vm, file) || strchr(file, ',');
    if (!*ret_fetch)
        return 0;
    snprintf(folder, sizeof(folder), "%.*s", (int)MAX(strrchr(file, '/') - file, 1), file);
    if (access(folder, W_OK | X_OK) < 0)
        return complain_errno(output, "cannot write", -errno);
    const char *name = strrchr(output, '/') ? strrchr(output, '/') : output;
    const char *extension = recording_is_direct(output) ? strstr(name, ".") : ".jfr";
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    if (!waits)
        target_choose(vm, extension, file);
    else if (attach_check_tmp(vm, &why) < 0 ||
             scratch_make_roomy(scratch, vm, RECORDING_ROOM, &why) < 0)
        return complain(pid, "cannot record", buf_str(&why));
    else
        scratch_sibling(scratch, extension, file, PATH_MAX);
    if (scratch->folder >= 0 && scratch_room(scratch) < RECORDING_LEAST) {
        buf_printf(&why, "only %s are left in the VM's %.*s, where the recording goes",
                   format_size(size, scratch_room(scratch)),
                   (int)(scratch->name - scratch->path - 1), scratch->path);
        complain("note", buf_str(&why), NULL);
    }
    return 0;
}

static bool is_file(int dir, const char *name, const struct stat *file)
{
    struct stat st;
    return fstatat(dir, name, &st, 0) == 0 && st.st_dev == file->st_dev &&
           st.st_ino == file->st_ino;
}

/*
 * The agent's descriptor of the file that it records into, by its number in the VM. It disappears
 * when the recording ends.
 */
struct recorded {
    int dir; /* of the VM's descriptors; -1 if this process may not see them */
    char number[16];
    struct stat file;
};

static void recorded_find(struct recorded *ret, const struct vm *vm, int file)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", vm->pid);
    *ret = (struct recorded){.dir = -1};
    DIR *all = file >= 0 && fstat(file, &ret->file) == 0 ? opendir(path) : NULL;
    for (struct dirent *e; all && !ret->number[0] && (e = readdir(all));)
        if (is_file(dirfd(all), e->d_name, &ret->file))
            snprintf(ret->number, sizeof(ret->number), "%.15s", e->d_name);
    if (all && ret->number[0])
        ret->dir = dup(dirfd(all));
    if (all)
        closedir(all);
}

static void recorded_release(struct recorded *r)
{
    close_descriptor(&r->dir);
}

static bool recorded_ended(const struct recorded *r)
{
    return r->dir >= 0 && !is_file(r->dir, r->number, &r->file);
}

enum { EXIT_MS = 3000 };

/* How much earlier than this process the agent may consider the time to be over. */
#define AGENT_EARLY_NS NS_PER_SECOND

/* RECORDING_ENDED: after the duration given to the agent, or because another command stopped it. */
enum wait_end { TIME_OVER, VM_ENDED, RECORDING_ENDED };

/*
 * From this call on, the first interruption ends the recording as if its time were over, and the
 * second one ends the command. The call comes before the recording starts: an interruption while
 * the VM starts the recording would otherwise leave it running.
 */
static void end_by_interruption(void)
{
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/*
 * Waits until the time has passed, the user interrupts or kills the command that records several
 * VMs (which count as the same), or the VM or the recording ends.
 */
static enum wait_end wait_for(const struct vm *vm, uint64_t time_ns, int file)
{
    _cleanup_(recorded_release) struct recorded recorded;
    recorded_find(&recorded, vm, file);
    _cleanup_close_ int end = (int)syscall(SYS_pidfd_open, vm->pid, 0);
    struct pollfd p = {.fd = end, .events = POLLIN};
    struct progress progress;
    progress_start(&progress, "recording");
    uint64_t start = now_ns(), passed = 0;
    bool ended = false, stopped = false;
    for (; passed < time_ns && !interrupted && !starter_has_ended() && !ended && !stopped;
         passed = now_ns() - start) {
        uint64_t left_ms = (time_ns - passed) / NS_PER_MS + 1;
        /*
         * A VM that has already ended has no descriptor. Some sandboxes do not provide one at all.
         */
        ended = poll(&p, 1, (int)MIN(left_ms, UINT64_C(100))) > 0 || (end < 0 && vm_has_ended(vm));
        stopped = recorded_ended(&recorded);
        progress_update(&progress, passed, time_ns);
    }
    progress_end(&progress);
    if (ended)
        return VM_ENDED;
    if (!stopped || passed + AGENT_EARLY_NS >= time_ns)
        return TIME_OVER;
    /* A VM ends its recording before it ends itself. */
    return poll(&p, 1, EXIT_MS) > 0 ? VM_ENDED : RECORDING_ENDED;
}

/* Returns whether a VM that gives no answer has ended or is about to end. */
static bool has_ended_soon(const struct vm *vm)
{
    _cleanup_close_ int end = (int)syscall(SYS_pidfd_open, vm->pid, 0);
    struct pollfd p = {.fd = end, .events = POLLIN};
    if (end >= 0)
        (void)poll(&p, 1, EXIT_MS);
    return vm_has_ended(vm);
}

/*
 * Ends the recording, or finds out how it ended if its duration was over. Returns 0, or the exit
 * status after a complaint.
 */
static int end(const struct vm *vm, enum wait_end ended)
{
    char pid[16];
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20), why = BUF(4096);
    if (ended == VM_ENDED) {
        complain("note", "the VM ended before the time was over", NULL);
        return 0;
    }
    int r = agent_message(vm, "control=stop", false, &answer, &why);
    if (r < 0 && (vm_has_ended(vm) || (r != -ESRCH && has_ended_soon(vm)))) {
        complain("note", ENDED_MEANWHILE, NULL);
        return 0;
    }
    if (r == -ESRCH) {
        complain("note", "the recording was stopped before the time was over", NULL);
        return 0;
    }
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    if (r < 0)
        return why.len ? complain(pid, "some data was not recorded", buf_str(&why))
                       : complain_errno(pid, "cannot stop", r);
    buf_str(&answer);
    target_print_messages(&answer);
    return 0;
}

int attach_record(const struct vm *vm, const struct capture_options *capture, const char *output)
{
    char file[PATH_MAX];
    bool fetch = false;
    int missing = 0;
    struct timespec began;
    if (!replaced_check(output, NULL))
        return 2;
    clock_gettime(CLOCK_REALTIME_COARSE, &began);
    _cleanup_(scratch_release) struct scratch scratch = SCRATCH;
    int status = choose_file(vm, output, capture->time_ns != 0, &scratch, &fetch, file);
    if (status)
        return status;
    _cleanup_(buf_release) struct buf options = BUF(1 << 16), answer = BUF(1 << 20);
    recording_note_older(output);
    buf_string(&options, "control=start,");
    recording_options(capture, output, file, &options);
    /* The agent limits the time as well, so that it stops even if this process is killed. */
    if (capture->time_ns) {
        buf_printf(&options, ",duration=%lluns", (unsigned long long)capture->time_ns);
        end_by_interruption();
    }
    status = target_message(vm, "cannot record", buf_str(&options), true, &answer);
    if (status)
        return status;
    if (!capture->time_ns) {
        fprintf(stderr, "jvmscope: %d: recording to %s%s%s; end it with: jvmscope stop%s%s %d\n",
                vm->pid, file, target_seen(vm, file), fetch ? "" : replaced_words(output),
                fetch ? " -o " : "", fetch ? output : "", vm->pid);
        return 0;
    }
    /*
     * The file is kept open, because a VM that ends takes its mounts with it, and because its user
     * may replace the file.
     */
    _cleanup_close_ int held = -1;
    if (fetch)
        status = target_open_written(vm, file, &held);
    else
        held = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int ended = end(vm, wait_for(vm, capture->time_ns, held));
    status = status ? status : ended;
    if (fetch && held >= 0) {
        char made_from[64];
        snprintf(made_from, sizeof(made_from), "/proc/self/fd/%d", held);
        if (!recording_is_direct(output))
            missing = contents_report(made_from, output);
        int fetched = target_fetch(vm, file, held, output, true);
        if (fetched == 0)
            scratch_remove_sibling(&scratch, file);
        status = status ? status : fetched;
    }
    if (status)
        return status;
    int announced = recording_announce(capture, output);
    recording_announce_dumps(output, &began);
    return MAX(missing, announced);
}

/* Makes the VM record continuously into a ring, which is never fetched as a whole. */
static int record_always(const struct vm *vm, const struct capture_options *capture,
                         const char *output)
{
    char cwd[PATH_MAX] = "", file[PATH_MAX], size[24];
    if (output) {
        if (output[0] != '/' && !getcwd(cwd, sizeof(cwd)))
            return complain_errno(output, "cannot write", -errno);
        int n = snprintf(file, sizeof(file), "%s%s%s", cwd, *cwd ? "/" : "", output);
        if (n >= PATH_MAX)
            return complain_errno(output, "cannot write", -ENAMETOOLONG);
        if (strchr(file, ','))
            return complain(file, "the name must not contain a comma", NULL);
        if (!target_can_write(vm, file))
            return complain(output, "the VM cannot write there",
                            "without -o the VM chooses a place for the ring");
    }
    _cleanup_(buf_release) struct buf options = BUF(1 << 16), answer = BUF(1 << 20);
    buf_string(&options, "control=start,");
    recording_options(capture, "ring.jfr", output ? file : NULL, &options);
    int status = target_message(vm, "cannot record", buf_str(&options), true, &answer);
    if (status)
        return status;
    _cleanup_free_ char *ring = agent_answer_value(buf_str(&answer), "file", 0);
    _cleanup_free_ char *bytes = agent_answer_value(buf_str(&answer), "ring.size", 0);
    fprintf(stderr,
            "jvmscope: %d: recording all the time into %s%s (%s); extract the last minutes "
            "with: jvmscope dump --last 5m -o FILE.jfr %d\n",
            vm->pid, ring ? ring : "?", ring ? target_seen(vm, ring) : "",
            format_size(size, bytes ? strtoull(bytes, NULL, 10) : 0), vm->pid);
    return 0;
}

static const char *output_pattern(const struct capture_options *capture)
{
    return capture->output ? capture->output : "jvmscope-%p.jfr";
}

/* Adds triggers to a recording that is always on. */
static int add_triggers(const struct vm *vm, const struct capture_options *capture)
{
    _cleanup_(buf_release) struct buf message = BUF(1 << 16), answer = BUF(1 << 20);
    buf_printf(&message, "control=on,%.*s", (int)capture->options.len, capture->options.data);
    int status = target_message(vm, "cannot add a trigger", buf_str(&message), false, &answer);
    if (status == 0)
        fprintf(stderr,
                "jvmscope: %d: the triggers are changed; see them with: jvmscope status %d\n",
                vm->pid, vm->pid);
    return status;
}

/* Checks that only those options are given that the triggers of a recording in progress accept. */
static bool check_triggers(const struct capture_options *capture, const char *command)
{
    static const enum option theirs[] = {OPT_ON,    OPT_THEN,    OPT_BEFORE,
                                         OPT_AFTER, OPT_ON_FILE, OPT_FILES};
    _cleanup_(buf_release) struct buf words = BUF(1 << 20), why = BUF(4096);
    struct options o = {0};
    uint64_t rest = capture->given;
    for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
        rest &= ~(UINT64_C(1) << theirs[i]);
    buf_printf(&words, "always=y,%.*s", (int)capture->options.len, capture->options.data);
    if (rest) /* the message says that --always is missing */
        return recording_check(capture, output_pattern(capture), command);
    int r = options_parse(&o, buf_str(&words), &why);
    options_release(&o);
    if (r < 0)
        complain(command, buf_str(&why), NULL);
    return r == 0;
}

/* Returns what would shorten the changes of classes that the recording needs, or NULL. */
static const char *advice_of(const struct capture_options *capture)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct options o = {0};
    bool helps = options_parse(&o, buf_str(&capture->options), &why) == 0 &&
                 !o.v[OPT_INCLUDE].given && option_has_effect(&o, OPT_INCLUDE);
    options_release(&o);
    return !helps ? NULL
           : capture->time_ns
               ? "with --include 'com.shop.*' only the classes of this package would be changed, "
                 "which takes less time; the time of -t begins afterwards"
               : "with --include 'com.shop.*' only the classes of this package would be changed, "
                 "which takes less time";
}

static int attach_one(struct capture_options *capture, const struct push_options *push,
                      const char *pid)
{
    char output[PATH_MAX];
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    int status = target_open(&vm, pid);
    if (status)
        return status;
    target_typed(capture->given);
    target_advise(advice_of(capture));
    if (capture_adds_triggers(capture))
        return add_triggers(&vm, capture);
    bool always = capture_always(capture);
    const char *pattern = output_pattern(capture);
    if (expand_file_name(pattern, vm.pid, output, sizeof(output)) < 0) {
        complain(pattern, "not a file name",
                 "%p is the process id, %t the time, %% a percent sign");
        return 2;
    }
    if (!always && !recording_check_output(output))
        return 2;
    status = always ? record_always(&vm, capture, capture->output ? output : NULL)
                    : attach_record(&vm, capture, output);
    if (status == 0)
        target_report_left(&vm);
    return status || !push->url ? status : push_file(push, &(struct selection){0}, output, output);
}

/* ---- several VMs ---- */

static const char *reason_to_skip(const struct vm *vm)
{
    return vm_refusal(vm) ?: vm_is_stopped(vm) ? "it is stopped" : NULL;
}

/*
 * Starts a process for each VM, because each process takes on the user of its VM, which it can do
 * only once. An interruption reaches all of them, and each ends its recording.
 */
static int attach_each(struct capture_options *capture, const struct push_options *push,
                       const struct choice *choice)
{
    struct vm_list list;
    VEC(pid_t) children = {0};
    int r = vm_list_read(&list), status = 0;
    if (r < 0)
        return complain_errno("attach", "cannot read /proc", r);
    fflush(stdout);
    for (size_t i = 0; i < list.vms.len; i++) {
        const struct vm *vm = &list.vms.data[i];
        char pid[16];
        snprintf(pid, sizeof(pid), "%d", vm->pid);
        if (!vm_matches(vm, choice->all ? NULL : choice->match))
            continue;
        const char *why = reason_to_skip(vm);
        if (why) {
            status = complain(pid, "left out", why);
            continue;
        }
        pid_t self = getpid(), child = fork();
        if (child == 0) {
            starter = self;
            exit(starter_has_ended() ? 1 : attach_one(capture, push, pid));
        }
        if (child < 0 || vec_push(&children, child) < 0)
            status = complain_errno(pid, "cannot attach", child < 0 ? -errno : -ENOMEM);
    }
    target_report_left_out(&list);
    vm_list_release(&list);
    if (children.len == 0 && status == 0)
        status =
            complain(choice->all ? "--all" : choice->match, "no VM", "jvmscope list shows the VMs");
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    for (size_t i = 0; i < children.len; i++) {
        int ended;
        while (waitpid(children.data[i], &ended, 0) < 0 && errno == EINTR)
            continue;
        status = MAX(status, WIFEXITED(ended) ? WEXITSTATUS(ended) : 1);
    }
    vec_release(&children);
    return status;
}

static int cmd_attach(const struct command *self, int argc, char **argv)
{
    _cleanup_(capture_release) struct capture_options capture = {0};
    struct choice choice = {0};
    struct push_options push = {0};
    struct operands operands;
    int status;
    if (!args_parse(self,
                    ARGS({&choice_set, &choice}, {&push_set, &push}, {&capture_set, &capture}),
                    argc, argv, &operands, &status))
        return status;
    int choices = (operands.count > 0) + choice.all + (choice.match != NULL);
    if (choices != 1) {
        complain(self->name,
                 choices ? "only one of a PID, --all and --match can be given" : "no VM is chosen",
                 choices ? NULL : "name a PID, or --all, or --match PATTERN");
        return 2;
    }
    if (capture_adds_triggers(&capture)
            ? !check_triggers(&capture, self->name)
            : !recording_check(&capture, output_pattern(&capture), self->name) ||
                  !push_check_capture(self->name, &push, &capture, output_pattern(&capture)))
        return 2;
    if (push.url && !capture.time_ns) {
        complain("--push", "needs -t", "a recording that is sent must end on its own");
        return 2;
    }
    const char *pid = operands.count ? operands.list[0] : NULL;
    if (pid && (!*pid || pid[strspn(pid, "0123456789")])) {
        _cleanup_(buf_release) struct buf why = BUF(1 << 20);
        buf_printf(&why, "to choose a VM by its main class or jar: --match '%s'", pid);
        complain(pid, "not a process id", *pid ? buf_str(&why) : "jvmscope list shows the VMs");
        return 2;
    }
    if (pid)
        return attach_one(&capture, &push, pid);
    if (capture.output && !strstr(capture.output, "%p")) {
        complain(capture.output, "one file cannot hold the recordings of several VMs",
                 "put %p, the process id, into its name");
        return 2;
    }
    return attach_each(&capture, &push, &choice);
}

const struct command command_attach = {
    .name = "attach",
    .run = cmd_attach,
    .operands = "PID | --all | --match PATTERN",
    .min_operands = 0,
    .max_operands = 1,
    .summary = "record a running program for a given time",
    .related = "list check status dump stop run report slow",
    .description =
        "Use it for a program that is already running, such as a server in production.\n\n"
        "Loads the agent into a running VM and records for the given time; without a time, or "
        "to end earlier, use *jvmscope stop*. Root can attach to VMs of other users and in "
        "containers. The agent itself watches the clock, so the recording ends in time even if "
        "the command is killed; *jvmscope stop -o* then fetches it. After the end, no part of "
        "the agent is active. With *--all* or *--match*, the VMs of all containers are recorded"
        " at the same time; *%p* in the name of the output stands for the process id. If that "
        "command is killed, the recordings with *-t* end as if their time were over, and are "
        "complete.\n\n"
        "A VM that cannot write the output itself (another user's, one in a container, one with"
        " a /tmp of its own) writes to its own /tmp; the recording is fetched from there, with "
        "the rights of the VM's user, and removed. Outputs are readable by their owner alone.\n\n"
        "If nothing that an option with patterns names is in the program (*--trace*, *--log*, "
        "*--watch*, *--requests*, *--locks*, *--show*, *--to-string*, *--include* or *--exclude*), "
        "the command, or *jvmscope stop* where no time was given, says what is missing and "
        "exits with 1. If only some of the patterns of an option match nothing, it says so and "
        "exits with 0.\n\n"
        "*--on* without *--always* adds a trigger to a recording that is already always on; "
        "*--on* none removes all triggers.",
    .caveats =
        "*--alloc*=exact, and *--alloc* on JDK 8, include short-lived objects that the JIT does "
        "not "
        "allocate when nothing counts them (doc/memory.md).\n\n"
        "What happened before the recording began is not in it, nor are requests that were in "
        "progress then.\n\n"
        "Some options change many classes of the program: *--exceptions*, *--live*, "
        "*--alloc*=exact, *--cpu*=times, *--cover* and *--trace*. In a server with many "
        "classes, each of them takes up to a minute to begin and to end; several at once take "
        "longer, as does each of them on busy processors. *--log*, *--watch*, *--requests* and "
        "*--locks* change only the classes that they need. Standard error shows the progress "
        "and an estimate of the remaining time. The given time counts from the beginning of the"
        " recording. With *--exceptions* the command does not wait at the end: the classes are "
        "changed back afterwards, while *jvmscope status* shows the progress, and a new "
        "recording completes this at once. Classes are changed in batches, each of which stops "
        "all threads for 5 to 25 ms. Pauses between the batches, of at most 30 ms per class and"
        " 60 s in all, keep the slowest hundredth of the program's requests within 5 ms of its "
        "usual latency; 6 to 10 ms were measured with *--live*, which collects garbage twice, "
        "and 8 to 32 ms on JDK 8 to 12, whose VM stops for longer. Changed methods are compiled"
        " again. *--include* limits the classes and so the time.",
    .examples = "  jvmscope attach -t 30s --match 'com.shop.*'      every such VM, into "
                "jvmscope-PID.jfr\n"
                "  jvmscope attach -t 30s -o app.html 4711          half a minute, as a flame "
                "graph\n"
                "  jvmscope attach 4711                             until jvmscope stop 4711\n",
    .sets = attach_sets,
};
