/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines how the values of each loaded class are laid out in the records of a heap dump. This
 * happens before the walk, whose callbacks must not call the VM. The values of a class have the
 * order of its CLASS_LOAD and are followed by those of its superclass (specification, section 4.2).
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/ids.h"
#include "jvmpi/layer.h"

struct layout_field {
    uint32_t offset; /* among the class's own values that are static, or that are not */
    char type;       /* 'I', 'J' ..., 'L' for references */
    bool is_static;
};

struct layout {
    jlong id;
    bool defined; /* the agent knows it as a class; until it is linked it is an ordinary object */
    /* kind of its instances: JVMPI_NORMAL_OBJECT, _CLASS for arrays of objects, _INT ... */
    jint kind;
    jlong super, loader, element;
    jlong *interfaces;
    jint n_interfaces;
    struct layout_field *fields;
    jint n_fields;
    uint32_t own_bytes, all_bytes, static_bytes; /* all: including superclasses */
    /* The number of fields that JVM TI's field indices count before its own. */
    jint fields_above, fields_of_interfaces;
    jlong size; /* of an instance in memory; 0 when none was visited */
};

struct layouts {
    VEC(struct layout) rows;
    struct map by_id; /* class id -> index into rows */
    jlong class_id;   /* the id of java.lang.Class */
    bool references;  /* only values that are references (level 1) */
};

/*
 * Reads all loaded classes that were not read before, so that a second call takes little time. The
 * rows of classes that were unloaded in between stay. Returns false when the VM fails or memory
 * runs out. Deletes its local references.
 */
bool layouts_read(JNIEnv *env, struct layouts *l, bool references) must_check;
void layouts_release(struct layouts *l);
/* Returns the layout of the class with this id, or NULL when it was not read. */
struct layout *layout_of(const struct layouts *l, jlong class_id);
/*
 * Returns where the value with JVM TI's field index lies among the values of an instance or of a
 * class, or NULL.
 */
const struct layout_field *layout_place(const struct layouts *l, const struct layout *of,
                                        jint index, uint32_t *ret_offset);
/*
 * Computes the sizes of classes that have no instance from the positions of their fields. Calls
 * Java.
 */
void layouts_sizes(JNIEnv *env, struct layouts *l);

/* Returns the size of an instance of a class, or 0 when unknown. Calls Java. */
jlong layer_instance_size(JNIEnv *env, jclass class);

/* Returns the number of bytes of a value in a dump, given the first letter of its signature. */
unsigned layer_value_width(char type);
/*
 * Returns what the instances of a class are, given its signature: JVMPI_NORMAL_OBJECT, JVMPI_CLASS,
 * JVMPI_INT ...
 */
jint layer_kind_of_signature(const char *signature);
