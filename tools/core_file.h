/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file of a process on Linux x86-64, as memory for the stack walker: its threads' registers, its memory, and of what a
 * core leaves out because it is in a file the file's own bytes.
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

/* root: the folder that the process saw as /; "" for ours. 0; negative errno with a sentence in why[size]. */
int core_open(struct core **ret, const char *path, const char *root, char *why, size_t size) must_check;
void core_close(struct core *c);

/* Reads memory: the form of struct memory and struct hotspot_image; context is the core. */
int core_read(void *context, uint64_t address, void *bytes, size_t len);
/* An exported symbol of libjvm. */
int core_symbol(void *context, const char *name, uint64_t *ret_address);

/* They live as long as the core. */
const struct core_thread *core_threads(const struct core *c, unsigned *ret_count);
const struct modules *core_modules(const struct core *c);
