/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread names, the agent must know, although another thread may be about to report it.
 * For a dump of everything, the starts and ends of threads are held back, and what is being
 * reported is waited for.
 */
#pragma once

/*
 * Enclose a change of what threads the agent knows up to the report_begin of its event. Between
 * threads_freeze and threads_thaw of another thread the change waits, except where the caller may
 * hold a lock of the agent, and for 10 seconds at most.
 */
void threads_change_begin(void);
void threads_change_end(void);
/* Enclose the making and the sending of an event that names all threads. */
void threads_freeze(void);
void threads_thaw(void);

/*
 * Waits until other threads have finished the reports that they are making now. Does not wait for a
 * thread that cannot go on before the caller does, as when its handler wants a raw monitor that the
 * caller holds.
 */
void reports_settle(void);
/* Waits until all other threads have called report_end, for at most a second. */
void reports_wait(void);
