/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/scratch.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>

enum { TRIES = 100, ROOM = 4096, DAY_S = 24 * 3600 };

#define SHM_ROOM (UINT64_C(64) << 20)

static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm"};

static int fail(struct buf *why, int error, const char *text)
{
    buf_string(why, text);
    return error;
}

/* ---- removal of leftovers; all of this runs as the VM's user ---- */

static bool is_own(const struct vm *vm, int folder, const char *name, mode_t kind, struct stat *ret)
{
    return fstatat(folder, name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
           (ret->st_mode & S_IFMT) == kind && ret->st_uid == vm->uid;
}

/*
 * Locks a file that no command holds any more. Returns a descriptor, -ENOENT when the file does not
 * exist, or another negative errno when it is in use. A caller that removes the file keeps the lock
 * until it has done so. Otherwise a command that has just created the file could lock it in between
 * and lose it all the same.
 */
static int lock_left(int folder, const char *name)
{
    struct stat locked, named;
    _cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &locked) < 0 ||
        fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    /*
     * Another command may have removed the file after it was opened and created a new one of this
     * name.
     */
    if (locked.st_dev != named.st_dev || locked.st_ino != named.st_ino)
        return -EAGAIN;
    return TAKE_FD(fd);
}

/* `stop -o` can still fetch the recording of a killed command, so keep it for a day. */
static bool is_kept(const char *extension, const struct stat *st)
{
    static const char *const recordings[] = {".jfr", ".hprof", ".txt"};
    for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
        if (strcmp(extension, recordings[i]) == 0)
            return time(NULL) - st->st_mtim.tv_sec < DAY_S;
    }
    return false;
}

/*
 * Locks the file whose name is `name` without its extension; a file with the extension is in use as
 * long as that file is. Returns a descriptor, -ENOENT if it does not exist, or another negative
 * errno if it is in use.
 */
static int lock_base(int folder, const char *name, const char *extension)
{
    char base[NAME_MAX + 1];
    snprintf(base, sizeof(base), "%.*s", (int)(extension - name), name);
    return lock_left(folder, base);
}

static void remove_scratch(const struct vm *vm, int folder, const char *name)
{
    struct stat st;
    if (!is_own(vm, folder, name, S_IFREG, &st))
        return;
    _cleanup_close_ int own = lock_left(folder, name), base_lock = -1;
    if (own < 0)
        return;
    const char *extension = strchr(name + 1, '.');
    if (extension) {
        base_lock = lock_base(folder, name, extension);
        if ((base_lock < 0 && base_lock != -ENOENT) || is_kept(strrchr(name, '.'), &st))
            return;
    }
    unlinkat(folder, name, 0);
}

/*
 * Returns whether a name ends in a process id that no process has. Ids of another pid namespace
 * cannot be checked.
 */
static bool process_is_gone(const struct vm *vm, const char *number)
{
    char *end;
    long pid = strtol(number, &end, 10);
    return vm->pid == vm->inner_pid && !*end && pid > 0 && kill((pid_t)pid, 0) < 0 &&
           errno == ESRCH;
}

/*
 * Returns whether the VM of a socket is gone. A VM listens on its socket before it renames it to
 * this name, so if nobody listens, the VM is gone.
 */
static bool nobody_listens(int folder, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.40s", folder, name);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
           errno == ECONNREFUSED;
}

/* Checks the files of VMs and other tools for the attach protocol, which have no locks. */
static bool is_stale(const struct vm *vm, int folder, const char *name)
{
    static const char socket_prefix[] = ".java_pid", trigger_prefix[] = ".attach_pid";
    struct stat st;
    if (strncmp(name, socket_prefix, strlen(socket_prefix)) == 0)
        return is_own(vm, folder, name, S_IFSOCK, &st) &&
               process_is_gone(vm, name + strlen(socket_prefix)) && nobody_listens(folder, name);
    /* The file by which a VM distinguishes attach's SIGQUIT from a request for a thread dump. */
    if (strncmp(name, trigger_prefix, strlen(trigger_prefix)) == 0)
        return is_own(vm, folder, name, S_IFREG, &st) &&
               process_is_gone(vm, name + strlen(trigger_prefix));
    return false;
}

