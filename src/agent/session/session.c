/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/private.h"

#include "agent/common/fault.h"
#include "agent/instrument/batches.h"
#include "agent/instrument/instrument.h"
#include "agent/session/captures.h"
#include "agent/session/ending.h"
#include "agent/session/front.h"
#include "agent/session/outcome.h"
#include "agent/session/own_cost.h"
#include "agent/session/thread_notes.h"
#include "agent/stacks/class_watch.h"
#include "agent/stacks/names.h"
#include "agent/stacks/own_stack.h"
#include "agent/vm/collect.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "jfr/writer.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma weak malloc_trim /* musl's allocator does not have this function */

enum { RETRY_MS = 20, END_MS = 10000, RESTORE_MS = 1000 };

struct session *session_now;

/* protects the session; held while a capture's functions run */
pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * What the holder of the lock is doing, and which file it writes, for threads that must not wait: a
 * start or an end may change classes for a minute.
 */
static struct {
    pthread_mutex_t lock;
    const char *state; /* as in options/control.h; NULL: nothing */
    char path[PATH_MAX];
} occupied = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Sets `occupied`; a path of NULL leaves the path unchanged. */
static void occupy(const char *state, const char *path)
{
    pthread_mutex_lock(&occupied.lock);
    occupied.state = state;
    if (path)
        snprintf(occupied.path, sizeof(occupied.path), "%s", path);
    pthread_mutex_unlock(&occupied.lock);
}

/* Takes the lock. Returns false if its holder is occupied. */
static bool lock_unless_occupied(void)
{
    for (;;) {
        pthread_mutex_lock(&occupied.lock);
        bool is = occupied.state;
        pthread_mutex_unlock(&occupied.lock);
        if (is)
            return false;
        const struct timespec until = clock_after(CLOCK_REALTIME, RETRY_MS * NS_PER_MS);
        if (pthread_mutex_timedlock(&session_lock, &until) == 0)
            return true;
    }
}

static atomic_bool always_on;
atomic_bool session_end_waits;

static void JNICALL on_class_load(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class)
{
    /* AsyncGetCallTrace works only while this event is enabled. */
}

static void JNICALL on_class_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class)
{
    names_touch_class(class);
}

static const struct vm_callbacks method_id_events = {
    .ti = {.ClassLoad = on_class_load, .ClassPrepare = on_class_prepare}};
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

static void free_session(struct session *s)
{
    options_release(&s->options);
    buf_release(&s->messages);
    free(s->text);
    free(s);
}

/* The result of the last session. */
static struct {
    char path[PATH_MAX], why[600];
    int error;
    bool unreported; /* no command ended the session, and its result has not been reported yet */
    struct buf messages; /* of its end, for the command that ended it */
} last;

/* Closes the output and reports the result. */
static int close_output(struct session *s, bool has_run)
{
    char why[256];
    snprintf(last.path, sizeof(last.path), "%s", s->out.path); /* out_close releases it */
    int r = out_close(&s->out);
    out_describe(&s->out, r, why, sizeof(why));
    last.error = s->failure ? s->failure : r;
    snprintf(last.why, sizeof(last.why), "%s%s%s", s->failed, s->failure && r ? "; " : "",
             r ? why : "");
    last.unreported = false;
    if (has_run)
        outcome_report(outcome_file(&s->options), last.path, last.error, last.why, !vm.attached);
    return last.error;
}

/* Ends what was begun, in reverse order, and closes the output. */
static int finish(struct session *s, JNIEnv *jni)
{
    bool has_run = s->running;
    captures_stop(s, jni);
    if (method_ids_on)
        vm_events_off(&method_id_events);
    method_ids_on = false;
    threads_unlisten(&thread_notes);
    front_stop();
    thread_notes_write(s);
    int r = close_output(s, has_run);
    session_now = NULL;
    buf_release(&last.messages);
    last.messages = BUF(32768);
    session_put_messages(s, &last.messages, true);
    free_session(s);
    own_stack_release();
    class_watch_stop();
    names_release();
    /*
     * Returns free memory to the system. Otherwise the memory that the recording used would stay in
     * the allocator's arenas, in a different one for each thread of ours.
     */
    if (vm.attached && malloc_trim)
        malloc_trim(0);
    return r;
}

/* Does urgent work. It does not wait for the lock: starting and ending may hold it for seconds. */
static void drain_now(JNIEnv *jni)
{
    struct session *s = session_now;
    if (s)
        session_drain(s, jni);
    if (s && s->out.jfr)
        jfr_writer_work(s->out.jfr);
}

