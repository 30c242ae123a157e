/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/agent.h"

#include "base/file.h"
#include "base/hash.h"
#include "proto/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define LIBRARY     "libhprof.so"
#define COPY_PREFIX ".jvmscope-"
#define COPY_NAME   COPY_PREFIX "%016" PRIx64 ".so"

/* Folders of the VM that may take a copy, in order. */
static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm"};

static int say(struct buf *why, int error, const char *text)
{
    buf_string(why, text);
    return error;
}

int agent_find_library(char *path, size_t size)
{
    static const char *const places[] = {"/" LIBRARY, "/../lib/jvmscope/" LIBRARY, "/../lib/" LIBRARY};
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

static bool is_agent(const char *base_name)
{
    return strcmp(base_name, LIBRARY) == 0 || strncmp(base_name, COPY_PREFIX, sizeof(COPY_PREFIX) - 1) == 0;
}

static void free_names(char **names)
{
    for (char **n = names; n && *n; n++)
        free(*n);
    free(names);
}

/* An empty file that has room for a short answer. Its name ends in XXXXXX and gets completed. */
static int make_file_with_room(char *name)
{
    static const char room[4096];
    _cleanup_close_ int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, room, sizeof(room));
    if (r == 0 && ftruncate(fd, 0) < 0)
        r = -errno;
    if (r < 0)
        unlink(name);
    return r;
}

/* An empty file of the VM's user, in a folder of the VM. path has PATH_MAX bytes and is the VM's name of it. */
static int make_reply_file(const struct vm *vm, char *path, struct buf *why)
{
    int r = attach_as_vm(vm);
    if (r < 0)
        return say(why, r, "cannot act as the VM's user");
    r = -EROFS;
    for (size_t i = 0; i < ARRAY_SIZE(folders) && r < 0; i++) {
        char name[PATH_MAX], ours[PATH_MAX + 64];
        snprintf(name, sizeof(name), "%s/.jvmscope-reply-%d-XXXXXX", folders[i], vm->inner_pid);
        r = make_file_with_room(vm_path(vm, name, ours, sizeof(ours)));
        if (r == 0)
            snprintf(path, PATH_MAX, "%s", strstr(ours, folders[i]));
    }
    attach_as_self();
    if (r == -EROFS)
        return say(why, r,
                   "its /tmp, /var/tmp and /dev/shm are read-only: no place for the agent's answer; start it with -agentpath");
    if (r == -ENOSPC)
        return say(why, r, "no space left in its /tmp, /var/tmp and /dev/shm for the agent's answer");
    return r < 0 ? say(why, r, "no folder of the VM can take the agent's answer") : 0;
}

/* What `load` answered: whether the agent ran. JDK 8 prints its result alone, later ones in words. */
static int check_load(int status, const char *text, struct buf *why)
{
    if (strstr(text, "ynamic agent loading is not enabled"))
        return say(why, -EOPNOTSUPP,
                   "refuses agents (-XX:-EnableDynamicAgentLoading); `jcmd PID JFR.start` and `JFR.dump` make a recording that "
                   "jvmscope reads");
    if (status == 0 || strstr(text, "return code: "))
        return 0;
    const char *end = strchr(text, '\n');
    buf_printf(why, "the VM did not load the agent: %.*s", (int)(end ? end - text : (long)strlen(text)), text);
    return -ENOEXEC;
}

/* Turns the agent's first line into 0 or its error. */
static int check_answer(struct buf *answer, struct buf *why)
{
    const char *text = buf_str(answer);
    int error = EIO, at = 0;
    if (strncmp(text, "ok\n", 3) == 0)
        return 0;
    if (!*text)
        return say(why, -EIO, "the agent did not answer (a library of another version?)");
    if (sscanf(text, "error %d %n", &error, &at) < 1 || error <= 0)
        return say(why, -EIO, "the agent's answer is not understood");
    buf_printf(why, "%.*s", (int)strcspn(text + at, "\n"), text + at);
    return -error;
}

/* One message to the library of the given name. */
static int talk(const struct vm *vm, const char *library, const char *options, struct buf *answer, struct buf *why)
{
    char reply[PATH_MAX], ours[PATH_MAX + 64];
    int r = make_reply_file(vm, reply, why), status;
    if (r < 0)
        return r;
    _cleanup_(buf_release) struct buf text = BUF(1 << 20), words = BUF(1 << 16);
    /* The verb comes first, the reply file next to it: an option string may end in a file name with anything in it. */
    size_t verb = strcspn(options, ",");
    buf_printf(&words, "%.*s,reply=%s%s", (int)verb, options, reply, options + verb);
    const char *const args[ATTACH_ARGS] = {library, "true", buf_str(&words)};
    r = attach_command(vm, "load", args, &text, &status, why);
    if (r == 0)
        r = check_load(status, buf_str(&text), why);
    vm_path(vm, reply, ours, sizeof(ours));
    _cleanup_free_ uint8_t *data = NULL;
    size_t len;
    if (r == 0) {
        r = read_file(ours, CONTROL_ANSWER_MAX, &data, &len);
        if (r == 0)
            buf_bytes(answer, data, len);
        else
            say(why, r, "cannot read the agent's answer");
    }
    unlink(ours);
    return r < 0 ? r : check_answer(answer, why);
}

