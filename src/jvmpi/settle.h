/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event of one thread may refer only to what was reported to the agent, although another thread
 * may be about to report it. For a dump of everything, the starts and ends of threads and the ends
 * of JNI references are therefore delayed, and the dump waits for reports in progress. The end of
 * the VM waits for requests as well.
 */
#pragma once

/*
 * Enclose a change of what threads or JNI references the agent knows up to the layer_report_begin
 * of its event. Between layer_known_freeze and layer_known_unfreeze of another thread the change
 * waits, for 10 seconds at most, except where the caller is reporting something, or may hold a lock
 * of the agent.
 */
void layer_known_change_begin(void);
void layer_known_change_end(void);
/* Enclose the construction and the sending of an event that names everything. */
void layer_known_freeze(void);
void layer_known_unfreeze(void);

/*
 * Enclose, between layer_known_freeze and layer_known_unfreeze, operations that fail when other
 * threads link classes meanwhile. layer_class_linked, which is called on a thread that has linked a
 * class, waits in between, for 10 seconds at most, except where the caller may hold a lock of the
 * agent.
 */
void layer_classes_freeze(void);
void layer_classes_unfreeze(void);
void layer_class_linked(void);

/*
 * Waits until other threads have finished the reports that they are making now. Does not wait for a
 * thread that cannot continue before the caller does, as when its handler wants a raw monitor that
 * the caller holds.
 */
void layer_reports_settle(void);
/*
 * For the end of the VM, like layer_reports_settle. Afterwards each other thread either has
 * finished its report or has seen the stage that the caller set before.
 */
void layer_reports_close(void);

/* Enclose RequestEvent. layer_request_begin waits while requests are held back. */
void layer_request_begin(void);
void layer_request_end(void);
/*
 * For the end of the VM. Waits until the requests in progress on other threads have been handled,
 * unless the caller may hold a lock of the agent, and holds back new ones until
 * layer_requests_release, except where the requesting thread may hold such a lock. Both waits end
 * after 10 seconds.
 */
void layer_requests_close(void);
void layer_requests_release(void);
