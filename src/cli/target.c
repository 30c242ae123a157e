/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/file_format.h"
#include "base/parse.h"
#include "cli/convert.h"
#include "cli/json_view.h"
#include "cli/recording.h"
#include "jfr/reader.h"
#include "options/control.h"
#include "options/options.h"
#include "options/trace_request.h"
#include "proto/check.h"
#include "proto/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *target_missing_right(void)
{
    return geteuid() ? "it belongs to another user: only root and that user may attach"
                     : "root needs CAP_SYS_PTRACE for that";
}

void target_report_left_out(const struct vm_list *list)
{
    _cleanup_(buf_release) struct buf note = BUF(4096);
    if (list->left_out.len)
        buf_printf(&note, "%s of other users cannot be inspected and %s left out",
                   COUNT_TEXT(list->left_out.len, "Java processes"),
                   list->left_out.len == 1 ? "is" : "are");
    else if (list->vms.len)
        return;
    else if (list->unknown)
        buf_printf(&note, "%s of other users cannot be inspected and may be Java VMs",
                   COUNT_TEXT(list->unknown, "processes"));
    else if (list->hidden)
        buf_string(&note, "/proc does not show the processes of other users (hidepid)");
    else
        return;
    complain("note", buf_str(&note),
             geteuid() ? "run the command as root" : "root needs CAP_SYS_PTRACE for that");
}

int target_find(struct vm *ret, const char *pid)
{
    uint64_t n;
    if (parse_u64(pid, 1, INT_MAX, &n) < 0) {
        complain(pid, "not a process id", "jvmscope list shows the VMs");
        return 2;
    }
    pid_t process = vm_process_of((pid_t)n);
    if (process && process != (pid_t)n) {
        char text[64];
        snprintf(text, sizeof(text), "is a thread of %d", process);
        return complain(pid, text, "use the id of the process");
    }
    int r = vm_read(ret, (pid_t)n);
    switch (r) {
    case 0:
        return 0;
    case -ESRCH:
        return complain(pid, "no such process", NULL);
    case -ENOEXEC:
        if (check_is_native_image((pid_t)n))
            return complain(pid, "is a native image of GraalVM",
                            "it has no VM that takes agents; jvmscope reads the recordings (JFR) "
                            "that such a program makes itself");
        return complain(pid, "not a Java VM", "jvmscope list shows the VMs");
    case -EACCES:
        return complain(pid, "cannot be inspected", target_missing_right());
    default:
        return complain_errno(pid, "cannot inspect it", r);
    }
}

#define PLAIN_NS (5 * NS_PER_SECOND) /* between two lines that are not for a terminal */

/* Prints a number as "1,200". */
static void print_number(char to[16], unsigned n)
{
    char digits[16];
    int len = snprintf(digits, sizeof(digits), "%u", n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            to[at++] = ',';
        to[at++] = digits[i];
    }
    to[at] = 0;
}

/*
 * Estimates how long the remaining classes will take from the time since the first call of their
 * round (`anew`) up to the last call at which more were done, because there is a pause between two
 * steps: "", or ", about 12 s to go". What is left never rises within a round.
 */
static void print_rest(char to[48], unsigned done, unsigned of, bool anew, uint64_t now)
{
    static uint64_t began_ns, step_ns, least;
    static unsigned began, last;
    if (anew) {
        began_ns = step_ns = now;
        began = last = done;
        least = UINT64_MAX;
    }
    if (done != last) {
        step_ns = now;
        last = done;
    }
    to[0] = 0;
    if (done <= began || done >= of)
        return;
    uint64_t rest = (step_ns - began_ns) / (done - began) * (of - done), since = now - step_ns;
    if (rest <= since) /* the step takes longer than expected */
        return;
    least = MIN(least, (rest - since + NS_PER_SECOND - 1) / NS_PER_SECOND);
    snprintf(to, 48, ", about %llu s to go", (unsigned long long)least);
}

static const char *advice;

void target_advise(const char *sentence)
{
    advice = sentence;
}

/*
 * Shows progress: on a terminal in one line that is overwritten, elsewhere in a line from time to
 * time. Several captures change classes one after the other, each in a round of its own.
 */
