/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of source files whose lines a page of coverage shows, separated by commas. */
#pragma once

#include "profile/coverage.h"

#include <stdbool.h>

/* Returns whether each name is that of a folder that can be read; complains otherwise. */
bool sources_check(const char *folders);
/* Prints a note unless one of the folders has the source file of at least one class of c. */
void sources_note_none(const char *folders, const struct coverage *c);
/*
 * Prints a note if none of n recordings has coverage, or as sources_note_none does for all of them.
 */
void sources_note_without_effect(const char *folders, char *const *recordings, int n);
