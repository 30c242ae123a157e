/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cover=y records which lines and branch edges have run. A probe sets a byte of an array in the
 * Java heap if the byte is zero. The JIT treats a byte that is set as a constant
 * (JvmscopeCover.java), so code that is compiled after its lines have run is the same as without
 * probes. A store into native memory, which cannot be optimized away, slowed javac down by half.
 * The arrays live as long as the process, because code that was compiled with probes may still run
 * after the probes are removed. At a dump and at the end each method is written as one
 * jvmscope.Coverage event (doc/format.md).
 */
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "agent/instrument/running.h"
#include "agent/session/session.h"
#include "agent/vm/patience.h"
#include "base/dotted.h"
#include "classfile/cover.h"
#include "jfr/writer.h"

#include <pthread.h>
#include <stdio.h>

/* CHUNK and POINTS_MAX as in JvmscopeCover.java. */
enum { CHUNK = 1 << 14, POINTS_MAX = 1 << 26, EVENT_MAX = 48 * 1024 };

static const struct jfr_type coverage_type = {
    .name = "jvmscope.Coverage",
    .label = "Coverage",
    .category = "jvmscope|Coverage",
    .description = "The lines and branches of one method that ran from the start of the recording "
                   "to this event; only the last event of a method counts",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS(
        {"className", "Class", "java.lang.String", .description = "Binary name with dots"},
        {"source", "Source File", "java.lang.String"}, {"method", "Method", "java.lang.String"},
        {"descriptor", "Descriptor", "java.lang.String"},
        {"lines", "Lines", "java.lang.String",
         .description = "LINE:HIT of each line start, separated by spaces"},
        {"branches", "Branches", "java.lang.String",
         .description = "LINE:PC:EDGE:HIT of each branch edge, separated by spaces; EDGE is a "
                        "jump's number or - for the next "
                        "instruction"}),
};

static struct {
    pthread_mutex_t lock; /* protects the table and the chunks */
    struct cover_table table;
    jobjectArray passed; /* JvmscopeCover.PASSED; NULL: not defined yet */
    jsize chunks;        /* number of elements */
    uint32_t type;
    bool all;                 /* classes of the JDK too, because include= was given */
    unsigned recording;       /* counts recordings with coverage */
    uint64_t left, lost;      /* methods without probes for lack of memory; events without room */
    _Atomic uint64_t stopped; /* methods without probes because the lock was not available */
    /* the bytes of all points in the form that events use; under the session's lock */
    VEC(uint8_t) reported;
} cover = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * Makes sure that all points below `points` have bytes. The lock must not be held, because an
 * allocation may call back.
 */
static int make_room(uint32_t points)
{
    JNIEnv *jni = vm_jni();
    for (;;) {
        if (!patience_lock(&cover.lock))
            return -EAGAIN;
        jsize n = cover.chunks;
        pthread_mutex_unlock(&cover.lock);
        if ((uint32_t)n * CHUNK >= points)
            return 0;
        jbyteArray chunk = jni ? (*jni)->NewByteArray(jni, CHUNK) : NULL;
        if (!chunk) {
            vm_clear_exception(jni);
            return -ENOMEM;
        }
        bool locked = patience_lock(&cover.lock);
        if (locked && cover.chunks == n)
            (*jni)->SetObjectArrayElement(jni, cover.passed, cover.chunks++, chunk);
        if (locked)
            pthread_mutex_unlock(&cover.lock);
        (*jni)->DeleteLocalRef(jni, chunk);
        if (!locked)
            return -EAGAIN;
    }
}

/*
 * Copies the bytes of all points from the heap to `hits`, or clears them if that is NULL. Requires
 * the lock.
 */
static void copy_chunks(JNIEnv *jni, uint8_t *hits)
{
    static const jbyte zeroes[CHUNK];
    for (jsize i = 0; i < cover.chunks; i++) {
        jbyteArray chunk = (*jni)->GetObjectArrayElement(jni, cover.passed, i);
        if (hits)
            (*jni)->GetByteArrayRegion(jni, chunk, 0, CHUNK, (jbyte *)hits + (size_t)i * CHUNK);
        else
            (*jni)->SetByteArrayRegion(jni, chunk, 0, CHUNK, zeroes);
        (*jni)->DeleteLocalRef(jni, chunk);
    }
}

static int insert(struct edit *e, const struct cover_point *p, uint32_t number, int hit)
{
    _cleanup_(buf_release) struct buf code = BUF(16);
    int r = code_int(e->rewrite, &code, (int32_t)number);
    if (r < 0)
        return r;
    code_invokestatic(&code, hit);
    if (p->edge == LINE_START)
        return edit_insert(e, EDIT_BEFORE, p->at, 0, &code, 1);
    if (p->edge == FALL_THROUGH)
        return edit_insert(e, EDIT_AFTER, p->pc, 0, &code, 1);
    unsigned edges = edit_edges(e, p->pc);
    for (unsigned edge = p->edge; r == 0 && edge < edges; edge++)
        if (cover_same_edge(e, p->pc, edge) == p->edge)
            r = edit_insert(e, EDIT_EDGE, p->pc, edge, &code, 1);
    return r;
}

