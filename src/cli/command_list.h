/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands in the order in which help lists them. command_NAME is defined in the command's
 * file. Included by commands.c with its own COMMAND(), and read by meson.build for the manual
 * pages.
 */
COMMAND(run)
COMMAND(attach)
COMMAND(list)
COMMAND(check)
COMMAND(status)
COMMAND(dump)
COMMAND(stop)
COMMAND(top)
COMMAND(inspect)
COMMAND(control)
COMMAND(report)
COMMAND(diff)
COMMAND(trace)
COMMAND(coverage)
COMMAND(convert)
COMMAND(serve)
COMMAND(completion)
COMMAND(manual)
COMMAND(heap)
COMMAND(requests)
COMMAND(vm)
COMMAND(slow)
COMMAND(collect)
COMMAND(host)
COMMAND(fleet)
COMMAND(threads)
