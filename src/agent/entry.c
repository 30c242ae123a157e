/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that a VM looks up in the library (JVM TI, "Start-Up", "Shutdown"), and the
 * handling of messages to an agent that is already loaded (proto/control.h). In the static library
 * their names end in _hprof (JVM TI, "Statically Linked Agents").
 */
#include "agent/capture/trace/method_trace.h"
#include "agent/control/control.h"
#include "agent/inspect/inspect.h"
#include "agent/instrument/instrument.h"
#include "agent/options.h"
#include "agent/outcome.h"
#include "agent/session.h"
#include "agent/thread_table.h"
#include "agent/trace_request.h"
#include "agent/vm.h"
#include "base/file.h"
#include "proto/control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef AGENT_STATIC
#define ENTRY(name) name##_hprof
#else
#define ENTRY(name) name
#endif

EXPORT jint JNICALL ENTRY(Agent_OnLoad)(JavaVM *java, char *text, void *reserved);
EXPORT jint JNICALL ENTRY(Agent_OnAttach)(JavaVM *java, char *text, void *reserved);
EXPORT void JNICALL ENTRY(Agent_OnUnload)(JavaVM *java);

/* Exit statuses of the original agent (doc/hprof-differences.md). */
enum { EXIT_OPTION = 1, EXIT_OUTPUT = 9 };

/* The result of loading the agent again, for a sender that reads the reply (proto/control.h). */
enum { CARRIED_OUT = 1 };

static bool loaded;

static void refuse(int status, const struct buf *message)
{
    fprintf(stderr, "hprof: %.*s\n", (int)message->len, message->data);
    fflush(stderr);
    _exit(status);
}

static void JNICALL on_vm_init(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    struct buf why = BUF(4096);
    if (session_vm_init(jni, &why) < 0)
        fprintf(stderr, "hprof: %.*s; nothing is recorded\n", (int)why.len, why.data);
    buf_release(&why);
}

static void JNICALL on_vm_death(jvmtiEnv *ti, JNIEnv *jni)
{
    session_vm_death(jni);
}

static void JNICALL on_data_dump(jvmtiEnv *ti)
{
    struct buf why = BUF(4096);
    JNIEnv *jni = vm_jni();
    if (jni)
        session_dump(jni, DUMP_REQUEST, &why);
    buf_release(&why);
}

static const struct vm_callbacks entry_events = {
    .ti = {.VMInit = on_vm_init, .VMDeath = on_vm_death, .DataDumpRequest = on_data_dump}};

static int open_vm(JavaVM *java, bool attached, struct buf *why)
{
    int r = vm_open(java, attached);
    if (r == 0)
        r = threads_init();
    if (r == 0)
        r = vm_events_on(&threads_events);
    if (r == 0)
        r = vm_events_on(&entry_events);
    if (r < 0)
        buf_printf(why, "the VM has no usable JVM TI: %s", strerror(-r));
    return r;
}

jint JNICALL ENTRY(Agent_OnLoad)(JavaVM *java, char *text, void *reserved)
{
    struct buf why = BUF(16384);
    struct options o = {0};
    if (loaded) {
        buf_printf(&why, "the agent is loaded already; give all options at once");
        refuse(EXIT_OUTPUT, &why);
    }
    loaded = true;
    int r = options_parse(&o, text, &why);
    if (r < 0)
        refuse(EXIT_OPTION, &why);
    if (o.help) {
        options_help(&why);
        fwrite(why.data, 1, why.len, stdout);
        fflush(stdout);
        _exit(0);
    }
    bool output = false;
    int outcome = outcome_file(&o);
    r = open_vm(java, false, &why);
    if (r == 0) {
        r = session_begin(&o, text, NULL, &why);
        output = r < 0 && r != -ENOTSUP && r != -ENOTCONN;
    }
    options_release(&o);
    if (r < 0 && outcome >= 0)
        outcome_tell(outcome, "", r, "", false);
    if (r < 0)
        refuse(output ? EXIT_OUTPUT : EXIT_OPTION, &why);
    buf_release(&why);
    return JNI_OK;
}

