/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/recording.h"

#include "agent/common/rounds.h"
#include "agent/stacks/names.h"
#include "agent/vm/flags.h"
#include "agent/vm/process.h"
#include "agent/vm/thread_table.h"
#include "agent/vm/virtual_threads.h"

#include "base/parse.h"
#include "hotspot/memory.h"
#include "jfr/losses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 1 << 16 };

static int resolve_method(void *context, uint64_t id, uint32_t frame_type, struct jfr_method *ret)
{
    JNIEnv *jni = vm_jni();
    const struct method *m = jni ? names_method(jni, (jmethodID)(uintptr_t)id) : NULL;
    if (!m)
        return -ESRCH;
    if (m->code) {
        *ret = (struct jfr_method){.class = {.name = m->class_name[0] ? m->class_name : NULL},
                                   .name = m->name};
        return 0;
    }
    *ret = (struct jfr_method){
        .class = {.name = m->class_name, .modifiers = m->class_modifiers, .hidden = m->hidden},
        .name = m->name,
        .descriptor = m->descriptor,
        .modifiers = m->modifiers,
        .lines = (const struct jfr_line *)m->lines,
        .n_lines = m->n_lines,
    };
    return 0;
}

_Static_assert(sizeof(struct jfr_line) == sizeof(struct method_line), "one layout: bci, line");

static struct jfr_thread describe(const struct thread *t)
{
    return (struct jfr_thread){
        .os_name = t->name,
        .os_id = (uint64_t)t->tid,
        .java_name = t->name,
        .java_id = t->java_id,
        .group = t->group,
    };
}

void recording_keep_thread(void *writer, const struct thread *t)
{
    struct jfr_thread who = describe(t);
    if (jfr_define_thread(writer, t->serial, &who) < 0)
        jfr_lose(writer, LOSS_THREAD_NAME, 1);
}

static int resolve_thread(void *context, uint64_t id, struct jfr_thread *ret)
{
    if (id & THREAD_VIRTUAL) {
        static char name[128]; /* valid until the next call */
        if (!virtual_thread_name(id, name, sizeof(name)))
            name[0] = 0;
        *ret = (struct jfr_thread){
            .java_name = name, .java_id = id & ~THREAD_VIRTUAL, .is_virtual = true};
        return 0;
    }
    const struct thread *t = threads_by_serial((uint32_t)id);
    if (!t)
        return -ESRCH;
    *ret = describe(t);
    return 0;
}

/* Returns a property, to be freed by vm_free, or NULL. Adds its length to *len. */
static char *property(const char *name, size_t *len)
{
    char *value = NULL;
    if ((*vm.ti)->GetSystemProperty(vm.ti, name, &value) != JVMTI_ERROR_NONE)
        return NULL;
    *len += strlen(value);
    return value;
}

static void report_vm(struct jfr_writer *w)
{
    _cleanup_(buf_release) struct buf arguments = BUF(ARGUMENTS_MAX);
    struct jfr_event e;
    uint64_t now = now_ns();
    process_vm_arguments(&arguments);
    if (buf_error(&arguments))
        buf_clear(&arguments);
    size_t len = arguments.len;
    char *name = property("java.vm.name", &len), *version = property("java.vm.version", &len),
         *command = property("sun.java.command", &len);
    if (jfr_begin(w, JFR_JVM_INFORMATION, len + 256, &e)) {
        jfr_put_time(&e, now);
        jfr_put_string(&e, name);
        jfr_put_string(&e, version);
        jfr_put_string(&e, arguments.len ? buf_str(&arguments) : NULL);
        jfr_put_string(&e, NULL); /* from a settings file */
        jfr_put_string(&e, command);
        jfr_put_long(&e, (int64_t)process_start_ms());
        jfr_put_long(&e, getpid());
        jfr_commit(&e);
    }
    vm_free(name);
    vm_free(version);
    vm_free(command);
    struct utsname system;
    if (uname(&system) == 0 && jfr_begin(w, JFR_OS_INFORMATION, 1024, &e)) {
        char text[sizeof(system)];
        snprintf(text, sizeof(text), "%s %s %s", system.sysname, system.release, system.machine);
        jfr_put_time(&e, now);
        jfr_put_string(&e, text);
        jfr_commit(&e);
    }
}

/*
 * Writes jdk.ActiveSetting events: one per option that has a value. The id is that of the event
 * type to which it applies.
 */
static void report_settings(struct jfr_writer *w, const struct options *o)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        struct jfr_event e;
        const char *value = o->v[i].text;
        if (!value || option_table[i].hidden ||
            !jfr_begin(w, JFR_ACTIVE_SETTING, 512 + strlen(value), &e))
            continue;
        char duration[24];
        if (option_table[i].kind == OPTION_DURATION)
            value = format_duration(duration, o->v[i].number);
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, 0); /* duration, thread, stack */
        jfr_put_long(&e, 0);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, JFR_EXECUTION_SAMPLE);
        jfr_put_string(&e, option_table[i].name);
        jfr_put_string(&e, value);
        jfr_commit(&e);
    }
}

void recording_restate(struct jfr_writer *w, const struct options *o)
{
    report_vm(w);
    report_settings(w, o);
}

int recording_begin(struct jfr_writer **ret, const char *path, const struct options *o)
{
    struct jfr_writer_options options = {
        .resolver = {.method = resolve_method, .thread = resolve_thread},
        .chunk_bytes = o->v[OPT_CHUNK].number,
        .waker = &rounds_waker,
        .begins_small = !vm.live,
        .holds_types = !vm.live,
        .keeps_older = true,
    };
    if (option_always(o)) {
        options.ring_bytes = o->v[OPT_MAX_SIZE].number;
        options.keep_ns = o->v[OPT_KEEP].number;
        options.trace_bytes = UINT64_C(8) << 20; /* used again and again */
    }
    struct jfr_writer *w = NULL;
    /*
     * Protects against another process that truncates the file. With -Xcheck:jni there is no
     * protection, because the VM would print on the program's output that a signal handler was
     * replaced.
     */
    if (!vm_flag("CheckJNICalls"))
        (void)!memory_guard_init();
    int r = jfr_writer_open(&w, path, &options);
    if (r < 0)
        return r;
    recording_restate(w, o);
    *ret = w;
    return 0;
}
