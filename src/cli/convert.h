/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/reading.h"

/*
 * Writes what is selected of one file as another; the exit status, after a complaint when it is not
 * 0.
 */
int convert_file(const struct selection *selection, const char *from, const char *to);
