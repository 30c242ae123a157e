/* SPDX-License-Identifier: Apache-2.0 */
/* `heap dump`: makes a running VM write its heap with its own dumper, and fetches the file. */
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/progress.h"
#include "cli/heap/heap.h"
#include "cli/recording.h"
#include "cli/replaced.h"
#include "cli/target.h"
#include "export/export.h"
#include "proto/attach.h"
#include "proto/check.h"
#include "proto/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

struct take_options {
    const char *output;
    bool all;
};

static const struct arg take_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct take_options, output), "FILE",
     "write the dump to this file (heap-PID.hprof); %p is the process id, %t the time"},
    {"--all", 0, ARG_FLAG, offsetof(struct take_options, all), NULL,
     "include unreachable objects: skip the collection before the dump"},
    {0},
};

static const struct arg_set take_set = {"The dump", take_args};
static const struct arg_set *const heap_take_sets[] = {&take_set, NULL};

/*
 * The file that the VM writes to. It is removed when the command is interrupted; the VM then
 * finishes its dump into a file without a name.
 */
static struct {
    int folder;
    char name[NAME_MAX + 1], scratch[64]; /* scratch: empty when the dump lies next to the output */
} partial;

static void on_signal(int number)
{
    unlinkat(partial.folder, partial.name, 0);
    if (partial.scratch[0])
        unlinkat(partial.folder, partial.scratch, 0);
    _exit(128 + number);
}

struct watcher {
    pthread_t thread;
    volatile bool done;
};

/* Shows how much the VM has written so far. */
static void *watch(void *argument)
{
    struct watcher *w = argument;
    struct progress progress;
    progress_start(&progress, "heap dump");
    while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE)) {
        struct stat st;
        if (fstatat(partial.folder, partial.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            progress_update(&progress, (uint64_t)st.st_size, 0);
        usleep(20000);
    }
    progress_end(&progress);
    return NULL;
}

/* Makes the VM write its dump to `file`. Returns 0, or the exit status after a complaint. */
static int ask(const struct vm *vm, const char *pid, const char *file, bool all)
{
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20), why = BUF(4096);
    struct watcher w = {0};
    int refused = 0;
    bool watched = pthread_create(&w.thread, NULL, watch, &w) == 0;
    int r = attach_command(vm, "dumpheap",
                           (const char *const[ATTACH_ARGS]){file, all ? "-all" : "-live", NULL},
                           ATTACH_DUMP_NS, NULL, &answer, &refused, &why);
    __atomic_store_n(&w.done, true, __ATOMIC_RELEASE);
    if (watched)
        pthread_join(w.thread, NULL);
    if (r < 0)
        return why.len ? complain(pid, "the heap was not dumped", buf_str(&why))
                       : complain_errno(pid, "the heap was not dumped", r);
    char *text = (char *)buf_str(&answer);
    if (!refused && strstr(text, "Heap dump file created"))
        return 0;
    /*
     * A dump that was not made or was cut short has no status of its own. The VM reports it in a
     * line with the reason, after the line that it is dumping.
     */
    char *failure = strstr(text, "Dump file is incomplete: ");
    failure = failure ? failure : strstr(text, "Unable to create ");
    text = failure ? failure : text;
    text[strcspn(text, "\n")] = 0;
    return complain(pid, "the VM wrote no heap dump", *text ? text : NULL);
}

/*
 * Chooses the name under which the VM writes: next to the output when it can, otherwise in a folder
 * of its own. Returns 0 or the exit status.
 */