void session_time_is_over(struct session *s, JNIEnv *jni)
{
    session_shut_overloaded();
    occupy("stopping", s->out.path);
    session_dump_captures(s, jni, DUMP_STOP);
    finish(s, jni);
    last.unreported = true;
    occupy(NULL, NULL);
}

/* Installs a hook in which captures run a collection before the VM ends. It may fail silently. */
static void watch_end(struct session *s, JNIEnv *jni)
{
    bool needed = false;
    for (int i = 0; i < captures_count; i++)
        needed = needed || (captures_has(s->loaded, i) && captures[i]->ending);
    if (needed && ending_watch(jni) < 0)
        session_message(s, "this VM takes no shutdown hook of ours: live figures at its end are as "
                           "of the last collection");
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    vm_beginning = true;
    threads_add_existing(jni);
    watch_end(s, jni);
    instrument_pause = drain_now;
    s->started_ns = s->last_work_ns = now_ns();
    s->save_due_ns = s->started_ns + SESSION_SAVE_NS;
    own_cost_start();
    s->chunks = s->out.jfr ? jfr_writer_chunks(s->out.jfr) : 0;
    for (int i = 0; i < captures_count; i++)
        if (captures_has(s->loaded, i) && captures[i]->own_stacks)
            own_stack_start(jni, &s->options);
    int r = captures_start(s, jni, why);
    if (r == 0 && batches_ended()) {
        buf_string(why, "the VM ended before the recording had begun");
        r = -ECANCELED;
    }
    if (r == 0)
        session_begin_span(s);
    s->due_ns = s->options.v[OPT_DURATION].given ? now_ns() + s->options.v[OPT_DURATION].number : 0;
    if (r == 0 && s->out.format->records && class_watch_start(jni) < 0)
        session_message(s, "this VM does not report the unloading of classes");
    if (r == 0)
        r = front_start(s, jni);
    if (r == 0)
        r = session_worker_start(jni);
    vm_beginning = false;
    if (r == 0)
        r = out_publish(&s->out, why);
    if (r < 0 && !why->len)
        buf_printf(why, "the VM cannot start a thread for the agent");
    return r;
}

/*
 * Ends a session that could not begin. Nothing was recorded, so the output is removed, but not an
 * older file of its name.
 */
static void give_up(struct session *s, JNIEnv *jni)
{
    char *path = s->out.net || !out_has_name(&s->out) ? NULL : strdup(s->out.path);
    struct stat st;
    s->running = false;
    finish(s, jni);
    instrument_restore(jni);
    *last.path = 0;
    last.error = 0;
    if (path && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
        unlink(path);
    free(path);
}

/*
 * If the VM does not sample allocations, the only way to record them is to instrument all classes
 * and count every allocation, which is too expensive for a program that runs for months.
 */
static void leave_out_allocations(struct session *s)
{
    struct option_value *alloc = &s->options.v[OPT_ALLOC];
    const jvmtiCapabilities samples = {.can_generate_sampled_object_alloc_events = 1};
    jvmtiCapabilities missing = {0};
    if (!option_always(&s->options) || !alloc->text || vm_could(&samples, &missing) < 0 ||
        vm_capabilities_empty(&missing))
        return;
    alloc->text = NULL;
    if (alloc->given)
        session_message(s, "alloc=sampled: left out: this VM does not sample allocations");
}

static int begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    leave_out_allocations(s);
    for (int i = 0; i < captures_count; i++)
        if (captures[i]->wanted(&s->options))
            s->wanted |= UINT64_C(1) << i;
    int r = captures_check(s, why);
    if (r == 0)
        r = out_open(&s->out, &s->options, why);
    if (r < 0) {
        free_session(s);
        return r;
    }
    occupy("starting", s->out.path);
    session_now = s;
    atomic_store(&always_on, s->options.v[OPT_ALWAYS].given);
    fault_set(s->options.v[OPT_FAIL].text);
    fault_steps_of("session");
    vm.late = vm.live;
    r = s->out.format->events ? 0 : threads_listen(&thread_notes);
    if (r == 0)
        r = captures_load(s, why);
    if (r == 0 && vm.live)
        r = start(s, jni, why);
    fault_steps_of(NULL);
    if (r < 0)
        give_up(s, jni);
    occupy(NULL, NULL);
    return r;
}

