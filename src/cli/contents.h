/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a recording that was just written contains what was asked for. */
#pragma once

/*
 * Complains, under the name `shown`, about each capture that recorded nothing and each pattern that
 * matched no method. path: a recording of our agent; other files are ignored.
 */
void contents_tell(const char *path, const char *shown);