static void clean_folder(const struct vm *vm, int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = fd < 0 ? NULL : fdopendir(fd);
    if (!all && fd >= 0)
        close(fd);
    for (struct dirent *e; all && (e = readdir(all));) {
        if (strncmp(e->d_name, SCRATCH_PREFIX, strlen(SCRATCH_PREFIX)) == 0)
            remove_scratch(vm, folder, e->d_name);
        else if (is_stale(vm, folder, e->d_name))
            unlinkat(folder, e->d_name, 0);
    }
    if (all)
        closedir(all);
}

/* Returns whether the name is that of a recording that no command waits for. Runs as the user. */
static bool is_recording_left(const struct vm *vm, int folder, const char *name)
{
    struct stat st;
    const char *extension = strchr(name + 1, '.');
    if (strncmp(name, SCRATCH_PREFIX, strlen(SCRATCH_PREFIX)) != 0 || !extension ||
        !is_own(vm, folder, name, S_IFREG, &st) || !is_kept(strrchr(name, '.'), &st))
        return false;
    _cleanup_close_ int base_lock = lock_base(folder, name, extension);
    return base_lock >= 0 || base_lock == -ENOENT;
}

/* Runs as the user. */
static bool is_wanted(const struct vm *vm, scratch_wanted *wanted, int folder, const char *name)
{
    _cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && wanted(vm, fd);
}

bool scratch_find_recording(const struct vm *vm, scratch_wanted *wanted, char *path, size_t size)
{
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(folders) && !found; i++) {
        int fd = vm_file_open(vm, folders[i], O_RDONLY | O_DIRECTORY, 0);
        DIR *all = fd < 0 || vm_user_enter(vm) < 0 ? NULL : fdopendir(fd);
        for (struct dirent *e; all && !found && (e = readdir(all));) {
            found = is_recording_left(vm, fd, e->d_name) && is_wanted(vm, wanted, fd, e->d_name);
            if (found)
                snprintf(path, size, "%s/%s", folders[i], e->d_name);
        }
        vm_user_leave();
        if (all)
            closedir(all);
        else
            close_descriptor(&fd);
    }
    return found;
}

/* ---- creation ---- */

/*
 * Creates and locks a new file. Returns -EAGAIN if another command took it for a leftover before it
 * was locked.
 */
static int make_locked(int folder, const char *name, mode_t mode)
{
    struct stat st;
    _cleanup_close_ int fd =
        openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return errno == EEXIST ? -EAGAIN : -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    if (fstat(fd, &st) < 0 || st.st_nlink == 0)
        return -EAGAIN;
    return TAKE_FD(fd);
}

static int make_base(struct scratch *s, const char *folder)
{
    static const char room[ROOM];
    int r = -EAGAIN;
    for (int i = 0; r == -EAGAIN && i < TRIES; i++) {
        unsigned long long number;
        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
            return -errno;
        snprintf(s->path, sizeof(s->path), "%s/" SCRATCH_PREFIX "%016llx", folder, number);
        s->name = s->path + strlen(folder) + 1;
        r = make_locked(s->folder, s->name, 0600);
    }
    if (r < 0)
        return r;
    s->fd = r;
    r = file_write_all(s->fd, room, sizeof(room));
    return r == 0 && (ftruncate(s->fd, 0) < 0 || lseek(s->fd, 0, SEEK_SET) < 0) ? -errno : r;
}