static int choose_partial(const struct vm *vm, const char *pid, const char *output,
                          struct scratch *scratch, bool *ret_fetch, char file[PATH_MAX])
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    char cwd[PATH_MAX] = "", folder[PATH_MAX];
    if (output[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return complain_errno(output, "cannot write", -errno);
    int n = snprintf(file, PATH_MAX, "%s%s%s.%ld", cwd, *cwd ? "/" : "", output, (long)getpid());
    if (n >= PATH_MAX)
        return complain_errno(output, "cannot write", -ENAMETOOLONG);
    *ret_fetch = n > ATTACH_ARG_MAX || !target_can_write(vm, file);
    snprintf(folder, sizeof(folder), "%.*s", (int)MAX(strrchr(file, '/') - file, 1), file);
    if (access(folder, W_OK | X_OK) < 0)
        return complain_errno(output, "cannot write", -errno);
    if (*ret_fetch) {
        if (attach_check_tmp(vm, &why) < 0 ||
            scratch_make_roomy(scratch, vm, check_dump_size(vm), &why) < 0)
            return complain(pid, "the heap was not dumped", buf_str(&why));
        scratch_sibling(scratch, ".dump", file, PATH_MAX);
        snprintf(partial.scratch, sizeof(partial.scratch), "%s", scratch->name);
    }
    snprintf(partial.name, sizeof(partial.name), "%s", strrchr(file, '/') + 1);
    partial.folder = *ret_fetch ? scratch->folder : open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return partial.folder < 0 ? complain_errno(output, "cannot write", -errno) : 0;
}

/* Turns the dump into the output: fetches it, or renames it when it lies next to the output. */
static int take_over(const struct vm *vm, const char *file, const char *output, bool fetch)
{
    struct stat a, b;
    _cleanup_close_ int fd = -1;
    int status = target_open_written(vm, file, &fd);
    if (status || fetch)
        return status ? status : target_copy(fd, output);
    if (rename(file, output) < 0)
        return complain_errno(output, "cannot write", -errno);
    if (fstat(fd, &a) < 0 || lstat(output, &b) < 0 || a.st_ino != b.st_ino || a.st_dev != b.st_dev)
        return complain(output, "is not what the VM wrote", "another program replaced it");
    /* A VM makes its dumps private. Changing the mode of another user's file takes CAP_FOWNER. */
    bool is_private = (a.st_mode & ALLPERMS) == 0600;
    return is_private || fchmod(fd, 0600) == 0
               ? 0
               : complain_errno(output, "cannot be made private", -errno);
}

static int take(const struct vm *vm, const char *pid, const char *output, bool all)
{
    char file[PATH_MAX], size[24];
    bool fetch = false;
    struct stat st;
    uint64_t start = now_ns();
    _cleanup_(scratch_release) struct scratch scratch = SCRATCH;
    int status = choose_partial(vm, pid, output, &scratch, &fetch, file);
    if (status)
        return status;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    recording_note_older(output);
    status = ask(vm, pid, file, all);
    if (status == 0)
        status = take_over(vm, file, output, fetch);
    if (status || fetch)
        unlinkat(partial.folder, partial.name, 0);
    if (status == 0 && stat(output, &st) == 0)
        fprintf(stderr,
                "jvmscope: wrote %s (%s, %.1f s)%s; see it with: jvmscope heap summary %s\n",
                output, format_size(size, (uint64_t)st.st_size), (double)(now_ns() - start) / 1e9,
                replaced_words(output), output);
    if (!fetch)
        close(partial.folder);
    return status;
}

static int cmd_heap_dump(const struct command *self, int argc, char **argv)
{
    struct take_options options = {0};
    struct operands operands;
    int status;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    if (!target_begin(&vm, self, &options, argc, argv, &operands, &status))
        return status;
    char output[PATH_MAX];
    if (expand_file_name(options.output ? options.output : "heap-%p.hprof", vm.pid, output,
                         sizeof(output)) < 0)
        return complain(options.output, "this name is too long", NULL);
    const struct export_format *format = export_format_of(output);
    if (strcmp(output, "-") == 0 || (format && strcmp(format->extension, ".hprof") != 0)) {
        complain(output, "a heap dump is a file in HPROF's format",
                 "name it FILE.hprof; jvmscope heap leaks -o x.html FILE.hprof writes a page");
        return 2;
    }
    if (!replaced_check(output, ".hprof"))
        return 2;
    return take(&vm, operands.list[0], output, options.all);
}

const struct command heap_verb_dump = {
    .name = "heap dump",
    .run = cmd_heap_dump,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "have a running VM write its heap into a file",
    .description =
        "The VM's own dumper writes the objects that are reachable, or all of them, "
        "while all threads of the program are stopped. A VM that cannot write the output itself "
        "(another user's, one in a container, one with a /tmp of its own) writes into "
        "its own /tmp; the file is fetched from there, with the rights of the VM's "
        "user, and removed. The dump is readable by its owner alone.",
    .examples = "  jvmscope heap dump 4711                                     heap-4711.hprof\n"
                "  jvmscope heap dump --all -o before.hprof 4711\n",
    .sets = heap_take_sets,
};
