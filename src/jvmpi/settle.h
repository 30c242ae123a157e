/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event of one thread may refer only to what was reported to the agent, although another thread
 * may be about to report it. For a dump of everything, the starts and ends of threads and the ends
 * of JNI references are therefore delayed, and the dump waits for reports in progress. The end of
 * the VM waits for requests as well.
 */
#pragma once

/*
 * Enclose a change of what threads or JNI references the agent knows up to the report_begin of its
 * event. Between known_freeze and known_thaw of another thread the change waits, for 10 seconds at
 * most, except where the caller is reporting something, or may hold a lock of the agent.
 */
void known_change_begin(void);
void known_change_end(void);
/* Enclose the making and the sending of an event that names everything. */
void known_freeze(void);
void known_thaw(void);

/*
 * Enclose, between known_freeze and known_thaw, what fails when other threads link classes
 * meanwhile. class_linked, which is called on a thread that has linked a class, waits in between,
 * for 10 seconds at most, except where the caller may hold a lock of the agent.
 */
void classes_freeze(void);
void classes_thaw(void);
void class_linked(void);

/*
 * Waits until other threads have finished the reports that they are making now. Does not wait for a
 * thread that cannot go on before the caller does, as when its handler wants a raw monitor that the
 * caller holds.
 */
void reports_settle(void);
/*
 * For the end of the VM, like reports_settle. Afterwards each other thread either has finished its
 * report or has seen the stage that the caller set before.
 */
void reports_close(void);

/* Enclose RequestEvent. request_begin waits while requests are held back. */
void request_begin(void);
void request_end(void);
/*
 * For the end of the VM. Waits until the requests in progress on other threads have been handled,
 * and holds back new ones until requests_release, except where the requesting thread may hold a
 * lock of the agent. Both waits end after 10 seconds, and the first does not take place where the
 * caller may hold such a lock.
 */
void requests_close(void);
void requests_release(void);
