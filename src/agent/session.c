/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session.h"

#include "agent/class_watch.h"
#include "agent/dictionary.h"
#include "agent/front.h"
#include "agent/names.h"
#include "agent/own_stack.h"
#include "agent/thread_table.h"
#include "base/clock.h"
#include "base/vec.h"
#include "jfr/writer.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORK_MS = 100, DRAIN_MS = 50, DISMISS_MS = 20 };

struct session *session_now;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;         /* the session; held while a capture's functions run */
static pthread_mutex_t message_lock = PTHREAD_MUTEX_INITIALIZER; /* its messages */
static pthread_cond_t worker_due;                                /* with lock: the worker is to look at worker_stop */
static bool worker_there, worker_stop;
static jobject worker_thread; /* a global reference while it is there */

static bool row_on(const struct session *s, int i)
{
    return s->on >> i & 1;
}

void session_message(struct session *s, const char *format, ...)
{
    va_list args;
    struct buf line = BUF(4096);
    va_start(args, format);
    buf_vprintf(&line, format, args);
    va_end(args);
    pthread_mutex_lock(&message_lock);
    buf_printf(&s->messages, "message %.*s\n", (int)line.len, line.data);
    pthread_mutex_unlock(&message_lock);
    if (!vm.attached && !s->running)
        fprintf(stderr, "hprof: %.*s\n", (int)line.len, line.data);
    buf_release(&line);
}

/* "cpu=samples", the option by which a row was asked for. */
static void name_options(const struct session *s, const struct capture *row, struct buf *out)
{
    const char *between = "";
    for (int i = 0; i < OPTION_COUNT; i++)
        if (row->options >> i & 1 && s->options.v[i].given) {
            buf_printf(out, "%s%s=%s", between, option_table[i].name, s->options.v[i].text);
            between = ", ";
        }
}

static int ask_capabilities(struct session *s, const struct capture *row, struct buf *why)
{
    jvmtiCapabilities missing = {0};
    int r = vm_need(&row->needs, &missing);
    if (r == 0 && !vm_capabilities_empty(&missing)) {
        name_options(s, row, why);
        buf_printf(why, ": this VM cannot%s: no ", vm.attached ? " any more once it runs" : "");
        vm_capability_names(&missing, why);
        return -ENOTSUP;
    }
    r = r < 0 ? r : vm_need(&row->likes, &missing);
    if (r == 0 && !vm_capabilities_empty(&missing)) {
        struct buf text = BUF(4096);
        name_options(s, row, &text);
        buf_printf(&text, ": does without ");
        vm_capability_names(&missing, &text);
        session_message(s, "%.*s", (int)text.len, text.data);
        buf_release(&text);
    }
    return r;
}

/* Names need sources and lines, whatever is captured. */
static int ask_basics(struct buf *why)
{
    jvmtiCapabilities basics = {.can_get_source_file_name = 1, .can_get_line_numbers = 1};
    int r = vm_need(&basics, NULL);
    if (r < 0)
        buf_printf(why, "the VM refuses JVM TI capabilities");
    return r;
}

static void JNICALL on_class_load(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class)
{
    /* AsyncGetCallTrace refuses to work unless somebody listens to this event. */
}

static void JNICALL on_class_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class)
{
    names_touch_class(class);
}

static const struct vm_callbacks method_id_events = {.ti = {.ClassLoad = on_class_load, .ClassPrepare = on_class_prepare}};
static bool method_ids_on;

int session_need_method_ids(JNIEnv *jni)
{
    if (method_ids_on)
        return 0;
    int r = vm_events_on(&method_id_events);
    if (r < 0)
        return r;
    method_ids_on = true;
    names_touch_all_classes(jni);
    return 0;
}

static int load_rows(struct session *s, struct buf *why)
{
    int r = ask_basics(why);
    for (int i = 0; i < captures_count && r == 0; i++) {
        const struct capture *row = captures[i];
        if (!(s->wanted >> i & 1))
            continue;
        r = ask_capabilities(s, row, why);
        if (r == 0 && row->load)
            r = row->load(s, why);
        s->on |= r == 0 ? UINT64_C(1) << i : 0;
        if (r == 0 && row->events)
            r = vm_events_on(row->events);
    }
    return r;
}

static int start_rows(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = 0;
    for (int i = 0; i < captures_count && r == 0; i++)
        if (row_on(s, i) && captures[i]->start)
            r = captures[i]->start(s, jni, why);
    s->running = r == 0;
    return r;
}

