/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/reading.h"
#include "export/export.h"

/*
 * Writes what is selected of one file as another. Returns the exit status, which is not 0 after a
 * complaint.
 */
int convert_file(const struct selection *selection, const char *from, const char *to);

/*
 * Whether the format is made of what the selection selects. Complains otherwise; `to` is where it
 * would go.
 */
bool convert_follows(const struct export_format *format, const struct selection *s, const char *to);
