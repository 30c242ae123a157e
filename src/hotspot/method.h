/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods of the VM, which must be distinguished from later methods at the same address and
 * described while their class is alive. A walk records the address and a check, which is a hash of
 * the data to which the Method leads (its ConstMethod, constants, class, and the class name's own
 * hash, which the VM draws at random). Later, outside of the signal handler, a method is described
 * only if the check still holds before and after reading; otherwise its class is gone.
 */
#pragma once

#include "base/buf.h"
#include "base/generated_name.h"
#include "hotspot/layout.h"
#include "hotspot/memory.h"

enum { METHOD_CHECK_MASK = 0x1ffff };

/*
 * The structures to which a Method leads, and the first word of the class name's symbol without its
 * reference count.
 */
struct method_parts {
    uint64_t constant, pool, holder, class_name, symbol;
};

/*
 * Finds the parts of a method. Returns false when there is no Method at the address.
 * Async-signal-safe, like the functions up to method_bci.
 */
bool method_parts(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                  struct method_parts *ret);
/*
 * Returns whether these are still the parts of the method. The loads do not depend on each other.
 */
bool method_parts_hold(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                       const struct method_parts *p);
/*
 * Returns whether these are still the parts of the method if they were valid before and no class
 * has been unloaded since (hotspot/unloads.h): then what a class leads to is unchanged.
 */
bool method_parts_still_hold(const struct hotspot_layout *l, const struct memory *m,
                             uint64_t method, const struct method_parts *p);
/* Returns the check of a method, within METHOD_CHECK_MASK. */
uint32_t method_parts_check(const struct method_parts *p);

/*
 * Stores the bytecode index of a pointer into the method's bytecode; -1 when it points elsewhere.
 * Returns false when there is no Method at the address. *ret_native says that the method has no
 * bytecode at all. Async-signal-safe.
 */
bool method_bci(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                uint64_t bcp, int32_t *ret_bci, bool *ret_native);

struct bytecode_line {
    uint16_t bci; /* the first bytecode index of the line */
    uint32_t line;
};

/*
 * Strings are in the form of the class file: java/lang/String, (I)V. A zeroed struct is empty and
 * valid.
 */
struct method_description {
    struct buf class_name, name, signature, source_file; /* "" when the source file is not known */
    /* for a lambda's class its target, for a proxy's class its interfaces; "" when not known */
    struct generated_target lambda;
    struct bytecode_line *lines; /* owned; usually in ascending order of bci */
    size_t line_count;
    uint64_t loader; /* identifies the class loader; 0 is the boot loader */
    uint64_t holder; /* address of the class, while it is loaded */
    uint16_t modifiers;
    uint16_t code_size; /* 0: native or abstract */
};

/*
 * Describes the method at an address; the caller releases *ret. Must not be called in a signal
 * handler; takes no lock of the VM. Returns 0; -ESTALE when the method with that check no longer
 * exists; -ENOMEM.
 */
int method_describe(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                    uint32_t check, struct method_description *ret) must_check;
/*
 * Appends the name of the class at an address, which may be any number. Returns false when nothing
 * there looks like a class.
 */
bool method_class_name(const struct hotspot_layout *l, const struct memory *m, uint64_t address,
                       struct buf *ret);
void method_description_release(struct method_description *d);
/* Returns the line of a bytecode index, 0 when it is not known. For tools/walk_core.c. */
uint32_t method_line_of(const struct method_description *d, int32_t bci);
