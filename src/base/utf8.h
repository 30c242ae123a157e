/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes and encodes UTF-8 that comes from outside. The JVM's modified UTF-8 is understood;
 * malformed input is reported to the caller.
 */
#pragma once

#include "base/buf.h"

#define UTF8_REPLACEMENT 0xfffd

/*
 * Decodes the code point at s[0..len), len > 0. Returns its length in bytes, or 0 when there is no
 * valid one. Of modified UTF-8, a surrogate pair in six bytes is one code point and C0 80 is NUL. A
 * lone surrogate is not valid.
 */
size_t utf8_decode(const char *s, size_t len, uint32_t *ret);

/*
 * Decodes like utf8_decode, but never fails: a lone surrogate, which a string of the JVM may hold,
 * is decoded as itself (utf8_is_control is true of it), and any other byte that begins no code
 * point as one U+FFFD.
 */
size_t utf8_next(const char *s, size_t len, uint32_t *ret);

/*
 * Returns whether two texts have the same code points, even if only one of them is in modified
 * UTF-8.
 */
bool utf8_equal(const char *a, const char *b);

/* Appends a code point as UTF-8. */
void utf8_put(struct buf *b, uint32_t v);

/*
 * Returns whether a code point acts on the text around it instead of being shown: control
 * characters of ASCII and ISO 6429, line separators, characters without width such as the soft
 * hyphen, the marks, embeddings, overrides and isolates of bidirectional text, invisible tags, and
 * lone surrogates, of which there is no UTF-8.
 */
bool utf8_is_control(uint32_t v);

/*
 * Appends a code point escaped as in Java source and JSON: \n, \t, \r or \uXXXX, a pair of them
 * beyond U+FFFF.
 */
void utf8_put_escaped(struct buf *b, uint32_t v);
