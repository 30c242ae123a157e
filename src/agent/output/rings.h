/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of rings for which the user chose no name. A ring outlives its VM, so that it can be
 * read after a crash. This module limits how many of them remain.
 */
#pragma once

#include <stdbool.h>

/* Marks an open ring as being written by this VM, until its descriptor is closed. */
void ring_hold(int fd);
/* Returns whether a VM, which may be the calling one, writes the ring at a path. */
bool ring_is_held(const char *path);
/*
 * Removes all but the newest of the rings in a folder that belong to this user and that no VM
 * writes any more.
 */
void rings_tidy(const char *folder);