static int cover_edit(const struct instrument_class *c, struct edit *e)
{
    int r = 0;
    if (!patience_lock(&cover.lock)) {
        cover.stopped++;
        return -EAGAIN;
    }
    struct cover_method *m = cover_add(&cover.table, c->name, c->source, e, POINTS_MAX, &r);
    cover.left += r < 0;
    if (m)
        m->recording = cover.recording;
    pthread_mutex_unlock(&cover.lock);
    if (m)
        r = make_room(m->first + m->count);
    cover.stopped += r == -EAGAIN;
    if (!m || r < 0)
        return r;
    int hit = rewrite_methodref(e->rewrite, "java/lang/JvmscopeCover", "hit", "(I)V");
    for (uint32_t i = 0; hit >= 0 && r == 0 && i < m->count; i++)
        if (m->points[i].probe == i)
            r = insert(e, &m->points[i], m->first + i, hit);
    return hit < 0 ? hit : r < 0 ? r : 1;
}

static bool cover_skips(struct str class_name)
{
    return !cover.all && instrument_is_jdk(class_name);
}

static const struct instrument_client client = {
    .name = "cover", .edit = cover_edit, .skips = cover_skips};

static bool cover_wanted(const struct options *o)
{
    return option_on(o, OPT_COVER);
}

static int cover_load(struct session *s, struct buf *why)
{
    cover.all = s->options.v[OPT_INCLUDE].text != NULL;
    return jfr_declare(s->out.jfr, &coverage_type, 1, &cover.type);
}

static int define_probe(JNIEnv *jni, struct buf *why)
{
    jclass probe;
    int r = probe_define(jni, "java/lang/JvmscopeCover", &probe, why);
    if (r < 0 || cover.passed)
        return r;
    jfieldID field = (*jni)->GetStaticFieldID(jni, probe, "PASSED", "[[B");
    jobject passed = field ? (*jni)->GetStaticObjectField(jni, probe, field) : NULL;
    cover.passed = passed ? (*jni)->NewGlobalRef(jni, passed) : NULL;
    if (cover.passed)
        return 0;
    vm_clear_exception(jni);
    buf_string(why, "cover=y: no memory for what has run");
    return -ENOMEM;
}

static int cover_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = define_probe(jni, why);
    if (r == 0)
        r = instrument_choose(s->options.v[OPT_INCLUDE].text, s->options.v[OPT_EXCLUDE].text);
    if (r < 0)
        return r;
    pthread_mutex_lock(&cover.lock);
    /*
     * The heap still has the hits of an earlier recording. They are cleared, so that code compiled
     * from now on does not treat them as constants.
     */
    copy_chunks(jni, NULL);
    cover.left = cover.lost = 0;
    cover.recording++;
    atomic_store(&cover.stopped, 0);
    pthread_mutex_unlock(&cover.lock);
    vec_release(&cover.reported);
    r = instrument_on(&client, jni, why);
    if (r == 0 && vm.late)
        instrument_lose_running(s->out.jfr, jni, LOSS_COVER_RUNNING, NULL);
    return r;
}

static void cover_stop(struct session *s, JNIEnv *jni)
{
    instrument_off(&client, jni);
}

static void put_points(const struct cover_method *m, const uint8_t *hits, struct buf *lines,
                       struct buf *branches)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct cover_point *p = &m->points[i];
        unsigned hit = hits[m->first + p->probe];
        if (p->edge == LINE_START)
            buf_printf(lines, "%s%u:%u", lines->len ? " " : "", p->line, hit);
        else if (p->edge == FALL_THROUGH)
            buf_printf(branches, "%s%u:%u:-:%u", branches->len ? " " : "", p->line, p->pc, hit);
        else
            buf_printf(branches, "%s%u:%u:%u:%u", branches->len ? " " : "", p->line, p->pc, p->edge,
                       hit);
    }
}

/*
 * Writes the event of a method. Returns 1, or 0 if there is no room at the moment, or -E2BIG if the
 * event is larger than any event may be.
 */
static int write_method(struct jfr_writer *w, const struct cover_method *m, const uint8_t *hits,
                        uint64_t now)
{
    _cleanup_(buf_release) struct buf lines = BUF(EVENT_MAX), branches = BUF(EVENT_MAX),
                                      name = BUF(4096);
    put_points(m, hits, &lines, &branches);
    dotted_append(&name, m->class_name, strlen(m->class_name));
    size_t room =
        lines.len + branches.len + name.len + strlen(m->name) + strlen(m->descriptor) + 512;
    struct jfr_event e;
    if (buf_error(&lines) || buf_error(&branches) || room > EVENT_MAX)
        return -E2BIG;
    if (!jfr_begin_growing(w, cover.type, room, &e))
        return 0;
    jfr_put_time(&e, now);
    jfr_put_string(&e, buf_str(&name));
    jfr_put_string(&e, m->source);
    jfr_put_string(&e, m->name);
    jfr_put_string(&e, m->descriptor);
    jfr_put_string(&e, buf_str(&lines));
    jfr_put_string(&e, buf_str(&branches));
    jfr_commit(&e);
    return 1;
}

