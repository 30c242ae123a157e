/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper of test_options.py, not a test itself: it prints the agent's option table ("table"), and
 * what the agent reads from option texts on standard input, each followed by a NUL, as a line of
 * JSON for each.
 */
#include "base/json.h"
#include "options/options.h"

#include <stdio.h>
#include <string.h>

static void put_row(struct json *j, const struct option_row *row)
{
    char separator[2] = {row->separator};
    json_begin_object(j);
    json_key_string(j, "name", row->name);
    json_key_string(j, "flag", row->flag);
    json_key_string(j, "values", row->values);
    json_key_string(j, "bare", row->bare);
    json_key_string(j, "separator", row->separator ? separator : NULL);
    json_key_string(j, "goes_with", row->goes_with);
    json_key(j, "kind");
    json_u64(j, row->kind);
    json_key(j, "min");
    json_u64(j, row->min);
    json_key(j, "max");
    json_u64(j, row->max);
    json_key(j, "hidden");
    json_u64(j, row->hidden);
    json_key(j, "gives");
    json_u64(j, (uint64_t)row->gives);
    json_end_object(j);
}

static void put_given(struct json *j, const char *text)
{
    _cleanup_(buf_release) struct buf why = BUF(1 << 16);
    struct options o;
    json_begin_object(j);
    if (options_parse(&o, text, &why) < 0) {
        json_key_string(j, "error", buf_str(&why));
    } else {
        for (int i = 0; i < OPTION_COUNT; i++)
            if (o.v[i].given)
                json_key_string(j, option_table[i].name, o.v[i].text);
        options_release(&o);
    }
    json_end_object(j);
}

static void print(struct buf *out)
{
    puts(buf_str(out));
    buf_release(out);
}

int main(int argc, char **argv)
{
    struct buf out = BUF(1 << 24);
    char *line = NULL;
    size_t size = 0;
    bool table = argc > 1 && strcmp(argv[1], "table") == 0;
    for (int i = 0; table && i < OPTION_COUNT; i++) {
        put_row(&(struct json){.out = &out}, &option_table[i]);
        print(&out);
    }
    while (!table && getdelim(&line, &size, 0, stdin) > 0) {
        put_given(&(struct json){.out = &out}, line);
        print(&out);
    }
    free(line);
    return 0;
}
