/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that change what is traced while a recording runs. Used by the command, to check a
 * request before sending it, and by the agent.
 */
#pragma once

/* What the agent answers about a pattern to be removed that it does not have. */
#define TRACE_PATTERN_ABSENT "not among the patterns"

/*
 * Returns what is wrong with "add PATTERN", "add PATTERN if CONDITION", "remove PATTERN" or "list",
 * where commas separate several patterns, or NULL if it is valid. *ret_what is the part of the
 * request to which the message refers.
 */
const char *trace_request_fault(const char *request, const char **ret_what);

/*
 * Splits what follows "add " or "remove " in place: leaves the normalized patterns, and returns the
 * condition or NULL.
 */
char *trace_request_split(char *patterns);