/* A consistent copy of the bytes of all points and of the list of this recording's methods. */
struct cover_copy {
    uint8_t *hits;
    const struct cover_method **methods; /* they remain valid */
    size_t n_hits, n_methods;
};

/*
 * Returns whether this recording covers a method: the table also has methods of earlier recordings,
 * whose points are not counted. Requires the lock.
 */
static bool is_covered(const struct cover_method *m)
{
    return m->recording == cover.recording;
}

static int copy_state(JNIEnv *jni, struct cover_copy *ret)
{
    int r = 0;
    pthread_mutex_lock(&cover.lock);
    ret->n_hits = (size_t)cover.chunks * CHUNK;
    ret->hits = malloc(ret->n_hits + 1);
    ret->methods = calloc(cover.table.methods.len + 1, sizeof(*ret->methods));
    if (ret->hits && ret->methods)
        copy_chunks(jni, ret->hits);
    else
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < cover.table.methods.len; i++) {
        const struct cover_method *m = cover.table.methods.data[i];
        /* A method that is being added has no bytes yet. */
        if (is_covered(m) && m->first + m->count <= ret->n_hits)
            ret->methods[ret->n_methods++] = m;
    }
    pthread_mutex_unlock(&cover.lock);
    return r;
}

/*
 * Writes the methods that have no event yet, or of which more has run than their events show.
 * *ret_lost counts the methods for which there was no room.
 */
static uint64_t write_changed(struct session *s, JNIEnv *jni, uint64_t *ret_lost)
{
    enum { NEVER = 0xff };

    struct cover_copy now = {0};
    uint64_t events = 0, time = now_ns();
    size_t reported = cover.reported.len;
    int r = copy_state(jni, &now);
    if (r == 0 && now.n_hits > reported &&
        (r = vec_extend(&cover.reported, now.n_hits - reported)) == 0)
        memset(cover.reported.data + reported, NEVER, now.n_hits - reported);
    if (r < 0)
        *ret_lost += now.n_methods;
    for (size_t i = 0; r == 0 && i < now.n_methods; i++) {
        const struct cover_method *m = now.methods[i];
        if (memcmp(now.hits + m->first, cover.reported.data + m->first, m->count) == 0)
            continue;
        int written = write_method(s->out.jfr, m, now.hits, time);
        *ret_lost += written <= 0;
        if (written > 0)
            memcpy(cover.reported.data + m->first, now.hits + m->first, m->count);
        if (++events % 64 == 0)
            session_drain(s, jni);
    }
    free(now.hits);
    free(now.methods);
    return events;
}

static uint64_t cover_save(struct session *s, JNIEnv *jni, bool *ret_all)
{
    uint64_t later = 0; /* what does not fit is written the next time */
    uint64_t events = write_changed(s, jni, &later);
    *ret_all = !later;
    return events;
}

static void cover_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    uint64_t lost = 0;
    write_changed(s, jni, &lost);
    jfr_lose_total(s->out.jfr, LOSS_COVERAGE, cover.left);
    jfr_lose_total(s->out.jfr, LOSS_COVER_STOPPED, cover.stopped);
    if (!lost)
        return;
    jfr_lose_events(s->out.jfr, cover.type, lost);
    pthread_mutex_lock(&cover.lock);
    cover.lost += lost;
    pthread_mutex_unlock(&cover.lock);
}

static bool cover_reachable(void)
{
    return patience_reachable(&cover.lock);
}

static void cover_status(struct session *s, struct buf *out)
{
    size_t methods = 0, points = 0;
    pthread_mutex_lock(&cover.lock);
    for (size_t i = 0; i < cover.table.methods.len; i++) {
        const struct cover_method *m = cover.table.methods.data[i];
        methods += is_covered(m);
        points += is_covered(m) ? m->count : 0;
    }
    buf_printf(out, "cover.methods %zu\ncover.points %zu\ncover.lost %llu\n", methods, points,
               (unsigned long long)cover.lost);
    pthread_mutex_unlock(&cover.lock);
}

const struct capture capture_coverage = {
    .name = "cover",
    .options = OPTION_BIT(OPT_COVER),
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1},
    .records_only = true,
    .wanted = cover_wanted,
    .load = cover_load,
    .start = cover_start,
    .reachable = cover_reachable,
    .unsaved = LOSS_COVER_UNSAVED,
    .stop = cover_stop,
    .save = cover_save,
    .counts = "coverage",
    .dump = cover_dump,
    .status = cover_status,
};
