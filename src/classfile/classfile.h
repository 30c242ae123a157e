/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads class files of versions 45 to 71 (JVMS chapter 4). class_parse checks the structure once:
 * the constant pool, every length, and the position of each Code attribute. Afterwards every offset
 * in struct class_file lies within the bytes. It does not verify code. This code does not depend on
 * a JVM.
 */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CLASS_MAJOR_MIN 45
#define CLASS_MAJOR_MAX 71
/* The first version whose StackMapTable is used; from 51 on the VM requires one. */
#define CLASS_MAJOR_STACK_MAPS 50

enum class_constant {
    CONSTANT_UTF8 = 1,
    CONSTANT_INTEGER = 3,
    CONSTANT_FLOAT = 4,
    CONSTANT_LONG = 5,
    CONSTANT_DOUBLE = 6,
    CONSTANT_CLASS = 7,
    CONSTANT_STRING = 8,
    CONSTANT_FIELDREF = 9,
    CONSTANT_METHODREF = 10,
    CONSTANT_INTERFACE_METHODREF = 11,
    CONSTANT_NAME_AND_TYPE = 12,
    CONSTANT_METHOD_HANDLE = 15,
    CONSTANT_METHOD_TYPE = 16,
    CONSTANT_DYNAMIC = 17,
    CONSTANT_INVOKE_DYNAMIC = 18,
    CONSTANT_MODULE = 19,
    CONSTANT_PACKAGE = 20,
};

enum class_access {
    ACC_PUBLIC = 0x0001,
    ACC_PRIVATE = 0x0002,
    ACC_STATIC = 0x0008,
    ACC_FINAL = 0x0010,
    ACC_SYNCHRONIZED = 0x0020,
    ACC_BRIDGE = 0x0040,
    ACC_NATIVE = 0x0100,
    ACC_INTERFACE = 0x0200,
    ACC_ABSTRACT = 0x0400,
    ACC_SYNTHETIC = 0x1000,
    ACC_MODULE = 0x8000,
};

/* A method. Offsets count from the start of the class file. */
struct class_method {
    uint16_t access, name, descriptor; /* the last two are indices of CONSTANT_Utf8 */
    uint32_t start, end;               /* of the whole method_info */
    /* The contents of the Code attribute, from max_stack on; `code` is 0 when there is none. */
    uint32_t code, code_end;
};

/*
 * A parsed class. A zeroed struct is valid. One struct may parse several classes, one after the
 * other, and reuses its memory.
 */
struct class_file {
    const uint8_t *bytes; /* borrowed; must outlive every use */
    size_t len;
    uint16_t minor, major;
    /*
     * The offset of each constant's tag; 0 for index 0 and for the second entry of long and double.
     */
    VEC(uint32_t) pool;
    uint32_t pool_end; /* the offset of access_flags */
    uint16_t access;
    uint16_t this_class, super_class; /* indices of CONSTANT_Class; super_class may be 0 */
    VEC(struct class_method) methods;
    /* The offsets of methods_count and of the class's own attributes_count. */
    uint32_t methods_start, attributes_start;
};

/*
 * Parses the len bytes of a class file, which must outlive every use of the struct. Returns 0,
 * -EBADMSG when the bytes are not a class file of a known version, or -ENOMEM. After a failure the
 * struct holds no class.
 */
int class_parse(struct class_file *c, const void *bytes, size_t len) must_check;
void class_release(struct class_file *c);

static inline uint16_t class_be16(const struct class_file *c, uint32_t at)
{
    return (uint16_t)(c->bytes[at] << 8 | c->bytes[at + 1]);
}

/* Returns the tag of a constant, or 0 when the index is not valid. */
static inline uint8_t class_tag(const struct class_file *c, uint16_t index)
{
    return index < c->pool.len && c->pool.data[index] ? c->bytes[c->pool.data[index]] : 0;
}

/*
 * Return names as stored (modified UTF-8, not NUL-terminated), or the empty string when the
 * constant is of another kind. class_name_at takes a CONSTANT_Class and returns java/lang/String or
 * [I.
 */
struct str class_utf8(const struct class_file *c, uint16_t index);
struct str class_name_at(const struct class_file *c, uint16_t index);

/* The parts of a field or method reference. */
struct class_member {
    struct str owner, name, descriptor;
};

/*
 * Reads the parts of a constant. Returns false unless `index` is a Fieldref, Methodref or
 * InterfaceMethodref or, with an empty owner, a Dynamic or InvokeDynamic.
 */
bool class_member(const struct class_file *c, uint16_t index, struct class_member *ret);

/*
 * Returns the length in characters of the type at `at`, which must be just after '(' or after the
 * previous type, or 0 at ')' or when the descriptor is malformed. *ret_slots is 2 for J and D, else
 * 1.
 */
size_t class_descriptor_next(struct str descriptor, size_t at, unsigned *ret_slots);

/*
 * Returns whether a method is a bridge that the compiler generated for another method of the
 * class, with the same name and number of parameters, which the bridge only calls: each call of
 * that method by way of a more general type begins with a call of the bridge (Java Language
 * Specification 15.12.4.5).
 */
bool class_method_is_bridge(const struct class_file *c, const struct class_method *m);
