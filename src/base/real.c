/* SPDX-License-Identifier: Apache-2.0 */
#include "base/real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Writes the digits of %g as a reader expects them: 100.0 rather than 1e+02, and an exponent only
 * if there would be more than three zeros in front or more than 16 digits before the point.
 */
static void put_decimal(struct buf *b, const char *text)
{
    const char *e = strchr(text, 'e');
    int exponent = e ? atoi(e + 1) : 0;
    if (!e || exponent < -4 || exponent > 15) {
        buf_printf(b, "%.*s", (int)(e ? e - text : (ptrdiff_t)strlen(text)), text);
        if (e)
            buf_printf(b, "e%d", exponent);
        else if (!strchr(text, '.'))
            buf_string(b, ".0");
        return;
    }
    /* A whole number with more trailing zeros than %g writes. */
    buf_printf(b, "%.*s", text[0] == '-', text);
    int zeros = exponent;
    for (const char *p = text + (text[0] == '-'); p < e; p++) {
        if (*p == '.')
            zeros -= (int)(e - p - 1);
        else
            buf_u8(b, (uint8_t)*p);
    }
    while (zeros-- > 0)
        buf_u8(b, '0');
    buf_string(b, ".0");
}

void real_put(struct buf *b, double d, bool is_float)
{
    char text[40];
    if (d - d != 0) {
        buf_string(b, d != d ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, d);
        if (is_float ? strtof(text, NULL) == (float)d : strtod(text, NULL) == d)
            break;
    }
    put_decimal(b, text);
}

void real_text(double d, bool is_float, char ret[32])
{
    _cleanup_(buf_release) struct buf b = BUF(31);
    real_put(&b, d, is_float);
    snprintf(ret, 32, "%s", buf_str(&b));
}
