/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/reading.h"
#include "export/export.h"

/*
 * Converts the selected part of a file into another file. Returns the exit status, which is not 0
 * after a complaint.
 */
int convert_file(const struct selection *selection, const char *from, const char *to);
/*
 * Converts a copy of a recording into `output`, like convert_file without a selection. The user
 * does not know the copy's name, so complaints mention the output instead. Returns the exit status.
 */
int convert_copy(const char *copy, const char *output);

/* Complains that no output has the format of this name's extension, and lists those that exist. */
void convert_complain_of_format(const char *path);
/*
 * Returns whether output in the format can be limited to the selection. Complains otherwise; `to`
 * names the output.
 */
bool convert_follows(const struct export_format *format, const struct selection *s, const char *to);
