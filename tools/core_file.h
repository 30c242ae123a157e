/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presents a core file of a Linux x86-64 process as memory for the stack walker: the registers of
 * its threads and its memory. Where a core omits memory because a file holds the same bytes, that
 * file is read.
 */
#pragma once

#include "hotspot/image.h"
#include "unwind/arch.h"
#include "unwind/modules.h"

struct core;

struct core_thread {
    int tid;
    struct registers registers;
};

/*
 * Opens a core file. root is the folder that was / for the process, or "" for our own. Returns 0,
 * or a negative errno with a sentence in why[size].
 */
int core_open(struct core **ret, const char *path, const char *root, char *why,
              size_t size) must_check;
void core_close(struct core *c);

/*
 * Reads memory. It has the signature that struct memory and struct hotspot_image need; context is
 * the core.
 */
int core_read(void *context, uint64_t address, void *bytes, size_t len);
/* Looks up an exported symbol of libjvm. */
int core_symbol(void *context, const char *name, uint64_t *ret_address);

/* The returned objects live as long as the core. */
const struct core_thread *core_threads(const struct core *c, unsigned *ret_count);
const struct modules *core_modules(const struct core *c);
