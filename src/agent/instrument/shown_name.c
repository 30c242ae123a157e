/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/shown_name.h"

#include "base/generated_name.h"

#include <stdio.h>
#include <string.h>

struct str instrument_shown_name(const struct instrument_class *c, struct shown_name *room)
{
    struct generated_target target = {0};
    if (!c->file || !generated_name_is_proxy(c->name.data, c->name.len) ||
        c->name.len + sizeof(target.text) + 2 >= sizeof(room->text))
        return c->name;
    /* The pool is followed by the access flags, the class, its super class and the interfaces. */
    uint32_t at = c->file->pool_end + 6;
    for (unsigned n = class_be16(c->file, at); n > 0; n--)
        generated_target_implements(&target, class_name_at(c->file, class_be16(c->file, at += 2)));
    if (!target.text[0])
        return c->name;
    memcpy(room->text, c->name.data, c->name.len);
    size_t len = generated_name_normalize_for(room->text, c->name.len, &target);
    len += (size_t)snprintf(room->text + len, sizeof(room->text) - len, "[%s]", target.text);
    return (struct str){room->text, len};
}
