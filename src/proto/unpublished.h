/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a VM's command line and files say of it when it publishes no counters: with
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
 * The version that the file `release` of its JDK or JRE names, or libjvm.so where there is no such
 * file; allocated by malloc, or NULL. Only
 * vm->pid and vm->root_fd and its user need be known.
 */
char *unpublished_version(const struct vm *vm);
