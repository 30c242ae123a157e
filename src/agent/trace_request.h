/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be asked of tracing while it runs: the same for the command, before it asks, and the
 * agent.
 */
#pragma once

/*
 * What is wrong with "add PATTERN", "add PATTERN if CONDITION", "remove PATTERN" or "list"; NULL:
 * nothing. *ret_what is the part of the request that is meant.
 */
const char *trace_request_fault(const char *request, const char **ret_what);
