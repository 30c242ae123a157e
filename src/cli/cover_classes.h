/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes that a coverage recording does not know, for they were never loaded: from class files,
 * folders and jars.
 */
#pragma once

#include "model/coverage.h"

/*
 * Adds the classes below a path that c does not have yet, with nothing that ran. *ret_bad counts
 * class files that cannot be read. 0 or negative errno.
 */
int cover_classes_add(struct coverage *c, const char *path, size_t *ret_bad) must_check;
