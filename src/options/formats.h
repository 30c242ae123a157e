/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats in which the agent writes. A new one is a row of out_formats, its letter among the
 * values of format= in table.c, and what opens, writes and flushes it in agent/output/out.c.
 */
#pragma once

#include "options/options.h"

struct out_format {
    const char *letter; /* the value of format= */
    const char *file;   /* the name of the file if none is given */
    /*
     * Captures write an event when it happens, from any thread. In formats without events they
     * count, and write sections that follow one another, as text or as records.
     */
    bool events;
    bool text;
    /* Records have times, and strings, classes and frames are records of their own. */
    bool records;
    bool connects;     /* can be sent over a connection (net=) */
    bool own_dumps;    /* heap dumps are files of their own, which are kept */
    bool monitors;     /* can contain contended monitors */
    bool method_times; /* can contain the times of methods */
};

/* Returns the format that the options choose. */
const struct out_format *option_format(const struct options *o);
