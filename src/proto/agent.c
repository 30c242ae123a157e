/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/agent.h"

#include "base/file.h"
#include "base/hash.h"
#include "options/control.h"
#include "proto/attach.h"
#include "proto/lend.h"
#include "proto/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { WAIT_MOST_MS = 100 };

#define LIBRARY   "libhprof.so"
#define COPY_NAME SCRATCH_PREFIX "%016" PRIx64 ".so"

static int fail(struct buf *why, int error, const char *text)
{
    buf_string(why, text);
    return error;
}

int agent_find_library(char *path, size_t size)
{
    static const char *const places[] = {"/" LIBRARY, "/../lib/jvmscope/" LIBRARY,
                                         "/../" LIBRARY_FOLDER "/" LIBRARY, "/../lib/" LIBRARY};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return -errno;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        char candidate[PATH_MAX + 64], real[PATH_MAX];
        snprintf(candidate, sizeof(candidate), "%s%s", self, places[i]);
        if (realpath(candidate, real) && strlen(real) < size) {
            memcpy(path, real, strlen(real) + 1);
            return 0;
        }
    }
    return -ENOENT;
}

bool agent_is_library(const char *base_name)
{
    const char *end = strrchr(base_name, '.');
    char path[64];
    return strcmp(base_name, LIBRARY) == 0 || lend_path(base_name, path, sizeof(path)) ||
           (strncmp(base_name, SCRATCH_PREFIX, strlen(SCRATCH_PREFIX)) == 0 && end &&
            strcmp(end, ".so") == 0);
}

static void free_names(char **names)
{
    for (char **n = names; n && *n; n++)
        free(*n);
    free(names);
}

/*
 * Determines from the answer to `load` whether the agent ran. JDK 8 answers with the agent's result
 * alone, later versions with a sentence.
 */
static int check_load(int status, const char *text, struct buf *why)
{
    if (strstr(text, "ynamic agent loading is not enabled"))
        return fail(why, -EOPNOTSUPP, AGENTS_REFUSED);
    if (status == 0 || strstr(text, "return code: "))
        return 0;
    const char *end = strchr(text, '\n');
    buf_printf(why, "the VM did not load the agent: %.*s",
               (int)(end ? end - text : (long)strlen(text)), text);
    return -ENOEXEC;
}

/*
 * Turns the first line of the agent's answer into 0 or a negative errno with a sentence in `why`.
 */
static int check_answer(struct buf *answer, struct buf *why)
{
    const char *text = buf_str(answer);
    int error = EIO, at = 0;
    if (strncmp(text, "ok\n", 3) == 0)
        return 0;
    if (!*text)
        return fail(why, -EIO, "the agent did not answer (a library of another version?)");
    if (sscanf(text, "error %d %n", &error, &at) < 1 || error <= 0)
        return fail(why, -EIO, "the agent's answer is not understood");
    buf_printf(why, "%.*s", (int)strcspn(text + at, "\n"), text + at);
    return -error;
}

/*
 * Verbs that instrument classes or dump the heap keep the VM busy and may take long. The others are
 * questions.
 */
static uint64_t limit_of(const char *options)
{
    static const char *const work[] = {"control=start", "control=stop", "control=ending",
                                       "control=dump", "control=trace"};
    for (size_t i = 0; i < ARRAY_SIZE(work); i++) {
        if (strncmp(options, work[i], strlen(work[i])) == 0)
            return ATTACH_WORK_NS;
    }
    return ATTACH_QUESTION_NS;
}

void (*agent_progress)(unsigned done, unsigned of, bool back);
static bool changes_back; /* the message in progress ends a recording */

/*
 * Returns whether the agent is still carrying out the message whose reply file is given. Shows the
 * progress that it writes there.
 */
static bool is_working(int reply)
{
    char line[64] = "";
    unsigned done, of;
    if (pread(reply, line, sizeof(line) - 1, 0) < 0)
        return false;
    if (agent_progress && sscanf(line, CONTROL_CHANGING " %u %u", &done, &of) == 2)
        agent_progress(done, of, changes_back);
    return line[0] == *CONTROL_WORKING || line[0] == *CONTROL_CHANGING;
}

static void show_progress(void *context)
{
    (void)is_working(*(const int *)context);
}

