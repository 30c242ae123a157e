/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries of the process. dl_iterate_phdr calls back with a lock of the loader's held, for
 * which dlopen waits while it holds another one: a callback that asks the loader for anything, or
 * waits for a thread that does, may never return, and neither does anything else that loads a
 * library. Therefore whatever needs the loader visits the libraries here.
 */
#pragma once

/*
 * Calls f with a handle of each library, which is closed afterwards, until f returns other than 0;
 * returns that, or 0. The program itself comes with the path "". No lock of the loader's is held.
 */
int libraries_visit(int (*f)(void *library, const char *path, void *context), void *context);
/* The number of libraries that were ever loaded; 0: the loader does not count them. */
unsigned long long libraries_loaded(void);
