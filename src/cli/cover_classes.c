/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cover_classes.h"

#include "base/buf.h"
#include "base/cursor.h"
#include "base/dotted.h"
#include "base/file.h"
#include "base/strpool.h"
#include "classfile/cover.h"
#include "classfile/debug.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

enum { CLASS_MAX = 64 << 20, DEPTH_MAX = 64, POINTS_TEXT_MAX = 16 << 20 };

struct adding {
    struct coverage *to;
    struct class_file class;
    struct rewrite rewrite;
    struct cover_table points;
    size_t bad;
};

static bool ends_in(const char *name, const char *end)
{
    return str_ends_in((struct str){name, strlen(name)}, end);
}

static bool is_class_file(const char *name)
{
    return ends_in(name, ".class") && !ends_in(name, "module-info.class") &&
           !ends_in(name, "package-info.class") && !strstr(name, "META-INF/versions/");
}

/* Adds a method's points, all unhit, in the text form that coverage_add reads. */
static int add_method(struct adding *a, const char *class_name, const struct cover_method *m)
{
    _cleanup_(buf_release) struct buf lines = BUF(POINTS_TEXT_MAX), branches = BUF(POINTS_TEXT_MAX);
    for (uint32_t i = 0; i < m->count; i++) {
        const struct cover_point *p = &m->points[i];
        if (p->edge == LINE_START)
            buf_printf(&lines, "%s%u:0", lines.len ? " " : "", p->line);
        else if (p->edge == FALL_THROUGH)
            buf_printf(&branches, "%s%u:%u:-:0", branches.len ? " " : "", p->line, p->pc);
        else
            buf_printf(&branches, "%s%u:%u:%u:0", branches.len ? " " : "", p->line, p->pc, p->edge);
    }
    if (buf_error(&lines) || buf_error(&branches))
        return -E2BIG;
    return coverage_add(a->to, class_name, m->source, m->name, m->descriptor, buf_str(&lines),
                        buf_str(&branches));
}

/* Returns -EBADMSG when the data is not a class file. */
static int add_class(struct adding *a, const uint8_t *data, size_t len)
{
    _cleanup_(buf_release) struct buf name = BUF(1 << 17);
    int r = class_parse(&a->class, data, len);
    if (r < 0)
        return r;
    struct str internal = class_name_at(&a->class, a->class.this_class);
    dotted_append(&name, internal.data, internal.len);
    if (buf_error(&name) || memchr(internal.data, 0, internal.len))
        return -EBADMSG;
    if (coverage_has_class(a->to, buf_str(&name)))
        return 0;
    struct cursor attribute = class_attribute(&a->class, a->class.attributes_start, "SourceFile");
    struct str source = class_utf8(&a->class, cursor_be16(&attribute));
    r = rewrite_begin(&a->rewrite, &a->class);
    for (size_t i = 0; r == 0 && i < a->class.methods.len; i++) {
        struct edit *e;
        int error = 0;
        if (!a->class.methods.data[i].code || edit_begin(&a->rewrite, i, &e) < 0)
            continue;
        const struct cover_method *m =
            cover_add(&a->points, internal, source, e, UINT32_MAX, &error);
        r = m ? add_method(a, buf_str(&name), m) : error;
    }
    cover_release(&a->points);
    return r;
}

static int add_or_count(struct adding *a, const uint8_t *data, size_t len)
{
    int r = add_class(a, data, len);
    a->bad += r < 0 && r != -ENOMEM;
    return r == -ENOMEM ? r : 0;
}

static int add_file(struct adding *a, const char *path)
{
    struct file_map map = {0};
    int r = file_map_open(&map, path);
    if (r == 0)
        r = add_or_count(a, map.data, map.len);
    file_map_release(&map);
    return r;
}

/* ---- jars ---- */

