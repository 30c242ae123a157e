/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs redefine and verbose. */
#include "agent/control/control.h"

#include "agent/vm/loaded_classes.h"
#include "base/dotted.h"
#include "base/file.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CLASS_FILE_MAX = 16 << 20, SAME_NAME_MAX = 32 };

/* Writes the class's name with dots into `to`. */
static int name_of_file(const uint8_t *data, size_t len, char *to, size_t size)
{
    struct class_file file = {0};
    int r = class_parse(&file, data, len);
    if (r == 0) {
        dotted_copy(to, size, class_name_at(&file, file.this_class));
    }
    class_release(&file);
    return r;
}

int control_redefine(struct control_call *c)
{
    jvmtiEnv *ti = c->i->ti;
    const char *path = c->operands[0];
    _cleanup_free_ uint8_t *data = NULL;
    size_t len;
    char wanted[1024];
    int r = file_read_path(path, CLASS_FILE_MAX, &data, &len);
    if (r < 0) {
        buf_printf(c->i->why, "%s: the VM cannot read it: %s", path, strerror(-r));
        return r;
    }
    if (name_of_file(data, len, wanted, sizeof(wanted)) < 0) {
        buf_printf(c->i->why, "%s: not a class file", path);
        return -EINVAL;
    }
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    jvmtiClassDefinition definitions[SAME_NAME_MAX];
    int found = 0;
    if (loaded_classes(ti, c->i->jni, &all) < 0)
        return -ENOTSUP;
    for (jint k = 0; k < all.n && found < SAME_NAME_MAX; k++) {
        _cleanup_free_ char *name = inspect_class_name(c->i, all.of[k]);
        if (name && strcmp(name, wanted) == 0)
            definitions[found++] = (jvmtiClassDefinition){all.of[k], (jint)len, data};
    }
    if (!found) {
        inspect_no_class(c->i, wanted, wanted, NULL);
        return -ESRCH;
    }
    buf_printf(c->done, "%s is redefined; it stays so", wanted);
    r = control_error(c, wanted, (*ti)->RedefineClasses(ti, found, definitions));
    vm_clear_exception(c->i->jni);
    return r;
}

static const struct {
    const char *word;
    jvmtiVerboseFlag flag;
} flags[] = {{"gc", JVMTI_VERBOSE_GC}, {"class", JVMTI_VERBOSE_CLASS}, {"jni", JVMTI_VERBOSE_JNI}};

static bool switched_on[ARRAY_SIZE(flags)];

int control_verbose(struct control_call *c)
{
    bool on = strcmp(c->operands[1], "on") == 0;
    for (size_t k = 0; k < ARRAY_SIZE(flags); k++) {
        if (strcmp(flags[k].word, c->operands[0]) != 0 ||
            (!on && strcmp(c->operands[1], "off") != 0))
            continue;
        switched_on[k] = on;
        buf_printf(c->done, "verbose %s is %s%s", flags[k].word, on ? "on" : "off",
                   on ? "; the VM prints on the program's standard output" : "");
        return control_error(c, c->operands[0],
                             (*c->i->ti)->SetVerboseFlag(c->i->ti, flags[k].flag, on));
    }
    buf_printf(c->i->why, "verbose: gc, class or jni, then on or off");
    return -EINVAL;
}

void control_verbose_end(jvmtiEnv *ti)
{
    for (size_t k = 0; k < ARRAY_SIZE(flags); k++) {
        if (switched_on[k])
            (*ti)->SetVerboseFlag(ti, flags[k].flag, JNI_FALSE);
        switched_on[k] = false;
    }
}
