/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch= inserts probes in front of the instructions that read and write a field. They receive the
 * object, the place and the new value, and read the old value by the field's offset. JVM TI's own
 * field watches would make the whole program run interpreted. Accesses by reflection, VarHandle,
 * Unsafe and native code, and those of a constructor before super(), are not seen.
 */
#include "agent/capture/trace/drain.h"
#include "agent/capture/trace/explain.h"
#include "agent/capture/trace/log_hidden.h"
#include "agent/capture/trace/log_sites.h"
#include "agent/capture/trace/logpoints.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/probe_class.h"
#include "agent/vm/code_names.h"
#include "agent/vm/vm.h"
#include "options/names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct watch {
    char *class; /* package.Class */
    char *field;
    atomic_bool found;  /* some loaded code accesses it */
    atomic_uint hidden; /* number of hidden classes whose code names it */
} watches[WATCHES_MAX];

static unsigned n_watches;
static _Atomic uint64_t before_super;

static bool is_watched(const char *class, size_t class_len, const char *field, size_t field_len)
{
    for (unsigned i = 0; i < n_watches; i++)
        if (strlen(watches[i].class) == class_len && strlen(watches[i].field) == field_len &&
            memcmp(watches[i].class, class, class_len) == 0 &&
            memcmp(watches[i].field, field, field_len) == 0)
            return true;
    return false;
}

int watches_set(const char *fields)
{
    for (const char *p = fields; *p && n_watches < WATCHES_MAX;) {
        size_t n = strcspn(p, ":");
        if (!option_is_field(p, n)) { /* nothing between two separators */
            p += n + (p[n] == ':');
            continue;
        }
        const char *dot = memrchr(p, '.', n);
        if (is_watched(p, (size_t)(dot - p), dot + 1, (size_t)(p + n - dot - 1))) {
            p += n + (p[n] == ':');
            continue;
        }
        struct watch *w = &watches[n_watches];
        w->class = strndup(p, (size_t)(dot - p));
        w->field = strndup(dot + 1, (size_t)(p + n - dot - 1));
        if (!w->class || !w->field)
            return -ENOMEM;
        atomic_store(&w->found, false);
        atomic_store(&w->hidden, 0);
        n_watches++;
        p += n + (p[n] == ':');
    }
    before_super = 0;
    return 0;
}

void watches_clear(void)
{
    for (unsigned i = 0; i < n_watches; i++) {
        free(watches[i].class);
        free(watches[i].field);
    }
    n_watches = 0;
}

bool watches_not_found(JNIEnv *jni, unsigned *at, char *ret, size_t size, bool *ret_partly,
                       struct buf *why)
{
    while (*at < n_watches) {
        const struct watch *w = &watches[(*at)++];
        unsigned hidden = atomic_load(&w->hidden);
        /* Instructions that name a field with this name through another class were counted too. */
        *ret_partly = atomic_load(&w->found) && trace_field_is_declared(jni, w->class, w->field);
        if (*ret_partly && !hidden)
            continue;
        snprintf(ret, size, "%s.%s", w->class, w->field);
        if (hidden)
            log_hidden_put(why, hidden, "code that names this field");
        else
            trace_explain_field(jni, w->class, w->field, why);
        return true;
    }
    return false;
}

uint64_t watches_without_object(void)
{
    return before_super;
}

/*
 * Returns the watch of a field, or NULL. An instruction may name the field through a subclass of
 * its class, which is resolved when the place is reached.
 */
static struct watch *find_watch(const struct class_member *m)
{
    for (unsigned i = 0; i < n_watches; i++)
        if (str_is(m->name, watches[i].field) && choice_is_class(m->owner, watches[i].class))
            return &watches[i];
    for (unsigned i = 0; i < n_watches; i++)
        if (str_is(m->name, watches[i].field) && !instrument_is_jdk(m->owner))
            return &watches[i];
    return NULL;
}

static bool watch_wants(struct str name)
{
    for (unsigned i = 0; i < n_watches; i++) {
        struct str class = {watches[i].class, strlen(watches[i].class)};
        bool jdk = strncmp(class.data, "java.", 5) == 0 || strncmp(class.data, "javax.", 6) == 0;
        if (jdk || !instrument_is_jdk(name))
            return !drain_is_used(name);
    }
    return false;
}

static void see_field(void *context, struct str owner, struct str name)
{
    uint64_t *seen = context;
    const struct watch *w = find_watch(&(struct class_member){.owner = owner, .name = name});
    if (w)
        *seen |= UINT64_C(1) << (w - watches);
}

_Static_assert(WATCHES_MAX <= 64, "a bit for each");

