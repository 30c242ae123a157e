/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/message.h"

#include "agent/capture/trace/method_trace.h"
#include "agent/capture/triggers/triggers.h"
#include "agent/control/control.h"
#include "agent/inspect/inspect.h"
#include "agent/instrument/instrument.h"
#include "agent/session/session.h"
#include "agent/vm/own_thread.h"
#include "agent/vm/vm.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/timed_wait.h"
#include "options/control.h"
#include "options/options.h"
#include "options/trace_request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long the listener waits for the thread that carries out a request; most take less. */
enum { WAIT_MS = 300 };

static int work_start(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why)
{
    struct options o = {0};
    int r = options_parse(&o, rest, why);
    if (r == 0 && o.help) {
        options_release(&o);
        buf_printf(why, "help is available only when the VM starts with the agent");
        return -EINVAL;
    }
    return r < 0 ? r : session_begin(&o, rest, jni, why);
}

/*
 * A sender that gives up, for instance because the VM was stopped for a while, removes its reply
 * file, and so does the next command if the sender was killed. It has reported that nothing is
 * recorded, so nobody would end a recording that began after all.
 */
static bool is_abandoned(const char *reply)
{
    return access(reply, W_OK) < 0;
}

static int work_dump(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why)
{
    return session_dump(jni, why);
}

static int work_stop(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why)
{
    return session_end(jni, why);
}

static int work_ending(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why)
{
    session_ending();
    return 0;
}

static int answer_status(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why)
{
    return 0;
}

struct trace_request {
    const char *text;
    struct buf *more, *why;
    int result;
};

static void carry_out_trace(struct session *s, JNIEnv *jni, void *context)
{
    struct trace_request *t = context;
    t->result = method_trace_switch(s, jni, t->text, t->more, t->why);
}

static int work_trace(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why)
{
    struct trace_request t = {rest, more, why, 0};
    const char *what, *fault = trace_request_fault(rest, &what);
    if (fault) {
        buf_printf(why, "%s: %s", what, fault);
        return -EINVAL;
    }
    if (session_run(jni, carry_out_trace, &t) < 0) {
        buf_string(why, "no calls are being traced");
        return -ESRCH;
    }
    return t.result;
}

struct trigger_message {
    const struct options *options;
    struct buf *why;
    int result;
};

static void carry_out_triggers(struct session *s, JNIEnv *jni, void *context)
{
    struct trigger_message *m = context;
    m->result = triggers_change(s, jni, m->options, m->why);
}

static int work_on(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why)
{
    struct options o = {0};
    struct trigger_message m = {&o, why, 0};
    _cleanup_(buf_release) struct buf text = BUF(1 << 20);
    buf_printf(&text, "always=y,%s", rest);
    int r = buf_error(&text) ? -E2BIG : options_parse(&o, buf_str(&text), why);
    if (r < 0)
        return r;
    r = session_run(jni, carry_out_triggers, &m);
    options_release(&o);
    if (r < 0)
        buf_string(why, "no recording is always on");
    return r < 0 ? r : m.result;
}

static const struct verb {
    const char *name;
    /* The rest of the answer remains in `more`. */
    int (*carry_out)(JNIEnv *jni, const char *rest, struct buf *more, struct buf *why);
    bool takes_long; /* changes classes, dumps the heap, or waits for such a request */
    bool ends;       /* ends what would go on if the sender is gone */
} verbs[] = {
    {"status", answer_status, false},
    {"start", work_start, true},
    {"dump", work_dump, true},
    {"stop", work_stop, true, .ends = true},
    {"ending", work_ending, true, .ends = true},
    {"trace", work_trace, true},
    {"on", work_on, true},
    {"inspect", inspect_answer, false},
    {"control", control_execute, false},
};

struct message {
    char verb[16], reply[PATH_MAX]; /* reply: the file for the answer, or "" */
    const char *rest;               /* what follows these words, in `text` */
    char *text;
    int result;
    bool done;
    int users; /* users of this struct: the listener, and the thread that carries the request out */
    /* the list of requests in progress; fd is the reply file, for the progress, or -1 */
    struct message *next;
    int fd;
};

/* Protects `current`, and done and users of each message. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t message_done; /* with the monotonic clock */
static struct message *current;

static void report(const struct message *m, const char *line)
{
    if (m->fd >= 0)
        (void)!pwrite(m->fd, line, strlen(line), 0);
}

static void report_progress(int done, int of)
{
    char line[64];
    snprintf(line, sizeof(line), CONTROL_CHANGING " %d %d\n", done, of);
    pthread_mutex_lock(&lock);
    for (const struct message *m = current; m; m = m->next)
        report(m, line);
    pthread_mutex_unlock(&lock);
}

