/* SPDX-License-Identifier: Apache-2.0 */
#include "options/formats.h"

#include "base/macro.h"

static const struct out_format out_formats[] = {
    {.letter = "a",
     .file = "java.hprof.txt",
     .text = true,
     .connects = true,
     .monitors = true,
     .method_times = true},
    {.letter = "b", .file = "java.hprof", .records = true, .connects = true},
    {.letter = "r",
     .file = "java-%p.jfr",
     .events = true,
     .own_dumps = true,
     .monitors = true,
     .method_times = true},
};

const struct out_format *option_format(const struct options *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(out_formats); i++)
        if (option_is(o, OPT_FORMAT, out_formats[i].letter))
            return &out_formats[i];
    return &out_formats[0]; /* the default of format= */
}