bool watches_see_hidden(jclass c, struct str plain)
{
    uint64_t seen = 0;
    if (watch_wants(plain))
        code_each_field(c, see_field, &seen);
    for (unsigned i = 0; i < n_watches; i++)
        if (seen >> i & 1)
            atomic_fetch_add(&watches[i].hidden, 1);
    return seen != 0;
}

static char stack_type(char c)
{
    return strchr("ZBCSI", c) ? 'I' : strchr("JFD", c) ? c : 'A';
}

/* The new locals in which a long or double is saved; -1: not allocated yet. */
struct saved {
    int local[2];
};

static int save_value(struct edit *e, struct saved *a, char type)
{
    int which = type == 'D';
    if (a->local[which] >= 0)
        return a->local[which];
    _cleanup_(buf_release) struct buf code = BUF(16);
    int local = edit_local(e, type);
    if (local < 0)
        return local;
    code_op(&code, which ? OP_LCONST_0 + 5 : OP_LCONST_0); /* dconst_0 is five above lconst_0 */
    code_store(&code, type, (unsigned)local);
    int r = edit_insert(e, EDIT_ENTRY, 0, 0, &code, 2);
    return r < 0 ? r : (a->local[which] = local);
}

/*
 * Inserts code for object [value] -> object [value] that passes both to the probe. For a static
 * field the object is its class.
 */
static int probe(struct edit *e, const struct insn *i, const struct class_member *m, int site,
                 struct saved *a)
{
    _cleanup_(buf_release) struct buf code = BUF(256);
    bool write = i->op == OP_PUTFIELD || i->op == OP_PUTSTATIC,
         is_static = i->op == OP_GETSTATIC || i->op == OP_PUTSTATIC;
    char type = stack_type(m->descriptor.data[0]), descriptor[64], owner[512];
    bool wide = type == 'J' || type == 'D';
    static const char *const value_types[] = {"I", "J", "F", "D", "Ljava/lang/Object;"};
    int r = 0, local = 0, class = 0;
    snprintf(descriptor, sizeof(descriptor), "(Ljava/lang/Object;%sII)V",
             write ? value_types[strchr("IJFDA", type) - "IJFDA"] : "");
    if (m->owner.len >= sizeof(owner))
        return -ENOTSUP;
    snprintf(owner, sizeof(owner), "%.*s", (int)m->owner.len, m->owner.data);
    if (is_static && (class = rewrite_class(e->rewrite, owner)) < 0)
        return class;
    if (is_static) {
        if (write && wide) {
            if ((local = save_value(e, a, type)) < 0)
                return local;
            code_store(&code, type, (unsigned)local);
            code_ref(&code, OP_LDC_W, class);
            code_load(&code, type, (unsigned)local);
        } else if (write) {
            code_op(&code, OP_DUP);
            code_ref(&code, OP_LDC_W, class);
            code_op(&code, OP_SWAP);
        } else {
            code_ref(&code, OP_LDC_W, class);
        }
    } else if (write && wide) {
        if ((local = save_value(e, a, type)) < 0)
            return local;
        code_store(&code, type, (unsigned)local);
        code_op(&code, OP_DUP);
        code_load(&code, type, (unsigned)local);
    } else {
        code_op(&code, write ? OP_DUP2 : OP_DUP);
    }
    r = code_int(e->rewrite, &code, site);
    if (r == 0)
        r = code_int(e->rewrite, &code, m->descriptor.data[0] == '[' ? 'L' : m->descriptor.data[0]);
    int ref =
        r < 0 ? r
              : rewrite_methodref(e->rewrite, TRACE_PROBE, write ? "wrote" : "read", descriptor);
    if (ref < 0)
        return ref;
    code_invokestatic(&code, ref);
    if (write && wide)
        code_load(&code, type, (unsigned)local);
    return edit_insert(e, EDIT_BEFORE, i->pc, 0, &code, 6);
}

static int insert(const struct instrument_class *c, struct edit *e, const struct insn *i,
                  const struct class_member *m, struct watch *w, struct saved *a)
{
    char place[1024], field[512],
        types[3] = {m->descriptor.data[0] == '[' ? 'L' : m->descriptor.data[0]};
    char owner[512], descriptor[512];
    bool write = i->op == OP_PUTFIELD || i->op == OP_PUTSTATIC,
         is_static = i->op == OP_GETSTATIC || i->op == OP_PUTSTATIC;
    if (e->constructor && i->pc < e->super_end && !is_static) {
        atomic_fetch_add(&before_super, 1);
        return 0;
    }
    /* ldc of a class requires version 49; a class whose name cannot be a constant is left alone. */
    if ((is_static && c->file->major < 49) || m->owner.len >= sizeof(owner) ||
        m->descriptor.len >= sizeof(descriptor))
        return 0;
    types[1] = is_static ? 's' : 'i';
    log_site_place(place, sizeof(place), c->name, class_utf8(c->file, e->method->name),
                   edit_line(e, i->pc));
    snprintf(field, sizeof(field), "%s.%s", w->class, w->field);
    snprintf(owner, sizeof(owner), "%.*s", (int)m->owner.len, m->owner.data);
    snprintf(descriptor, sizeof(descriptor), "%.*s", (int)m->descriptor.len, m->descriptor.data);
    const struct log_site site = {
        write ? SITE_WRITE : SITE_READ, place, field, types, owner, w->field, descriptor};
    int number = log_site_add(&site, i->pc);
    int r = number < 0 ? number : probe(e, i, m, number, a);
    if (r >= 0)
        atomic_store(&w->found, true);
    return r < 0 ? r : 1;
}

