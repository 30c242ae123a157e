/* SPDX-License-Identifier: Apache-2.0 */
/* Coverage as files for other tools. Functions answer 0 or -ENOMEM; stdio errors are the caller's. */
#pragma once

#include "base/buf.h"
#include "model/coverage.h"

#include <stdio.h>

/* Where a class's source is found; sources may be NULL. Malloc'ed path, NULL when it is not there. */
char *cover_source_path(const char *sources, const struct cover_class *c);

/* lcov's tracefile (geninfo(1)): SF, FN, FNDA, DA, BRDA. Counts are 0 or 1. */
int export_lcov(const struct coverage *c, const char *sources, FILE *out) must_check;
/* Cobertura's XML (coverage-04.dtd). */
int export_cobertura(const struct coverage *c, const char *sources, FILE *out) must_check;
/* One self-contained page: a table of classes; the source coloured by line where it is found below `sources`. */
int export_cover_html(const struct coverage *c, const char *sources, FILE *out) must_check;
