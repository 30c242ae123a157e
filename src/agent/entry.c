/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that a VM looks up in the library (JVM TI, "Start-Up", "Shutdown"). In the static
 * library their names end in _hprof (JVM TI, "Statically Linked Agents").
 */
#include "agent/message.h"
#include "agent/session/outcome.h"
#include "agent/session/session.h"
#include "agent/vm/other_agent.h"
#include "agent/vm/thread_table.h"
#include "agent/vm/vm.h"
#include "options/options.h"

#include <errno.h>
#include <stdio.h>
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

/* The result of loading the agent again for a sender that reads the reply (options/control.h). */
enum { CARRIED_OUT = 1 };

static bool loaded;

static void print(const struct buf *message)
{
    fprintf(stderr, "hprof: %.*s\n", (int)message->len, message->data);
    fflush(stderr);
}

static void refuse(int status, const struct buf *message)
{
    print(message);
    _exit(status);
}

static void JNICALL on_vm_init(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    struct buf why = BUF(4096);
    if (session_vm_init(jni, &why) < 0 && why.len)
        fprintf(stderr, "hprof: %.*s\n", (int)why.len, why.data);
    buf_release(&why);
}

static void JNICALL on_vm_death(jvmtiEnv *ti, JNIEnv *jni)
{
    session_vm_death(jni);
}

static void JNICALL on_data_dump(jvmtiEnv *ti)
{
    JNIEnv *jni = vm_jni();
    if (jni)
        session_dump_unless_occupied(jni);
}

static const struct vm_callbacks entry_events = {
    .ti = {.VMInit = on_vm_init, .VMDeath = on_vm_death, .DataDumpRequest = on_data_dump}};

static int open_vm(JavaVM *java, bool attached, struct buf *why)
{
    int r = other_agent_check(why);
    if (r < 0)
        return r;
    r = vm_open(java, attached);
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
    bool output = false, always = option_always(&o);
    int outcome = outcome_file(&o);
    r = open_vm(java, false, &why);
    if (r == 0) {
        r = session_begin(&o, text, NULL, &why);
        output = r < 0 && r != -ENOTSUP && r != -ENOTCONN;
    }
    options_release(&o);
    /* A recording that is always on must not prevent the program from starting. */
    bool continues = output && always;
    if (r < 0)
        outcome_refused(outcome, r,
                        continues ? "; nothing is recorded, and the program goes on" : "", &why);
    if (r < 0 && why.len)
        print(&why);
    if (r < 0 && !continues)
        _exit(output ? EXIT_OUTPUT : EXIT_OPTION);
    buf_release(&why);
    return JNI_OK;
}

jint JNICALL ENTRY(Agent_OnAttach)(JavaVM *java, char *text, void *reserved)
{
    struct buf why = BUF(16384);
    bool again = loaded, answered = false;
    int r = loaded ? 0 : open_vm(java, true, &why);
    loaded = loaded || r == 0;
    r = message_receive(text, r, &why, &answered);
    buf_release(&why);
    /*
     * The VM keeps an entry for each load that returns JNI_OK until it ends, so only the first load
     * returns JNI_OK.
     */
    return r < 0 ? JNI_ERR : again && answered ? CARRIED_OUT : JNI_OK;
}

void JNICALL ENTRY(Agent_OnUnload)(JavaVM *java)
{
    /*
     * VMDeath has written everything. The library remains mapped, because a signal may still be
     * pending.
     */
}