static void show_progress(unsigned done, unsigned of, bool back)
{
    static uint64_t began_ns, next_ns;
    static unsigned round, last, all;
    static bool shown, explained;
    uint64_t now = now_ns();
    bool terminal = isatty(STDERR_FILENO) == 1;
    if (of == 0) {
        fputs(shown && terminal ? "\r\033[K" : "", stderr);
        shown = false;
        began_ns = next_ns = 0;
        round = last = all = 0;
        return;
    }
    char a[16], b[16], which[32] = "", rest[48];
    bool anew = of != all || done < last;
    round += anew;
    last = done;
    all = of;
    print_rest(rest, done, of, anew, now);
    began_ns = began_ns ? began_ns : now;
    next_ns = next_ns ? next_ns : now + (terminal ? NS_PER_SECOND / 2 : PLAIN_NS);
    if (now < next_ns)
        return;
    print_number(a, done);
    print_number(b, of);
    if (round > 1)
        snprintf(which, sizeof(which), " (round %u)", round);
    fprintf(stderr,
            terminal ? "\r\033[Kjvmscope: changing %s of %s classes%s%s%s"
                     : "jvmscope: changing %s of %s classes%s%s%s\n",
            a, b, back ? " back" : "", which, rest);
    if (!explained && now - began_ns >= NS_PER_SECOND) {
        fprintf(stderr,
                "%sjvmscope: classes are changed a few at a time, with pauses on purpose, so that "
                "the program goes on\n",
                terminal ? "\r\033[K" : "");
        explained = true;
    }
    if (advice && now - began_ns >= PLAIN_NS) {
        fprintf(stderr, "%sjvmscope: note: %s\n", terminal ? "\r\033[K" : "", advice);
        advice = NULL;
    }
    fflush(stderr);
    shown = true;
    next_ns = now + (terminal ? NS_PER_SECOND / 10 : PLAIN_NS);
}

int target_open(struct vm *ret, const char *pid)
{
    agent_progress = show_progress;
    int status = target_find(ret, pid);
    const char *why = status || ret->attach_disabled ? NULL : vm_refusal(ret);
    if (!why)
        return status;
    vm_release(ret);
    return complain(pid, why, NULL);
}

bool target_begin(struct vm *ret, const struct command *self, void *options, int argc, char **argv,
                  struct operands *ret_operands, int *ret_status)
{
    if (!args_parse(self, ARGS({NULL, options}), argc, argv, ret_operands, ret_status))
        return false;
    *ret_status = target_open(ret, ret_operands->list[0]);
    return *ret_status == 0;
}

/* The notes printed so far about patterns without a match. A recording repeats them at its end. */
static struct buf reported_so_far = BUF(1 << 20);

/* The options that the user gave for this command's recording; if there is none, all options. */
static uint64_t typed = UINT64_MAX;

void target_typed(uint64_t options)
{
    typed = options;
}

/*
 * Returns the option that a note is about, or -1 if the user did not give it. The agent writes
 * NAME=VALUE or, for a list, NAME ITEM for what was given; NAME: may be a capture that another
 * option includes.
 */
static int subject_of(const char *text, size_t len)
{
    int i = len ? option_find(text, len) : -1;
    bool is = i >= 0 && option_table[i].flag &&
              (text[len] == '=' || (text[len] == ' ' && option_table[i].separator) ||
               (text[len] == ':' && typed != UINT64_MAX && typed >> i & 1));
    return is ? i : -1;
}

/* Returns the length of "=VALUE" if the option has this value even without it. */
static size_t needless(const char *value, const char *bare)
{
    size_t n = bare ? strlen(bare) : 0;
    return n && value[0] == '=' && strncmp(value + 1, bare, n) == 0 && value[n + 1] == ':' ? n + 1
                                                                                           : 0;
}

/*
 * Returns the length of NAME=VALUE at `text` if the command has a flag for it, whose row is
 * *ret_row.
 */
static size_t agent_word(const char *text, const struct option_row **ret_row)
{
    size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyz-");
    int i = name && text[name] == '=' ? option_find(text, name) : -1;
    if (i < 0 || !option_table[i].flag ||
        (option_table[i].kind != OPTION_WORD && option_table[i].kind != OPTION_YES_NO))
        return 0;
    const char *value = text + name + 1;
    size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz-");
    *ret_row = &option_table[i];
    return option_has_word(option_table[i].values, value, len) ? name + 1 + len : 0;
}

