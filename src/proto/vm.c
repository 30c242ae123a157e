/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/vm.h"

#include "base/file.h"
#include "base/pattern.h"
#include "hotspot/hsperf.h"
#include "proto/container.h"
#include "proto/unpublished.h"
#include "proto/vm_files.h"
#include "proto/vm_flags.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { PROC_LIMIT = 64 << 20 };

static int read_proc(pid_t pid, const char *name, char **ret, size_t *ret_len)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    uint8_t *data = NULL;
    int r = file_read_path(path, PROC_LIMIT, &data, ret_len);
    if (r < 0 || !data)
        return r == -ENOENT ? -ESRCH : r < 0 ? r : -ENOMEM;
    *ret = (char *)data;
    return 0;
}

/* Returns the text after "Name:" and its blanks in /proc/PID/status, or NULL when there is none. */
static const char *field(const char *status, const char *name)
{
    const char *at = strstr(status, name);
    return at ? at + strlen(name) + strspn(at + strlen(name), " \t") : NULL;
}

static int read_status(struct vm *vm)
{
    _cleanup_free_ char *status = NULL;
    size_t len;
    int r = read_proc(vm->pid, "status", &status, &len);
    if (r < 0)
        return r;
    const char *uid = field(status, "\nUid:"), *gid = field(status, "\nGid:"),
               *caught = field(status, "\nSigCgt:");
    unsigned real, effective;
    if (!uid || !gid || !caught || sscanf(uid, "%u %u", &real, &effective) != 2)
        return -ESRCH;
    vm->uid = effective;
    if (sscanf(gid, "%u %u", &real, &effective) != 2)
        return -ESRCH;
    vm->gid = effective;
    const char *group = field(status, "\nGroups:");
    for (char *end; group && *group && *group != '\n' && vm->n_groups < VM_GROUPS;
         group = end + strspn(end, " \t")) {
        gid_t g = (gid_t)strtoul(group, &end, 10);
        if (end == group)
            break;
        vm->groups[vm->n_groups++] = g;
    }
    vm->takes_quit = strtoull(caught, NULL, 16) >> (SIGQUIT - 1) & 1;
    /* The line has one number for each nested pid namespace, the innermost last. */
    const char *inner = field(status, "\nNSpid:");
    vm->inner_pid = vm->pid;
    for (char *end; inner && *inner && *inner != '\n'; inner = end + strspn(end, " \t")) {
        vm->inner_pid = (pid_t)strtol(inner, &end, 10);
        if (end == inner)
            break;
    }
    return 0;
}

/* Returns the letter of the process's state, or 0. */
static char state_of(const struct vm *vm, int *ret_error)
{
    _cleanup_free_ char *status = NULL;
    size_t len;
    *ret_error = read_proc(vm->pid, "status", &status, &len);
    const char *state = *ret_error == 0 ? field(status, "\nState:") : NULL;
    return state ? *state : 0;
}

bool vm_matches(const struct vm *vm, const char *pattern)
{
    const char *name = vm->command ? vm->command : "";
    const char *end = name + strcspn(name, " "), *slash;
    while ((slash = memchr(name, '/', (size_t)(end - name))))
        name = slash + 1;
    return pattern_match(pattern, name, (size_t)(end - name));
}

bool vm_is_stopped(const struct vm *vm)
{
    int error;
    char state = state_of(vm, &error);
    return state == 'T' || state == 't';
}

pid_t vm_process_of(pid_t thread)
{
    _cleanup_free_ char *status = NULL;
    size_t len;
    const char *group =
        read_proc(thread, "status", &status, &len) == 0 ? field(status, "\nTgid:") : NULL;
    return group ? (pid_t)strtol(group, NULL, 10) : 0;
}

bool vm_has_ended(const struct vm *vm)
{
    int error;
    char state = state_of(vm, &error);
    return error == -ESRCH || state == 'Z' || state == 'X';
}

bool vm_has_pending(const struct vm *vm, int signal_number)
{
    _cleanup_free_ char *status = NULL;
    size_t len;
    const char *pending =
        read_proc(vm->pid, "status", &status, &len) == 0 ? field(status, "\nShdPnd:") : NULL;
    return pending && strtoull(pending, NULL, 16) >> (signal_number - 1) & 1;
}

/*
 * Reads the file with the VM's process id from any hsperfdata_* folder of its /tmp, provided that
 * the VM's user wrote it.
 */
