/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "heap/dump.h"

/* Finds an object by its id. Returns false when there is none. */
typedef bool heap_find_object(void *context, uint64_t id, struct hprof_item *ret);

/*
 * Gives the classes of proxies names that are the same in every run: with the interfaces whose
 * methods they have instead of a running number. Returns 0 or -ENOMEM.
 */
int heap_name_proxies(struct heap_dump *d, heap_find_object *find, void *context) must_check;
