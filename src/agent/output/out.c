/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/out.h"

#include "agent/output/dictionary.h"
#include "agent/output/net.h"
#include "agent/output/recording.h"
#include "agent/output/rings.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/vec.h"
#include "jfr/append.h"
#include "jfr/ring.h"
#include "jfr/writer.h"
#include "options/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_file(void *context, const void *bytes, size_t len)
{
    struct out *out = context;
    if (out->error == 0)
        out->error = file_write_all(out->fd, bytes, len);
    if (out->error == 0)
        out->written += len;
    return out->error;
}

/*
 * Chooses the name of the file: as given, or derived from the format; a different one if the file
 * exists and must not be overwritten (force=n).
 */
static int choose_path(char *path, size_t size, const struct options *o)
{
    const char *given = o->v[OPT_FILE].given ? o->v[OPT_FILE].text : NULL;
    int r = expand_file_name(given ? given : option_format(o)->file, (long)getpid(), path, size);
    if (r < 0 || option_on(o, OPT_FORCE) || access(path, F_OK) != 0)
        return r;
    size_t cut = strlen(path) - (file_name_ends_in(path, ".txt") ? strlen(".txt") : 0);
    char tail[32];
    int n = snprintf(tail, sizeof(tail), ".%ld%s", (long)getpid(), path + cut);
    if (cut + (size_t)n + 1 > size)
        return -ENAMETOOLONG;
    memcpy(path + cut, tail, (size_t)n + 1);
    return 0;
}

/*
 * A ring for which the user gave no place gets one where it can be found after the VM has ended.
 * Its name contains the time, because process ids recur (in a container each time).
 */
static int choose_ring(char *path, size_t size)
{
    static const char *const folders[] = {"/var/tmp", "/tmp"};
    char pattern[64];
    size_t i = access(folders[0], W_OK | X_OK) == 0 ? 0 : 1;
    rings_tidy(folders[i]);
    snprintf(pattern, sizeof(pattern), "%s/" RING_PREFIX "%%p-%%t" RING_SUFFIX, folders[i]);
    return expand_file_name(pattern, (long)getpid(), path, size);
}

static uint16_t control_flags(const struct options *o)
{
    return (uint16_t)((o->v[OPT_HEAP].text ? HPROF_CONTROL_ALLOC_TRACES : 0) |
                      (option_is(o, OPT_CPU, "samples") ? HPROF_CONTROL_CPU_SAMPLING : 0) |
                      (option_is(o, OPT_CPU, "wall") ? HPROF_CONTROL_WALL_SAMPLING : 0));
}

static int write_net(void *context, const void *bytes, size_t len)
{
    struct out *out = context;
    /*
     * The connection counts the bytes that are written after it has closed. Writers continue, so
     * that sections stay complete.
     */
    net_write(out->net, bytes, len);
    out->written += len;
    return 0;
}

void out_settings(struct out *out, const struct options *o)
{
    if (!out->format->records)
        return;
    pthread_mutex_lock(&out->lock);
    out_stamp(out);
    hprof_control_settings(&out->binary, control_flags(o),
                           (uint16_t)MIN(o->v[OPT_DEPTH].number, UINT16_MAX));
    pthread_mutex_unlock(&out->lock);
}

