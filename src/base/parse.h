/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as a person writes them, with units, and back. */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Nanoseconds from "10ms", "1.5s", "250us", "3m", "2h", "1d", "7ns"; a number without a unit counts in unit_ns. 0, -EINVAL
 * (not a duration) or -ERANGE.
 */
int parse_duration(const char *text, uint64_t unit_ns, uint64_t *ret_ns) must_check;
/* Bytes from "64k", "256M", "1.5G", "2T" (powers of 1024; a trailing "B" or "iB" is allowed), or a plain number. */
int parse_size(const char *text, uint64_t *ret_bytes) must_check;
/* A whole number within bounds, decimal or 0x hexadecimal, nothing behind it. 0, -EINVAL or -ERANGE. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret) must_check;

/* "1.5 s", "12.3 ms", "840 ns" and "1.5 GiB", "640 B" into text[24]; returns text. */
char *format_duration(char text[24], uint64_t ns);
char *format_size(char text[24], uint64_t bytes);

/*
 * A file name from a pattern: %p is the process id, %t the local time as yyyymmdd-hhmmss, %% a percent sign. 0, -EINVAL
 * (another letter) or -ENAMETOOLONG. ret has size bytes.
 */
int expand_file_name(const char *pattern, long pid, char *ret, size_t size) must_check;