/* Waits until the agent has carried out a message, for which the VM may not have waited. */
static int read_reply(const struct vm *vm, int reply, uint64_t limit_ns, struct buf *answer,
                      struct buf *why)
{
    struct attach_wait wait = {now_ns(), limit_ns, 0};
    for (int ms = 1; is_working(reply); ms = MIN(2 * ms, WAIT_MOST_MS)) {
        bool ended = vm_has_ended(vm);
        if (ended && is_working(reply)) /* the VM may have answered before it ended */
            return fail(why, -ESRCH, "the VM ended");
        int r = ended ? 0 : attach_wait_on(vm, &wait, why);
        if (r < 0)
            return r;
        poll(NULL, 0, ended ? 0 : ms);
    }
    _cleanup_free_ uint8_t *data = NULL;
    size_t len;
    int r = file_read_all(reply, CONTROL_ANSWER_MAX, &data, &len);
    if (r < 0)
        return fail(why, r, "cannot read the agent's answer");
    buf_bytes(answer, data, len);
    return 0;
}

/* Sends one message to a library. The name is that of a mapped library, or a path. */
static int exchange(const struct vm *vm, const char *library, const char *options,
                    struct buf *answer, struct buf *why)
{
    _cleanup_(scratch_release) struct scratch reply = SCRATCH;
    int r = attach_check_tmp(vm, why), status;
    if (r == 0)
        r = scratch_make(&reply, vm, why);
    if (r < 0)
        return r;
    _cleanup_(buf_release) struct buf text = BUF(1 << 20), words = BUF(1 << 16);
    /*
     * The reply file directly follows the verb, because an option string may end in a file name
     * that contains any characters.
     */
    size_t verb = strcspn(options, ",");
    buf_printf(&words, "%.*s,reply=%s%s", (int)verb, options, reply.path, options + verb);
    char lent[64];
    bool is_lent = lend_path(strrchr(library, '/') + 1, lent, sizeof(lent));
    const char *const args[ATTACH_ARGS] = {is_lent ? lent : library, "true", buf_str(&words)};
    const struct attach_waiting waiting = {show_progress, &reply.fd};
    uint64_t limit = limit_of(options);
    changes_back = strncmp(options, "control=stop", strlen("control=stop")) == 0;
    r = attach_command(vm, "load", args, limit, &waiting, &text, &status, why);
    if (r == 0)
        r = check_load(status, buf_str(&text), why);
    if (r == 0)
        r = read_reply(vm, reply.fd, limit, answer, why);
    if (agent_progress)
        agent_progress(0, 0, false);
    return r < 0 ? r : check_answer(answer, why);
}

/*
 * Loads the library with a message that only asks for the status, and then sends the message
 * itself. The VM looks up native methods only in agents whose Agent_OnAttach has returned, and the
 * probes of a recording have native methods.
 */
static int load_then_exchange(const struct vm *vm, const char *library, const char *options,
                              struct buf *answer, struct buf *why)
{
    _cleanup_(buf_release) struct buf first = BUF(CONTROL_ANSWER_MAX);
    int r = exchange(vm, library, "control=status", &first, why);
    return r < 0 ? r : exchange(vm, library, options, answer, why);
}

/*
 * Returns whether the VM can load a library from a path; it cannot from a file system that is
 * mounted with noexec.
 */
static bool vm_can_load(const struct vm *vm, const char *path)
{
    struct statvfs fs;
    _cleanup_close_ int fd = vm_file_open(vm, path, O_RDONLY | O_NONBLOCK, 0);
    return fd >= 0 && fstatvfs(fd, &fs) == 0 && !(fs.f_flag & ST_NOEXEC);
}

/*
 * Our library as the VM sees it: the file itself, a copy that is locked until it is removed, or the
 * memory of a process.
 */
struct placed {
    char path[PATH_MAX];
    int copy; /* -1: none */
    struct lender lender;
};

