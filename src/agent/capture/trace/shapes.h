/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probes record of objects of the JDK's own classes besides class and identity: the value
 * of a box, the name of an enum constant, a message, sizes and first elements. A shape is an array
 * of longs by which JvmscopeTrace and JvmscopeContents read fields: the kind, followed by data that
 * depends on it. No method of the object is called.
 */
#pragma once

#include "agent/vm/vm.h"

#include <stdbool.h>

enum { SHOWN_FIELDS_MAX = 16, SHAPE_MAX = 1 + SHOWN_FIELDS_MAX };

/*
 * The same numbers are in JvmscopeTrace.java and JvmscopeContents.java, which describe the data
 * that follows each kind.
 */
enum shape_kind {
    SHAPE_UNREADY = -2, /* the class is not linked yet: to be asked again for its first object */
    SHAPE_TO_STRING = -1,
    SHAPE_FIELDS, /* type << 56 | offset of each field */
    SHAPE_VALUE,  /* the same for the single field that is the value */
    SHAPE_NAME,   /* offset of a string */
    SHAPE_CLASS,  /* a java.lang.Class */
    SHAPE_PARTS,  /* like SHAPE_FIELDS, and shown inside other objects too; # for an int[] */
    SHAPE_CHARS,  /* offsets of a char[] or byte[], its used length and its coder; -1: none */
    SHAPE_SUM,    /* offsets of a long, of cells, and of a cell's long; J, or D: bits of doubles */
    /*
     * a collection that wraps another one, and a boolean for the opposite order; from here on the
     * second long contains flags
     */
    SHAPE_WRAP,
    SHAPE_ARRAY, /* size, array */
    SHAPE_RING,  /* size, array, first, end */
    SHAPE_HASH,  /* size, table, key, value, next, cells, cell's value */
    /*
     * size, first, next, key, value; the object between "first" and the first node; value, too;
     * last and previous
     */
    SHAPE_CHAIN,
    SHAPE_TREE,    /* size, root, left, right, parent, key, value */
    SHAPE_FIXED,   /* the fields that hold the elements */
    SHAPE_BITS,    /* bits, array */
    SHAPE_PAIRS,   /* size, keys, values */
    SHAPE_NUMBERS, /* an int[] or a long[] */
    SHAPE_COPIES,  /* size, the element that it has everywhere */
    SHAPE_WINDOW,  /* size, list or other list, how many elements come before */
    SHAPE_BIT_SET, /* words, how many are used */
};

enum shape_flag {
    SHAPE_MAP = 1,
    SHAPE_SKIP_NULL = 2,
    SHAPE_KEYS = 4,
    SHAPE_WIDE_SIZE = 8,
    SHAPE_TRUTH = 16, /* an int that is a boolean */
    SHAPE_BELOW = 32, /* subclasses have the same text */
    /* Few programs use the class: its fields are looked up with its first object. */
    SHAPE_LATE = 64,
    SHAPE_VALUES = 128, /* the values of a map alone, as SHAPE_KEYS its keys */
    SHAPE_REAL = 256,   /* longs that are the bits of doubles */
};

/* How a value is printed for people. */
enum shape_style {
    STYLE_OBJECT,   /* Class@1f{...} */
    STYLE_SIZED,    /* Class(3)@1f{...} */
    STYLE_PLAIN,    /* the value alone, for a box */
    STYLE_ENUM,     /* Class.NAME */
    STYLE_OPTIONAL, /* java.util.Optional[...] */
    STYLE_NUMBER,   /* the text of `put`, which is a number */
    STYLE_TEXT,     /* the text of `put` */
    STYLE_HELD,     /* Class@1f{text of `put`} */
    STYLE_QUOTED,   /* Class@1f{"text"} */
};

struct buf;
struct value;

/* What records contain of a class's objects. */
struct shown_class {
    enum shape_kind kind;
    enum shape_style style;
    unsigned n; /* of SHAPE_FIELDS, SHAPE_VALUE and SHAPE_PARTS */
    /* Writes what a value is as text, from its parts; NULL for most classes. */
    void (*put)(struct buf *b, const struct value *v);
    char *names[SHOWN_FIELDS_MAX];
    char types[SHOWN_FIELDS_MAX];
    /* of STYLE_ENUM: the enum class, rather than the class of a constant with a body */
    char *enum_name;
};

/*
 * Writes the shape of a JDK class, by its name (with dots), to `out`, and its meaning to `s`.
 * `itself` is false when the shape is for a subclass, of which a text is known for few. Returns the
 * number of longs; 0 when the class is not a known one, or has different fields in this JDK.
 */
int shape_of_class(JNIEnv *jni, jclass class, const char *name, bool itself, jlong out[SHAPE_MAX],
                   struct shown_class *s) must_check;