static int watch_edit(const struct instrument_class *c, struct edit *e)
{
    int done = 0;
    struct saved saved = {{-1, -1}};
    for (struct insn i = {0}; edit_next(e, &i);) {
        struct class_member m;
        if (i.op < OP_GETSTATIC || i.op > OP_PUTFIELD ||
            !class_member(c->file, insn_constant(&i), &m) || !m.descriptor.len)
            continue;
        struct watch *w = find_watch(&m);
        int r = w ? insert(c, e, &i, &m, w, &saved) : 0;
        if (r < 0)
            return r;
        done |= r;
    }
    return done;
}

const struct instrument_client watch_client = {
    .name = "watch", .edit = watch_edit, .wants = watch_wants};

/* ---- offsets of fields ---- */

static bool class_is(jclass c, const char *name, bool dotted)
{
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return false;
    size_t n = strlen(signature);
    struct str inside = {signature + 1, n > 2 ? n - 2 : 0};
    bool is = dotted ? choice_is_class(inside, name) : str_is(inside, name);
    vm_free(signature);
    return is;
}

/* Finds a field that a class declares, without initializing the class. */
static jfieldID declared(jclass c, const struct log_site *s, bool is_static)
{
    jint n = 0;
    jfieldID *fields = NULL, found = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, c, &n, &fields) != JVMTI_ERROR_NONE)
        return NULL;
    for (jint i = 0; i < n && !found; i++) {
        char *name = NULL, *signature = NULL;
        jint modifiers = 0;
        (*vm.ti)->GetFieldModifiers(vm.ti, c, fields[i], &modifiers);
        if ((*vm.ti)->GetFieldName(vm.ti, c, fields[i], &name, &signature, NULL) !=
            JVMTI_ERROR_NONE)
            continue;
        if (strcmp(name, s->name) == 0 && strcmp(signature, s->descriptor) == 0 &&
            !(modifiers & 8) == !is_static)
            found = fields[i];
        vm_free(name);
        vm_free(signature);
    }
    vm_free(fields);
    return found;
}

static int64_t offset_of(JNIEnv *jni, jclass c, jfieldID f, bool is_static)
{
    jobject reflected = (*jni)->ToReflectedField(jni, c, f, is_static);
    int64_t offset = reflected ? probe_reflected_offset(jni, reflected, is_static) : -1;
    return vm_clear_exception(jni) || offset <= 0 ? -1 : offset;
}

/*
 * Returns the offset of a site's field, or -1 if it is not the watched field or if that cannot be
 * determined.
 */
static int64_t find_offset(JNIEnv *jni, const struct log_site *s, jobject o)
{
    bool is_static = s->types[1] == 's', seen_owner = false;
    const char *dot = strrchr(s->text, '.');
    _cleanup_free_ char *watched = strndup(s->text, (size_t)(dot - s->text));
    if (!watched)
        return -1;
    jclass c = is_static ? o : (*jni)->GetObjectClass(jni, o);
    for (; c; c = (*jni)->GetSuperclass(jni, c)) {
        seen_owner = seen_owner || class_is(c, s->owner, false);
        jfieldID f = seen_owner ? declared(c, s, is_static) : NULL;
        if (f)
            return class_is(c, watched, true) ? offset_of(jni, c, f, is_static) : -1;
    }
    return -1;
}

EXPORT jlong JNICALL Java_java_lang_JvmscopeTrace_offset(JNIEnv *jni, jclass class, jint number,
                                                         jobject o);

jlong JNICALL Java_java_lang_JvmscopeTrace_offset(JNIEnv *jni, jclass class, jint number, jobject o)
{
    const struct log_site *s = number >= 0 ? log_site_at((unsigned)number) : NULL;
    if (!s || !o || (*jni)->PushLocalFrame(jni, 64) < 0) {
        vm_clear_exception(jni);
        return -1;
    }
    jlong offset = find_offset(jni, s, o);
    (*jni)->PopLocalFrame(jni, NULL);
    return offset;
}