/* Adds the class stored at `local` in a jar (APPNOTE.TXT 4.3.7), compressed or not. */
static int add_packed(struct adding *a, struct cursor jar, uint32_t local, unsigned method,
                      size_t packed, size_t size)
{
    cursor_skip(&jar, local);
    struct cursor head = cursor_sub(&jar, 30);
    cursor_skip(&head, 26);
    size_t name = cursor_le16(&head), extra = cursor_le16(&head);
    cursor_skip(&jar, name + extra);
    const uint8_t *data = cursor_take(&jar, packed);
    if (!data || size > CLASS_MAX || (method && method != Z_DEFLATED)) {
        a->bad++;
        return 0;
    }
    if (!method)
        return add_or_count(a, data, packed);
    _cleanup_free_ uint8_t *text = malloc(size + 1);
    z_stream z = {.next_in = (uint8_t *)data,
                  .avail_in = (uInt)packed,
                  .next_out = text,
                  .avail_out = (uInt)size};
    if (!text || inflateInit2(&z, -15) != Z_OK) /* without a header */
        return -ENOMEM;
    int r = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    a->bad += r != Z_STREAM_END;
    return r == Z_STREAM_END ? add_or_count(a, text, z.total_out) : 0;
}

/* Reads the directory at a jar's end (APPNOTE.TXT 4.3.12 and 4.3.16). */
static int add_entries(struct adding *a, struct cursor jar)
{
    enum { END = 22 };

    const uint8_t *at = cursor_left(&jar) >= END ? jar.end - END : jar.at;
    while (at > jar.at && memcmp(at, "PK\5\6", 4) != 0)
        at--;
    struct cursor end = cursor_of(at, (size_t)(jar.end - at)), list = jar;
    cursor_skip(&end, 10);
    size_t n = cursor_le16(&end);
    cursor_skip(&end, 4);
    cursor_skip(&list, cursor_le32(&end));
    int r = end.failed || memcmp(at, "PK\5\6", 4) != 0 ? -EBADMSG : 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct cursor e = cursor_sub(&list, 46);
        cursor_skip(&e, 10);
        unsigned method = cursor_le16(&e);
        cursor_skip(&e, 8);
        size_t packed = cursor_le32(&e), size = cursor_le32(&e), name = cursor_le16(&e),
               extra = cursor_le16(&e);
        size_t comment = cursor_le16(&e);
        cursor_skip(&e, 8);
        uint32_t local = cursor_le32(&e);
        const uint8_t *text = cursor_take(&list, name);
        cursor_skip(&list, extra + comment);
        if (list.failed)
            return -EBADMSG;
        _cleanup_free_ char *path = strndup((const char *)text, name);
        if (!path)
            return -ENOMEM;
        if (is_class_file(path))
            r = add_packed(a, jar, local, method, packed, size);
    }
    return r;
}

static int add_jar(struct adding *a, const char *path)
{
    struct file_map map = {0};
    int r = file_map_open(&map, path);
    if (r == 0)
        r = add_entries(a, cursor_of(map.data, map.len));
    file_map_release(&map);
    return r;
}

static int add_path(struct adding *a, const char *path, int depth)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return is_class_file(path)                   ? add_file(a, path)
               : depth == 0 || ends_in(path, ".jar") ? add_jar(a, path)
                                                     : 0;
    DIR *folder = depth < DEPTH_MAX ? opendir(path) : NULL;
    if (!folder)
        return depth < DEPTH_MAX ? -errno : -ELOOP;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(folder));) {
        char below[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        r = snprintf(below, sizeof(below), "%s/%s", path, e->d_name) < (int)sizeof(below)
                ? add_path(a, below, depth + 1)
                : -ENAMETOOLONG;
    }
    closedir(folder);
    return r;
}

int cover_classes_add(struct coverage *c, const char *path, size_t *ret_bad)
{
    struct adding a = {.to = c};
    int r = add_path(&a, path, 0);
    *ret_bad = a.bad;
    rewrite_release(&a.rewrite);
    class_release(&a.class);
    return r;
}
