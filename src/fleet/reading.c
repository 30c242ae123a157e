/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/reading.h"

#include "base/file.h"
#include "base/file_format.h"
#include "base/forked.h"
#include "fleet/figures.h"
#include "fleet/reading_causes.h"
#include "fleet/readings.h"
#include "profile/load.h"
#include "profile/profile.h"
#include "wire/multipart.h"
#include "wire/otlp.h"
#include "wire/pyroscope.h"
#include "wire/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { LAYERS_MAX = 3 };

const struct reading_limits reading_default_limits = {
    .unpacked = 128 << 20,
    .memory = 192 << 20,
    .cpu_s = 60,
    .batch = {.depth = 2048, .stacks = 200000, .samples = 2000000, .text = 4096, .requests = 2000}};

static enum fleet_kind kind_of(enum frame_kind kind)
{
    switch (kind) {
    case FRAME_NATIVE:
        return FLEET_NATIVE;
    case FRAME_KERNEL:
        return FLEET_KERNEL;
    case FRAME_STUB:
        return FLEET_STUB;
    case FRAME_MARK:
        return FLEET_MARK;
    default:
        return FLEET_JAVA;
    }
}

/* Maps a profile's frames and nodes to numbers of the batch. */
struct translation {
    const struct fleet_reading *how;
    struct batch *b;
    const struct profile *p;
    uint32_t *frames; /* number + 1 in the batch; 0: not yet */
    uint32_t *stacks; /* the same by node */
    VEC(uint32_t) path;
};

static int64_t frame_in_batch(struct translation *t, uint32_t frame)
{
    if (t->frames[frame])
        return t->frames[frame] - 1;
    const struct profile_frame *f = &t->p->frames.data[frame];
    struct str label = profile_text(t->p, t->p->methods.data[f->method].label);
    int64_t at = batch_frame(t->b, kind_of(f->kind), label.data, label.len);
    if (at >= 0)
        t->frames[frame] = (uint32_t)at + 1;
    return at;
}

static int64_t stack_in_batch(struct translation *t, uint32_t node)
{
    if (t->stacks[node])
        return t->stacks[node] - 1;
    size_t depth = 0;
    for (uint32_t n = node; n; n = t->p->nodes.data[n].parent)
        depth++;
    vec_clear(&t->path);
    if (vec_extend(&t->path, depth) < 0)
        return -ENOMEM;
    for (uint32_t n = node; n; n = t->p->nodes.data[n].parent) {
        int64_t frame = frame_in_batch(t, t->p->nodes.data[n].frame);
        if (frame < 0)
            return frame;
        t->path.data[--depth] = (uint32_t)frame;
    }
    int64_t at = batch_stack(t->b, t->path.data, t->path.len);
    if (at >= 0)
        t->stacks[node] = (uint32_t)at + 1;
    return at;
}

/*
 * Returns the name of a metric, which is that of the command. CPU samples are named after what they
 * measure.
 */
static const char *name_of(enum profile_metric metric)
{
    return metric == PROFILE_CPU ? "cpu" : profile_metrics[metric].name;
}

/*
 * The unit of a metric's weights in a store: samples have the time for which they stand as their
 * weight. Where that is unknown they have no weight, and the unit shows this.
 */
static const char *unit_of(enum profile_metric metric, uint64_t interval_ns, bool read)
{
    if (profile_metrics[metric].unit == UNIT_BYTES)
        return read ? FLEET_ESTIMATED : "bytes";
    if (read)
        return FLEET_READ;
    return profile_metrics[metric].unit == UNIT_NS || interval_ns ? "nanoseconds" : FLEET_TIMELESS;
}

static struct readings readings_of(const struct profile *p, enum profile_metric metric)
{
    const struct profile_series *s = &p->series[metric];
    struct readings r = {.all = profile_readings(p, metric)};
    double whole = r.all ? (double)profile_series_weight(s) : 0;
    r.each = whole > 0 ? (double)r.all / whole : 0;
    return r;
}

