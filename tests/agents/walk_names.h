/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the frames that walk_agent.c finds. */
#pragma once

#include "unwind/symbols.h"
#include "unwind/walk.h"

#include <jvmti.h>

struct walk_names {
    jvmtiEnv *jvmti;
    struct walker *walker;
    struct symbols *symbols;
};

/* The caller frees the name. */
char *name_of_walked(const struct walk_names *n, const struct walk_frame *f);
char *name_of_method_id(const struct walk_names *n, jmethodID id);
/* Ignores the known differences between the two. */
int same_name(const char *a, const char *b);
