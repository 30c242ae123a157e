/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of source files whose lines a page of coverage shows. */
#pragma once

#include "profile/coverage.h"

#include <stdbool.h>

/* Returns whether the name is that of a folder that can be read; complains otherwise. */
bool sources_check(const char *folder);
/* Prints a note unless the folder has the source file of at least one class of c. */
void sources_note_none(const char *folder, const struct coverage *c);
/*
 * Prints a note if none of n recordings has coverage, or as sources_note_none does for all of them.
 */
void sources_note_without_effect(const char *folder, char *const *recordings, int n);