static int place(struct placed *ret, const struct vm *vm, struct buf *why)
{
    char ours[PATH_MAX], name[64];
    if (agent_find_library(ours, sizeof(ours)) < 0)
        return fail(why, -ENOENT, LIBRARY " does not lie next to the command");
    ret->copy = -1;
    ret->lender = LENDER;
    if (vm_sees(vm, ours) && vm_can_load(vm, ours)) {
        memcpy(ret->path, ours, sizeof(ours));
        return 0;
    }
    _cleanup_free_ uint8_t *data = NULL;
    size_t len;
    int r = file_read_path(ours, 1 << 28, &data, &len);
    if (r < 0)
        return fail(why, r, "cannot read the agent's library");
    uint64_t hash = hash_bytes(data, len);
    snprintf(name, sizeof(name), COPY_NAME, hash);
    r = scratch_library(vm, name, data, len, ret->path, sizeof(ret->path), &ret->copy, why);
    if (r == 0)
        return 0;
    r = lend_library(vm, hash, data, len, ret->path, sizeof(ret->path), &ret->lender, why);
    if (r == 0)
        buf_clear(why); /* `why` says why no folder can hold the copy */
    return r;
}

static void take_away(struct placed *p, const struct vm *vm)
{
    lender_release(&p->lender);
    if (p->copy < 0)
        return;
    vm_unlink(vm, p->path);
    close_descriptor(&p->copy);
}

/*
 * Sends the message to our library, which is loaded if necessary, or to a copy if the VM cannot see
 * ours.
 */
static int load_and_exchange(const struct vm *vm, const char *options, struct buf *answer,
                             struct buf *why)
{
    struct placed library;
    int r = attach_check_tmp(vm, why);
    if (r == 0)
        r = place(&library, vm, why);
    if (r < 0)
        return r;
    r = load_then_exchange(vm, library.path, options, answer, why);
    take_away(&library, vm);
    return r;
}

int agent_placeable(const struct vm *vm, struct buf *why)
{
    _cleanup_(scratch_release) struct scratch reply = SCRATCH;
    char **mapped;
    int r = scratch_make(&reply, vm, why);
    if (r == 0 && vm_mapped_files(vm, agent_is_library, &mapped) == 0) {
        free_names(mapped); /* the VM has loaded a library of ours already */
        return 0;
    }
    struct placed library;
    r = r < 0 ? r : place(&library, vm, why);
    if (r < 0)
        return r;
    take_away(&library, vm);
    return 0;
}

/*
 * Returns whether a mapped library is an agent of ours that answers, and stores in *ret_recording
 * whether it is recording.
 */
static bool answers(const struct vm *vm, const char *library, bool *ret_recording)
{
    _cleanup_(buf_release) struct buf answer = BUF(CONTROL_ANSWER_MAX * 2), why = BUF(4096);
    if (exchange(vm, library, "control=status", &answer, &why) < 0)
        return false;
    _cleanup_free_ char *state = agent_answer_value(buf_str(&answer), "state", 0);
    *ret_recording = state && strcmp(state, "recording") == 0;
    return true;
}

int agent_message(const struct vm *vm, const char *options, bool load, struct buf *answer,
                  struct buf *why)
{
    char **mapped;
    if (vm_refusal(vm))
        return fail(why, -EOPNOTSUPP, vm_refusal(vm));
    int r = vm_mapped_files(vm, agent_is_library, &mapped);
    if (r == -ENOENT)
        return load ? load_and_exchange(vm, options, answer, why)
                    : fail(why, -ESRCH, "nothing is being recorded in it");
    if (r < 0)
        return fail(why, r, "cannot read which libraries it has loaded");
    /*
     * A VM keeps the agent that it loaded first, even if the command is of another build, because
     * two agents in one VM would disturb each other. Up to JDK 8 the VM's own HPROF agent has a
     * library of the same name.
     */
    const char *library = NULL;
    for (char **m = mapped; *m; m++) {
        bool only = !mapped[1] && !load, recording = false;
        if (only || (answers(vm, *m, &recording) && (recording || !library)))
            library = *m;
    }
    r = library ? exchange(vm, library, options, answer, why)
                : load_and_exchange(vm, options, answer, why);
    free_names(mapped);
    return r;
}

char *agent_answer_value(const char *answer, const char *key, unsigned nth)
{
    size_t n = strlen(key);
    for (const char *line = answer; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ' && nth-- == 0)
            return strndup(line + n + 1, strcspn(line + n + 1, "\n"));
    }
    return NULL;
}
