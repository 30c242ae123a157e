/* SPDX-License-Identifier: Apache-2.0 */
/* The captures log= and watch=; watches.c inserts the probes for fields. */
#pragma once

#include "agent/instrument/instrument.h"
#include "base/buf.h"

/*
 * Sets the patterns of watch=, "pkg.Class.field:...". Skips words that name no field, and fields
 * after the first WATCHES_MAX. Returns 0 or -ENOMEM.
 */
int watches_set(const char *fields) must_check;
void watches_clear(void);
/*
 * Iterates over the patterns that watch nothing, or not all that names their fields: stores the
 * next one in *ret and appends the reason to `why`. *at starts at 0. Returns false after the last
 * one.
 */
bool watches_not_found(JNIEnv *jni, unsigned *at, char *ret, size_t size, bool *ret_partly,
                       struct buf *why);
/*
 * Counts a hidden class for the patterns whose fields it names in its code. Returns whether there
 * are any. plain: its name without what the VM has added.
 */
bool watches_see_hidden(jclass c, struct str plain);
extern const struct instrument_client watch_client;
/* number of places before super(), where the object must not be accessed */
uint64_t watches_without_object(void);
