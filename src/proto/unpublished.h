/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from a VM's command line and files what it does not publish in counters: with
 * -XX:-UsePerfData, with a user that has no name, or without a /tmp.
 */
#pragma once

#include "proto/vm.h"

/*
 * Returns the position of the main class, module or jar in a command line whose words each end with
 * NUL, or 0 if it is unknown because the launcher is not `java` or the words are in a file.
 */
size_t unpublished_main(const char *words, size_t len);

/*
 * Returns the version in the file `release` of its JDK or JRE or, without such a file, in
 * libjvm.so; allocated by malloc, or NULL. Uses only the pid, the root_fd and the user of `vm`.
 */
char *unpublished_version(const struct vm *vm);
