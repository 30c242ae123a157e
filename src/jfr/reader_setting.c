/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/reader_setting.h"

#include "base/parse.h"

#include <string.h>

int rec_setting_duration(const struct rec_event *e, uint64_t *ret_ns)
{
    char text[32];
    size_t n = 0;
    for (const char *value = rec_string(&e->object, "value", ""); *value && n + 1 < sizeof(text);
         value++) {
        if (*value != ' ')
            text[n++] = *value;
    }
    text[n] = 0;
    return parse_duration(text, 1000000, ret_ns);
}

bool rec_setting_is_of(const struct rec_event *e, const char *type)
{
    int64_t id = rec_long(&e->object, "id", -1);
    size_t n;
    const struct rec_type *t = recording_types(e->object.recording, &n);
    for (size_t i = 0; i < n; i++)
        if ((int64_t)t[i].id == id && strcmp(t[i].name, type) == 0)
            return true;
    return false;
}