/* Takes the lock, or reports that another recording is being started. */
static int lock_to_begin(struct buf *why)
{
    if (lock_unless_occupied())
        return 0;
    pthread_mutex_lock(&occupied.lock);
    bool starting = occupied.state && strcmp(occupied.state, "starting") == 0;
    if (starting)
        buf_printf(why, "already recording to %s", occupied.path);
    pthread_mutex_unlock(&occupied.lock);
    if (starting)
        return -EBUSY;
    pthread_mutex_lock(&session_lock);
    return 0;
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
    int r = lock_to_begin(why);
    if (r < 0) {
        free_session(s);
        return r;
    }
    if (session_now || vm.dying) {
        if (!session_now)
            buf_string(why, "no recording can be started: the VM is ending");
        else if (option_always(&session_now->options))
            buf_printf(why, "a recording is always on already, in %s; save a part with dump --last",
                       session_now->out.path);
        else
            buf_printf(why, "already recording to %s", session_now->out.path);
        r = -EBUSY;
        free_session(s);
    } else {
        r = begin(s, jni, why);
    }
    pthread_mutex_unlock(&session_lock);
    return r;
}

int session_vm_init(JNIEnv *jni, struct buf *why)
{
    pthread_mutex_lock(&session_lock);
    vm.live = true;
    int r = 0;
    if (session_now) {
        occupy("starting", session_now->out.path);
        fault_steps_of("session");
        r = start(session_now, jni, why);
        fault_steps_of(NULL);
        if (r < 0) {
            outcome_refused(outcome_file(&session_now->options), r, "; nothing is recorded", why);
            give_up(session_now, jni);
        }
        occupy(NULL, NULL);
    }
    pthread_mutex_unlock(&session_lock);
    return r;
}

/*
 * Takes the lock for the thread that ends the VM. Returns false if that takes too long: the holder
 * of the lock may wait for a collector that has stopped (after Runtime.halt, which runs no hooks),
 * or another tool may have stopped it.
 */
static bool lock_at_end(void)
{
    static bool in_vain; /* a wait has failed; do not wait again */
    uint64_t end = now_ns() + END_MS * NS_PER_MS;
    bool locked = pthread_mutex_trylock(&session_lock) == 0;
    atomic_store(&session_end_waits, !locked);
    while (!locked && !in_vain && now_ns() < end) {
        /* Waits in the lock's queue: polling might never succeed against a busy worker. */
        struct timespec until = clock_after(CLOCK_REALTIME, 20 * NS_PER_MS);
        locked = pthread_mutex_timedlock(&session_lock, &until) == 0;
    }
    in_vain = in_vain || !locked;
    atomic_store(&session_end_waits, false);
    return locked;
}

void session_vm_ending(JNIEnv *jni)
{
    batches_end();
    if (!lock_at_end())
        return;
    struct session *s = session_now;
    bool writes = s && s->running && option_on(&s->options, OPT_DOE);
    if (writes)
        session_flush_captures(s, jni);
    for (int i = 0; i < captures_count && writes; i++)
        if (captures[i]->ending && session_capture_reachable(s, i))
            captures[i]->ending(s, jni);
    collect_stop(true);
    pthread_mutex_unlock(&session_lock);
}

void session_vm_death(JNIEnv *jni)
{
    session_shut_overloaded(); /* threads of the program continue, and may call what is traced */
    collect_stop(false);
    batches_end();
    if (!lock_at_end()) {
        fprintf(stderr,
                "hprof: what the agent was doing did not end within %d s of the VM's end; the "
                "output lacks its last part\n",
                END_MS / 1000);
        return;
    }
    vm.dying = true;
    session_worker_ends();
    if (session_now) {
        session_dump_captures(session_now, jni, DUMP_EXIT);
        finish(session_now, jni);
        last.unreported = true; /* a request to stop the recording may have come too late */
    }
    session_worker_dismiss();
    for (int ms = 0; instrument_restoring() && ms < RESTORE_MS; ms++)
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    vm.live = false;
    pthread_mutex_unlock(&session_lock);
}

void session_abandon(JNIEnv *jni)
{
    pthread_mutex_lock(&session_lock);
    if (session_now && session_now->running) {
        occupy("stopping", session_now->out.path);
        give_up(session_now, jni);
        session_worker_stop();
        occupy(NULL, NULL);
    }
    pthread_mutex_unlock(&session_lock);
}

/* Writes the result of session_dump. Requires the lock. */
static void describe(int error, struct buf *why)
{
    char text[256];
    if (session_now)
        out_describe(&session_now->out, error, text, sizeof(text));
    if (session_now && !session_now->failure)
        buf_printf(why, "%s: %s", session_now->out.path, text);
    else if (!session_now && last.error)
        buf_printf(why, "not recording: %s: %s", last.path, last.why);
    else
        buf_string(why, session_now ? session_now->failed : "not recording");
}

