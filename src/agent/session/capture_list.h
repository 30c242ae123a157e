/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The captures in the order in which a session starts them; it stops them in the reverse order.
 * capture_NAME is defined in the capture's file. Included with a definition of CAPTURE().
 */
CAPTURE(monitors)
CAPTURE(heap_dump)
CAPTURE(alloc_exact)
CAPTURE(alloc_sampled)
CAPTURE(cpu_samples)
CAPTURE(cpu_times)
CAPTURE(requests)
CAPTURE(threads)
CAPTURE(coverage)
CAPTURE(method_trace)
CAPTURE(exceptions)
CAPTURE(vm_events)
CAPTURE(vm)
CAPTURE(logpoints)
CAPTURE(control)
CAPTURE(patterns)
CAPTURE(triggers)
CAPTURE(budget)
CAPTURE(flight)
