/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int file_map_fd(struct file_map *ret, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -ENXIO;
    struct file_map m = {.len = (size_t)st.st_size};
    if (m.len) {
        void *p = mmap(NULL, m.len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            return -errno;
        m.data = p;
    }
    *ret = m;
    return 0;
}

int file_map_open(struct file_map *ret, const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : file_map_fd(ret, fd);
}

void file_map_release(struct file_map *m)
{
    if (m->data)
        munmap((void *)m->data, m->len);
    *m = (struct file_map){0};
}

const char *file_map_why(int error)
{
    return error == -ENXIO ? "it is a pipe or a device, not a file" : strerror(-error);
}

bool file_list_next(const char **rest, char path[PATH_MAX])
{
    const char *at = *rest + strspn(*rest, ", ");
    if (!*at)
        return false;
    const char *end = at + strlen(at), *first = at + strcspn(at, ",");
    for (bool exists = false; !exists; end = exists ? end : memrchr(at, ',', (size_t)(end - at))) {
        size_t len = (size_t)(end - at);
        snprintf(path, PATH_MAX, "%.*s", len < PATH_MAX ? (int)len : 0, at);
        exists = end == first || access(path, F_OK) == 0;
    }
    *rest = end;
    return true;
}

bool file_name_ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcasecmp(name + n - m, end) == 0;
}

bool file_is_foreign(const char *path, const void *start, size_t len)
{
    char found[64];
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) /* a file that may not be read is another user's, of the same kind */
        return errno != ENOENT && errno != ENOTDIR && errno != EACCES;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return true;
    ssize_t n = pread(fd, found, MIN(len, sizeof(found)), 0);
    return n < 0 || memcmp(found, start, (size_t)n) != 0;
}

bool file_holds_other(const char *path, const void *start, size_t len)
{
    static const char zeros[64];
    char found[sizeof(zeros)];
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    ssize_t n = pread(fd, found, MIN(len, sizeof(found)), 0);
    return n > 0 && memcmp(found, start, (size_t)n) != 0 && memcmp(found, zeros, (size_t)n) != 0;
}

const char *file_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int file_read_all(int fd, size_t limit, uint8_t **ret, size_t *ret_len)
{
    _cleanup_free_ uint8_t *data = NULL;
    size_t len = 0, cap = 0;
    for (;;) {
        if (cap - len < 2) {
            cap = cap ? cap * 2 : 4096;
            uint8_t *p = realloc(data, cap);
            if (!p)
                return -ENOMEM;
            data = p;
        }
        ssize_t n = read(fd, data + len, cap - len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > limit)
            return -EFBIG;
    }
    data[len] = 0;
    *ret = TAKE(data);
    *ret_len = len;
    return 0;
}

int file_read_path(const char *path, size_t limit, uint8_t **ret, size_t *ret_len)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : file_read_all(fd, limit, ret, ret_len);
}

static sighandler_t limit_action = SIG_DFL;

void file_limit_begin(void)
{
    limit_action = signal(SIGXFSZ, SIG_IGN);
}

void file_limit_end(void)
{
    signal(SIGXFSZ, limit_action);
}

static void on_fault(int number)
{
    static const char line[] = "jvmscope: a mapped file: it shrank while it was "
                               "read, or its disk is full\n";
    _exit(write(STDERR_FILENO, line, sizeof(line) - 1) < 0 ? 1 : 1);
}

void file_fault_begin(void)
{
    sigaction(SIGBUS, &(struct sigaction){.sa_handler = on_fault}, NULL);
}