static uint64_t room_in(int folder)
{
    struct statvfs fs;
    return folder >= 0 && fstatvfs(folder, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize
                                                     : UINT64_MAX;
}

/*
 * Sorts the folders: first those with enough room, in their order, then the others by the room that
 * they have.
 */
static void order_folders(const struct vm *vm, uint64_t room, size_t order[ARRAY_SIZE(folders)])
{
    uint64_t has[ARRAY_SIZE(folders)];
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        _cleanup_close_ int fd = vm_open_folder(vm, folders[i]);
        uint64_t most = strcmp(folders[i], "/dev/shm") == 0 ? SHM_ROOM : UINT64_MAX;
        has[i] = MIN(MIN(room_in(fd), most), room);
        size_t at = i;
        for (; at && has[order[at - 1]] < has[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

int scratch_make(struct scratch *ret, const struct vm *vm, struct buf *why)
{
    return scratch_make_roomy(ret, vm, 0, why);
}

uint64_t scratch_room(const struct scratch *s)
{
    return room_in(s->folder);
}

int scratch_make_roomy(struct scratch *ret, const struct vm *vm, uint64_t room, struct buf *why)
{
    struct scratch s = SCRATCH;
    size_t order[ARRAY_SIZE(folders)];
    s.vm = vm;
    order_folders(vm, room, order);
    int r = -ENOENT;
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        const char *folder = folders[order[i]];
        s.folder = vm_open_folder(vm, folder);
        r = s.folder < 0 ? s.folder : vm_user_enter(vm);
        if (r == 0) {
            clean_folder(vm, s.folder);
            r = make_base(&s, folder);
            vm_user_leave();
        }
        if (r == 0) {
            *ret = s;
            ret->name = ret->path + (s.name - s.path);
            return 0;
        }
        scratch_release(&s);
        s.vm = vm;
    }
    if (r == -EROFS)
        return fail(why, r,
                    "its /tmp, /var/tmp and /dev/shm are read-only: no place for the agent's "
                    "answer; start it with -agentpath");
    if (r == -ENOSPC || r == -EDQUOT)
        return fail(why, r,
                    "no space left in its /tmp, /var/tmp and /dev/shm for the agent's answer");
    if (r == -EPERM)
        return fail(why, r, VM_USER_REFUSED);
    buf_printf(why, "no folder of the VM can take the agent's answer: %s", strerror(-r));
    return r;
}

void scratch_release(struct scratch *s)
{
    /*
     * Remove the file before releasing its lock, because a file that can be locked counts as a
     * leftover.
     */
    if (s->fd >= 0 && vm_user_enter(s->vm) == 0) {
        unlinkat(s->folder, s->name, 0);
        vm_user_leave();
    }
    close_descriptor(&s->fd);
    close_descriptor(&s->folder);
    *s = SCRATCH;
}

void scratch_sibling(const struct scratch *s, const char *extension, char *path, size_t size)
{
    snprintf(path, size, "%s%s", s->path, extension);
}

void scratch_remove_sibling(const struct scratch *s, const char *path)
{
    if (s->folder < 0 || vm_user_enter(s->vm) < 0)
        return;
    unlinkat(s->folder, strrchr(path, '/') + 1, 0);
    vm_user_leave();
}

bool scratch_is_sibling(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        size_t n = strlen(folders[i]);
        if (strncmp(path, folders[i], n) == 0 &&
            strncmp(path + n, "/" SCRATCH_PREFIX, strlen(SCRATCH_PREFIX) + 1) == 0)
            return strchr(path + n + 1, '/') == NULL;
    }
    return false;
}

/* Makes a copy of the library. Runs as the VM's user. */
static int make_library(int folder, const char *name, const void *data, size_t len)
{
    int fd = -EAGAIN;
    for (int i = 0; fd == -EAGAIN && i < TRIES; i++) {
        fd = make_locked(folder, name, 0700);
        /* Another command is about to load the same library; do not remove its copy meanwhile. */
        if (fd == -EAGAIN) {
            _cleanup_close_ int left = lock_left(folder, name);
            if (left >= 0)
                unlinkat(folder, name, 0);
            else
                usleep(50000);
        }
    }
    int r = fd < 0 ? fd : file_write_all(fd, data, len);
    if (r < 0 && fd >= 0) {
        unlinkat(folder, name, 0);
        close(fd);
    }
    return r < 0 ? r : fd;
}

int scratch_library(const struct vm *vm, const char *name, const void *data, size_t len, char *path,
                    size_t size, int *ret_fd, struct buf *why)
{
    int r = -EROFS;
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        struct statvfs fs;
        _cleanup_close_ int folder = vm_open_folder(vm, folders[i]);
        if (folder < 0 || fstatvfs(folder, &fs) < 0 || fs.f_flag & ST_NOEXEC)
            continue;
        r = vm_user_enter(vm);
        if (r == 0) {
            r = make_library(folder, name, data, len);
            vm_user_leave();
        }
        if (r >= 0) {
            *ret_fd = r;
            snprintf(path, size, "%s/%s", folders[i], name);
            return 0;
        }
    }
    return fail(why, r,
                r == -ENOSPC || r == -EDQUOT ? "no space for the agent in the VM's /tmp"
                                             : "no folder of the VM can take the agent (read-only "
                                               "or noexec)");
}
