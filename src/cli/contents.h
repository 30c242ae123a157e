/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording that was just written lacks of what was asked for. */
#pragma once

/*
 * Complains, under the name `shown`, of each capture that recorded nothing and of each pattern that
 * no method matched. path: a recording of our agent's; of any other file nothing is said.
 */
void contents_tell(const char *path, const char *shown);