int file_write_all(int fd, const void *bytes, size_t len)
{
    for (const char *p = bytes; len;) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Opens one component of the path after the other. Each must be a folder and must not be a link. */
int file_open_in_root_by_steps(int root, const char *path, int flags, mode_t mode)
{
    char part[NAME_MAX + 1];
    _cleanup_close_ int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        if (n > NAME_MAX)
            return -ENAMETOOLONG;
        snprintf(part, sizeof(part), "%.*s", n ? (int)n : 1, n ? path : ".");
        if (strcmp(part, "..") == 0)
            return -EXDEV;
        path += n;
        bool last = !path[strspn(path, "/")];
        int next =
            openat(at, part, (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC, mode);
        struct stat st;
        /* O_PATH opens a link itself instead of following it. */
        if (next >= 0 && fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
            close(next);
            return -ELOOP;
        }
        if (next < 0 || last)
            return next < 0 ? -errno : next;
        close(at);
        at = next;
    }
    return -errno;
}

int file_open_in_root(int root, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
    /*
     * A container's seccomp filter that does not know the call answers EPERM. If access is really
     * denied, the fallback will find that as well.
     */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return file_open_in_root_by_steps(root, path, flags, mode);
    return fd < 0 ? -errno : (int)fd;
}

/*
 * Creates a temporary file with a unique name next to `path`. This is the fallback if O_TMPFILE is
 * unknown, or if /proc, by which such a file gets its name, is not mounted. The file is left behind
 * if the process is killed.
 */
static int open_temporary(struct out_file *f, mode_t mode)
{
    if (asprintf(&f->temporary, "%s.XXXXXX", f->path) < 0) {
        f->temporary = NULL;
        return -ENOMEM;
    }
    f->fd = mkostemp(f->temporary, O_CLOEXEC);
    int r = f->fd < 0 ? -errno : 0;
    if (r == 0 && fchmod(f->fd, mode) < 0)
        r = -errno;
    if (f->fd < 0)
        free(TAKE(f->temporary));
    return r;
}

static int open_new(struct out_file *f, mode_t mode)
{
    _cleanup_free_ char *folder = strdup(f->path);
    if (!folder)
        return -ENOMEM;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    if (access("/proc/self/fd", X_OK) == 0)
        f->fd = open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return open_temporary(f, mode);
    return fchmod(f->fd, mode) < 0 ? -errno : 0;
}

static int open_with_mode(struct out_file *ret, const char *path, mode_t mode)
{
    struct out_file f = OUT_FILE;
    struct stat st;
    bool exists = stat(path, &st) == 0;
    int r = 0;
    if (strcmp(path, "-") == 0) {
        f.fd = dup(STDOUT_FILENO);
        r = f.fd < 0 ? -errno : 0;
    } else if (exists && S_ISDIR(st.st_mode)) {
        r = -EISDIR;
    } else if (exists && !S_ISREG(st.st_mode)) {
        f.fd = open(path, O_WRONLY | O_CLOEXEC);
        r = f.fd < 0 ? -errno : 0;
    } else {
        f.path = strdup(path);
        r = f.path ? open_new(&f, mode) : -ENOMEM;
    }
    if (r < 0) {
        out_file_release(&f);
        return r;
    }
    *ret = f;
    return 0;
}

static mode_t usual_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

int out_file_open_like(struct out_file *ret, const char *path, const char *like)
{
    struct stat st;
    bool is_private = like && stat(like, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 0077);
    return open_with_mode(ret, path, is_private ? 0600 : usual_mode());
}

int out_file_open_private(struct out_file *ret, const char *path)
{
    return open_with_mode(ret, path, 0600);
}

int out_file_open(struct out_file *ret, const char *path)
{
    return open_with_mode(ret, path, usual_mode());
}

int out_file_write(struct out_file *f, const void *bytes, size_t len)
{
    if (f->error == 0)
        f->error = file_write_all(f->fd, bytes, len);
    return f->error;
}

static ssize_t write_stream(void *context, const char *bytes, size_t len)
{
    int r = out_file_write(context, bytes, len);
    errno = -r;
    return r < 0 ? 0 : (ssize_t)len;
}

FILE *out_file_stream(struct out_file *f)
{
    return fopencookie(f, "w", (cookie_io_functions_t){.write = write_stream});
}

/*
 * Links an unnamed file to its path. linkat() cannot replace an existing file, so in that case the
 * file gets a temporary name, which commit then renames.
 */
static int give_name(struct out_file *f)
{
    char from[32];
    snprintf(from, sizeof(from), "/proc/self/fd/%d", f->fd);
    if (linkat(AT_FDCWD, from, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    if (asprintf(&f->temporary, "%s.%ld-%d", f->path, (long)getpid(), f->fd) < 0) {
        f->temporary = NULL;
        return -ENOMEM;
    }
    if (linkat(AT_FDCWD, from, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    int r = -errno;
    free(TAKE(f->temporary));
    return r;
}

/*
 * Closes a copy of a descriptor. Some file systems report that they ran out of space only when a
 * descriptor is closed; this shows such an error before the file gets its name.
 */
static int close_copy(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 || close(copy) < 0 ? -errno : 0;
}

int out_file_commit(struct out_file *f)
{
    int r = f->error ? f->error : close_copy(f->fd);
    if (r == 0 && f->path && !f->temporary)
        r = give_name(f);
    close(TAKE_FD(f->fd));
    if (r == 0 && f->temporary && rename(f->temporary, f->path) < 0)
        r = -errno;
    if (r == 0)
        free(TAKE(f->temporary));
    return r;
}

void out_file_release(struct out_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->temporary)
        unlink(f->temporary);
    free(f->temporary);
    free(f->path);
    *f = OUT_FILE;
}