int vm_counters(const struct vm *vm, uint8_t **ret, size_t *ret_len)
{
    int tmp = vm_file_open(vm, "/tmp", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = tmp < 0 ? NULL : fdopendir(tmp);
    if (!dir) {
        close_descriptor(&tmp);
        return tmp < 0 ? tmp : -ENOMEM;
    }
    int r = -ENOENT;
    for (struct dirent *e; r < 0 && (e = readdir(dir));) {
        char inner[PATH_MAX];
        _cleanup_(buf_release) struct buf why = BUF(4096);
        if (strncmp(e->d_name, "hsperfdata_", 11) != 0)
            continue;
        snprintf(inner, sizeof(inner), "/tmp/%s/%d", e->d_name, vm->inner_pid);
        _cleanup_close_ int fd = vm_open_written(vm, inner, &why);
        if (fd >= 0)
            r = file_read_all(fd, 1 << 24, ret, ret_len);
    }
    closedir(dir);
    return r;
}

bool vm_has_socket(const struct vm *vm, int tmp)
{
    struct stat st;
    char name[32];
    snprintf(name, sizeof(name), ".java_pid%d", vm->inner_pid);
    /* Anyone can create a name in /tmp, so only a socket that belongs to the VM's user counts. */
    return fstatat(tmp, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
           st.st_uid == vm->uid;
}

/*
 * Returns whether a VM's listener exists already. Requests can then be sent to it even if it
 * ignores SIGQUIT.
 */
static bool listens(const struct vm *vm)
{
    _cleanup_close_ int tmp = vm_open_folder(vm, "/tmp");
    return tmp >= 0 && vm_has_socket(vm, tmp);
}

/* Returns the command line as one text. */
static char *command_line(pid_t pid)
{
    char *text = NULL;
    size_t len;
    if (read_proc(pid, "cmdline", &text, &len) < 0)
        return NULL;
    for (size_t i = 0; i + 1 < len; i++) {
        if (!text[i])
            text[i] = ' ';
    }
    return text;
}

/*
 * Returns whether a text of blanks and words has -Xrs among them, or the flag for which it stands.
 */
static bool has_xrs(const char *words)
{
    for (const char *at = words; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if ((n == 4 && strncmp(at, "-Xrs", n) == 0) ||
            (n == 22 && strncmp(at, "-XX:+ReduceSignalUsage", n) == 0))
            return true;
    }
    return false;
}

const char *vm_refusal_to_wake(const struct vm *vm)
{
    if (vm->unverified)
        return "a file of its arguments cannot be read, so it may run with "
               "-XX:+DisableAttachMechanism, and attach would make it print a thread dump: run the "
               "command as root";
    if (vm->takes_quit && !vm->without_signals)
        return NULL;
    return vm->without_signals
               ? "it runs with -Xrs and does not take SIGQUIT, and no attach listener has its "
                 "socket in /tmp, so attach would end it; it can be recorded with jvmscope run"
               : "it does not take SIGQUIT yet, so attach would end it: it is still starting";
}

const char *vm_refusal(const struct vm *vm)
{
    if (vm->openj9)
        return "it is an OpenJ9 VM, which takes no agent of HotSpot's; jvmscope reads the "
               "recordings (JFR) that such a VM makes itself";
    if (vm->attach_disabled)
        return "attach is disabled (-XX:+DisableAttachMechanism): start the program with jvmscope "
               "run or -agentpath, or without that flag";
    return vm->listens ? NULL : vm_refusal_to_wake(vm);
}

/* Reads what the VM publishes of itself. Returns whether it publishes anything. */
static bool read_counters(struct vm *vm)
{
    _cleanup_free_ uint8_t *counters = NULL;
    size_t len = 0;
    if (vm_counters(vm, &counters, &len) < 0)
        return false;
    vm->command = hsperf_string(counters, len, "sun.rt.javaCommand");
    vm->version = hsperf_string(counters, len, "java.property.java.vm.version");
    /* Up to JDK 8 this is HotSpot's own version, such as "25.504-b01" for Java "1.8.0_504". */
    char *java = hsperf_string(counters, len, "java.property.java.version");
    bool old = java && strncmp(java, "1.", 2) == 0;
    free(old ? vm->version : java);
    vm->version = old ? java : vm->version;
    _cleanup_free_ char *flags = hsperf_string(counters, len, "java.rt.vmFlags");
    _cleanup_free_ char *arguments = hsperf_string(counters, len, "java.rt.vmArgs");
    vm->without_signals = has_xrs(arguments) || has_xrs(flags);
    /* The first capability says whether the VM supports attach. */
    _cleanup_free_ char *able = hsperf_string(counters, len, "sun.rt.jvmCapabilities");
    vm->attach_disabled = able && able[0] == '0';
    return true;
}

/* Reads the version, flags and arguments of a VM that publishes no counters. */
static void read_unpublished(struct vm *vm)
{
    struct vm_flags flags;
    if (!vm->openj9)
        vm->version = unpublished_version(vm);
    vm_flags_open(&flags, vm);
    vm->attach_disabled = vm_flags_switch(&flags, "DisableAttachMechanism") == 1;
    vm->without_signals = vm_flags_switch(&flags, "ReduceSignalUsage") == 1;
    vm->unverified = !flags.in_memory && flags.arguments.incomplete;
    vm->command = TAKE(flags.arguments.command);
    vm_flags_close(&flags);
}

static void describe(struct vm *vm)
{
    _cleanup_free_ char *line = command_line(vm->pid);
    if (!read_counters(vm))
        read_unpublished(vm);
    /*
     * An -Xrs after the main class is an argument of the program, so it counts only if the VM
     * ignores SIGQUIT.
     */
    vm->without_signals |= !vm->takes_quit && has_xrs(line);
    vm->listens = listens(vm);
    vm->dies_of_quit = (!vm->takes_quit || vm->without_signals) && !vm->listens;
    if (!vm->version)
        vm->version = unpublished_version(vm);
    if (vm->command && *vm->command)
        return;
    struct arguments arguments;
    arguments_read(&arguments, vm);
    free(vm->command);
    vm->command = arguments.command ? TAKE(arguments.command) : TAKE(line);
    arguments_release(&arguments);
}

int vm_read(struct vm *ret, pid_t pid)
{
    struct vm vm = {.pid = pid, .root_fd = -1};
    int r = read_status(&vm);
    /* A /proc that is mounted with hidepid does not show the processes of other users. */
    if (r == -ESRCH && (kill(pid, 0) == 0 || errno == EPERM))
        r = -EACCES;
    if (r < 0)
        return r;
    _cleanup_free_ char *maps = NULL;
    size_t len;
    r = read_proc(pid, "maps", &maps, &len);
    if (r < 0)
        return r == -EPERM ? -EACCES : r;
    vm.openj9 = strstr(maps, "/libj9vm");
    if (!strstr(maps, "/libjvm.so") && !vm.openj9)
        return len ? -ENOEXEC : -ESRCH; /* a process that is exiting has no memory left */
    char root[64];
    struct stat ours, its;
    snprintf(root, sizeof(root), "/proc/%d/root", vm.pid);
    vm.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (vm.root_fd < 0)
        return errno == ENOENT ? -ESRCH : errno == EPERM ? -EACCES : -errno;
    vm.other_root = stat("/", &ours) < 0 || fstat(vm.root_fd, &its) < 0 ||
                    ours.st_dev != its.st_dev || ours.st_ino != its.st_ino;
    vm.other_tmp = !vm_sees(&vm, "/tmp");
    describe(&vm);
    *ret = vm;
    return 0;
}

void vm_release(struct vm *vm)
{
    free(vm->command);
    free(vm->version);
    free(vm->container_id);
    free(vm->container_name);
    if (vm->root_fd >= 0)
        close(vm->root_fd);
    *vm = (struct vm){.root_fd = -1};
}

static int compare_vms(const void *a, const void *b)
{
    const struct vm *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Reads user and system time, and the time since the start, from /proc/PID/stat (proc(5)). */
static void read_times(struct vm *vm)
{
    _cleanup_free_ char *stat = NULL;
    size_t len;
    struct timespec now;
    unsigned long long user, system, start;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    const char *at = read_proc(vm->pid, "stat", &stat, &len) == 0 ? strrchr(stat, ')') : NULL;
    if (!at ||
        sscanf(at + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
               "%*d %*d %llu",
               &user, &system, &start) != 3 ||
        clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        return;
    vm->cpu_s = (double)(user + system) / ticks;
    vm->uptime_s = MAX((double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)start / ticks, 0);
}

/* Reads what only lists show. It is left out if memory is exhausted. */
static void read_for_list(struct vm *vm)
{
    char id[CONTAINER_ID_MAX], name[CONTAINER_ID_MAX];
    read_times(vm);
    vm->other_container = container_of(vm, id, name);
    vm->container_id = *id ? strdup(id) : NULL;
    vm->container_name = *name ? strdup(name) : NULL;
}

/*
 * Describes a process that may not be inspected, by what everyone may see. Returns whether it is
 * run by `java`; otherwise *ret_unknown says whether it is a program at all, as a thread of the
 * kernel is not.
 */
static bool read_left_out(struct vm *vm, bool *ret_unknown)
{
    _cleanup_free_ char *words = NULL;
    size_t len = 0;
    int r = read_proc(vm->pid, "cmdline", &words, &len);
    *ret_unknown = r == -EACCES || r == -EPERM || (r == 0 && len);
    if (r < 0 || !len || strcmp(file_base(words), "java") != 0 || read_status(vm) < 0)
        return false;
    *ret_unknown = false;
    size_t main = unpublished_main(words, len);
    for (size_t i = 0; i + 1 < len; i++)
        words[i] = words[i] ? words[i] : ' ';
    vm->command = main ? strdup(words + main) : TAKE(words);
    read_times(vm);
    return true;
}

static int add_left_out(struct vm_list *list, pid_t pid)
{
    struct vm vm = {.pid = pid, .root_fd = -1};
    bool unknown;
    int r = read_left_out(&vm, &unknown) ? vec_push(&list->left_out, vm) : 1;
    list->unknown += unknown;
    if (r != 0)
        vm_release(&vm);
    return MIN(r, 0);
}

int vm_list_read(struct vm_list *ret)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return -errno;
    struct vm_list list = {0};
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        char *end;
        long pid = strtol(e->d_name, &end, 10);
        struct vm vm = {.root_fd = -1};
        if (*end || pid <= 0)
            continue;
        int found = vm_read(&vm, (pid_t)pid);
        if (found < 0) {
            r = found == -EACCES ? add_left_out(&list, (pid_t)pid) : 0;
            continue;
        }
        read_for_list(&vm);
        close_descriptor(&vm.root_fd);
        vm.root_fd = -1;
        r = vec_push(&list.vms, vm);
        if (r < 0)
            vm_release(&vm);
    }
    closedir(dir);
    if (r < 0) {
        vm_list_release(&list);
        return r;
    }
    list.hidden = access("/proc/1", F_OK) < 0 && kill(1, 0) < 0 && errno == EPERM;
    if (list.vms.len)
        qsort(list.vms.data, list.vms.len, sizeof(*list.vms.data), compare_vms);
    if (list.left_out.len)
        qsort(list.left_out.data, list.left_out.len, sizeof(struct vm), compare_vms);
    *ret = list;
    return 0;
}

void vm_list_release(struct vm_list *l)
{
    for (size_t i = 0; i < l->vms.len; i++)
        vm_release(&l->vms.data[i]);
    for (size_t i = 0; i < l->left_out.len; i++)
        vm_release(&l->left_out.data[i]);
    vec_release(&l->vms);
    vec_release(&l->left_out);
}

/* A line of /proc/PID/maps: "START-END PERM OFFSET MAJOR:MINOR INODE   PATH". */
struct mapping {
    unsigned major, minor;
    unsigned long long inode;
    char path[PATH_MAX];
};

static bool parse_mapping(const char *line, struct mapping *ret)
{
    int path = 0;
    if (sscanf(line, "%*s %*s %*s %x:%x %llu %n", &ret->major, &ret->minor, &ret->inode, &path) <
            3 ||
        line[path] != '/')
        return false;
    size_t n = strcspn(line + path, "\n");
    const char deleted[] = " (deleted)";
    size_t d = sizeof(deleted) - 1;
    if (n > d && memcmp(line + path + n - d, deleted, d) == 0)
        n -= d;
    if (n >= sizeof(ret->path))
        return false;
    memcpy(ret->path, line + path, n);
    ret->path[n] = 0;
    return true;
}

/*
 * Finds the VM's own name for a mapped file. maps shows the path in the VM's mount namespace, which
 * for a VM in a chroot begins with the chroot's folder. The VM's name is the longest suffix of that
 * path that names the same file under the VM's root. For a deleted file it is the path without
 * those leading folders that the VM's root does not have.
 */
static char *inner_name(const struct vm *vm, const struct mapping *m)
{
    char folder[PATH_MAX];
    const char *fallback = NULL;
    for (const char *at = m->path; at; at = strchr(at + 1, '/')) {
        struct stat st;
        _cleanup_close_ int file = vm_locate(vm, at);
        if (file >= 0 && fstat(file, &st) == 0 && st.st_ino == m->inode)
            return strdup(at);
        snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(at, '/') - at), at);
        _cleanup_close_ int fd = fallback ? -1 : vm_locate(vm, *folder ? folder : "/");
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
            fallback = at;
    }
    return fallback ? strdup(fallback) : NULL;
}

static bool known(char **names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

int vm_mapped_files(const struct vm *vm, bool (*wanted)(const char *base_name), char ***ret)
{
    _cleanup_free_ char *maps = NULL;
    size_t len;
    int r = read_proc(vm->pid, "maps", &maps, &len);
    VEC(char *) names = {0};
    for (const char *line = maps; r == 0 && line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        struct mapping m;
        if (!parse_mapping(line, &m) || !wanted(strrchr(m.path, '/') + 1))
            continue;
        char *name = inner_name(vm, &m);
        if (!name || known(names.data, names.len, name)) {
            free(name);
            continue;
        }
        r = vec_push(&names, name);
        if (r < 0)
            free(name);
    }
    size_t found = names.len;
    if (r == 0)
        r = found ? vec_push(&names, NULL) : -ENOENT;
    if (r < 0) {
        for (size_t i = 0; i < found; i++)
            free(names.data[i]);
        vec_release(&names);
        return r;
    }
    *ret = names.data;
    return 0;
}
