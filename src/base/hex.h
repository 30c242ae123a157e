/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of a hexadecimal digit, or -1. */
static inline int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/*
 * Reads exactly n bytes from a text of 2 n hexadecimal digits. Returns false, and leaves *ret
 * unchanged, if the text has another length or another character.
 */
static inline bool hex_read(const char *text, size_t len, uint8_t *ret, size_t n)
{
    if (len != 2 * n)
        return false;
    for (size_t i = 0; i < len; i++)
        if (hex_digit(text[i]) < 0)
            return false;
    for (size_t i = 0; i < n; i++)
        ret[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
    return true;
}

/* Writes n bytes as 2 n hexadecimal digits, without a terminating 0. */
static inline void hex_write(const uint8_t *bytes, size_t n, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
}
