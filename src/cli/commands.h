/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A command answers its exit status: 0 done, 1 failed, 2 usage. argv[0] is the command's own name. */
struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *synopsis; /* what follows the name, "[OPTION ...] FILE" */
    const char *summary;  /* one line, lower case, no full stop */
};

/* Ends with a row without a name. */
extern const struct command commands[];

/* Prints `jvmscope: WHERE: WHAT: WHY` on standard error, leaving out what is NULL, and answers 1. */
int complain(const char *where, const char *what, const char *why);