/*
 * Removes "control=VERB,reply=PATH,", in any order, from the front of a message. The rest are
 * options of a recording.
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

static int switch_trace(JNIEnv *jni, const char *text, struct buf *more, struct buf *why)
{
    struct trace_request t = {text, more, why, 0};
    const char *what, *fault = trace_request_fault(text, &what);
    if (fault) {
        buf_printf(why, "%s: %s", what, fault);
        return -EINVAL;
    }
    if (session_run(jni, carry_out_trace, &t) < 0) {
        buf_string(why, "no calls are being traced; begin with --trace");
        return -ESRCH;
    }
    return t.result;
}

/* Any remaining answer is left in `more`. */
static int carry_out(const char *verb, const char *rest, JNIEnv *jni, struct buf *more,
                     struct buf *why)
{
    if (strcmp(verb, "status") == 0)
        return 0;
    if (strcmp(verb, "inspect") == 0)
        return inspect(jni, rest, more, why);
    if (strcmp(verb, "control") == 0)
        return control(jni, rest, more, why);
    if (strcmp(verb, "trace") == 0)
        return switch_trace(jni, rest, more, why);
    if (strcmp(verb, "dump") == 0)
        return session_dump(jni, DUMP_REQUEST, why);
    if (strcmp(verb, "stop") == 0)
        return session_end(jni, why);
    if (strcmp(verb, "start") != 0) {
        buf_printf(why, "control=%s: allowed: %s", verb, option_table[OPT_CONTROL].values);
        return -EINVAL;
    }
    struct options o = {0};
    int r = options_parse(&o, rest, why);
    if (r == 0 && o.help) {
        options_release(&o);
        buf_printf(why, "help is for start-up");
        return -EINVAL;
    }
    return r < 0 ? r : session_begin(&o, rest, jni, why);
}

/*
 * The reply file of the message that is being carried out. The progress of instrumentation is
 * written there until the answer replaces it.
 */
static pthread_mutex_t reply_lock = PTHREAD_MUTEX_INITIALIZER;
static int reply_fd = -1;

static void tell_progress(int done, int of)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "changing %d %d\n", done, of);
    pthread_mutex_lock(&reply_lock);
    if (reply_fd >= 0)
        (void)!pwrite(reply_fd, line, (size_t)n, 0);
    pthread_mutex_unlock(&reply_lock);
}

static void tell_progress_to(const char *path)
{
    int fd = path ? open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) : -1;
    pthread_mutex_lock(&reply_lock);
    close_descriptor(&reply_fd);
    reply_fd = fd;
    pthread_mutex_unlock(&reply_lock);
    instrument_progress = tell_progress;
}

static void answer(const char *path, int r, bool tells, const struct buf *more,
                   const struct buf *why)
{
    struct buf out = BUF(CONTROL_ANSWER_MAX);
    if (r < 0)
        buf_printf(&out, "error %d %s\n", -r, buf_str(why));
    else
        buf_printf(&out, "ok\n");
    buf_printf(&out, "agent %s %s\n", JVMSCOPE_VERSION, __DATE__ " " __TIME__);
    session_status(&out, tells);
    if (r == 0 && more->len)
        buf_printf(&out, "json %.*s\n", (int)more->len, more->data);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && buf_error(&out) == 0)
        /* if this fails the sender sees a truncated answer */
        (void)!write_all(fd, out.data, out.len);
    buf_release(&out);
}

jint JNICALL ENTRY(Agent_OnAttach)(JavaVM *java, char *text, void *reserved)
{
    struct buf why = BUF(16384), more = BUF(CONTROL_ANSWER_MAX - 65536);
    char verb[16] = "start", reply[4096] = "";
    const char *rest = text ? text : "", *next;
    while ((next = take_word(rest, "control=", verb, sizeof(verb))) ||
           (next = take_word(rest, "reply=", reply, sizeof(reply))))
        rest = next;
    int r = 0;
    bool again = loaded;
    if (!loaded)
        r = open_vm(java, true, &why);
    loaded = loaded || r == 0;
    JNIEnv *jni = r == 0 ? vm_jni() : NULL;
    /*
     * The reply file is gone: its sender has given up, and the request must not be carried out
     * unnoticed.
     */
    if (r == 0 && reply[0] && access(reply, W_OK) < 0)
        r = -ECANCELED;
    if (r == 0 && reply[0])
        tell_progress_to(reply);
    if (r == 0)
        r = jni ? carry_out(verb, rest, jni, &more, &why) : -ENOTSUP;
    tell_progress_to(NULL);
    if (reply[0])
        answer(reply, r, r == 0 && strcmp(verb, "status") != 0, &more, &why);
    buf_release(&more);
    buf_release(&why);
    /*
     * The VM keeps an entry for each load that returns JNI_OK as long as it lives, so only the
     * first load does.
     */
    return r < 0 ? JNI_ERR : again && reply[0] ? CARRIED_OUT : JNI_OK;
}

void JNICALL ENTRY(Agent_OnUnload)(JavaVM *java)
{
    /*
     * VMDeath has written everything. The library stays mapped, because a signal may still be
     * pending.
     */
}
