/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/coverage.h"

#include "base/file.h"
#include "jfr/reader.h"

#include <errno.h>
#include <string.h>

enum { PAGE_SOURCES = 16 << 20 }; /* the limit of source text in a page, in bytes */

void coverage_found_release(struct coverage_found *f)
{
    losses_release(&f->losses);
}

int coverage_read(struct coverage *c, const char *path, struct coverage_found *ret,
                  struct losses *ret_losses, const char **ret_why)
{
    enum { COVERAGE = 1, SETTING };

    static const struct rec_select wanted[] = {
        {"jvmscope.Coverage", COVERAGE}, {"jdk.ActiveSetting", SETTING}, {0}};
    _cleanup_(recording_closep) struct recording *r = NULL;
    int e = recording_open(&r, path, ret_why);
    if (e < 0)
        return e;
    struct rec_info info;
    recording_info(r, &info);
    ret->part = info.part_of;
    e = recording_select(r, wanted);
    struct rec_event event;
    while (e >= 0 && (e = recording_next(r, &event)) > 0) {
        const struct rec_object *o = &event.object;
        if (event.tag == SETTING) {
            ret->asked |= strcmp(rec_string(o, "name", ""), "cover") == 0 &&
                          strcmp(rec_string(o, "value", ""), "n") != 0;
            continue;
        }
        e = coverage_add(c, rec_string(o, "className", NULL), rec_string(o, "source", NULL),
                         rec_string(o, "method", NULL), rec_string(o, "descriptor", NULL),
                         rec_string(o, "lines", NULL), rec_string(o, "branches", NULL));
        ret->any = true;
        ret->damaged += e == -EBADMSG;
        e = e == -EBADMSG ? 0 : e;
    }
    return e < 0 ? e : losses_read(ret_losses, r, true);
}

/* Writes the counts of a sum. For a method only its lines and branches are written. */
static void put_sum(struct json *j, const struct cover_sum *s, bool method)
{
    enum { OF_A_METHOD = 4 };

    const struct {
        const char *key;
        uint64_t value;
    } members[] = {{"lines", s->lines},       {"lines_hit", s->lines_hit},
                   {"branches", s->branches}, {"branches_hit", s->branches_hit},
                   {"methods", s->methods},   {"methods_hit", s->methods_hit},
                   {"classes", s->classes},   {"classes_hit", s->classes_hit}};

    for (size_t i = 0; i < (method ? OF_A_METHOD : ARRAY_SIZE(members)); i++)
        json_key_u64(j, members[i].key, members[i].value);
}

static int put_class(struct json *j, const struct coverage *c, const struct cover_class *class)
{
    struct cover_sum s = {0};
    _cleanup_free_ struct cover_line *lines = NULL;
    size_t n = 0;
    int r = coverage_sum(c, class, &s);
    if (r == 0)
        r = coverage_lines(c, class, &lines, &n);
    if (r < 0)
        return r;
    json_begin_object(j);
    json_key_string(j, "class", class->name);
    json_key_string(j, "source", class->source);
    put_sum(j, &s, false);
    json_key_array(j, "by_line");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(j);
        json_key_u64(j, "line", lines[i].line);
        json_key_bool(j, "hit", lines[i].hit > 0);
        if (lines[i].edges) {
            json_key_u64(j, "branches", lines[i].edges);
            json_key_u64(j, "taken", lines[i].taken);
        }
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "by_method");
    for (size_t i = 0; i < class->bodies.len && r == 0; i++) {
        const struct cover_body *b = &c->bodies.data[class->bodies.data[i]];
        struct cover_sum of_method = {0};
        r = coverage_add_body_sum(b, &of_method);
        json_begin_object(j);
        json_key_string(j, "method", b->name);
        json_key_string(j, "descriptor", b->descriptor);
        json_key_u64(j, "line", cover_body_line(b));
        json_key_bool(j, "hit", cover_body_hit(b));
        put_sum(j, &of_method, true);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
    return r;
}

int coverage_json(const struct coverage *c, struct json *j)
{
    struct cover_sum s;
    int r = coverage_sum(c, NULL, &s);
    if (r < 0)
        return r;
    json_key_object(j, "total");
    put_sum(j, &s, false);
    json_end_object(j);
    json_key_array(j, "classes");
    for (size_t i = 0; r == 0 && i < c->classes.len; i++)
        r = put_class(j, c, &c->classes.data[i]);
    json_end_array(j);
    return r;
}

/* Writes the text of each source file that exists below the folder. */
static void put_sources(struct json *j, const struct coverage *c, const char *folder)
{
    size_t room = PAGE_SOURCES;
    _cleanup_free_ char *before = NULL;
    json_key_object(j, "texts");
    for (size_t i = 0; i < c->classes.len; i++) {
        _cleanup_free_ char *path = cover_source_path(folder, &c->classes.data[i]);
        char *name = cover_source_path(NULL, &c->classes.data[i]);
        struct file_map text;
        /* Classes of one file are usually adjacent. */
        bool again = name && before && strcmp(name, before) == 0;
        free(before);
        before = name;
        if (!path || !name || again || file_map_open(&text, path) < 0)
            continue;
        if (text.len <= room) {
            room -= text.len;
            json_key_string_n(j, name, (const char *)text.data, text.len);
        }
        file_map_release(&text);
    }
    json_end_object(j);
}

int coverage_page_json(const char *path, const char *sources, struct json *j)
{
    _cleanup_(coverage_release) struct coverage c = {0};
    _cleanup_(coverage_found_release) struct coverage_found found = {0};
    _cleanup_(losses_release) struct losses losses = {0};
    const char *why = NULL;
    if (coverage_read(&c, path, &found, &losses, &why) < 0)
        return -EIO;
    if (!found.any)
        return -ENOENT;
    coverage_sort(&c);
    json_begin_object(j);
    int r = coverage_json(&c, j);
    if (r == 0 && sources)
        put_sources(j, &c, sources);
    json_end_object(j);
    return r;
}
