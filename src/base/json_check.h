/* SPDX-License-Identifier: Apache-2.0 */
/* Whether text from outside is JSON (RFC 8259), without making anything of it. */
#pragma once

#include <stddef.h>

/* The length of the JSON value that s begins with, without space around it; 0 when none does. Beyond 64 levels none does. */
size_t json_value_len(const char *s, size_t len);
