/* SPDX-License-Identifier: Apache-2.0 */
/* How commands tell what a recording lost (model/losses.h). */
#pragma once

#include "model/losses.h"

/* One line on standard error for each loss, and one when the recording was never ended. */
void losses_tell(const char *path, const struct losses *l, struct buf *ret_text);
/*
 * The same of a file, which is read once for it; a file that is no recording has none. ret_text, if
 * not NULL, gets them too.
 */
void losses_tell_file(const char *path, struct buf *ret_text);
/* The same of a file whose name is told as `shown`. ended: false of a recording that goes on. */
void losses_tell_as(const char *path, const char *shown, bool ended);
/*
 * The same of a recording whose losses were counted before: it is read for their sentences only
 * where there are any.
 */
void losses_tell_known(const char *path, bool any);
/*
 * losses_json() of a file. any: false when it is known that nothing was lost, so that the file is
 * not read for it.
 */
void losses_json_of_file(const char *path, const char *const *captures, bool any, struct json *j);
