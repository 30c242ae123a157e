/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With heap=dump the VM's own dumper writes a file next to the output. It is rewritten into the
 * output (hprof/redump.h) and then removed. With format=r the VM's file is itself the result,
 * because heap dumps are separate files.
 */
#include "agent/capture/alloc/sites.h"
#include "agent/output/dictionary.h"
#include "agent/session/session.h"
#include "agent/vm/dump.h"
#include "agent/vm/exhaustion.h"
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The ids that a rewritten dump assigns start far from those of the dictionary. */
#define FRAME_FIRST  UINT64_C(0x7000000000000001)
#define STRING_FIRST UINT64_C(0xa000000000000001)

enum { DUMP_CLASS_FIRST = 100000001, DUMP_TRACE_FIRST = 400000001, TRIES = 3 };

/* Serializes dumps: a dump of the session and one for exhausted memory may coincide. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    uint32_t next_class, next_trace, dumps, failed;
    uint32_t numbered; /* of the dumps, those that are not for exhausted memory */
    uint64_t next_frame, next_string, objects;
    atomic_bool out_of_memory; /* a dump has been written */
    bool at_end;               /* the dump at the end of the VM has been written */
    char oom_path[PATH_MAX];
    bool awaits_oom;
    jstring oom_name; /* global reference: no string can be created when memory is exhausted */
} state;

static bool wanted(const struct options *o)
{
    return o->v[OPT_NET].text || option_is(o, OPT_HEAP, "dump") || option_is(o, OPT_HEAP, "all") ||
           option_is(o, OPT_ONOOM, "dump");
}

/*
 * Makes the name of a dump file next to the output. The dumps of a recording are kept; they are
 * numbered from the second on, or their names contain `extra`.
 */
