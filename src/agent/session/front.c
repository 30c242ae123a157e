/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/front.h"

#include "agent/output/dictionary.h"
#include "agent/output/net.h"
#include "agent/vm/collect.h"
#include "agent/vm/own_thread.h"
#include "agent/vm/thread_table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { POLL_MS = 200, MAX_DEPTH = 1024 };

/* There is a listener for each connection. `current` is the one that may still give commands. */
static struct net *_Atomic current;
static _Atomic uint64_t commands, refused;

struct command {
    const struct hprof_request *request;
    struct net *from;
};

/* The command DUMP TRACES: writes the stacks of all threads as TRACE records. */
static void dump_traces(struct session *s, JNIEnv *jni)
{
    jvmtiStackInfo *infos = NULL;
    struct jfr_frame frames[MAX_DEPTH];
    jint n = 0, depth = (jint)MIN(s->options.v[OPT_DEPTH].number, MAX_DEPTH);
    if (vm_all_stacks(depth, &n, &infos) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        const struct thread *t = threads_find(jni, infos[i].thread);
        for (jint f = 0; f < infos[i].frame_count; f++)
            frames[f] =
                (struct jfr_frame){.method = (uint64_t)(uintptr_t)infos[i].frame_buffer[f].method,
                                   .bci = (int32_t)infos[i].frame_buffer[f].location};
        if (t && !t->own)
            dictionary_trace(s->out.dictionary, jni, frames, (uint32_t)infos[i].frame_count,
                             t->serial);
        (*jni)->DeleteLocalRef(jni, infos[i].thread);
    }
    vm_free(infos);
}

/* Sets the depth of all stacks that are walked from now on, and writes the settings again. */
static void set_depth(struct session *s, uint16_t depth)
{
    s->options.v[OPT_DEPTH].number = depth;
}

static void carry_out(struct session *s, JNIEnv *jni, void *context)
{
    const struct command *c = context;
    const struct hprof_request *r = c->request;
    if (s->out.net != c->from)
        return;
    if (r->command == HPROF_CMD_FORCE_GC ||
        (r->command == HPROF_CMD_ALLOC_SITES && r->flags & HPROF_SITES_FORCE_GC))
        collect_if_possible(jni);
    if (r->command == HPROF_CMD_DUMP_TRACES)
        dump_traces(s, jni);
    if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_MAX_DEPTH)
        set_depth(s, r->depth);
    for (int i = 0; i < captures_count; i++)
        if (s->on >> i & 1 && captures[i]->request)
            captures[i]->request(s, jni, r);
    if (r->command == HPROF_CMD_CONTROL)
        out_settings(&s->out, &s->options);
    out_flush(&s->out);
}

/*
 * The command EXIT THE VM: ends the VM in an orderly way, so shutdown hooks run and the sections of
 * doe=y are written.
 */
static void exit_vm(JNIEnv *jni)
{
    jclass system = vm_find_class(jni, "java/lang/System");
    jmethodID exit_method = system ? (*jni)->GetStaticMethodID(jni, system, "exit", "(I)V") : NULL;
    if (exit_method)
        (*jni)->CallStaticVoidMethod(jni, system, exit_method, 0);
    vm_clear_exception(jni);
}

/*
 * Carries out a command. Returns false when no more commands are to be accepted from the front end.
 */
static bool obey(struct net *n, JNIEnv *jni, const struct hprof_request *r)
{
    commands++;
    if (r->command == HPROF_CMD_EOF)
        return false;
    if (r->command == HPROF_CMD_EXIT)
        exit_vm(jni);
    else
        session_run(jni, carry_out, &(struct command){r, n});
    return true;
}

static void JNICALL listen_to(jvmtiEnv *ti, JNIEnv *jni, void *context)
{
    struct net *n = context;
    struct hprof_commands parser = {.id_size = 8};
    struct hprof_request request;
    uint8_t bytes[4096];
    bool more = true;
    while (more && current == n) {
        int got = net_read(n, bytes, sizeof(bytes), POLL_MS);
        if (got == -EAGAIN)
            continue;
        more = got > 0;
        for (size_t at = 0, used; more && at < (size_t)got; at += used)
            if (hprof_command_next(&parser, bytes + at, (size_t)got - at, &used, &request))
                more = obey(n, jni, &request);
        refused = parser.refused;
    }
    net_unref(n);
}

int front_start(struct session *s, JNIEnv *jni)
{
    if (!s->out.net)
        return 0;
    commands = refused = 0;
    current = s->out.net;
    int r = own_thread_start(jni, "jvmscope front-end", listen_to, net_ref(s->out.net), NULL);
    if (r < 0) {
        current = NULL;
        net_unref(s->out.net);
    }
    return r;
}

void front_stop(void)
{
    current = NULL;
}

void front_status(struct buf *out)
{
    buf_printf(out, "front.commands %llu\nfront.refused %llu\n", (unsigned long long)commands,
               (unsigned long long)refused);
}