/* Requires the lock. */
static int dump_now(JNIEnv *jni, struct buf *why)
{
    int r = -ESRCH;
    if (session_now && session_now->running) {
        occupy("recording", session_now->out.path);
        r = session_dump_captures(session_now, jni, DUMP_REQUEST);
        occupy(NULL, NULL);
    }
    if (r < 0)
        describe(r, why);
    return r;
}

int session_dump(JNIEnv *jni, struct buf *why)
{
    pthread_mutex_lock(&session_lock);
    int r = dump_now(jni, why);
    pthread_mutex_unlock(&session_lock);
    return r;
}

void session_dump_unless_occupied(JNIEnv *jni)
{
    struct buf why = BUF(4096);
    if (!lock_unless_occupied())
        return;
    (void)dump_now(jni, &why);
    pthread_mutex_unlock(&session_lock);
    buf_release(&why);
}

int session_run(JNIEnv *jni, void (*f)(struct session *s, JNIEnv *jni, void *context),
                void *context)
{
    pthread_mutex_lock(&session_lock);
    bool running = session_now && session_now->running;
    if (running) {
        occupy("recording", session_now->out.path);
        f(session_now, jni, context);
        occupy(NULL, NULL);
    }
    pthread_mutex_unlock(&session_lock);
    return running ? 0 : -ESRCH;
}

/* How long the sender of session_ending gives the request to stop. */
enum { ENDING_S = 10 };

void session_ending(void)
{
    if (atomic_load(&always_on))
        return;
    session_shut_overloaded(); /* before it waits for the worker, which may be writing */
    if (!lock_unless_occupied())
        return;
    uint64_t due = now_ns() + ENDING_S * NS_PER_SECOND;
    if (session_now && session_now->running && (!session_now->due_ns || session_now->due_ns > due))
        session_now->due_ns = due;
    pthread_mutex_unlock(&session_lock);
}

int session_end(JNIEnv *jni, struct buf *why)
{
    session_shut_overloaded(); /* before it waits for the worker, which may be writing */
    pthread_mutex_lock(&session_lock);
    int r = -ESRCH;
    if (session_now && session_now->running) {
        occupy("stopping", session_now->out.path);
        (void)session_dump_captures(session_now, jni, DUMP_STOP);
        r = finish(session_now, jni);
        session_worker_stop();
        occupy(NULL, NULL);
    } else if (!session_now && last.unreported) {
        r = last.error;
        last.unreported = false;
    }
    if (r < 0)
        buf_printf(why, r == -ESRCH ? "not recording" : "%s: %s", last.path, last.why);
    pthread_mutex_unlock(&session_lock);
    return r;
}

/* The answer when the session's lock is taken. */
static void status_occupied(struct buf *out)
{
    int done = 0, of = 0;
    pthread_mutex_lock(&occupied.lock);
    const char *state = occupied.state ? occupied.state : "recording";
    buf_printf(out, "state %s\nfile %s\n", state, occupied.path);
    pthread_mutex_unlock(&occupied.lock);
    if (batches_progress(&done, &of))
        buf_printf(out, "changing %d of %d classes\n", done, of);
}

void session_status(struct buf *out, bool reports, bool ends)
{
    if (!lock_unless_occupied()) {
        status_occupied(out);
        return;
    }
    struct session *s = session_now;
    buf_printf(out, "state %s\n", s ? "recording" : "idle");
    if (!s)
        instrument_status(out);
    if (!s && *last.path)
        buf_printf(out, "last_file %s\n", last.path);
    if (!s && last.error)
        buf_printf(out, "last_error %s\n", last.why);
    if (!s && reports && ends) {
        buf_bytes(out, last.messages.data, last.messages.len);
        buf_release(&last.messages);
    }
    if (s) {
        buf_printf(out, "file %s\nformat %s\noptions %s\nelapsed_ns %llu\n", s->out.path,
                   s->out.format->letter, s->text, (unsigned long long)(now_ns() - s->started_ns));
        session_put_messages(s, out, reports);
        out_ring_status(&s->out, &s->options, out);
        for (int i = 0; i < captures_count; i++)
            if (session_capture_on(s, i) && captures[i]->status)
                captures[i]->status(session_now, out);
        own_cost_status(out);
        instrument_status(out);
        own_stack_status(out);
        names_status(out);
        if (s->out.jfr)
            out_lost_status(&s->out, out);
        if (s->out.net)
            front_status(out);
    }
    pthread_mutex_unlock(&session_lock);
}