static void free_session(struct session *s)
{
    options_release(&s->options);
    buf_release(&s->messages);
    free(s->text);
    free(s);
}

/*
 * HPROF outputs tell of threads as they come and go. The threads themselves only leave a note: they must not wait for an
 * output that a front-end holds up or that a heap dump is being written to.
 */
struct thread_note {
    struct thread *thread;
    bool over;
};

static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct thread_note) notes;
static _Atomic uint64_t notes_lost;

static void note(struct thread *t, bool over)
{
    const struct session *s = session_now;
    /* Before VMInit a thread has no name yet: threads_look_around tells of it again. */
    if (!s || !s->out.dictionary || t->own || !vm.live)
        return;
    pthread_mutex_lock(&notes_lock);
    if (vec_push(&notes, ((struct thread_note){t, over})) < 0)
        notes_lost++;
    pthread_mutex_unlock(&notes_lock);
}

static void tell_start(struct thread *t, JNIEnv *jni, jthread thread)
{
    note(t, false);
}

static void tell_end(struct thread *t, JNIEnv *jni)
{
    note(t, true);
}

static void write_notes(struct session *s)
{
    pthread_mutex_lock(&notes_lock);
    __typeof__(notes) taken = notes;
    memset(&notes, 0, sizeof(notes));
    pthread_mutex_unlock(&notes_lock);
    for (size_t i = 0; i < taken.len && s->out.dictionary; i++) {
        if (taken.data[i].over)
            dictionary_thread_end(s->out.dictionary, taken.data[i].thread);
        else if (!taken.data[i].thread->own)
            dictionary_thread_start(s->out.dictionary, taken.data[i].thread);
    }
    vec_release(&taken);
}

static const struct thread_listener hprof_threads = {tell_start, tell_end};

/* Ends what has begun, in reverse, and closes the output. */
static int finish(struct session *s, JNIEnv *jni)
{
    s->running = false;
    for (int i = captures_count - 1; i >= 0; i--) {
        const struct capture *row = captures[i];
        if (!row_on(s, i))
            continue;
        if (row->stop && jni)
            row->stop(s, jni);
        if (row->events)
            vm_events_off(row->events);
        if (row->release)
            row->release(s);
    }
    if (method_ids_on)
        vm_events_off(&method_id_events);
    method_ids_on = false;
    threads_unlisten(&hprof_threads);
    front_stop();
    write_notes(s);
    int r = out_close(&s->out);
    session_now = NULL;
    free_session(s);
    own_stack_release();
    class_watch_stop();
    names_release();
    /* What the recording used would stay in the allocator's arenas, another one each time a thread of ours took another. */
    if (vm.attached)
        malloc_trim(0);
    return r;
}

static void drain_rows(struct session *s, JNIEnv *jni)
{
    for (int i = 0; i < captures_count; i++)
        if (row_on(s, i) && captures[i]->drain)
            captures[i]->drain(s, jni);
}

static void flush_rows(struct session *s, JNIEnv *jni)
{
    write_notes(s);
    if (s->out.dictionary)
        dictionary_unloaded(s->out.dictionary);
    for (int i = 0; i < captures_count; i++)
        if (row_on(s, i) && captures[i]->flush)
            captures[i]->flush(s, jni);
    if (s->out.jfr)
        jfr_writer_work(s->out.jfr);
    /* What ended before the last round has been seen by now. */
    threads_forget_before(s->last_work_ns);
    s->last_work_ns = now_ns();
}

/* What does not fit into the records' 32 bits is said, not only written as the largest number. */
static void tell_saturated(struct session *s)
{
    pthread_mutex_lock(&s->out.lock);
    unsigned n = s->out.binary.saturated - s->out.saturated_told;
    s->out.saturated_told += n;
    pthread_mutex_unlock(&s->out.lock);
    if (!n)
        return;
    struct buf text = BUF(200);
    buf_printf(&text, "%u totals are beyond the format's 32 bits and were written as %u", n, UINT32_MAX);
    session_message(s, "%s", buf_str(&text));
    if (!vm.attached && s->running)
        fprintf(stderr, "hprof: %s\n", buf_str(&text));
    buf_release(&text);
}

