/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads that may fail. Its functions begin with load_. In this process they are done by one
 * instruction whose address our handler for SIGSEGV and SIGBUS knows. A fault there makes the load
 * return false; a fault anywhere else is passed to the previous handler (the VM's, which uses
 * faults for null checks and safepoint polls), unless it is in memory that another process took
 * away (base/backed.h). process_vm_readv would take 300 ns per call, and containers forbid it.
 * Range checks alone do not suffice, because metaspace and code appear and disappear during a walk.
 * A load without a fault takes 1 to 2 ns. All loads are async-signal-safe, provided that SIGSEGV
 * and SIGBUS are not blocked.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The source of loads: this process when `read` is NULL, otherwise an image (a core file, a test).
 */
struct memory {
    void *context;
    /* returns 0 or -EFAULT */
    int (*read)(void *context, uint64_t address, void *bytes, size_t len);
};

extern const struct memory process_memory;

/*
 * Installs the handlers, once; later calls do nothing. The handlers stay until the process ends,
 * because another library may have saved them. Returns 0 or a negative errno. Must not be called in
 * a signal handler.
 */
int memory_guard_init(void) must_check;
/* Returns the number of faults that loads have survived so far. */
uint64_t memory_guard_faults(void);

/*
 * Reads a word by the guarded instruction (memory.c). address must be a multiple of eight. Returns
 * false on a fault.
 */
bool memory_load_word(uint64_t address, uint64_t *ret);

/* Reads a word from an image. Returns false, and leaves *ret unchanged, when m->read fails. */
bool memory_image_load(const struct memory *m, uint64_t address, uint64_t *ret);
/*
 * Reads len bytes from any address. Returns false on a fault; what was read before it then remains
 * in `bytes`.
 */
bool memory_read(const struct memory *m, uint64_t address, void *bytes, size_t len);

/*
 * load_u64 to load_u8 read a value from any address, fastest from an aligned one. They return
 * false, and leave *ret unchanged, on failure.
 */
static inline bool load_u64(const struct memory *m, uint64_t address, uint64_t *ret)
{
    if (unlikely(address & 7)) {
        uint64_t v;
        bool ok = memory_read(m, address, &v, sizeof(v));
        if (ok)
            *ret = v;
        return ok;
    }
    return unlikely(m->read != NULL) ? memory_image_load(m, address, ret)
                                     : memory_load_word(address, ret);
}

static inline bool load_part(const struct memory *m, uint64_t address, unsigned size, uint64_t *ret)
{
    unsigned shift = (address & 7) * 8;
    uint64_t word;
    if (unlikely(shift + size * 8 > 64)) {
        word = 0;
        if (!memory_read(m, address, &word, size))
            return false;
        *ret = word;
        return true;
    }
    if (!load_u64(m, address & ~UINT64_C(7), &word))
        return false;
    *ret = word >> shift & ((UINT64_C(1) << size * 8) - 1);
    return true;
}

static inline bool load_u32(const struct memory *m, uint64_t address, uint32_t *ret)
{
    uint64_t v;
    bool ok = load_part(m, address, 4, &v);
    if (ok)
        *ret = (uint32_t)v;
    return ok;
}

static inline bool load_u16(const struct memory *m, uint64_t address, uint16_t *ret)
{
    uint64_t v;
    bool ok = load_part(m, address, 2, &v);
    if (ok)
        *ret = (uint16_t)v;
    return ok;
}

static inline bool load_u8(const struct memory *m, uint64_t address, uint8_t *ret)
{
    uint64_t v;
    bool ok = load_part(m, address, 1, &v);
    if (ok)
        *ret = (uint8_t)v;
    return ok;
}
