/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet/spool.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_LEN = 600 };

static void name_of(const struct spool *s, uint64_t number, const char *extension, char *path)
{
    snprintf(path, NAME_MAX_LEN, "%s/%012" PRIu64 ".%s", s->folder, number, extension);
}

void spool_body(const struct spool *s, uint64_t number, char *path)
{
    name_of(s, number, "jfr", path);
}

static int compare_numbers(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

int spool_list(const struct spool *s, struct spool_list *ret)
{
    struct spool_list list = {0};
    DIR *d = opendir(s->folder);
    int r = d ? 0 : -errno;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        uint64_t number;
        int used = 0;
        if (sscanf(e->d_name, "%" SCNu64 ".query%n", &number, &used) == 1 && used &&
            !e->d_name[used])
            r = vec_push(&list.numbers, number);
    }
    if (d)
        closedir(d);
    vec_sort(&list.numbers, compare_numbers);
    if (r < 0)
        vec_release(&list.numbers);
    else
        *ret = list;
    return r;
}

/* Removes bodies of uploads that were not committed, and finds the next number. */
static int read_folder(struct spool *s)
{
    struct spool_list list;
    int r = spool_list(s, &list);
    if (r < 0)
        return r;
    s->next = list.numbers.len ? list.numbers.data[list.numbers.len - 1] + 1 : 1;
    DIR *d = opendir(s->folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        uint64_t number;
        char path[NAME_MAX_LEN];
        if (!strstr(e->d_name, ".jfr") || sscanf(e->d_name, "%" SCNu64, &number) != 1 ||
            bsearch(&number, list.numbers.data ? list.numbers.data : &number, list.numbers.len,
                    sizeof(number), compare_numbers))
            continue;
        snprintf(path, sizeof(path), "%s/%.80s", s->folder, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    vec_release(&list.numbers);
    return 0;
}

/*
 * Two processes of `host` with one spool would use the same numbers. The first lock ends with this
 * process. The commands that it runs inherit the second one: they may outlive this process if it is
 * killed, and would write into the spool after the next start.
 */
static int take_locks(struct spool *s)
{
    char path[NAME_MAX_LEN];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof(path), "%s/lock", s->folder);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return -errno;
    if (fcntl(s->lock_fd, F_SETLK, &whole) < 0)
        return errno == EACCES ? -EAGAIN : -errno;
    snprintf(path, sizeof(path), "%s/running", s->folder);
    s->running_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (s->running_fd < 0)
        return -errno;
    while (flock(s->running_fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

int spool_open(struct spool *s, const char *folder, uint64_t limit)
{
    struct stat st;
    *s = (struct spool){.limit = limit, .lock_fd = -1, .running_fd = -1};
    if (strlen(folder) >= sizeof(s->folder))
        return -ENAMETOOLONG;
    strcpy(s->folder, folder);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return -errno;
    /* If somebody else owned the folder in /var/tmp, he could read and replace what is sent. */
    if (lstat(folder, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    if (st.st_uid != geteuid() || st.st_mode & 022)
        return -EPERM;
    int r = take_locks(s);
    return r < 0 ? r : read_folder(s);
}

void spool_close(struct spool *s)
{
    close_descriptor(&s->running_fd);
    close_descriptor(&s->lock_fd);
}

static uint64_t size_of(const struct spool *s, uint64_t number)
{
    char path[NAME_MAX_LEN];
    struct stat st;
    name_of(s, number, "jfr", path);
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void keep_limit(struct spool *s)
{
    struct spool_list list;
    uint64_t all = 0;
    if (spool_list(s, &list) < 0)
        return;
    for (size_t i = 0; i < list.numbers.len; i++)
        all += size_of(s, list.numbers.data[i]);
    /* The newest upload remains, however large it is. */
    for (size_t i = 0; i + 1 < list.numbers.len && all > s->limit; i++) {
        all -= size_of(s, list.numbers.data[i]);
        spool_remove(s, list.numbers.data[i]);
        s->dropped++;
    }
    vec_release(&list.numbers);
}

int spool_commit(struct spool *s, const char *query)
{
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    char path[NAME_MAX_LEN];
    name_of(s, s->next, "query", path);
    int r = out_file_open_private(&out, path);
    if (r == 0)
        r = out_file_write(&out, query, strlen(query));
    if (r == 0)
        r = out_file_commit(&out);
    if (r < 0)
        return r;
    s->next++;
    keep_limit(s);
    return 0;
}

int spool_query(const struct spool *s, uint64_t number, char **ret)
{
    char path[NAME_MAX_LEN];
    uint8_t *bytes;
    size_t len;
    name_of(s, number, "query", path);
    int r = file_read_path(path, 1 << 20, &bytes, &len);
    if (r == 0)
        *ret = (char *)bytes;
    return r;
}

void spool_remove(const struct spool *s, uint64_t number)
{
    char path[NAME_MAX_LEN];
    name_of(s, number, "query", path);
    unlink(path);
    name_of(s, number, "jfr", path);
    unlink(path);
}
