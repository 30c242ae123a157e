/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds classes from class files, folders and jars that a coverage recording does not know, because
 * they were never loaded.
 */
#pragma once

#include "profile/coverage.h"

/*
 * Adds the classes below a path that c does not contain yet, without hits. *ret_bad counts class
 * files that cannot be read. Returns 0 or a negative errno.
 */
int cover_classes_add(struct coverage *c, const char *path, size_t *ret_bad) must_check;
