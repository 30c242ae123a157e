/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading of class files, versions 45 to 71 (JVMS chapter 4). class_parse checks the structure once: the constant pool, every
 * length and the place of each Code attribute. After it every offset in struct class_file lies within the bytes. It does
 * not verify code. Knows no JVM.
 */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CLASS_MAJOR_MIN        45
#define CLASS_MAJOR_MAX        71
#define CLASS_MAJOR_STACK_MAPS 50 /* from here on StackMapTable counts; from 51 on nothing else does */

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

/* A method; offsets count from the start of the class file. */
struct class_method {
    uint16_t access, name, descriptor; /* the latter two are indices of CONSTANT_Utf8 */
    uint32_t start, end;               /* of the whole method_info */
    uint32_t code, code_end;           /* contents of the Code attribute, from max_stack on; code is 0 when there is none */
};

/* A parsed class. Zeroed is valid; one struct may parse many classes, one after the other, and keeps its memory. */
struct class_file {
    const uint8_t *bytes; /* borrowed: must outlive every use */
    size_t len;
    uint16_t minor, major;
    VEC(uint32_t) pool; /* offset of each constant's tag; 0 for index 0 and the second half of long and double */
    uint32_t pool_end;  /* where access_flags lies */
    uint16_t access;
    uint16_t this_class, super_class; /* indices of CONSTANT_Class; super_class may be 0 */
    VEC(struct class_method) methods;
    uint32_t methods_start, attributes_start; /* of methods_count; of the class's own attributes_count */
};

/* 0; -EBADMSG when the bytes are no class file of a known version; -ENOMEM. On failure the struct holds no class. */
int class_parse(struct class_file *c, const void *bytes, size_t len) must_check;
void class_release(struct class_file *c);

static inline uint16_t class_be16(const struct class_file *c, uint32_t at)
{
    return (uint16_t)(c->bytes[at] << 8 | c->bytes[at + 1]);
}

static inline uint32_t class_be32(const struct class_file *c, uint32_t at)
{
    return (uint32_t)class_be16(c, at) << 16 | class_be16(c, at + 2);
}

/* The tag of a constant, 0 for an index that is none. */
static inline uint8_t class_tag(const struct class_file *c, uint16_t index)
{
    return index < c->pool.len && c->pool.data[index] ? c->bytes[c->pool.data[index]] : 0;
}

/*
 * Names, as stored (modified UTF-8, not NUL-terminated); the empty string where the index is not of the kind asked for.
 * class_name_at takes a CONSTANT_Class and answers java/lang/String or [I.
 */
struct str class_utf8(const struct class_file *c, uint16_t index);
struct str class_name_at(const struct class_file *c, uint16_t index);

/* A field or method reference taken apart. */
struct class_member {
    struct str owner, name, descriptor;
};

/* True when index is a Fieldref, Methodref, InterfaceMethodref, or (with an empty owner) a Dynamic or InvokeDynamic. */
bool class_member(const struct class_file *c, uint16_t index, struct class_member *ret);

static inline bool str_is(struct str s, const char *z)
{
    size_t n = strlen(z);
    return s.len == n && memcmp(s.data, z, n) == 0;
}

/*
 * The next type of a descriptor: *at is behind '(' or behind the last one; answers its length in characters, 0 at ')' or
 * when the descriptor is malformed. *ret_slots is 2 for J and D, else 1.
 */
size_t descriptor_next(struct str descriptor, size_t at, unsigned *ret_slots);
/* Slots that a method's arguments take, `this` included; -EBADMSG when the descriptor is malformed. */
int descriptor_argument_slots(struct str descriptor, bool is_static);
