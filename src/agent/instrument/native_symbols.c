/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/native_symbols.h"

#include "agent/vm/libraries.h"
#include "base/buf.h"

#include <dlfcn.h>

/*
 * Escapes a name as in the JNI specification, "Resolving Native Method Names"; s is modified UTF-8.
 */
static void mangle(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned c = (uint8_t)s.data[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
            buf_u8(out, (uint8_t)c);
        else if (c == '/')
            buf_u8(out, '_');
        else if (c == '_' || c == ';' || c == '[')
            buf_string(out, c == '_' ? "_1" : c == ';' ? "_2" : "_3");
        else {
            if (c >= 0xe0 && i + 2 < s.len) {
                c = (c & 15) << 12 | ((uint8_t)s.data[i + 1] & 63u) << 6 |
                    ((uint8_t)s.data[i + 2] & 63u);
                i += 2;
            } else if (c >= 0xc0 && i + 1 < s.len) {
                c = (c & 31) << 6 | ((uint8_t)s.data[i + 1] & 63u);
                i++;
            }
            buf_printf(out, "_0%04x", c);
        }
    }
}

struct search {
    const char *name;
    void *found;
    bool several;
};

static int find_in(void *library, const char *path, void *context)
{
    struct search *s = context;
    void *f = dlsym(library, s->name);
    s->several |= f && s->found && f != s->found;
    if (f)
        s->found = f;
    return 0;
}

static void *find(const char *name)
{
    struct search s = {.name = name};
    (void)libraries_visit(find_in, &s);
    return s.several ? NULL : s.found;
}

void *native_symbol(struct str class_name, struct str name, struct str descriptor)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 14);
    const char *close = memchr(descriptor.data, ')', descriptor.len);
    buf_string(&b, "Java_");
    mangle(&b, class_name);
    buf_u8(&b, '_');
    mangle(&b, name);
    void *f = buf_error(&b) ? NULL : find(buf_str(&b));
    if (f || !close)
        return f;
    buf_string(&b, "__");
    mangle(&b, (struct str){descriptor.data + 1, (size_t)(close - descriptor.data) - 1});
    return buf_error(&b) ? NULL : find(buf_str(&b));
}
