/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a VM as its process shows them: the command line, the variables
 * JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS and _JAVA_OPTIONS, and the files that these name (@FILE,
 * -XX:Flags=FILE, -XX:VMOptionsFile=FILE), which are read in the VM's own root.
 */
#pragma once

#include "proto/vm.h"

struct arguments {
    /*
     * The VM's options in the order in which it reads them, so that of two that contradict each
     * other the last one holds. Each ends with NUL.
     */
    struct buf options;
    char *command;   /* the main class, module or jar, and its arguments; NULL if not known */
    bool incomplete; /* a file that is named among them could not be read */
};

/*
 * Reads the arguments of a VM. vm->version must be known, because JDK 8 reads -XX:Flags
 * differently. When memory runs out, options are missing.
 */
void arguments_read(struct arguments *ret, const struct vm *vm);
void arguments_release(struct arguments *a);

/*
 * Returns the last -XX:+NAME or -XX:-NAME among the options: 1, 0, or -1 if there is none. -Xrs
 * counts as -XX:+ReduceSignalUsage.
 */
int arguments_switch(const struct arguments *a, const char *name);
/* Returns whether -XX:NAME=VALUE with a value that is not empty is among the options. */
bool arguments_have_value(const struct arguments *a, const char *name);

/*
 * Appends the words of a text in which blanks separate words and quotes keep blanks together. With
 * `comments`, a # between words begins a comment that ends with its line, and a backslash within
 * quotes makes the next character an ordinary one. Each word ends with NUL.
 */
void arguments_split(struct buf *to, const char *text, bool comments);
