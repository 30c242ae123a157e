/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions that agents get, and the deliberate defects ("mutations") with which the
 * tests check themselves.
 */
#pragma once

#include "jvmpi/layer.h"

/* Does not return after JVM_SHUT_DOWN, where the table's functions must not; see there. */
void layer_hold(void);
#ifdef JVMPI_MUTANTS
bool layer_mutation_of_event(jint type);
void layer_mutate(void);
/*
 * Return whether the mutation of this name is requested (see interface.c); layer_mutation_eighth
 * does so only each eighth time.
 */
bool layer_mutation(const char *name);
bool layer_mutation_eighth(const char *name);
#else
static inline bool layer_mutation(const char *name)
{
    return false;
}

static inline bool layer_mutation_eighth(const char *name)
{
    return false;
}

static inline bool layer_mutation_of_event(jint type)
{
    return false;
}

static inline void layer_mutate(void)
{
}
#endif
