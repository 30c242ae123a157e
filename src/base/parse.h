/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and formats numbers with units, as people write them, and expands patterns of file names.
 * Its functions begin with parse_, format_ or expand_.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest duration, 100000 days, and the largest size, an exbibyte, that can be given. */
#define PARSE_TIME_MAX_NS (UINT64_C(100000) * 86400 * 1000000000)
#define PARSE_SIZE_MAX    (UINT64_C(1) << 60)

/*
 * Parses a duration such as "10ms", "1.5s", "250us", "3m", "2h", "1d" or "7ns" into nanoseconds. A
 * number without a unit counts in unit_ns. Returns 0, -EINVAL (not a duration) or -ERANGE.
 */
int parse_duration(const char *text, uint64_t unit_ns, uint64_t *ret_ns) must_check;
/*
 * Parses a size such as "64k", "256M", "1.5G", "2T", "1E" (powers of 1024; a trailing "B" or "iB"
 * is allowed) or a plain number into bytes. Returns 0, -EINVAL (not a size) or -ERANGE.
 */
int parse_size(const char *text, uint64_t *ret_bytes) must_check;
/*
 * Parses an integer from min to max, decimal or hexadecimal with 0x; no text may follow it. Returns
 * 0, -EINVAL or -ERANGE.
 */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret) must_check;

/*
 * Writes a duration into `text` in the form that options take, in the largest unit of which it is a
 * whole number: "30d", "1500ms". Returns `text`.
 */
char *format_limit(char text[24], uint64_t ns);
/* Write "1.5 s", "12.3 ms", "840 ns" or "1.5 GiB", "640 B" into `text`. Return `text`. */
char *format_duration(char text[24], uint64_t ns);
char *format_size(char text[24], uint64_t bytes);
/*
 * Writes the numbers from `least` to `most`: "1 to 65535". If `most` is only the largest number of
 * its type, which says nothing to a person, writes "1 or more", or for a number that exceeds it,
 * "less than 2^63". Returns `text`.
 */
char *format_numbers(char text[48], uint64_t least, uint64_t most, bool exceeds);
/*
 * Writes a number and what it counts into `text`: "1 class" or "2 classes". nouns: what is counted,
 * in the plural. Returns `text`.
 */
char *format_count(char text[64], uint64_t n, const char *nouns);
/* Evaluates to a text of format_count, in memory that lasts to the end of the block. */
#define COUNT_TEXT(n, nouns) format_count((char[64]){0}, n, nouns)

/*
 * Expands a pattern into a file name: %p is the process id, %t the local time as yyyymmdd-hhmmss,
 * %% a percent sign. ret has size bytes. Returns 0, -EINVAL (another letter) or -ENAMETOOLONG.
 */
int expand_file_name(const char *pattern, long pid, char *ret, size_t size) must_check;
