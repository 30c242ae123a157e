/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of walk_agent.c as text. */
#pragma once

#include "unwind/symbols.h"
#include "unwind/walk.h"

#include <jvmti.h>

struct walk_names {
    jvmtiEnv *jvmti;
    struct walker *walker;
    struct symbols *symbols;
};

/* The caller frees. */
char *name_of_walked(const struct walk_names *n, const struct walk_frame *f);
char *name_of_method_id(const struct walk_names *n, jmethodID id);
/* But for what the two write differently. */
int same_name(const char *a, const char *b);