static int dump_rows(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    flush_rows(s, jni);
    /* HPROF's own habit, on standard error. */
    bool tell = s->out.dictionary && option_on(&s->options, OPT_VERBOSE) && !vm.attached;
    const char *before = "Dumping";
    for (int i = 0; i < captures_count; i++) {
        const struct capture *row = captures[i];
        if (!row_on(s, i) || !row->dump || (reason == DUMP_EXIT && !option_on(&s->options, OPT_DOE)))
            continue;
        if (tell && row->title) {
            fprintf(stderr, "%s %s ...", before, row->title);
            before = "";
        }
        row->dump(s, jni, reason);
    }
    /* What is named by the sections may be gone already. */
    if (s->out.dictionary)
        dictionary_unloaded(s->out.dictionary);
    if (!*before)
        fprintf(stderr, " done.\n");
    tell_saturated(s);
    return out_flush(&s->out);
}

/* So much from now, for worker_due. */
static struct timespec due_in(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ms * (long)NS_PER_MS;
    t.tv_sec += t.tv_nsec / (long)NS_PER_SECOND;
    t.tv_nsec %= (long)NS_PER_SECOND;
    return t;
}

/* The agent's thread: flushes ten times a second and drains twice as often, ends the session when its duration is over, goes
 * when there is none. */
static void JNICALL work(jvmtiEnv *ti, JNIEnv *jni, void *unused)
{
    pthread_mutex_lock(&lock);
    while (!worker_stop && !vm.dying && session_now) {
        struct timespec until = due_in(DRAIN_MS);
        pthread_cond_timedwait(&worker_due, &lock, &until);
        struct session *s = session_now;
        if (worker_stop || vm.dying || !s)
            break;
        uint64_t duration = s->options.v[OPT_DURATION].number;
        if (duration && now_ns() - s->started_ns >= duration) {
            dump_rows(s, jni, DUMP_STOP);
            finish(s, jni);
            break;
        }
        if (now_ns() - s->last_work_ns + DRAIN_MS * NS_PER_MS / 2 < WORK_MS * NS_PER_MS)
            drain_rows(s, jni);
        else
            flush_rows(s, jni);
    }
    worker_there = false;
    threads_own(NULL);
    (*jni)->DeleteGlobalRef(jni, worker_thread);
    worker_thread = NULL;
    pthread_cond_broadcast(&worker_due);
    pthread_mutex_unlock(&lock);
}

int session_thread(JNIEnv *jni, const char *text, jvmtiStartFunction run, void *context)
{
    int r = -ENOMEM;
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID make = class ? (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V") : NULL;
    jstring name = make ? (*jni)->NewStringUTF(jni, text) : NULL;
    jthread thread = name ? (*jni)->NewObject(jni, class, make, name) : NULL;
    worker_thread = thread ? (*jni)->NewGlobalRef(jni, thread) : NULL;
    threads_own(worker_thread);
    if (worker_thread && (*vm.ti)->RunAgentThread(vm.ti, thread, run, context, JVMTI_THREAD_NORM_PRIORITY) == JVMTI_ERROR_NONE)
        r = 0;
    if (r < 0 && worker_thread) {
        threads_own(NULL);
        (*jni)->DeleteGlobalRef(jni, worker_thread);
    }
    vm_clear_exception(jni);
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    if (name)
        (*jni)->DeleteLocalRef(jni, name);
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
    return r;
}

static int start_worker(JNIEnv *jni)
{
    static bool once;
    if (!once) {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&worker_due, &attributes);
        pthread_condattr_destroy(&attributes);
        once = true;
    }
    worker_stop = false;
    worker_there = true;
    int r = session_thread(jni, "jvmscope", work, NULL);
    worker_there = r == 0;
    return r;
}

/* With lock held: sends the worker away and waits until it has gone. */
static void stop_worker(void)
{
    worker_stop = true;
    pthread_cond_broadcast(&worker_due);
    while (worker_there)
        pthread_cond_wait(&worker_due, &lock);
}

/*
 * With lock held and vm.dying set, in a VM that ends: it would wait for a thread in native code until that looks at the time
 * again. Here nobody waits for long for one that cannot run, held by a debugger for one.
 */
static void dismiss_worker(void)
{
    struct timespec until = due_in(DISMISS_MS);
    if (worker_there)
        pthread_cond_broadcast(&worker_due);
    while (worker_there && pthread_cond_timedwait(&worker_due, &lock, &until) == 0)
        ;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    threads_look_around(jni);
    s->started_ns = s->last_work_ns = now_ns();
    for (int i = 0; i < captures_count; i++)
        if (row_on(s, i) && captures[i]->own_stacks)
            own_stack_start(jni, &s->options);
    int r = start_rows(s, jni, why);
    if (r < 0)
        return r;
    if (s->out.format == 'b' && class_watch_start(jni) < 0)
        session_message(s, "this VM does not tell of classes that are unloaded");
    r = start_worker(jni);
    if (r == 0)
        r = front_start(s, jni);
    if (r < 0)
        buf_printf(why, "the VM gives the agent no thread");
    return r;
}