static int dump_path(const struct session *s, const char *extra, char path[PATH_MAX])
{
    const char *base = s->out.path ? s->out.path : "/tmp/jvmscope";
    int n;
    if (s->out.format->own_dumps) {
        size_t cut = strlen(base) - (file_name_ends_in(base, ".jfr") ? strlen(".jfr") : 0);
        char number[16] = "";
        if (state.numbered)
            snprintf(number, sizeof(number), ".%u", state.numbered + 1);
        n = snprintf(path, PATH_MAX, "%.*s%s.hprof", (int)cut, base, *extra ? extra : number);
    } else {
        n = snprintf(path, PATH_MAX, "%s.%ld%s.vmdump", base, (long)getpid(), extra);
    }
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool find_thread(void *context, uint64_t java_id, uint32_t *ret_serial, uint64_t *ret_object)
{
    for (struct thread *t = NULL; (t = threads_next(t));)
        if (t->java_id == java_id) {
            *ret_serial = t->serial;
            *ret_object = dictionary_thread_object(t->serial);
            return true;
        }
    return false;
}

/* Callbacks of the rewriting. */
struct dumped {
    struct map sizes;  /* of instances, by class */
    struct map traces; /* of objects, by address */
};

static uint32_t find_trace(void *context, uint64_t id)
{
    const struct dumped *d = context;
    const uint64_t *trace = map_get(&d->traces, id);
    return trace ? (uint32_t)*trace : 0;
}

static uint32_t find_size(void *context, const char *name, size_t len, uint32_t fields_size)
{
    char plain[4096];
    if (len >= sizeof(plain))
        return 0;
    for (size_t i = 0; i < len; i++)
        plain[i] = name[i] == '+' || name[i] == '.' ? '/' : name[i];
    const struct dumped *d = context;
    const uint64_t *size = map_get(&d->sizes, vm_size_key(plain, len));
    return size ? (uint32_t)*size : 0;
}

static int rewrite(struct session *s, const struct file_map *file, struct dumped *d)
{
    struct hprof_redump how = {
        .when = time(NULL),
        .empty_trace = dictionary_empty_trace(s->out.dictionary),
        .unknown_thread = THREAD_UNKNOWN,
        .thread_in_trace = option_on(&s->options, OPT_THREAD),
        .shapes = vm_shapes(),
        .next_class = &state.next_class,
        .next_trace = &state.next_trace,
        .next_frame = &state.next_frame,
        .next_string = &state.next_string,
        .thread = find_thread,
        .instance_size = find_size,
        .allocated = d->traces.len ? find_trace : NULL,
        .ctx = d,
    };
    if (s->out.format->text)
        how.text = &s->out.text;
    else
        how.binary = &s->out.binary;
    struct hprof_redump_totals totals = {0};
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    int r = hprof_redump(&how, file->data, file->len, &totals);
    out_flush(&s->out);
    pthread_mutex_unlock(&s->out.lock);
    state.objects = totals.objects;
    return r == 0 && totals.cut ? -ENODATA : r;
}

/*
 * Writes a dump and, for heap=all, determines where its objects were allocated. This is done at
 * once, while the objects are still at the dump's addresses.
 */
static int dump_with_traces(struct session *s, JNIEnv *jni, const char *path, jstring name,
                            struct map *traces, bool *ret_collected)
{
    bool all = option_is(&s->options, OPT_HEAP, "all") && !name;
    int r = -EAGAIN;
    for (int tries = 0; r == -EAGAIN && tries < TRIES; tries++) {
        map_clear(traces);
        unlink(path);
        r = vm_dump(jni, path, name, ret_collected);
        if (r == 0 && all)
            r = sites_traces(s, jni, traces);
    }
    if (r != -EAGAIN)
        return r;
    session_message(
        s,
        "heap=all: a collection followed each attempt to dump; this dump has no allocation traces");
    map_clear(traces);
    return 0;
}

static int dump_into_output(struct session *s, JNIEnv *jni, const char *path, jstring name,
                            bool *ret_collected)
{
    struct dumped d = {0};
    struct file_map file = {0};
    int r = s->out.format->text ? vm_instance_sizes(jni, &d.sizes) : 0;
    r = r == -ENOTSUP ? 0 : r; /* sizes are calculated at that time */
    if (r == 0)
        r = dump_with_traces(s, jni, path, name, &d.traces, ret_collected);
    if (r == 0)
        r = file_map_open(&file, path);
    unlink(path);
    if (r == 0)
        r = rewrite(s, &file, &d);
    file_map_release(&file);
    map_release(&d.sizes);
    map_release(&d.traces);
    return r;
}

static int dump_heap(struct session *s, JNIEnv *jni, bool out_of_memory)
{
    char path[PATH_MAX];
    jstring name = out_of_memory ? state.oom_name : NULL;
    bool collected = true;
    pthread_mutex_lock(&lock);
    int r = dump_path(s, out_of_memory ? ".oom" : "", path);
    if (r == 0 && s->out.format->own_dumps) {
        unlink(path); /* left by an earlier run: the VM does not overwrite files */
        r = vm_dump(jni, path, name, &collected);
    } else if (r == 0) {
        r = dump_into_output(s, jni, path, name, &collected);
    }
    state.dumps += r == 0;
    state.numbered += r == 0 && !out_of_memory;
    state.failed += r < 0;
    pthread_mutex_unlock(&lock);
    if (r < 0)
        session_failed(s, r, "heap dump: %s: %s", path, strerror(-r));
    else if (!collected)
        session_warn(
            s,
            "heap dump: the VM did not collect before it, so it may contain unreachable objects");
    return r;
}

static void JNICALL on_exhausted(jvmtiEnv *ti, JNIEnv *jni, jint flags, const void *reserved,
                                 const char *description)
{
    struct session *s = session_now;
    if (!s || !(flags & JVMTI_RESOURCE_EXHAUSTED_JAVA_HEAP) || !state.oom_name)
        return;
    /*
     * Only one dump is written, because the dump itself may exhaust memory again, on this thread.
     */
    if (atomic_exchange(&state.out_of_memory, true))
        return;
    session_message(s, "memory is exhausted: %s; dumping the heap", description ? description : "");
    dump_heap(s, jni, true);
}

static const struct vm_callbacks oom_events = {.ti = {.ResourceExhausted = on_exhausted}};

/* The name is made here because no string can be created when memory is exhausted. */
static int await_oom(struct session *s, JNIEnv *jni)
{
    bool logged = false;
    int r = dump_path(s, ".oom", state.oom_path);
    if (r < 0)
        return r;
    jstring name = (*jni)->NewStringUTF(jni, state.oom_path);
    state.oom_name = name ? (*jni)->NewGlobalRef(jni, name) : NULL;
    if (name)
        (*jni)->DeleteLocalRef(jni, name);
    vm_clear_exception(jni);
    if (!state.oom_name)
        return -ENOMEM;
    r = exhaustion_on(&oom_events, jni, &logged);
    state.awaits_oom = r == 0;
    if (logged)
        session_message(s, "onoom=dump: " EXHAUSTION_LOGGED);
    return r;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    memset(&state, 0, sizeof(state));
    state.next_class = DUMP_CLASS_FIRST;
    state.next_trace = DUMP_TRACE_FIRST;
    state.next_frame = FRAME_FIRST;
    state.next_string = STRING_FIRST;
    int r = vm_dump_prepare(jni);
    if (r < 0)
        buf_printf(why, "heap=dump: jvmscope does not know this VM's heap dumper");
    else if (option_is(&s->options, OPT_ONOOM, "dump"))
        r = await_oom(s, jni);
    return r;
}

static void stop(struct session *s, JNIEnv *jni)
{
    if (state.awaits_oom)
        exhaustion_off(&oom_events, jni);
    state.awaits_oom = false;
    if (state.oom_name)
        (*jni)->DeleteGlobalRef(jni, state.oom_name);
    state.oom_name = NULL;
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    bool asked =
        option_is(&s->options, OPT_HEAP, "dump") || option_is(&s->options, OPT_HEAP, "all");
    if (asked && !(reason == DUMP_EXIT && state.at_end))
        dump_heap(s, jni, false);
}

static void ending(struct session *s, JNIEnv *jni)
{
    dump(s, jni, DUMP_STOP);
    state.at_end = true;
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    if (r->command == HPROF_CMD_DUMP_HEAP)
        dump_heap(s, jni, false);
}

static void status(struct session *s, struct buf *out)
{
    buf_printf(out, "heap.dumps %u\nheap.failed %u\nheap.objects %llu\n", state.dumps, state.failed,
               (unsigned long long)state.objects);
}

const struct capture capture_heap_dump = {
    .name = "heap",
    .title = "Java heap",
    .options = OPTION_BIT(OPT_HEAP) | OPTION_BIT(OPT_ONOOM),
    .likes = {.can_generate_resource_exhaustion_heap_events = 1},
    .wanted = wanted,
    .start = start,
    .stop = stop,
    .dump = dump,
    .ending = ending,
    .request = request,
    .status = status,
};