static int open_hprof(struct out *out, const struct options *o)
{
    struct hprof_sink sink = {out->net ? write_net : write_file, out};
    if (!out->net) {
        out->fd = open(out->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (out->fd < 0)
            return -errno;
    }
    uint64_t header_ms = clock_ns(CLOCK_REALTIME) / NS_PER_MS;
    out->header_ns = now_ns();
    bool old = option_is(o, OPT_CPU, "old");
    int r = out->format->text
                ? hprof_text_init(&out->text, sink, old ? 0 : (time_t)(header_ms / 1000))
                : hprof_writer_init(&out->binary, sink, HPROF_MAGIC_1_0_2, 8, header_ms);
    if (r == 0)
        out_settings(out, o);
    out->dictionary = r == 0 ? dictionary_new(out, o) : NULL;
    return r < 0 ? r : out->dictionary ? 0 : -ENOMEM;
}

int out_open(struct out *ret, const struct options *o, struct buf *why)
{
    char path[PATH_MAX];
    *ret = (struct out){
        .format = option_format(o), .fd = -1, .older = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
    const char *address = o->v[OPT_NET].text;
    if (address && !ret->format->connects) {
        buf_printf(why, "net=%s: a recording can only be written to a file", address);
        return -EINVAL;
    }
    if (address && net_open(&ret->net, address, why) < 0)
        return -ENOTCONN;
    bool memory = option_is(o, OPT_ALWAYS, "memory");
    int r =
        memory                                      ? snprintf(path, sizeof(path), "memory") < 0
        : option_always(o) && !o->v[OPT_FILE].given ? choose_ring(path, sizeof(path))
        : address
            ? snprintf(path, sizeof(path), "%s", address) >= (int)sizeof(path) ? -ENAMETOOLONG : 0
            : choose_path(path, sizeof(path), o);
    if (r < 0) {
        buf_printf(why, "file=%s: %s", o->v[OPT_FILE].text,
                   r == -EINVAL ? "only %p, %t and %% are understood" : strerror(-r));
        return r;
    }
    ret->path = strdup(path);
    if (!ret->path)
        return -ENOMEM;
    ret->opened_ns = now_ns();
    bool ring = option_always(o) && !memory;
    /* HPROF's own formats replace any file, as those of the original did. */
    bool other = ret->format->events && !memory &&
                 file_holds_other(path, ring ? JFR_RING_MAGIC : "FLR",
                                  ring ? sizeof(JFR_RING_MAGIC) - 1 : sizeof("FLR"));
    r = ring && ring_is_held(path) ? -EBUSY
        : other                    ? -EEXIST
        : ret->format->events      ? recording_begin(&ret->jfr, memory ? NULL : path, o)
                                   : open_hprof(ret, o);
    if (r == 0 && ring)
        ring_hold(jfr_writer_descriptor(ret->jfr));
    if (r == 0 && ring && !out_has_name(ret))
        ret->older = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (ret->older >= 0)
        ring_hold(ret->older);
    if (r < 0) {
        struct stat st;
        buf_printf(why, "%s: %s", path,
                   r == -EBUSY ? "another VM records to this file; %p in the name keeps them apart"
                   : r == -EEXIST && ring
                       ? "this file is no ring and would be lost; name another, or remove it"
                   : r == -EEXIST
                       ? "this file is no recording and would be lost; name another, or remove it"
                       : strerror(-r));
        /* Nothing was recorded, so the file is removed. */
        if (ret->fd >= 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
            unlink(path);
        out_close(ret);
    }
    return r;
}

static void drop_older(struct out *out)
{
    if (out->older >= 0)
        close(out->older);
    out->older = -1;
}

int out_publish(struct out *out, struct buf *why)
{
    int r = out->jfr ? jfr_writer_publish(out->jfr) : 0;
    drop_older(out);
    if (r < 0)
        buf_printf(why, "%s: %s", out->path, strerror(-r));
    return r;
}

bool out_has_name(const struct out *out)
{
    return !out->jfr || jfr_writer_has_name(out->jfr);
}

void out_stamp(struct out *out)
{
    if (out->format->records)
        out->binary.time_us = (now_ns() - out->header_ns) / 1000;
}

static int keep_bytes(void *context, const void *bytes, size_t len)
{
    buf_bytes(context, bytes, len);
    return buf_error(context);
}

void out_section_open(struct hprof_text *ret, struct buf *bytes)
{
    *bytes = BUF(SIZE_MAX / 2);
    *ret = (struct hprof_text){.sink = {keep_bytes, bytes}, .out = BUF(SIZE_MAX / 2)};
}

void out_section_close(struct out *out, struct hprof_text *t, struct buf *bytes)
{
    pthread_mutex_lock(&out->lock);
    if (hprof_text_flush(t) == 0)
        buf_bytes(&out->text.out, bytes->data, bytes->len);
    hprof_text_flush(&out->text);
    pthread_mutex_unlock(&out->lock);
    hprof_text_release(t);
    buf_release(bytes);
}

/* A file that cannot grow counts as a failure only if there was no room for an event. */
static int recording_failure(struct out *out)
{
    struct jfr_counters n;
    out->cut = jfr_writer_is_cut(out->jfr);
    if (out->cut)
        return -ESTALE;
    jfr_writer_counters(out->jfr, &n);
    out->lost = n.error ? n.lost_room + n.lost_constants : 0;
    return out->lost ? n.error : 0;
}

bool out_is_cut(const struct out *out)
{
    return out->jfr && jfr_writer_is_cut(out->jfr);
}

int out_flush(struct out *out)
{
    if (out->format->text)
        hprof_text_flush(&out->text);
    if (out->format->records)
        hprof_flush(&out->binary);
    if (!out->jfr)
        return out->error;
    (void)jfr_writer_flush(out->jfr);
    return recording_failure(out);
}

void out_describe(const struct out *out, int error, char *text, size_t size)
{
    int n = snprintf(text, size, "%s",
                     out->cut ? "another program cut the file short while it was being written, "
                                "which ended the recording"
                              : strerror(-error));
    if (out->lost && !out->cut)
        snprintf(text + n, size - (size_t)n, ": %s %s lost", COUNT_TEXT(out->lost, "events"),
                 out->lost == 1 ? "was" : "were");
}

int out_append_later(struct out *out, const char *path, const struct rec_select *without)
{
    out->not_appended = without;
    free(out->appended);
    out->appended = strdup(path);
    return out->appended ? 0 : -ENOMEM;
}

/* Nothing is appended when the VM wrote no recording. The capture has reported that. */
static int append_recording(struct out *out)
{
    int from = open(out->appended, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int r = from < 0 ? 0 : jfr_append(jfr_writer_descriptor(out->jfr), from, out->not_appended);
    if (from >= 0)
        close(from);
    unlink(out->appended);
    return r;
}

int out_close(struct out *out)
{
    int r = out_flush(out);
    dictionary_free(out->dictionary);
    out->dictionary = NULL;
    if (out->jfr) {
        (void)jfr_writer_close(out->jfr);
        r = recording_failure(out);
        int appended = out->appended ? append_recording(out) : 0;
        r = r ? r : appended;
        if (!out->keeps_writer)
            jfr_writer_free(out->jfr);
        out->jfr = NULL;
    }
    hprof_text_release(&out->text);
    hprof_writer_release(&out->binary);
    if (out->net) {
        net_close(out->net);
        uint64_t lost = net_lost(out->net);
        if (lost)
            fprintf(stderr,
                    "hprof: net=%s: %llu bytes were lost: the front-end did not take them\n",
                    out->path, (unsigned long long)lost);
        net_unref(out->net);
        out->net = NULL;
    }
    if (out->fd >= 0 && close(out->fd) < 0 && r == 0)
        r = -errno;
    out->fd = -1;
    drop_older(out);
    free(out->path);
    out->path = NULL;
    free(out->appended);
    out->appended = NULL;
    return r;
}

void out_ring_status(const struct out *o, const struct options *options, struct buf *out)
{
    struct jfr_ring_state ring;
    if (!o->jfr || !jfr_writer_ring(o->jfr, &ring))
        return;
    uint64_t now = now_ns();
    uint64_t lasts_ms = (now - o->opened_ns) / NS_PER_MS;

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"keep_ms", options->v[OPT_KEEP].number / NS_PER_MS},
        {"size", ring.size},
        {"used", ring.used},
        {"bytes_per_second", ring.written * 1000 / MAX(lasts_ms, UINT64_C(1))},
        {"from_ms", clock_wall_ms(ring.since_ns)},
        {"to_ms", clock_wall_ms(now)},
        {"chunks", ring.chunks},
        {"names", ring.names},
        {"name_bytes", ring.name_bytes},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "ring.%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    int fd = jfr_writer_descriptor(o->jfr);
    bool memory = option_is(options, OPT_ALWAYS, "memory");
    struct stat open, named;
    buf_printf(out, "ring.%s %d\n", memory ? "descriptor" : "file_descriptor", fd);
    if (!memory && fstat(fd, &open) == 0 &&
        (stat(o->path, &named) < 0 || named.st_ino != open.st_ino || named.st_dev != open.st_dev))
        buf_string(out, "ring.moved 1\n");
}

/* What has been lost so far, by capture and kind, summed over reasons. */
struct lost_things {
    VEC(struct lost_thing {
        struct jfr_loss_row row;
        uint64_t total;
    })
    rows;
};

static void add_lost(void *context, const struct jfr_loss_row *row, uint64_t total)
{
    struct lost_things *all = context;
    for (size_t i = 0; i < all->rows.len; i++) {
        struct lost_thing *t = &all->rows.data[i];
        if (strcmp(t->row.capture, row->capture) == 0 && strcmp(t->row.what, row->what) == 0) {
            t->total += total;
            return;
        }
    }
    (void)!vec_push(&all->rows, ((struct lost_thing){*row, total}));
}

void out_lost_status(const struct out *o, struct buf *out)
{
    struct lost_things all = {0};
    jfr_each_loss(o->jfr, add_lost, &all);
    for (size_t i = 0; i < all.rows.len; i++) {
        const struct lost_thing *t = &all.rows.data[i];
        buf_printf(out, "lost.%s.%s %llu\n", t->row.capture, t->row.what,
                   (unsigned long long)t->total);
    }
    vec_release(&all.rows);
}
