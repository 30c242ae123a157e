/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/log_hidden.h"

#include "agent/capture/trace/logpoints.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/hidden_class.h"
#include "agent/session/session.h"
#include "agent/stacks/names.h"
#include "agent/vm/vm.h"
#include "base/parse.h"
#include "jfr/losses.h"

#include <stdatomic.h>
#include <string.h>

static struct log_spec *specs;

bool log_file_is(const char *place, struct str name, struct str source)
{
    const char *slash = strrchr(place, '/');
    if (!str_is(source, slash ? slash + 1 : place))
        return false;
    /* The path in the spec must have the package's folder at its end, as in com/shop/Cart.java. */
    size_t folder = slash ? (size_t)(slash - place) : 0;
    size_t package = name.len;
    while (package && name.data[package - 1] != '/')
        package--;
    return !folder ||
           (package >= folder + 1 && memcmp(name.data + package - 1 - folder, place, folder) == 0);
}

static bool method_has_line(jmethodID m, unsigned line)
{
    jint n = 0;
    jvmtiLineNumberEntry *lines = NULL;
    bool has = false;
    if ((*vm.ti)->GetLineNumberTable(vm.ti, m, &n, &lines) != JVMTI_ERROR_NONE)
        return false;
    for (jint i = 0; i < n && !has; i++)
        has = (unsigned)lines[i].line_number == line;
    vm_free(lines);
    return has;
}

static bool has_line(jclass c, unsigned line)
{
    jint n = 0;
    jmethodID *methods = NULL;
    bool has = false;
    if ((*vm.ti)->GetClassMethods(vm.ti, c, &n, &methods) != JVMTI_ERROR_NONE)
        return false;
    for (jint i = 0; i < n && !has; i++)
        has = method_has_line(methods[i], line);
    vm_free(methods);
    return has;
}

static bool is_in_file(jclass c, struct str plain, const char *place)
{
    char *source = NULL;
    if ((*vm.ti)->GetSourceFileName(vm.ti, c, &source) != JVMTI_ERROR_NONE)
        return false;
    bool is = log_file_is(place, plain, (struct str){source, strlen(source)});
    vm_free(source);
    return is;
}

static void on_hidden(jclass c, struct str plain)
{
    struct session *s = session_now;
    char text[512];
    bool lost = watches_see_hidden(c, plain);
    for (struct log_spec *spec = specs; spec; spec = spec->next) {
        if ((spec->is_file ? is_in_file(c, plain, spec->place)
                           : choice_is_class(plain, spec->place)) &&
            has_line(c, spec->line)) {
            atomic_fetch_add(&spec->hidden, 1);
            lost = true;
        }
    }
    if (!lost || !s)
        return;
    names_dotted(plain.data, text, sizeof(text));
    jfr_lose_named(s->out.jfr, LOSS_LOG_HIDDEN, 1, text);
}

static void JNICALL on_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass c)
{
    hidden_class_prepared(c, on_hidden);
}

static const struct vm_callbacks events = {.ti = {.ClassPrepare = on_prepare}};

int log_hidden_on(JNIEnv *jni, struct log_spec *of)
{
    specs = of;
    int r = vm_events_on(&events);
    if (r == 0 && vm.late)
        hidden_classes_loaded(jni, on_hidden);
    return r;
}

void log_hidden_off(void)
{
    vm_events_off(&events);
    specs = NULL;
}

void log_hidden_put(struct buf *to, unsigned n, const char *having)
{
    buf_printf(to, "%s %s %s, and the VM does not allow %s to be changed",
               COUNT_TEXT(n, "hidden classes"), n == 1 ? "has" : "have", having,
               n == 1 ? "it" : "them");
}
