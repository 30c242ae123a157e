/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/reading.h"

/*
 * Writes what is selected of one file as another. Returns the exit status, which is not 0 after a
 * complaint.
 */
int convert_file(const struct selection *selection, const char *from, const char *to);
