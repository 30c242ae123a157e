/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports coverage to files for other tools. sources: the folders, separated by commas, below which
 * the program's source files are, or NULL. Functions return 0 or -ENOMEM; the caller checks for
 * stdio errors.
 */
#pragma once

#include "base/buf.h"
#include "profile/coverage.h"

#include <stdio.h>

/* Writes lcov's tracefile (geninfo(1)): SF, FN, FNDA, DA, BRDA. Counts are 0 or 1. */
int export_lcov(const struct coverage *c, const char *sources, FILE *out) must_check;
/* Writes Cobertura's XML (coverage-04.dtd). */
int export_cobertura(const struct coverage *c, const char *sources, FILE *out) must_check;
/*
 * Writes a self-contained page with a table of classes, and with sources coloured by line where
 * they are found below `sources`.
 */
int export_cover_html(const struct coverage *c, const char *sources, FILE *out) must_check;
