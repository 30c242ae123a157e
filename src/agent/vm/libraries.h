/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterates over the libraries of the process. dl_iterate_phdr holds a lock of the loader during its
 * callbacks, and dlopen waits for this lock while it holds another one. So a callback that calls
 * the loader, or waits for a thread that does, may deadlock, and then no thread can load a library
 * any more. Code that needs the loader therefore uses this function instead.
 */
#pragma once

/*
 * Calls f with a handle of each library, which is closed afterwards, until f returns a value other
 * than 0. Returns that value, or 0. The program itself has the path "". No lock of the loader is
 * held during the calls.
 */
int libraries_visit(int (*f)(void *library, const char *path, void *context), void *context);
/*
 * Returns the number of libraries that were ever loaded, or 0 when the loader does not count them.
 */
unsigned long long libraries_loaded(void);
