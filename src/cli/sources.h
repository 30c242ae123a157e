/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of source files whose lines a page of coverage shows. */
#pragma once

#include "profile/coverage.h"

#include <stdbool.h>

/* Returns whether the name is that of a folder that can be read; complains otherwise. */
bool sources_check(const char *folder);
/* Adds a note unless the folder has the source file of a class. */
void sources_note_none(const char *folder, const struct coverage *c);
/* Adds a note unless the folder has a source file for recordings, or if they have no coverage. */
void sources_note_without_effect(const char *folder, char *const *recordings, int n);
