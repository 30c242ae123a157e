/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of rings that were given no name. A ring outlives its VM, so that it can be read after
 * a crash. How many of them stay is limited here.
 */
#pragma once

/* Marks an open ring as being written, until its descriptor is closed. */
void ring_hold(int fd);
/* Removes all but the newest rings of this user in a folder that no VM writes any more. */
void rings_tidy(const char *folder);
