/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control channel between the command and the agent: HotSpot's attach protocol, `load` of the agent's library (absolute)
 * with an option string that begins with `control=VERB`. HotSpot hands it to Agent_OnAttach in the VM's attach listener
 * thread, whether the library was loaded at start-up, attached before, or is loaded by this very message. Hence no thread, no
 * socket and no file of the agent's own waits for messages, and the right to send one is the right to attach.
 *
 *   control=start,OPTIONS   begin to record with OPTIONS (the option table's); what `control=` may be left out of
 *   control=dump            write out what was captured so far; goes on
 *   control=stop            write out and stop
 *   control=status          answer alone
 *   control=inspect         the rest of the text, behind reply=, is a question (agent/inspect/inspect.h): "class
 *                           java.lang.String"
 *   control=trace           the rest is add PATTERN, remove PATTERN or list
 *   control=control         the rest is a verb and its operands (agent/control/control.h), separated by tabs
 *   reply=PATH              any verb: where the answer goes. The sender makes the file, empty and writable for
 * the VM's user, as the VM sees it (/proc/PID/root/tmp/... from another container); the agent opens it without creating it or
 * following a link, writes, and closes it before `load` returns. PATH has no comma.
 *
 * The answer is text. Line 1: `ok`, or `error ERRNO MESSAGE` (ERRNO a positive decimal errno: EBUSY already recording,
 * ESRCH nothing to stop, EINVAL/ENOSYS options, EACCES/ENOSPC/EROFS ... the output file, ENOTSUP the VM cannot). Then lines
 * `KEY VALUE`, in any order, unknown keys to be skipped:
 *
 *   agent VERSION BUILD     always; another build than the sender's means that an older library is still mapped
 *   state idle|recording
 *   file PATH               the output, as the VM sees it
 *   format a|b|r
 *   options TEXT            as given
 *   elapsed_ns N            since the start of the recording
 *   message TEXT            something the user should know (a fallback taken, a capability that is missing); may repeat
 *   json TEXT               inspect, trace, control: the answer
 *   CAPTURE.NAME N          counters of a capture, such as `cpu.samples 4711`
 *
 * `load` returns 0 when line 1 is `ok`, or 1 when the library was loaded before and the message has reply=: HotSpot keeps an
 * entry for each load that returned 0. A message of a sender without reply= is carried out all the same.
 */
#pragma once

#define CONTROL_ANSWER_MAX (64 << 20)
