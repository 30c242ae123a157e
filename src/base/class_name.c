/* SPDX-License-Identifier: Apache-2.0 */
#include "base/class_name.h"

#include "base/dotted.h"
#include "base/generated_name.h"

const char *class_name_primitive(char letter)
{
    static const char *const names[] = {
        ['Z'] = "boolean", ['B'] = "byte",  ['C'] = "char",   ['S'] = "short", ['I'] = "int",
        ['J'] = "long",    ['F'] = "float", ['D'] = "double", ['V'] = "void"};
    return (unsigned char)letter < ARRAY_SIZE(names) ? names[(unsigned char)letter] : NULL;
}

bool class_name_put(struct buf *b, struct str name)
{
    size_t dimensions = 0, start = b->len;
    while (dimensions < name.len && name.data[dimensions] == '[')
        dimensions++;
    struct str element = {name.data + dimensions, name.len - dimensions};
    const char *primitive =
        dimensions && element.len == 1 ? class_name_primitive(*element.data) : NULL;
    if (primitive)
        element = (struct str){primitive, strlen(primitive)};
    else if (dimensions && element.len > 1 && *element.data == 'L' && str_ends_in(element, ";"))
        element = (struct str){element.data + 1, element.len - 2};
    buf_bytes(b, element.data, element.len);
    if (!buf_error(b) && element.len) {
        char *at = (char *)b->data + start;
        b->len = start + generated_name_normalize(at, element.len);
        dotted_in_place(at, b->len - start);
    }
    bool shorter = b->len - start < element.len;
    for (; dimensions; dimensions--)
        buf_string(b, "[]");
    return shorter && !buf_error(b);
}