/* Appends a text of the agent, in which the agent's options become the command's flags. */
static void put_with_flags(struct buf *to, const char *text)
{
    bool between = true; /* a word may begin here */
    while (*text) {
        const struct option_row *row;
        size_t len = between ? agent_word(text, &row) : 0;
        if (len) {
            const char *value = strchr(text, '=');
            size_t n = len - (size_t)(value - text);
            bool bare = row->bare && strlen(row->bare) == n - 1 &&
                        strncmp(value + 1, row->bare, n - 1) == 0;
            buf_printf(to, "%s%.*s", row->flag, bare ? 0 : (int)n, value);
            text += len;
            between = false;
        } else {
            between = *text == ' ' || *text == '(';
            buf_u8(to, (uint8_t)*text++);
        }
    }
}

void target_put_text(struct buf *to, const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz-");
    int i = subject_of(text, len);
    if (i >= 0) {
        buf_string(to, option_table[i].flag);
        text += len + needless(text + len, option_table[i].bare);
    }
    if (i >= 0 && option_table[i].kind == OPTION_TEXT)
        buf_string(to, text); /* as the user wrote it */
    else
        put_with_flags(to, text);
}

void target_report_note(const char *text)
{
    _cleanup_(buf_release) struct buf note = BUF(1 << 20);
    target_put_text(&note, text);
    complain("note", buf_str(&note), NULL);
    if (strstr(text, " so far") || strncmp(text, "log ", 4) == 0)
        buf_printf(&reported_so_far, "%s\n", buf_str(&note));
}

bool target_has_reported(const char *subject)
{
    _cleanup_(buf_release) struct buf part = BUF(1 << 20);
    buf_printf(&part, " %s: ", subject);
    return strstr(buf_str(&reported_so_far), buf_str(&part)) != NULL;
}

bool target_has_reported_why(const char *subject, const char *why)
{
    _cleanup_(buf_release) struct buf start = BUF(1 << 20), end = BUF(1 << 20);
    buf_printf(&start, " %s: ", subject);
    buf_printf(&end, ": %s\n", why);
    const char *note = strstr(buf_str(&reported_so_far), buf_str(&start));
    const char *found = note ? strstr(note, buf_str(&end)) : NULL;
    return found && found < strchr(note, '\n');
}

void target_print_messages(const struct buf *answer)
{
    _cleanup_free_ char *reported = agent_answer_value(buf_str(answer), "messages_told", 0);
    for (unsigned i = reported ? (unsigned)strtoul(reported, NULL, 10) : 0;; i++) {
        _cleanup_free_ char *text = agent_answer_value(buf_str(answer), "message", i);
        if (!text)
            return;
        target_report_note(text);
    }
}

int target_query(const struct vm *vm, const char *what, const char *options, bool load,
                 struct buf *answer)
{
    return target_ask_last(vm, what, options, load, answer, NULL);
}

/*
 * Appends how a recording is begun, for a message that needs one; or, if the running one lacks a
 * pattern, how to see which patterns it has.
 */
static void put_beginning(struct buf *why, const char *message, const char *pid)
{
    static const struct {
        const char *message, *options;
    } beginnings[] = {{"control=dump", ""},
                      {"control=stop", ""},
                      {"control=trace,", "--trace PATTERN "},
                      {"control=on,", "--always "}};

    if (why->len && strstr(buf_str(why), TRACE_PATTERN_ABSENT)) {
        buf_printf(why, "; list them with: jvmscope trace %s list", pid);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
        bool is = strncmp(message, beginnings[i].message, strlen(beginnings[i].message)) == 0;
        if (is && why->len)
            buf_printf(why, "; begin with: jvmscope attach %s%s", beginnings[i].options, pid);
    }
}

/*
 * Returns whether a message was refused because of another recording of the VM. Threads, files and
 * the VM's end are other reasons.
 */
static bool is_recording(const char *message, struct buf *why)
{
    const char *text = buf_str(why);
    return strncmp(message, "control=start", strlen("control=start")) == 0 &&
           (strstr(text, "already recording to") || strstr(text, "is always on already")) &&
           !strstr(text, "the VM is ending");
}

