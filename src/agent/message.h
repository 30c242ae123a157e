/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages from the command to an agent that is loaded (options/control.h). The VM's attach
 * listener delivers them and answers questions itself. It is a single thread, which everyone who
 * attaches to the VM needs: `jcmd`, `jstack`, other agents. Therefore a thread of the agent does
 * what may take long, and the listener is free again after WAIT_MS at the latest.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/*
 * Carries out a message, or has it carried out, and writes the answer into the file that the
 * message names. error: 0, or a negative errno with a sentence in `why` when the agent cannot work
 * in this VM; the sentence is then the answer. Returns 0 or a negative errno. *ret_answered: the
 * sender has an answer and does not need the result that the VM reports for the load.
 */
int message_receive(const char *text, int error, const struct buf *why, bool *ret_answered);
