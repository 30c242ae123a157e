/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control channel between the command and the agent. It uses HotSpot's attach protocol: `load`
 * of the agent's library (an absolute path) with an option string that begins with `control=VERB`.
 * HotSpot passes that string to Agent_OnAttach in the VM's attach listener thread, whether the
 * library was loaded at start-up, attached before, or is loaded by this message. The agent
 * therefore needs no thread, socket or file to wait for messages, and who may attach may send a
 * message.
 *
 *   control=start,OPTIONS   begin to record with OPTIONS (those of the option table); `control=`
 *                           may be omitted
 *   control=dump            write what was captured so far and continue
 *   control=stop            write what was captured and stop
 *   control=ending          as status, from a sender that will send `stop` next: later events are
 *                           not recorded any more. Without a `stop` the recording ends
 *                           after ten seconds. No effect on a ring
 *   control=status          only answer
 *   control=on              adds triggers to a recording that is always on: on=CONDITION,
 *                           then=ACTION and the options that go with them
 *   control=inspect         the text after reply= is a question such as "class java.lang.String"
 *                           (agent/inspect/inspect.h)
 *   control=trace           the rest is "add PATTERN", "remove PATTERN" or "list"
 *   control=control         the rest is a verb and its operands (agent/control/control.h),
 *                           separated by tabs
 *   reply=PATH              with any verb: the file for the answer
 *
 * The sender creates the reply file, empty and writable for the VM's user. PATH is the VM's name
 * for it (another container sees it as /proc/PID/root/tmp/...) and contains no comma. The agent
 * opens the file without creating it or following a link, writes the answer, and closes it. A
 * sender that gives up removes the file; the agent then ignores the message.
 *
 * `start`, `dump`, `ending`, `stop`, `trace` and `on` may take long, and the VM has one listener
 * for everybody. A thread of the agent carries them out, and `load` may return before that has
 * ended: the file then holds the line `working`, or `changing DONE TOTAL` while classes are being
 * changed. The agent writes the first byte of an answer last, so the answer is there, and whole, as
 * soon as the file does not begin with `w` or `c`.
 *
 * The answer is text. Its first line is `ok`, or `error ERRNO MESSAGE` with a positive decimal
 * errno: EBUSY (already recording), ESRCH (nothing to stop), EINVAL (options), EACCES,
 * ENOSPC, EROFS ... (the output file), ENOTSUP (the VM cannot do it). Lines `KEY VALUE` follow in
 * any order; unknown keys must be skipped:
 *
 *   agent VERSION BUILD     always present; a build other than the sender's means that an older
 *                           library is still mapped
 *   state idle|recording|starting|stopping
 *                           the last two: it changes classes, for instance; the counters are not
 *                           available meanwhile
 *   file PATH               the output, as the VM sees it
 *   changing N of M classes how many classes have been changed so far
 *   restoring [N of M ]classes
 *                           a recording has ended, and the classes that it changed are being
 *                           restored, with pauses, which are skipped when a new recording begins
 *   last_file PATH          when idle: the output of the last recording
 *   last_error TEXT         when idle: why the last recording is incomplete, if it is
 *   format a|b|r
 *   options TEXT            as given
 *   elapsed_ns N            since the start of the recording
 *   message TEXT            something the user should know, such as a fallback or a missing
 *                           capability; may repeat
 *   messages_reported N     how many of these messages were already in an earlier answer to a verb
 *                           other than status
 *   json TEXT               inspect, trace, control: the answer
 *   CAPTURE.NAME N          counters of a capture, such as `cpu.samples 4711`
 *
 * `load` returns 0 when the first line is `ok`. It returns 1, although the line is `ok`, when the
 * library was loaded before and the message has reply=, because HotSpot keeps an entry for each
 * load that returned 0. A message without reply= is carried out as well.
 */
#pragma once

#define CONTROL_ANSWER_MAX (64 << 20)

/* What a reply file holds while the message is being carried out. */
#define CONTROL_WORKING  "working"
#define CONTROL_CHANGING "changing"

/*
 * The name of the memory file (memfd_create) in which `run` collects the outcomes of recordings;
 * see agent/session/outcome.h.
 */
#define OUTCOME_NAME "jvmscope-outcome"
