/* SPDX-License-Identifier: Apache-2.0 */
/* `heap query`: SQL over a heap. */
#include "answers/heap/heap.h"
#include "answers/heap/sql.h"
#include "base/clock.h"
#include "base/parse.h"

#include <string.h>

static const struct arg query_args[] = {
    {"--sql", 0, ARG_TEXT, offsetof(struct heap_options, sql), "SELECT",
     "the statement, when it does not follow the file"},
    {0},
};

static const struct arg_set query_set = {"The question", query_args};
static const struct arg_set *const heap_query_sets[] = {&query_set, &heap_common_set,
                                                        &heap_retained_set, &heap_index_set, NULL};

enum { MAX_QUERY_COLUMNS = 32 };

static void put_cell(struct answer *a, sqlite3_stmt *s, int i, bool address)
{
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
        answer_cell(a, (struct answer_cell){.kind = address ? ANSWER_ID : ANSWER_INTEGER,
                                            .number = (uint64_t)sqlite3_column_int64(s, i)});
        break;
    case SQLITE_FLOAT:
        answer_cell(a,
                    (struct answer_cell){.kind = ANSWER_REAL, .real = sqlite3_column_double(s, i)});
        break;
    case SQLITE_NULL:
        answer_null(a);
        break;
    default:
        answer_text_n(a, (const char *)sqlite3_column_text(s, i),
                      (size_t)sqlite3_column_bytes(s, i));
    }
}

static bool is_address(sqlite3_stmt *s, int i)
{
    const char *type = sqlite3_column_decltype(s, i);
    return type && strcmp(type, "ADDRESS") == 0;
}

/* The columns are given by the statement. */
static int begin_table(struct answer *a, sqlite3_stmt *s, bool address[MAX_QUERY_COLUMNS])
{
    int n = sqlite3_column_count(s);
    if (n > MAX_QUERY_COLUMNS)
        return answer_refuse(a, "query", "too many columns", "32 are shown");
    struct answer_column *columns = arena_zalloc(&a->arena, sizeof(*columns) * (size_t)n);
    for (int i = 0; columns && i < n; i++) {
        const char *name = sqlite3_column_name(s, i);
        address[i] = is_address(s, i);
        columns[i] = (struct answer_column){arena_copy(&a->arena, name, strlen(name)), NULL,
                                            address[i] ? ANSWER_ID : ANSWER_ANY};
        columns[i].title = columns[i].key;
    }
    answer_table(a, "rows", NULL, columns, columns ? (size_t)n : 0);
    a->blocks.data[a->blocks.len - 1].arrays = true;
    return columns ? 0 : answer_refuse(a, "query", strerror(ENOMEM), NULL);
}

static int run_statement(struct answer *a, struct heap_sql *q, sqlite3_stmt *s, uint64_t limit)
{
    bool address[MAX_QUERY_COLUMNS] = {0}, more = false;
    uint64_t rows = 0, start = now_ns();
    int r, status = begin_table(a, s, address);
    while (status == 0 && (r = sqlite3_step(s)) != SQLITE_DONE) {
        if (r != SQLITE_ROW)
            return answer_refuse(a, "query", heap_sql_error(q), NULL);
        if (rows++ == limit) {
            more = true;
            break;
        }
        for (int i = 0; i < sqlite3_column_count(s); i++)
            put_cell(a, s, i, address[i]);
    }
    if (status)
        return status;
    answer_fact_real(a, "seconds", (double)(now_ns() - start) / 1e9);
    answer_fact(a, "truncated", NULL, ANSWER_BOOL, more);
    answer_note(a, "%s%s in %.3f s.", COUNT_TEXT(rows - more, "rows"),
                more ? ", and more (--limit)," : "", (double)(now_ns() - start) / 1e9);
    return 0;
}

/* Without a statement, lists the tables that can be queried. */
static void list_tables(struct answer *a)
{
    static const struct answer_column columns[] = {{"table", "table", ANSWER_TEXT},
                                                   {"columns", "columns", ANSWER_TEXT}};

    static const char *const rows[][2] = {
        {"objects", "id, class, shallow, retained, dominator, reachable, length, value"},
        {"classes", "id, name, super, loader, objects, shallow, retained"},
        {"fields", "object, name, type, value, ref"},
        {"refs", "source, target, name"},
        {"strings", "object, value, length, retained"},
        {"retained", "holder, id, class, shallow, retained, ... (WHERE holder = 0x...)"},
        {"roots", "object, kind, place"},
        {"\"any.class.Name\"",
         "object, shallow, retained, shown, class_name, and the fields of its instances"}};

    answer_table(a, "tables", NULL, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        answer_text(a, rows[i][0]);
        answer_text(a, rows[i][1]);
    }
}

static int heap_answer_query(const struct heap_call *c)
{
    const char *sql = c->options->sql ? c->options->sql : c->count ? c->operands[0] : NULL;
    struct heap_sql *q;
    char why[400];
    if (c->options->sql && c->count) {
        answer_refuse(c->answer, "--sql", "cannot be combined with a statement after the file",
                      NULL);
        return 2;
    }
    if (!sql) {
        list_tables(c->answer);
        return 0;
    }
    if (heap_sql_open(&q, c->heap) < 0)
        return answer_refuse(c->answer, "query", strerror(ENOMEM), NULL);
    if (c->options->patience)
        heap_sql_limit(q, c->options->patience);
    sqlite3_stmt *s = heap_sql_prepare(q, sql, why, sizeof(why));
    int status = s ? run_statement(c->answer, q, s, heap_rows(c->options, 100, 10000)) : 2;
    if (!s)
        answer_refuse(c->answer, "query", why, NULL);
    sqlite3_finalize(s);
    heap_sql_close(q);
    return status;
}

const struct command heap_verb_query = {
    .name = "heap query",
    .heap_answer = heap_answer_query,
    .operands = "FILE [SELECT]",
    .min_operands = 1,
    .max_operands = 2,
    .summary = "query a heap dump with SQL",
    .description =
        "The tables are *objects*, *classes*, *fields*, *refs*, *strings*, *retained* (everything "
        "that a holder retains), *roots*, and one for each class. A class's table has the class's "
        "name, in double quotes, and the fields of its instances as columns; it includes the "
        "instances of subclasses. SQLite reads the tables in place, so joins, aggregates and its "
        "functions work, and an address (0x7f01a8) leads straight to its row. *reachable* is "
        "strong, weak (through soft, weak, final or phantom references only) or null. Without a "
        "SELECT the tables are listed.",
    .examples = "  jvmscope heap query app.hprof 'SELECT class, count(*), sum(shallow) FROM "
                "objects GROUP BY class ORDER BY 3 DESC'\n"
                "  jvmscope heap query app.hprof 'SELECT value, count(*) FROM strings GROUP BY "
                "value ORDER BY 2 DESC LIMIT 20'\n"
                "  jvmscope heap query app.hprof 'SELECT object, size, threshold FROM "
                "\"java.util.HashMap\" WHERE size > 1000'\n"
                "  jvmscope heap query app.hprof 'SELECT class, sum(shallow) FROM retained "
                "WHERE holder = 0x7f01a8 GROUP BY 1'\n",
    .sets = heap_query_sets,
};