static int begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    for (int i = 0; i < captures_count; i++)
        if (captures[i]->wanted(&s->options))
            s->wanted |= UINT64_C(1) << i;
    int r = out_open(&s->out, &s->options, why);
    if (r < 0) {
        free_session(s);
        return r;
    }
    session_now = s;
    r = s->out.format == 'r' ? 0 : threads_listen(&hprof_threads);
    if (r == 0)
        r = load_rows(s, why);
    if (r == 0 && vm.live)
        r = start(s, jni, why);
    if (r < 0) {
        /* Nothing was recorded, and no file says otherwise. */
        char *path = s->out.net ? NULL : strdup(s->out.path);
        struct stat st;
        finish(s, jni);
        if (path && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
            unlink(path);
        free(path);
    }
    return r;
}

int session_begin(struct options *o, const char *text, JNIEnv *jni, struct buf *why)
{
    struct session *s = calloc(1, sizeof(*s));
    char *copy = strdup(text ? text : "");
    if (!s || !copy) {
        free(s);
        free(copy);
        options_release(o);
        return -ENOMEM;
    }
    s->options = *o;
    s->text = copy;
    s->messages.limit = 16384;
    *o = (struct options){0};
    pthread_mutex_lock(&lock);
    int r;
    if (session_now || vm.dying) {
        buf_printf(why, "already recording to %s", session_now ? session_now->out.path : "nothing: the VM is ending");
        r = -EBUSY;
        free_session(s);
    } else {
        r = begin(s, jni, why);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

int session_vm_init(JNIEnv *jni, struct buf *why)
{
    pthread_mutex_lock(&lock);
    vm.live = true;
    int r = 0;
    if (session_now) {
        r = start(session_now, jni, why);
        if (r < 0)
            finish(session_now, jni);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void session_vm_death(JNIEnv *jni)
{
    pthread_mutex_lock(&lock);
    vm.dying = true;
    if (session_now) {
        dump_rows(session_now, jni, DUMP_EXIT);
        finish(session_now, jni);
    }
    dismiss_worker();
    vm.live = false;
    pthread_mutex_unlock(&lock);
}

int session_dump(JNIEnv *jni, enum dump_reason reason, struct buf *why)
{
    pthread_mutex_lock(&lock);
    int r = session_now && session_now->running ? dump_rows(session_now, jni, reason) : -ESRCH;
    pthread_mutex_unlock(&lock);
    if (r < 0)
        buf_printf(why, "%s", r == -ESRCH ? "not recording" : strerror(-r));
    return r;
}

int session_run(JNIEnv *jni, void (*f)(struct session *s, JNIEnv *jni, void *context), void *context)
{
    pthread_mutex_lock(&lock);
    bool running = session_now && session_now->running;
    if (running)
        f(session_now, jni, context);
    pthread_mutex_unlock(&lock);
    return running ? 0 : -ESRCH;
}

int session_end(JNIEnv *jni, struct buf *why)
{
    pthread_mutex_lock(&lock);
    int r = -ESRCH;
    if (session_now && session_now->running) {
        r = dump_rows(session_now, jni, DUMP_STOP);
        int closed = finish(session_now, jni);
        r = r < 0 ? r : closed;
        stop_worker();
    }
    pthread_mutex_unlock(&lock);
    if (r < 0)
        buf_printf(why, "%s", r == -ESRCH ? "not recording" : strerror(-r));
    return r;
}

void session_status(struct buf *out)
{
    pthread_mutex_lock(&lock);
    const struct session *s = session_now;
    buf_printf(out, "state %s\n", s ? "recording" : "idle");
    if (s) {
        buf_printf(out, "file %s\nformat %c\noptions %s\nelapsed_ns %llu\n", s->out.path, s->out.format, s->text,
                   (unsigned long long)(now_ns() - s->started_ns));
        pthread_mutex_lock(&message_lock);
        buf_bytes(out, s->messages.data, s->messages.len);
        pthread_mutex_unlock(&message_lock);
        for (int i = 0; i < captures_count; i++)
            if (row_on(s, i) && captures[i]->status)
                captures[i]->status(session_now, out);
        own_stack_status(out);
        if (s->out.net)
            front_status(out);
    }
    pthread_mutex_unlock(&lock);
}