static int add_series(struct translation *t, enum profile_metric metric, int64_t from_ns,
                      const struct sample_requests *requests)
{
    const struct profile_series *s = &t->p->series[metric];
    if (!s->samples.len)
        return 0;
    bool counted = profile_metrics[metric].unit == UNIT_SAMPLES;
    uint64_t interval_ns = s->interval_ns ? s->interval_ns : t->how->interval_ns;
    uint64_t each = counted ? interval_ns : 1;
    struct readings readings = readings_of(t->p, metric);
    int64_t type = batch_type(t->b, name_of(metric), unit_of(metric, interval_ns, readings.all));
    if (type < 0)
        return (int)type;
    for (size_t i = 0; i < s->samples.len; i++) {
        const struct profile_sample *from = &s->samples.data[i];
        int64_t time_ns = from_ns + (int64_t)from->time_ns;
        uint64_t rests_on = readings_next(&readings, from->weight);
        /* A wait is recorded at its end. */
        if (!fleet_reading_includes(t->how,
                                    time_ns + (metric == PROFILE_LOCK ? (int64_t)from->weight : 0)))
            continue;
        int64_t stack = stack_in_batch(t, from->node);
        if (stack < 0)
            return (int)stack;
        struct fleet_sample to = {.type = (uint32_t)type,
                                  .stack = (uint32_t)stack,
                                  .count = counted ? from->weight : rests_on,
                                  .weight = from->weight * each};
        sample_requests_find(requests, t->p->threads.data[from->thread].id, time_ns, &to);
        int r = batch_sample(t->b, time_ns, to);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Adds the objects that were live at the recording's end, by the place that allocated them. */
static int add_live(struct translation *t, int64_t from_ns)
{
    for (size_t i = 0; i < t->p->sites.len; i++) {
        const struct profile_site *site = &t->p->sites.data[i];
        if (!site->live_known || !site->live_objects)
            continue;
        int64_t stack = stack_in_batch(t, site->node);
        bool unsure = profile_site_unsure(site);
        int64_t type = batch_type(t->b, "live", unsure ? FLEET_UNSURE : "bytes");
        if (stack < 0 || type < 0)
            return (int)MIN(stack, type);
        struct fleet_sample to = {.type = (uint32_t)type,
                                  .stack = (uint32_t)stack,
                                  .count = site->live_objects,
                                  .weight = site->live_bytes};
        int r = batch_sample(t->b, from_ns + (int64_t)t->p->duration_ns, to);
        if (r < 0)
            return r;
    }
    return 0;
}

static int translate(struct batch *b, const struct profile *p, const struct fleet_reading *how,
                     const struct sample_requests *requests)
{
    int64_t from_ns = how->from_ns;
    struct translation t = {.how = how,
                            .b = b,
                            .p = p,
                            .frames = calloc(p->frames.len + 1, sizeof(uint32_t)),
                            .stacks = calloc(p->nodes.len + 1, sizeof(uint32_t))};
    int r = t.frames && t.stacks ? 0 : -ENOMEM;
    if (p->start_epoch_ns)
        from_ns = (int64_t)p->start_epoch_ns;
    b->start_ns = from_ns;
    b->end_ns = from_ns + (int64_t)p->duration_ns;
    for (int m = 0; m < PROFILE_METRICS && r == 0; m++)
        if (m != PROFILE_ALLOCATION || !p->only_live)
            r = add_series(&t, (enum profile_metric)m, from_ns, requests);
    if (r == 0)
        r = add_live(&t, from_ns);
    free(t.frames);
    free(t.stacks);
    vec_release(&t.path);
    return r;
}

/*
 * Causes need much more memory than everything else. If a process that reads nothing else (alone)
 * has not enough, the rest is used without them, and this is reported; otherwise returns -ENOMEM.
 */
static int read_causes(struct batch *b, const char *path, const struct sample_requests *requests,
                       struct buf *why)
{
    size_t samples = b->samples.len, findings = b->findings.len;
    int r = reading_causes_add(b, path, requests, why);
    if (r != -ENOMEM || !requests->how->alone)
        return r;
    b->samples.len = samples;
    b->findings.len = findings;
    buf_clear(why);
    return batch_finding(b, b->end_ns, FLEET_INCOMPLETE,
                         "causes of requests: reading them takes too much memory", 1, 0);
}

/* Returns whether a file is HPROF's, whose heap dumps can be read as profiles without samples. */
static bool is_hprof(const char *path)
{
    struct file_map map = {0};
    enum file_format format = FORMAT_NOTHING;
    if (file_map_open(&map, path) == 0)
        format = file_format_of(map.data, map.len);
    file_map_release(&map);
    return format == FORMAT_HPROF || format == FORMAT_HPROF_TEXT;
}

static int read_plain(struct batch *b, const char *path, const struct fleet_reading *how,
                      struct buf *why)
{
    _cleanup_(profile_freep) struct profile *p = NULL;
    _cleanup_(sample_requests_release) struct sample_requests requests = {0};
    int r = profile_load(&p, path, LOAD_SAMPLES, NULL, why, NULL, NULL);
    if (r < 0)
        return r;
    if (why->len) {
        /* A truncated recording is refused: the sender has the complete one and sends it again. */
        return -EPROTO;
    }
    if (!profile_has_samples(p) && is_hprof(path)) {
        buf_string(why, "a heap dump, or a profile of HPROF without samples");
        return -EPROTO;
    }
    r = sample_requests_load(&requests, b, path, how, why);
    if (r == 0)
        r = translate(b, p, how, &requests);
    if (r == 0 && p->has_live)
        r = reading_wire_live(b, path, how, why);
    if (r == 0)
        r = figures_read_vm(b, path, p, how, why);
    if (r == 0)
        r = read_causes(b, path, &requests, why);
    if (r == 0)
        r = batch_close(b);
    return r == 0 ? batch_check(b, &how->limits->batch, why) : r;
}

/* Removes one layer of compression from the mapped file. *ret_fd is a file without a name. */
static int take_layer(const struct file_map *map, uint64_t limit, int *ret_fd, struct buf *why)
{
    _cleanup_(buf_release) struct buf plain = BUF(limit);
    int r = unpack_bytes(map->data, map->len, limit, &plain, why);
    if (r == -E2BIG) {
        buf_clear(why);
        buf_printf(why, "it unpacks to more than %llu MB", (unsigned long long)limit >> 20);
    }
    if (r < 0)
        return r;
    _cleanup_close_ int fd = memfd_create("upload", MFD_CLOEXEC);
    r = fd < 0 ? -errno : file_write_all(fd, plain.data, plain.len);
    if (r == 0)
        *ret_fd = TAKE_FD(fd);
    return r;
}

/* Unpacks a compressed file into *ret_fd, which stays -1 if the file is not compressed. */
static int unpack_file(const char *path, uint64_t limit, int *ret_fd, struct buf *why)
{
    _cleanup_close_ int at = -1;
    struct file_map map = {0};
    int r = file_map_open(&map, path);
    for (int layers = 0; r == 0 && unpack_is_packed(map.data, map.len); layers++) {
        int next = -1;
        if (layers == LAYERS_MAX) {
            buf_printf(why, "it is compressed more than %d times", LAYERS_MAX);
            r = -E2BIG;
            break;
        }
        r = take_layer(&map, limit, &next, why);
        file_map_release(&map);
        if (r == 0) {
            close_descriptor(&at);
            at = next;
            r = file_map_fd(&map, at);
        }
    }
    file_map_release(&map);
    if (r == 0)
        *ret_fd = TAKE_FD(at);
    return r;
}

void fleet_batches_release(struct fleet_batches *b)
{
    for (size_t i = 0; i < b->list.len; i++)
        batch_release(&b->list.data[i]);
    vec_release(&b->list);
}

static int read_one(struct fleet_batches *to, const char *path, const struct fleet_reading *how,
                    struct buf *why)
{
    int r = vec_extend(&to->list, 1);
    return r < 0 ? r : read_plain(&to->list.data[to->list.len - 1], path, how, why);
}

static int read_packed(struct fleet_batches *to, const char *path, const struct fleet_reading *how,
                       struct buf *why)
{
    char plain[64];
    _cleanup_close_ int fd = -1;
    int r = unpack_file(path, how->limits->unpacked, &fd, why);
    snprintf(plain, sizeof(plain), "/proc/self/fd/%d", fd);
    return r < 0 ? r : read_one(to, fd >= 0 ? plain : path, how, why);
}

/*
 * Returns the hash of a form's parts, because the boundary between them is different each time the
 * form is sent. Parts after a damaged one are left out.
 */
static struct fleet_hash hash_parts(struct multipart form)
{
    struct multipart_part part;
    struct fleet_sha s;
    fleet_sha_begin(&s);
    while (multipart_next(&form, &part)) {
        fleet_sha_add_text(&s, part.name.data, part.name.len);
        fleet_sha_add_text(&s, (const char *)part.data, part.len);
    }
    return fleet_sha_end(&s);
}

/* Reads the file in a form: the part called "jfr" or "profile". */
static int read_form(struct fleet_batches *to, const struct file_map *body,
                     const struct fleet_reading *how, struct buf *why)
{
    struct multipart form;
    struct multipart_part part;
    char path[64];
    if (!multipart_begin(&form, how->content_type, body->data, body->len)) {
        buf_string(why, "a form without a boundary");
        return -EPROTO;
    }
    to->parts = hash_parts(form);
    while (multipart_next(&form, &part)) {
        if (!str_is(part.name, "jfr") && !str_is(part.name, "profile"))
            continue;
        _cleanup_close_ int fd = memfd_create("part", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : file_write_all(fd, part.data, part.len);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return r < 0 ? r : read_packed(to, path, how, why);
    }
    buf_string(why,
               form.failed ? "a damaged form" : "the form has neither \"jfr\" nor \"profile\"");
    return -EPROTO;
}

static int read_messages(struct fleet_batches *to, const struct file_map *body,
                         const struct fleet_reading *how, struct buf *why)
{
    struct wire_batch w = {.limits = {.bytes = how->limits->memory / 2}};
    int r = how->format == FLEET_OTLP
                ? otlp_decode(&w, body->data, body->len, why)
                : pyroscope_push(&w, how->format == FLEET_PUSH_JSON, body->data, body->len, why);
    if (r == 0)
        r = fleet_batches_of_wire(to, &w, how);
    wire_batch_release(&w);
    for (size_t i = 0; i < to->list.len && r == 0; i++) {
        r = batch_close(&to->list.data[i]);
        if (r == 0)
            r = batch_check(&to->list.data[i], &how->limits->batch, why);
    }
    return r;
}

/* Reads the body of another protocol, as a whole. */
static int read_body(struct fleet_batches *to, const char *path, const struct fleet_reading *how,
                     struct buf *why)
{
    struct file_map body = {0};
    int r = file_map_open(&body, path);
    if (r < 0)
        return r;
    bool form = fleet_reading_is_form(how->format, how->content_type);
    r = form                          ? read_form(to, &body, how, why)
        : how->format == FLEET_INGEST ? read_one(to, path, how, why)
                                      : read_messages(to, &body, how, why);
    file_map_release(&body);
    return r;
}

int fleet_read(struct fleet_batches *ret, const struct fleet_reading *how, struct buf *why)
{
    struct fleet_batches b = {0};
    char plain[64];
    _cleanup_close_ int fd = -1;
    int r = unpack_file(how->path, how->limits->unpacked, &fd, why);
    snprintf(plain, sizeof(plain), "/proc/self/fd/%d", fd);
    const char *path = fd >= 0 ? plain : how->path;
    if (r == 0)
        r = how->format == FLEET_FILE ? read_one(&b, path, how, why)
                                      : read_body(&b, path, how, why);
    if (r < 0)
        fleet_batches_release(&b);
    else
        *ret = b;
    return r;
}

/* ---- in a process of its own */

static void limit(int what, uint64_t to)
{
    struct rlimit l = {to, to};
    setrlimit(what, &l);
}

/*
 * Returns how much writable memory the process has inherited from its parent; the limit does not
 * include it.
 */
static uint64_t inherited_bytes(void)
{
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    unsigned long long pages = 0;
    if (file_read_path("/proc/self/statm", 4096, &text, &len) == 0)
        (void)sscanf((char *)text, "%*u %*u %*u %*u %*u %llu", &pages);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * Opens the upload and closes everything else that the child has inherited. `to` remains open,
 * too. Returns the upload's descriptor, or -1 if it cannot be opened.
 */
static int keep_upload_only(const char *path, int to)
{
    int upload = open(path, O_RDONLY | O_CLOEXEC);
    int keep[] = {MIN(upload, to), MAX(upload, to)};
    forked_close_others(upload < 0 ? &to : keep, upload < 0 ? 1 : 2);
    return upload;
}

/*
 * Reads the profiles and writes the result: 0 or the errno in the first byte, followed by the hash
 * of the parts and the batches, or by the reason. Ends when nobody can receive the result.
 */
_Noreturn static void read_in_child(int to, const struct fleet_reading *upload, pid_t parent)
{
    struct fleet_reading own = *upload, *how = &own;
    char path[64];
    forked_end_with(parent);
    int fd = keep_upload_only(upload->path, to);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd >= 0)
        own.path = path;
    struct fleet_batches b = {0};
    struct buf why = BUF(4096), packed = BUF(how->limits->memory);
    signal(SIGXCPU, SIG_DFL);
    limit(RLIMIT_DATA, inherited_bytes() + how->limits->memory);
    limit(RLIMIT_CPU, how->limits->cpu_s);
    limit(RLIMIT_CORE, 0);
    int r = fleet_read(&b, how, &why);
    buf_u8(&packed, (uint8_t)-r);
    if (r == 0)
        buf_bytes(&packed, b.parts.bytes, FLEET_HASH_BYTES);
    for (size_t i = 0; i < b.list.len; i++)
        batch_pack(&b.list.data[i], &packed);
    if (r < 0)
        buf_bytes(&packed, why.data, why.len);
    if (buf_error(&packed)) {
        uint8_t error = ENOMEM;
        r = file_write_all(to, &error, 1);
        _exit(1);
    }
    r = file_write_all(to, packed.data, packed.len);
    _exit(r < 0);
}

static int result_of(struct fleet_batches *ret, const uint8_t *bytes, size_t len, int status,
                     const struct reading_limits *limits, struct buf *why)
{
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)) {
        buf_printf(why, "reading it takes more than %llu s of processor time",
                   (unsigned long long)limits->cpu_s);
        return -E2BIG;
    }
    if (!len || WIFSIGNALED(status)) {
        buf_string(why, "it cannot be read");
        return -EPROTO;
    }
    if (bytes[0] == ENOMEM) {
        buf_printf(why, "reading it takes more than %llu MB of memory",
                   (unsigned long long)limits->memory >> 20);
        return -E2BIG;
    }
    if (bytes[0]) {
        buf_bytes(why, bytes + 1, len - 1);
        return -bytes[0];
    }
    struct fleet_batches b = {0};
    struct cursor c = cursor_of(bytes + 1, len - 1);
    const uint8_t *parts = cursor_take(&c, FLEET_HASH_BYTES);
    int r = parts ? 0 : -EPROTO;
    if (parts)
        memcpy(b.parts.bytes, parts, FLEET_HASH_BYTES);
    while (r == 0 && cursor_left(&c)) {
        r = vec_extend(&b.list, 1);
        if (r == 0)
            r = batch_unpack(&b.list.data[b.list.len - 1], &c);
    }
    if (r < 0)
        fleet_batches_release(&b);
    else
        *ret = b;
    return r;
}

/*
 * Starts the process that reads, with a pipe from it. While this process has the write end of the
 * pipe, no other reader may be forked, because it would have that end until it has closed what it
 * inherited.
 */
static int start_child(const struct fleet_reading *how, pid_t *ret, int *ret_from)
{
    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
    int ends[2], r = 0;
    pthread_mutex_lock(&starting);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        r = -errno;
    } else {
        pid_t self = getpid();
        *ret = fork();
        if (*ret == 0)
            read_in_child(ends[1], how, self);
        r = *ret < 0 ? -errno : 0;
        close(ends[1]);
        *ret_from = ends[0];
        if (r < 0)
            close(ends[0]);
    }
    pthread_mutex_unlock(&starting);
    return r;
}

int fleet_read_in_process(struct fleet_batches *ret, const struct fleet_reading *how,
                          struct buf *why)
{
    pid_t child = -1;
    int from = -1, started = start_child(how, &child, &from);
    if (started < 0)
        return started;
    _cleanup_free_ uint8_t *bytes = NULL;
    size_t len = 0;
    int status, r = file_read_all(from, how->limits->memory, &bytes, &len);
    close(from);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? r : result_of(ret, bytes, len, status, how->limits, why);
}
