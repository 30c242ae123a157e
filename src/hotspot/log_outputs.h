/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the line in which the diagnostic command `VM.log list` of JDK 9 to 27 describes an output
 * of the VM's log:
 *
 *  #0: stdout all=warning,gc*=info uptime,level,tags foldmultilines=false (reconfigured)
 *
 * Nothing here allocates memory; texts point into the line.
 */
#pragma once

#include "hotspot/unified_log.h"

/* In descending order of what is logged. */
enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_OFF };

struct log_output {
    uint32_t number;
    struct log_text name;       /* "stdout", "file=/var/log/vm.log" */
    struct log_text selections; /* "all=warning,gc*=info": the last one that matches applies */
    struct log_text decorators; /* "uptime,level,tags" or "none" */
};

/* Parses a line without its newline. Returns false when the line does not describe an output. */
bool log_output_read(struct log_text line, struct log_output *ret);
/*
 * Returns the level at which an output logs the lines that have this tag and no other. *ret_named:
 * a selection of this tag, not one of all tags, determines the level.
 */
enum log_level log_output_level(const struct log_output *o, const char *tag, bool *ret_named);
/* Returns the word for a level, as in a selection. */
const char *log_level_word(enum log_level level);
