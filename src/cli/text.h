/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way in which the command prints. Every file of this folder is compiled with `-include
 * cli/text.h`, which replaces functions of <stdio.h>, so that no text from a profiled program
 * reaches a terminal unescaped:
 * - What %s inserts is one line: control characters, escape sequences, line separators and
 *   characters that change the writing direction are shown as Java escapes them (\n, \u001b,
 *   \u202e), and a byte that is not UTF-8 as U+FFFD.
 * - The width and the precision of %s count columns of the terminal. A text is cut between
 *   characters. Without a precision it is cut after TEXT_COLUMNS, and the number of missing columns
 *   is shown. The precision of "%.*s" alone counts bytes, of a string that need not end in NUL.
 * - puts and fputs do the same with a text that is not a constant, at any length; a newline at its
 *   end is kept. Constants and formats are printed as they are. JSON passes unchanged, because it
 *   has already escaped all of that (base/json.h).
 *
 * Its functions begin with print_.
 */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"

#include <stdbool.h>
#include <stdio.h>

enum { TEXT_COLUMNS = 2000 };

struct buf;

/* Returns the number of columns of a text as it is printed. */
size_t text_width(const char *s, size_t len);
/*
 * Returns the width of a table's column that is to hold this text as well, but not more than `most`
 * columns for it: a longer text moves the rest of its row.
 */
int text_wider(int width, const char *s, int most);
/*
 * Appends a text as it is printed, at most `columns` columns of it and no partial character. b may
 * be NULL. Returns the number of columns appended.
 */
size_t text_put(struct buf *b, const char *s, size_t len, size_t columns);
/* Prints a text, which need not end in NUL, as %s does. */
void print_text(FILE *to, struct str s);
/*
 * Prints a text in exactly this many columns (3 or more), filled with spaces, on the left if
 * `right`; "..." replaces what is cut.
 */
void print_column(FILE *to, const char *s, size_t columns, bool right);
/*
 * Prints how many of n rows, "methods", a table with this limit does not show; nothing if it shows
 * all.
 */
void print_left_out(size_t n, size_t limit, const char *nouns);
/* Prints how many calls or waits (`nouns`) --min leaves out; nothing for 0. */
void print_shorter(uint64_t n, const char *nouns, uint64_t min_ns);
/* Prints text of the command's own tables, of several lines. */
void print_own(FILE *to, const char *s);

int text_fprintf(FILE *to, const char *format, ...) printf_like(2, 3);
int text_fputs(const char *s, FILE *to);
int text_fputc(int c, FILE *to);

#ifndef TEXT_PLAIN_STDIO
#undef putchar
#undef fputc
#define printf(...)      text_fprintf(stdout, __VA_ARGS__)
#define fprintf(to, ...) text_fprintf(to, __VA_ARGS__)
#define fputs(s, to)     (__builtin_constant_p(s) ? (fputs)(s, to) : text_fputs(s, to))
#define puts(s)          ((void)fputs(s, stdout), text_fputc('\n', stdout))
#define fputc(c, to)     text_fputc(c, to)
#define putchar(c)       text_fputc(c, stdout)
#define putc(c, to)      text_fputc(c, to)
#define vprintf(...)     use_printf_instead()
#define vfprintf(...)    use_fprintf_instead()
#define dprintf(...)     use_fprintf_instead()
#define fwrite(...)      use_fputs_instead()
#define perror(...)      use_complain_errno_instead()
#endif