static void begin_progress(struct message *m)
{
    m->fd = open(m->reply, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    report(m, CONTROL_WORKING "\n");
    pthread_mutex_lock(&lock);
    m->next = current;
    current = m;
    instrument_progress = report_progress;
    pthread_mutex_unlock(&lock);
}

static void end_progress(struct message *m)
{
    pthread_mutex_lock(&lock);
    for (struct message **at = &current; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    close_descriptor(&m->fd);
    pthread_mutex_unlock(&lock);
}

/*
 * Writes the answer. Its first byte is written last, because until then the file says that the
 * request is still in progress. The answer is longer than what it replaces.
 */
static void write_answer(int fd, const struct buf *out)
{
    static const char failed[] = "error %d the agent cannot write its answer\n";
    char line[64];
    int r = buf_error(out);
    if (r == 0)
        r = lseek(fd, 1, SEEK_SET) < 0 ? -errno : file_write_all(fd, out->data + 1, out->len - 1);
    if (r == 0) {
        (void)!pwrite(fd, out->data, 1, 0);
        return;
    }
    snprintf(line, sizeof(line), failed, -r);
    (void)!pwrite(fd, line, strlen(line), 0); /* as much as there is room for */
}

static const struct verb *verb_of(const struct message *m)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (strcmp(verbs[i].name, m->verb) == 0)
            return &verbs[i];
    return NULL;
}

static void answer(const struct message *m, const struct buf *more, const struct buf *why)
{
    struct buf out = BUF(CONTROL_ANSWER_MAX);
    if (m->result < 0)
        buf_printf(&out, "error %d %s\n", -m->result, buf_str(why));
    else
        buf_printf(&out, "ok\n");
    buf_printf(&out, "agent %s %s\n", JVMSCOPE_VERSION, __DATE__ " " __TIME__);
    const struct verb *verb = verb_of(m);
    session_status(&out, m->result == 0 && strcmp(m->verb, "status") != 0, verb && verb->ends);
    if (m->result == 0 && more->len)
        buf_printf(&out, "json %.*s\n", (int)more->len, more->data);
    _cleanup_close_ int fd = open(m->reply, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        write_answer(fd, &out);
    buf_release(&out);
}

static void carry_out(struct message *m, JNIEnv *jni)
{
    struct buf why = BUF(16384), more = BUF(CONTROL_ANSWER_MAX - 65536);
    const struct verb *verb = verb_of(m);
    if (!verb) {
        buf_printf(&why, "control=%s: allowed: %s", m->verb, option_table[OPT_CONTROL].values);
        m->result = -EINVAL;
    } else {
        m->result = verb->carry_out(jni, m->rest, &more, &why);
    }
    if (m->result == 0 && m->reply[0] && verb->carry_out == work_start && is_abandoned(m->reply))
        session_abandon(jni);
    end_progress(m);
    if (m->reply[0])
        answer(m, &more, &why);
    /* Only now: the recording has ended, and its output is closed. */
    if (verb && verb->carry_out == work_stop)
        instrument_restore(jni);
    buf_release(&more);
    buf_release(&why);
}

static void release(struct message *m)
{
    pthread_mutex_lock(&lock);
    bool last = --m->users == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    free(m->text);
    free(m);
}

static void JNICALL run(jvmtiEnv *ti, JNIEnv *jni, void *context)
{
    struct message *m = context;
    carry_out(m, jni);
    pthread_mutex_lock(&lock);
    m->done = true;
    pthread_cond_broadcast(&message_done);
    pthread_mutex_unlock(&lock);
    release(m);
}

/*
 * Starts a thread that carries out a message, and waits briefly for it. Returns the message's
 * result, 0 if the thread is still working, or -ENOMEM if no thread could be started, in which case
 * nothing was done.
 */
static int carry_out_in_thread(struct message *m, JNIEnv *jni)
{
    static bool once; /* there is one listener */
    struct timespec until;
    if (!once) {
        timed_wait_init(&message_done);
        once = true;
    }
    m->users++;
    if (own_thread_start(jni, "jvmscope request", run, m, NULL) < 0) {
        m->users--;
        return -ENOMEM;
    }
    until = timed_wait_end(WAIT_MS * NS_PER_MS);
    pthread_mutex_lock(&lock);
    while (!m->done && pthread_cond_timedwait(&message_done, &lock, &until) == 0)
        ;
    int r = m->done ? m->result : 0;
    pthread_mutex_unlock(&lock);
    return r;
}

/*
 * Copies the value of the word that begins with `name`, such as "reply=", if it is the first of a
 * text. Returns what follows it, or NULL if it is another word or value[size] is too small.
 */
static const char *take_word(const char *text, const char *name, char *value, size_t size)
{
    size_t n = strlen(name), len = strcspn(text, ",");
    if (strncmp(text, name, n) != 0 || len - n >= size)
        return NULL;
    memcpy(value, text + n, len - n);
    value[len - n] = 0;
    return text + len + (text[len] == ',');
}

/*
 * Removes "control=VERB,reply=PATH,", in any order, from the front of a message. The rest are
 * options of a recording. Returns NULL if there is no memory.
 */
static struct message *message_of(const char *text)
{
    struct message *m = calloc(1, sizeof(*m));
    char *copy = strdup(text ? text : "");
    if (!m || !copy) {
        free(m);
        free(copy);
        return NULL;
    }
    *m = (struct message){.verb = "start", .text = copy, .rest = copy, .users = 1, .fd = -1};
    const char *next;
    while ((next = take_word(m->rest, "control=", m->verb, sizeof(m->verb))) ||
           (next = take_word(m->rest, "reply=", m->reply, sizeof(m->reply))))
        m->rest = next;
    return m;
}

int message_receive(const char *text, int error, const struct buf *why, bool *ret_answered)
{
    const struct buf nothing = BUF(1);
    struct message *m = message_of(text);
    if (!m)
        return -ENOMEM;
    const struct verb *verb = verb_of(m);
    bool apart = m->reply[0] && verb && verb->takes_long;
    JNIEnv *jni = error == 0 ? vm_jni() : NULL;
    *ret_answered = m->reply[0];
    m->result = error < 0 ? error : jni ? 0 : -ENOTSUP;
    if (m->result == 0 && m->reply[0] && !(verb && verb->ends) && is_abandoned(m->reply))
        m->result = -ECANCELED;
    int r = m->result;
    if (r < 0) {
        if (m->reply[0])
            answer(m, &nothing, why);
    } else {
        if (apart)
            begin_progress(m);
        r = apart ? carry_out_in_thread(m, jni) : -ENOMEM;
        if (r == -ENOMEM && !m->done) {
            carry_out(m, jni);
            r = m->result;
        }
    }
    release(m);
    return r;
}
