/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

const struct export_format *const export_formats[] = {
#define FORMAT(name) &export_format_##name,
#include "export/format_list.h"
#undef FORMAT
    NULL,
};

const struct export_format *export_format_of(const char *path)
{
    const struct export_format *best = NULL;
    size_t len = strlen(path);
    for (const struct export_format *const *at = export_formats, *f; (f = *at); at++) {
        size_t n = strlen(f->extension);
        if (len > n && strcmp(path + len - n, f->extension) == 0 &&
            (!best || n > strlen(best->extension)))
            best = f;
    }
    return best;
}
