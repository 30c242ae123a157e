/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include "base/file.h"

const struct export_format *const export_formats[] = {
#define FORMAT(name) &export_format_##name,
#include "export/format_list.h"
#undef FORMAT
    NULL,
};

const struct export_format *export_format_of(const char *path)
{
    const struct export_format *best = NULL;
    for (const struct export_format *const *at = export_formats, *f; (f = *at); at++) {
        if (file_name_ends_in(path, f->extension) &&
            (!best || strlen(f->extension) > strlen(best->extension)))
            best = f;
    }
    return best;
}
