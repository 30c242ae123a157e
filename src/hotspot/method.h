/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Method of the VM: distinguished from its successors at the same address, and described while
 * its class is alive.
 *
 * A walk records the address and a check: a hash of what the Method leads to (its ConstMethod,
 * constants, class and the class name's own hash, which the VM draws at random). Later, outside of
 * the handler, a description is given only when the check still holds before and after reading;
 * otherwise the class is gone.
 */
#pragma once

#include "base/buf.h"
#include "base/generated_name.h"
#include "hotspot/layout.h"
#include "hotspot/memory.h"

enum { METHOD_CHECK_MASK = 0x1ffff };

/*
 * The structures that a Method leads to, and the first word of the class name's symbol without its
 * reference count.
 */
struct method_parts {
    uint64_t constant, pool, holder, class_name, symbol;
};

/* False when there is no Method at the address. Async-signal-safe, as what follows. */
bool method_parts(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                  struct method_parts *ret);
/* Whether they are still what the method leads to: loads that do not wait for one another. */
bool method_parts_hold(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                       const struct method_parts *p);
/*
 * The same of parts that held before and no class has been unloaded since (hotspot/unloads.h): what
 * a class leads to stays.
 */
bool method_parts_still_hold(const struct hotspot_layout *l, const struct memory *m,
                             uint64_t method, const struct method_parts *p);
/* The check of a method, within METHOD_CHECK_MASK. */
uint32_t method_parts_check(const struct method_parts *p);

/*
 * The bytecode index of a pointer into the method's bytecode; -1 when it points elsewhere. False
 * when there is no Method at the address; *ret_native says that the method has no bytecode at all.
 * Async-signal-safe.
 */
bool method_bci(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                uint64_t bcp, int32_t *ret_bci, bool *ret_native);

struct bytecode_line {
    uint16_t bci; /* from here on */
    uint32_t line;
};

/* Strings are the class file's: java/lang/String, (I)V. Zeroed is empty and valid. */
struct method_description {
    struct buf class_name, name, signature, source_file; /* no source file is "" */
    /* of a lambda's class: what it stands for, of a proxy's: its interfaces; "" when not known */
    struct generated_target lambda;
    struct bytecode_line *lines; /* by ascending bci, mostly; owned */
    size_t line_count;
    uint64_t loader; /* identifies the class loader; 0 is the boot loader */
    uint64_t holder; /* address of the class, while it is loaded */
    uint16_t modifiers;
    uint16_t code_size; /* 0: native or abstract */
};

/*
 * 0; -ESTALE when the method of that check is no longer there; -ENOMEM. Not for a signal handler;
 * takes no lock of the VM.
 */
int method_describe(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                    uint32_t check, struct method_description *ret) must_check;
/*
 * Of the class at an address, which may be any number; false when nothing is there that looks like
 * one.
 */
bool method_class_name(const struct hotspot_layout *l, const struct memory *m, uint64_t address,
                       struct buf *ret);
void method_description_release(struct method_description *d);
/* The line of a bytecode index, 0 when not known. */
uint32_t method_line_of(const struct method_description *d, int32_t bci);