int target_ask_last(const struct vm *vm, const char *what, const char *options, bool load,
                    struct buf *answer, bool *ret_ended)
{
    _cleanup_(buf_release) struct buf why = BUF(4096), readable = BUF(1 << 14);
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    int r = agent_message(vm, options, load, answer, &why);
    if (ret_ended)
        *ret_ended = r < 0 && vm_has_ended(vm);
    if (r == 0 || (ret_ended && *ret_ended))
        return 0;
    if (r == -EBUSY && is_recording(options, &why))
        buf_printf(&why, "; end that recording with: jvmscope stop %s", pid);
    else if (r == -ESRCH)
        put_beginning(&why, options, pid);
    target_put_text(&readable, buf_str(&why));
    return why.len ? complain(pid, what, buf_str(&readable)) : complain_errno(pid, what, r);
}

int target_message(const struct vm *vm, const char *what, const char *options, bool load,
                   struct buf *answer)
{
    int status = target_query(vm, what, options, load, answer);
    if (status == 0)
        target_print_messages(answer);
    return status;
}

int target_show(const struct vm *vm, const char *what, const char *options, bool load, bool as_json,
                const char *const members[])
{
    _cleanup_(buf_release) struct buf answer = BUF(CONTROL_ANSWER_MAX);
    int status = target_message(vm, what, options, load, &answer);
    if (status)
        return status;
    _cleanup_free_ char *json = agent_answer_value(buf_str(&answer), "json", 0);
    if (json && as_json)
        puts(json);
    else if (!json ||
             (members ? json_view_members(stdout, json, members) : json_view(stdout, json)) < 0)
        return complain(what, "the agent's answer is not understood", NULL);
    return 0;
}

/* If the file does not exist yet or cannot be seen, the folder decides. */
const char *target_seen(const struct vm *vm, const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s", (int)MAX(strrchr(path, '/') - path, 1), path);
    return vm_sees(vm, folder) ? "" : AS_THE_VM_SEES_IT;
}

/*
 * The folder is opened as the VM has it, because only the VM's own mounts say whether it is
 * read-only there, even when it is the same folder as ours.
 */
bool target_can_write(const struct vm *vm, const char *path)
{
    char folder[PATH_MAX], its[64];
    const char *name = strrchr(path, '/') + 1;
    snprintf(folder, sizeof(folder), "%.*s", (int)MAX(name - 1 - path, 1), path);
    _cleanup_close_ int fd = vm_sees(vm, folder) ? vm_open_folder(vm, folder) : -1;
    if (fd < 0 || vm_user_enter(vm) < 0)
        return false;
    snprintf(its, sizeof(its), "/proc/self/fd/%d", fd);
    bool can =
        faccessat(AT_FDCWD, its, W_OK | X_OK, AT_EACCESS) == 0 &&
        (faccessat(fd, name, F_OK, AT_EACCESS) < 0 || faccessat(fd, name, W_OK, AT_EACCESS) == 0);
    vm_user_leave();
    return can;
}

int target_open_written(const struct vm *vm, const char *path, int *ret_fd)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int fd = vm_open_written(vm, path, &why);
    if (fd >= 0 && !vm_file_is_output(fd)) {
        buf_string(&why, "it is not a recording");
        close_descriptor(&fd);
        fd = -EBADMSG;
    }
    *ret_fd = fd < 0 ? -1 : fd;
    return fd < 0 ? complain(path, "cannot fetch what the VM wrote", buf_str(&why)) : 0;
}

int target_copy(int from, const char *to)
{
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    int r = lseek(from, 0, SEEK_SET) < 0 ? -errno : out_file_open_private(&out, to);
    static uint8_t bytes[1 << 16];
    for (ssize_t n; r == 0 && (n = read(from, bytes, sizeof(bytes))) != 0;)
        r = n < 0 ? -errno : out_file_write(&out, bytes, (size_t)n);
    if (r == 0)
        r = out_file_commit(&out);
    return r < 0 ? complain_errno(to, "cannot write", r) : 0;
}

#define CHOSEN_PREFIX "/tmp/jvmscope-"

void target_choose(const struct vm *vm, const char *extension, char *path)
{
    snprintf(path, PATH_MAX, CHOSEN_PREFIX "%d-%llx%s", vm->inner_pid,
             (unsigned long long)clock_ns(CLOCK_REALTIME), extension);
}

