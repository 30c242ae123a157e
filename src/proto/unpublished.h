/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a VM's command line and files say of it when it publishes no counters: with
 * -XX:-UsePerfData, with a user that has no name, or without a /tmp.
 */
#pragma once

#include "proto/vm.h"

/*
 * Where the main class, module or jar stands among the words of a command line that end with NUL
 * each, or 0 when that is not known: another launcher than `java`, or words that are in a file.
 */
size_t unpublished_main(const char *words, size_t len);

/*
 * The version that the file `release` of its JDK or JRE names, allocated by malloc, or NULL. Only
 * vm->pid and vm->root_fd and its user need be known.
 */
char *unpublished_version(const struct vm *vm);
