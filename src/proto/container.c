/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/container.h"

#include "base/file.h"
#include "base/hex.h"
#include "proto/namespace.h"
#include "proto/vm.h"
#include "proto/vm_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ID_DIGITS = 64, ID_SHOWN = 12, GROUPS_BYTES = 1 << 20 };

static size_t hexadecimal_digits(const char *text)
{
    return strspn(text, "0123456789abcdef");
}

/*
 * Finds the last run of exactly 64 digits, because the path names a nested container after the
 * outer one.
 */
static bool find_id(const char *text, char ret[CONTAINER_ID_MAX])
{
    bool found = false;
    for (size_t n; *text; text += n) {
        n = hexadecimal_digits(text);
        if (n == ID_DIGITS) {
            snprintf(ret, CONTAINER_ID_MAX, "%.*s", ID_SHOWN, text);
            found = true;
        }
        n = n ? n : 1;
    }
    return found;
}

/* Decodes systemd's escapes in the name of a unit, such as \x2d for a hyphen, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; to++) {
        int high = at[0] == '\\' && at[1] == 'x' ? hex_digit(at[2]) : -1;
        int low = high >= 0 ? hex_digit(at[3]) : -1;
        bool escaped = low >= 0 && (high || low);
        *to = escaped ? (char)(high << 4 | low) : *at;
        at += escaped ? 4 : 1;
    }
    *to = 0;
}

/*
 * Stores the text between a prefix and one of the characters that end it, up to a ".scope". Returns
 * false if there is none.
 */
static bool find_name(const char *text, const char *prefix, const char *end,
                      char ret[CONTAINER_ID_MAX])
{
    const char *at = strstr(text, prefix);
    if (!at)
        return false;
    at += strlen(prefix);
    size_t n = strcspn(at, end);
    const char *scope = strstr(at, ".scope");
    if (scope && scope < at + n)
        n = (size_t)(scope - at);
    if (n == 0 || n >= CONTAINER_ID_MAX)
        return false;
    snprintf(ret, CONTAINER_ID_MAX, "%.*s", (int)n, at);
    unescape(ret);
    return true;
}

bool container_of_groups(const char *text, char ret[CONTAINER_ID_MAX])
{
    return find_id(text, ret) || find_name(text, "/lxc.payload.", "/\n", ret) ||
           find_name(text, "/lxc/", "/\n", ret) ||
           find_name(text, "/machine.slice/machine-", "/\n", ret);
}

/* Reads the first line of a file of the VM's root. */
static void read_line(const struct vm *vm, const char *path, char ret[CONTAINER_ID_MAX])
{
    char text[CONTAINER_ID_MAX];
    _cleanup_close_ int fd = vm_file_open(vm, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[MAX(n, 0)] = 0;
    snprintf(ret, CONTAINER_ID_MAX, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Stores the id in a file such as /proc/self/cgroup, or "" if it has none. */
static void read_id(const char *path, char ret[CONTAINER_ID_MAX])
{
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    if (file_read_path(path, GROUPS_BYTES, &text, &len) < 0 || !text ||
        !container_of_groups((const char *)text, ret))
        ret[0] = 0;
}

static bool is_our_id(const char *id)
{
    char ours[CONTAINER_ID_MAX];
    read_id("/proc/self/cgroup", ours);
    return strcmp(id, ours) == 0;
}

static bool is_our_name(const char *name)
{
    char ours[CONTAINER_ID_MAX] = "";
    return gethostname(ours, sizeof(ours) - 1) == 0 && strcmp(name, ours) == 0;
}

/*
 * Reads the name that the VM's processes see, if it is of another namespace than ours. Only a
 * process in that namespace can read it.
 */
static bool read_uts_name(const struct vm *vm, char ret[CONTAINER_ID_MAX])
{
    int ends[2];
    if (namespace_is_ours(vm, "uts") || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        char name[CONTAINER_ID_MAX] = "";
        bool read = namespace_join_any(vm, "uts", CLONE_NEWUTS) == 0 &&
                    gethostname(name, sizeof(name) - 1) == 0;
        _exit(read && write(ends[1], name, sizeof(name)) == sizeof(name) ? 0 : 1);
    }
    close(ends[1]);
    char name[CONTAINER_ID_MAX];
    bool received = child > 0 && read(ends[0], name, sizeof(name)) == sizeof(name);
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (received)
        memcpy(ret, name, sizeof(name));
    return received;
}

bool container_of(const struct vm *vm, char ret_id[CONTAINER_ID_MAX],
                  char ret_name[CONTAINER_ID_MAX])
{
    char path[64];
    ret_name[0] = 0;
    snprintf(path, sizeof(path), "/proc/%d/cgroup", vm->pid);
    read_id(path, ret_id);
    if (!vm->other_root)
        return false;
    if (!read_uts_name(vm, ret_name))
        read_line(vm, "/etc/hostname", ret_name);
    if (is_our_id(ret_id) && (!ret_name[0] || is_our_name(ret_name)) &&
        namespace_is_ours(vm, "uts") && namespace_is_ours(vm, "pid")) {
        ret_name[0] = 0;
        return false;
    }
    /* By default Docker uses the id as the host name. */
    if (ret_id[0] && strncmp(ret_name, ret_id, ID_SHOWN) == 0)
        ret_name[0] = 0;
    return true;
}