bool target_chose(const char *path)
{
    size_t n = strlen(CHOSEN_PREFIX);
    return (strncmp(path, CHOSEN_PREFIX, n) == 0 && !strchr(path + n, '/')) ||
           scratch_is_sibling(path);
}

/*
 * Returns whether a file is a recording of this VM. HPROF output does not say whose it is, so all
 * of it counts.
 */
static bool is_recording_of(const struct vm *vm, int fd)
{
    static const struct rec_select wanted[] = {{"jdk.JVMInformation", 1}, {0}};
    _cleanup_(file_map_release) struct file_map map = {0};
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    if (file_map_fd(&map, fd) < 0)
        return false;
    enum file_format format = file_format_of(map.data, map.len);
    if (format == FORMAT_HPROF || format == FORMAT_HPROF_TEXT)
        return true;
    return recording_open_bytes(&r, map.data, map.len, &why) == 0 &&
           recording_select(r, wanted) == 0 && recording_next(r, &e) > 0 &&
           rec_long(&e.object, "pid", 0) == vm->inner_pid;
}

void target_report_left(const struct vm *vm)
{
    char path[PATH_MAX];
    _cleanup_(buf_release) struct buf note = BUF(2 * PATH_MAX);
    if (!scratch_find_recording(vm, is_recording_of, path, sizeof(path)))
        return;
    buf_printf(&note,
               "a command that was killed left the recording %s%s; "
               "fetch it with: cp /proc/%d/root%s FILE%s; it is removed after a day",
               path, target_seen(vm, path), vm->pid, path, strrchr(path, '.'));
    complain("note", buf_str(&note), NULL);
}

bool target_is_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/*
 * Gives a recording that could not be fetched a name that later commands do not mistake for one to
 * clean up.
 */
static void keep(const struct vm *vm, const char *path, char kept[PATH_MAX])
{
    snprintf(kept, PATH_MAX, "%s", path);
    if (!scratch_is_sibling(path))
        return;
    char to[PATH_MAX], folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    const char *name = strrchr(path, '/') + 1;
    snprintf(to, sizeof(to), "jvmscope-%d-%s", vm->inner_pid, name + strlen(SCRATCH_PREFIX));
    _cleanup_close_ int fd = vm_open_folder(vm, folder);
    if (fd < 0 || vm_user_enter(vm) < 0)
        return;
    if (renameat(fd, name, fd, to) == 0)
        snprintf(kept, PATH_MAX, "%.*s/%.*s", (int)strlen(folder), folder, NAME_MAX, to);
    vm_user_leave();
}

/*
 * Fetches the heap dumps of a recording, which are separate files next to it, and puts them next to
 * the output.
 */
static int fetch_dumps(const struct vm *vm, const char *path, const char *to)
{
    int status = 0;
    bool more = true;
    for (unsigned i = 0; more; i++) {
        _cleanup_(buf_release) struct buf from = BUF(PATH_MAX), copy = BUF(PATH_MAX),
                                          why = BUF(4096);
        recording_put_dump_name(&from, path, i);
        recording_put_dump_name(&copy, to, i);
        bool named = !buf_error(&from) && !buf_error(&copy);
        _cleanup_close_ int fd = named ? vm_open_written(vm, buf_str(&from), &why) : -1;
        bool found = fd >= 0 && vm_file_is_output(fd);
        more = i == 0 || found;
        if (!found)
            continue;
        int copied = target_copy(fd, buf_str(&copy));
        if (copied == 0)
            vm_unlink(vm, buf_str(&from));
        status = status ? status : copied;
    }
    return status;
}

int target_fetch(const struct vm *vm, const char *path, int fd, const char *to, bool own)
{
    char from[64], kept[PATH_MAX];
    if (target_is_file(fd, to))
        return 0;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    int status = recording_is_copied(fd, to) ? target_copy(fd, to) : convert_copy(from, to);
    /* What could not be written remains where it is, and the message names the place. */
    if (status) {
        keep(vm, path, kept);
        return recording_complain_kept(kept, target_is_file(fd, kept) ? NULL : "as the VM sees it");
    }
    if (!own)
        return 0;
    vm_unlink(vm, path);
    return fetch_dumps(vm, path, to);
}
