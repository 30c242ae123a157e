/* SPDX-License-Identifier: Apache-2.0 */
/* `heap dump`: has a running VM write its heap, by the VM's own dumper, and fetches the file. */
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/progress.h"
#include "cli/heap/verbs.h"
#include "cli/target.h"
#include "proto/attach.h"

#include <errno.h>
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
     "where the dump goes (heap-PID.hprof); %p is the process id, %t the time"},
    {"--all", 0, ARG_FLAG, offsetof(struct take_options, all), NULL,
     "objects that are not reachable too, without a collection before"},
    {0},
};

static const struct arg_set take_set = {"The dump", take_args};
const struct arg_set *const heap_take_sets[] = {&take_set, NULL};

/* What the VM writes to, as we see it: gone when we are interrupted. The VM ends its dump into a file without a name. */
static char partial[PATH_MAX + 64];

static void on_signal(int number)
{
    unlink(partial);
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
        if (stat(partial, &st) == 0)
            progress_update(&progress, (uint64_t)st.st_size, 0);
        usleep(20000);
    }
    progress_end(&progress);
    return NULL;
}

static int ask(const struct vm *vm, const char *pid, const char *file, bool all)
{
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20), why = BUF(4096);
    struct watcher w = {0};
    int refused = 0;
    bool watched = pthread_create(&w.thread, NULL, watch, &w) == 0;
    int r = attach_command(vm, "dumpheap", (const char *const[ATTACH_ARGS]){file, all ? "-all" : "-live", NULL}, &answer,
                           &refused, &why);
    __atomic_store_n(&w.done, true, __ATOMIC_RELEASE);
    if (watched)
        pthread_join(w.thread, NULL);
    if (r < 0)
        return why.len ? complain(pid, "no heap dump", buf_str(&why)) : complain_errno(pid, "no heap dump", r);
    struct stat st;
    if (refused || stat(partial, &st) < 0 || st.st_size == 0) {
        char *text = (char *)buf_str(&answer);
        text[strcspn(text, "\n")] = 0;
        return complain(pid, "the VM wrote no heap dump", *text ? text : NULL);
    }
    return 0;
}

/* The name under which the VM writes, beside the output when it can, else in its own /tmp. */
static int choose_partial(const struct vm *vm, const char *output, bool *ret_fetch, char file[PATH_MAX])
{
    char cwd[PATH_MAX] = "";
    if (output[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return -errno;
    int n = snprintf(file, PATH_MAX, "%s%s%s.%ld", cwd, *cwd ? "/" : "", output, (long)getpid());
    *ret_fetch = n >= PATH_MAX || n > ATTACH_ARG_MAX || !target_can_write(vm, file);
    if (*ret_fetch)
        snprintf(file, PATH_MAX, "/tmp/jvmscope-heap-%d-%llx.hprof", vm->inner_pid,
                 (unsigned long long)clock_ns(CLOCK_REALTIME));
    vm_path(vm, file, partial, sizeof(partial));
    return 0;
}

static int take(const struct vm *vm, const char *pid, const char *output, bool all)
{
    char file[PATH_MAX], size[24];
    bool fetch = false;
    struct stat st;
    uint64_t start = now_ns();
    int r = choose_partial(vm, output, &fetch, file);
    if (r < 0)
        return complain_errno(output, "cannot write", r);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int status = ask(vm, pid, file, all);
    if (status == 0 && fetch)
        status = target_copy(partial, output);
    else if (status == 0 && rename(partial, output) < 0)
        status = complain_errno(output, "cannot write", -errno);
    if (status || fetch)
        unlink(partial);
    if (status == 0 && stat(output, &st) == 0)
        fprintf(stderr, "jvmscope: wrote %s (%s, %.1f s); see it with: jvmscope heap summary %s\n", output,
                format_size(size, (uint64_t)st.st_size), (double)(now_ns() - start) / 1e9, output);
    return status;
}

int cmd_heap_dump(const struct command *self, int argc, char **argv)
{
    struct take_options options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){&options}, argc, argv, &operands, &status))
        return status;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    status = target_open(&vm, operands.list[0]);
    if (status)
        return status;
    char output[PATH_MAX];
    if (expand_file_name(options.output ? options.output : "heap-%p.hprof", vm.pid, output, sizeof(output)) < 0)
        return complain(options.output, "this name is too long", NULL);
    return take(&vm, operands.list[0], output, options.all);
}
