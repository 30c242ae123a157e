/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/exceptions/hidden.h"

#include "agent/capture/exceptions/probes.h"
#include "agent/instrument/instrument.h"
#include "agent/session/session.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/names.h"
#include "agent/vm/vm.h"
#include "base/generated_name.h"
#include "jfr/losses.h"

#include <stdio.h>
#include <string.h>

/*
 * Returns whether a class is hidden, "p/C.0x1234", or anonymous, as such classes were before JDK
 * 15.
 */
static bool is_hidden(struct str name)
{
    return memchr(name.data, '.', name.len) || generated_name_is_anonymous(name.data, name.len);
}

/*
 * Returns whether the JDK made a class, for lambdas, switches and so on. Such classes throw nothing
 * themselves.
 */
static bool is_made_by_jdk(struct str name)
{
    static const char between[] = "$$TypeSwitch";
    size_t host;
    return instrument_is_jdk(name) || generated_name_is_lambda(name.data, name.len, &host) ||
           memmem(name.data, name.len, between, strlen(between));
}

static bool look_at(void *context, jclass c, struct str name)
{
    struct session *s = session_now;
    char text[512], plain[512];
    if (!s || !is_hidden(name) || is_made_by_jdk(name))
        return false;
    snprintf(plain, sizeof(plain), "%.*s", (int)name.len, name.data);
    plain[generated_name_normalize(plain, strlen(plain))] = 0;
    names_dotted(plain, text, sizeof(text));
    thrown_probes_partial();
    jfr_lose_named(s->out.jfr, LOSS_EXCEPTION_HIDDEN, 1, text);
    return false;
}

static void JNICALL on_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass c)
{
    char *signature = NULL;
    if ((*ti)->GetClassSignature(ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    size_t len = strlen(signature);
    if (signature[0] == 'L' && len > 2)
        (void)look_at(NULL, c, (struct str){signature + 1, len - 2});
    (*ti)->Deallocate(ti, (unsigned char *)signature);
}

static const struct vm_callbacks events = {.ti = {.ClassPrepare = on_prepare}};

int thrown_hidden_on(JNIEnv *jni)
{
    int r = vm_events_on(&events);
    if (r == 0 && vm.late)
        (void)!loaded_classes_each(vm.ti, jni, look_at, NULL);
    return r;
}

void thrown_hidden_off(void)
{
    vm_events_off(&events);
}