/* Copies our library into a folder of the VM from which it may be loaded. path (PATH_MAX bytes): the VM's name of the copy. */
static int copy_library(const struct vm *vm, const uint8_t *data, size_t len, const char *name, char *path, struct buf *why)
{
    int r = attach_as_vm(vm);
    if (r < 0)
        return say(why, r, "cannot act as the VM's user");
    r = -EROFS;
    for (size_t i = 0; i < ARRAY_SIZE(folders) && r < 0; i++) {
        char ours[PATH_MAX + 64];
        struct statvfs fs;
        snprintf(path, PATH_MAX, "%s/%s", folders[i], name);
        if (statvfs(vm_path(vm, folders[i], ours, sizeof(ours)), &fs) < 0 || fs.f_flag & ST_NOEXEC)
            continue;
        vm_path(vm, path, ours, sizeof(ours));
        unlink(ours); /* a copy that an earlier command left when it was killed */
        int fd = open(ours, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0700);
        r = fd < 0 ? -errno : write_all(fd, data, len);
        if (fd >= 0)
            close(fd);
        if (fd >= 0 && r < 0)
            unlink(ours);
    }
    attach_as_self();
    if (r < 0)
        say(why, r,
            r == -ENOSPC ? "no space for the agent in the VM's /tmp"
                         : "no folder of the VM can take the agent (read-only or noexec); start it with -agentpath");
    return r;
}

/*
 * The first message to a library that the VM has not loaded yet asks for nothing: the VM looks native methods up only in
 * agents whose Agent_OnAttach has returned, and the probes of a recording have such.
 */
static int load_then_talk(const struct vm *vm, const char *library, const char *options, struct buf *answer, struct buf *why)
{
    _cleanup_(buf_release) struct buf first = BUF(CONTROL_ANSWER_MAX);
    int r = talk(vm, library, "control=status", &first, why);
    return r < 0 ? r : talk(vm, library, options, answer, why);
}

/* Loads our library and hands it the message; a copy of it when the VM does not see ours. */
static int load_and_talk(const struct vm *vm, const char *options, struct buf *answer, struct buf *why)
{
    char ours[PATH_MAX], theirs[PATH_MAX], path[PATH_MAX + 64], name[64];
    if (agent_find_library(ours, sizeof(ours)) < 0)
        return say(why, -ENOENT, LIBRARY " is not beside the command");
    struct stat a, b;
    bool seen = stat(ours, &a) == 0 && stat(vm_path(vm, ours, path, sizeof(path)), &b) == 0 && a.st_ino == b.st_ino &&
                a.st_dev == b.st_dev && access(path, R_OK) == 0;
    if (seen)
        return load_then_talk(vm, ours, options, answer, why);
    _cleanup_free_ uint8_t *data = NULL;
    size_t len;
    int r = read_file(ours, 1 << 28, &data, &len);
    if (r < 0)
        return say(why, r, "cannot read the agent's library");
    snprintf(name, sizeof(name), COPY_NAME, hash_bytes(data, len));
    r = copy_library(vm, data, len, name, theirs, why);
    if (r < 0)
        return r;
    r = load_then_talk(vm, theirs, options, answer, why);
    unlink(vm_path(vm, theirs, path, sizeof(path)));
    return r;
}

/* Whether a library that the VM has mapped is our build: our file itself or a copy named after its contents. */
static bool is_our_build(const struct vm *vm, const char *mapped)
{
    char ours[PATH_MAX], path[PATH_MAX + 64], name[64];
    struct stat a, b;
    if (agent_find_library(ours, sizeof(ours)) < 0)
        return false;
    if (stat(ours, &a) == 0 && stat(vm_path(vm, mapped, path, sizeof(path)), &b) == 0 && a.st_ino == b.st_ino &&
        a.st_dev == b.st_dev)
        return true;
    _cleanup_free_ uint8_t *data = NULL;
    size_t len;
    if (read_file(ours, 1 << 28, &data, &len) < 0)
        return false;
    snprintf(name, sizeof(name), COPY_NAME, hash_bytes(data, len));
    return strcmp(strrchr(mapped, '/') + 1, name) == 0;
}

/* True when the library is mapped and records now. */
static bool is_recording(const struct vm *vm, const char *library)
{
    _cleanup_(buf_release) struct buf answer = BUF(CONTROL_ANSWER_MAX * 2), why = BUF(4096);
    if (talk(vm, library, "control=status", &answer, &why) < 0)
        return false;
    _cleanup_free_ char *state = agent_answer_value(buf_str(&answer), "state", 0);
    return state && strcmp(state, "recording") == 0;
}

int agent_message(const struct vm *vm, const char *options, bool load, struct buf *answer, struct buf *why)
{
    char **mapped;
    int r = vm_mapped_files(vm, is_agent, &mapped);
    if (r == -ENOENT)
        return load ? load_and_talk(vm, options, answer, why) : say(why, -ESRCH, "nothing is being recorded in it");
    if (r < 0)
        return say(why, r, "cannot see what it has loaded");
    /* The agent that records is the one to talk to; without one, to start, the one of this build. */
    const char *library = NULL;
    for (char **m = mapped; *m; m++) {
        bool only = !mapped[1] && !load;
        if (only || is_recording(vm, *m))
            library = *m;
    }
    for (char **m = mapped; *m && !library; m++) {
        if (!load || is_our_build(vm, *m))
            library = *m;
    }
    r = library ? talk(vm, library, options, answer, why) : load_and_talk(vm, options, answer, why);
    free_names(mapped);
    return r;
}

char *agent_answer_value(const char *answer, const char *key, unsigned nth)
{
    size_t n = strlen(key);
    for (const char *line = answer; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ' && nth-- == 0)
            return strndup(line + n + 1, strcspn(line + n + 1, "\n"));
    }
    return NULL;
}
