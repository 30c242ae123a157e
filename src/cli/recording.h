/* SPDX-License-Identifier: Apache-2.0 */
/* Determines how run and attach record: the file, the agent's format, and its options. */
#pragma once

#include "cli/capture.h"
#include "proto/vm.h"

#include <time.h>

/*
 * Returns true for outputs that the agent writes itself (.jfr, .hprof, .hprof.txt). Others are
 * converted from a .jfr.
 */
bool recording_is_direct(const char *output);
/*
 * Returns whether what a VM wrote, open as fd, is copied to the output and not converted: a flight
 * recording to a .jfr, and HPROF in either of its formats to a file with an extension of HPROF.
 */
bool recording_is_copied(int fd, const char *output);
/* Returns true when the agent or a converter can write the extension; complains otherwise. */
bool recording_check_output(const char *output);
/*
 * Returns whether the agent will accept these options for this output; complains in the command's
 * name otherwise.
 */
bool recording_check(const struct capture_options *c, const char *output, const char *command);

/*
 * Builds the agent's option string: format and file for `output`, recorded to `file` (a name in the
 * VM's file system), then cpu=samples if the capture's words capture nothing and the recording is
 * not always on, then the words. A ring's file may be NULL; the agent then chooses a place.
 * buf_error(ret) returns errors.
 */
void recording_options(const struct capture_options *c, const char *output, const char *file,
                       struct buf *ret);

/*
 * Records whether the output, and its heap dumps, exist already and are about to be overwritten, so
 * that replaced_words, recording_announce and recording_announce_dumps can report it.
 */
void recording_note_older(const char *output);
/*
 * Reports on standard error where an output is and which command shows it, its losses, and anything
 * requested that it lacks. c: what was recorded, or NULL if unknown. Returns 1 as contents_report
 * does, or when the output is one of HPROF that lacks everything because the recording was not
 * ended; else 0.
 */
int recording_announce(const struct capture_options *c, const char *output);
/*
 * Complains that a recording could not be written as the requested output, and says where it is and
 * which command shows it. where: what to add to its name, or NULL. Returns the exit status.
 */
int recording_complain_kept(const char *path, const char *where);
/*
 * Reports an open file like recording_announce, under the name `shown` followed by `where`. ended:
 * the recording is complete. Returns 0, or 1 as contents_report does.
 */
int recording_announce_open(int fd, const char *shown, const char *where, bool ended);
/*
 * Appends the name of the i-th heap dump of a recording. Dump 0 is that of an OutOfMemoryError, and
 * those from 1 on are numbered without gaps. The name has no extension of the recording but .hprof,
 * so that the dump of a file of that format has a name of its own.
 */
void recording_put_dump_name(struct buf *b, const char *recording, unsigned i);
/* Reports each heap dump that was written next to a recording since a time. */
void recording_announce_dumps(const char *recording, const struct timespec *since);
/*
 * Returns whether a file was written since a time (by the clock of file times), and so is not left
 * from an earlier run.
 */
bool recording_written(const char *path, const struct timespec *since);
