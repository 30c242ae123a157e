/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet/watched.h"

#include "base/buf.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LEN = WATCHED_HELD_LEN, STATE_MAX = 1 << 20 };

void watched_release(struct watched *w)
{
    free(w->ring);
    free(w->query);
}

static void state_path(const struct watched *w, const struct spool *s, char path[PATH_LEN])
{
    snprintf(path, PATH_LEN, "%s/%d-%" PRIu64 ".taken", s->folder, w->pid, w->start);
}

/*
 * Three lines: position, time taken and whose the ring is; the ring's path; the VM's labels.
 */
void watched_save(struct watched *w, const struct spool *s)
{
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    _cleanup_(buf_release) struct buf text = BUF(STATE_MAX);
    char path[PATH_LEN];
    state_path(w, s, path);
    buf_printf(&text, "%" PRId64 " %" PRIu64 " %d\n%s\n%s\n", w->after, w->taken_ns, w->is_others,
               w->ring ? w->ring : "", w->query);
    int r = buf_error(&text) ? buf_error(&text) : out_file_open_private(&out, path);
    if (r == 0)
        r = out_file_write(&out, text.data, text.len);
    if (r == 0)
        r = out_file_commit(&out);
    w->is_saved = r == 0;
}

void watched_held(const struct watched *w, const struct spool *s, char path[WATCHED_HELD_LEN])
{
    snprintf(path, WATCHED_HELD_LEN, "%s/%d-%" PRIu64 ".ring", s->folder, w->pid, w->start);
}

void watched_hold(const struct watched *w, const struct spool *s)
{
    char path[WATCHED_HELD_LEN];
    watched_held(w, s, path);
    if (w->ring)
        (void)!link(w->ring, path);
}

void watched_forget(const struct watched *w, const struct spool *s)
{
    char path[PATH_LEN];
    watched_held(w, s, path);
    unlink(path);
    state_path(w, s, path);
    unlink(path);
}

/*
 * Whatever is in the spool has been taken from a ring, even if the process was killed before it
 * stored that. The query of an upload begins with the name of the VM and the two positions.
 */
static void read_spooled(struct watched *w, const struct spool *s)
{
    struct spool_list list;
    char name[64];
    snprintf(name, sizeof(name), "id=%d-%" PRIu64 "-", w->pid, w->start);
    if (spool_list(s, &list) < 0)
        return;
    for (size_t i = 0; i < list.numbers.len; i++) {
        _cleanup_free_ char *query = NULL;
        int64_t until;
        if (spool_query(s, list.numbers.data[i], &query) == 0 &&
            strncmp(query, name, strlen(name)) == 0 &&
            sscanf(query + strlen(name), "%*d-%" SCNd64, &until) == 1)
            w->after = MAX(w->after, until);
    }
    vec_release(&list.numbers);
}

static char *take_line(char **rest)
{
    char *line = strsep(rest, "\n");
    return line && *line ? strdup(line) : NULL;
}

static void read_state(struct watched_list *to, const struct spool *s, const char *name)
{
    _cleanup_free_ uint8_t *text = NULL;
    char path[PATH_LEN + 256];
    size_t len;
    int used = 0;
    struct watched w = {.from_disk = true, .is_saved = true};
    if (sscanf(name, "%d-%" SCNu64 ".taken%n", &w.pid, &w.start, &used) != 2 || !used || name[used])
        return;
    snprintf(path, sizeof(path), "%s/%s", s->folder, name);
    if (file_read_path(path, STATE_MAX, &text, &len) < 0)
        return;
    char *rest = (char *)text, *after = strsep(&rest, "\n");
    int is_others = 0;
    if (!after ||
        sscanf(after, "%" SCNd64 " %" SCNu64 " %d", &w.after, &w.taken_ns, &is_others) < 2)
        return;
    w.is_others = is_others;
    w.ring = take_line(&rest);
    w.attached = w.ring || w.is_others;
    w.query = take_line(&rest);
    read_spooled(&w, s);
    if (!w.query || vec_push(&to->vms, w) < 0)
        watched_release(&w);
}

void watched_read_all(struct watched_list *to, const struct spool *s)
{
    DIR *d = opendir(s->folder);
    for (struct dirent *e; d && (e = readdir(d));)
        read_state(to, s, e->d_name);
    if (d)
        closedir(d);
}
