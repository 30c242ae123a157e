/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/sql.h"

#include "answers/heap/sql_tables.h"
#include "base/buf.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASS_TABLES = 64 };

static int declare(sqlite3 *db, const char *columns)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    buf_printf(&b, "CREATE TABLE x(%s)", columns);
    return buf_error(&b) ? SQLITE_NOMEM : sqlite3_declare_vtab(db, buf_str(&b));
}

static const struct sql_table *table_named(const char *name)
{
    for (const struct sql_table *t = sql_tables; t->name; t++) {
        if (strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

/*
 * Lists the columns of a class's own table: those of objects, then its fields. If a name occurs
 * twice, the subclass's field is used.
 */
static void class_columns(struct heap_sql *s, int32_t class, struct buf *b)
{
    const struct sql_fields *f = sql_fields_of(s, class);
    buf_string(b, sql_class_table.columns);
    for (unsigned i = 0; i < f->n; i++) {
        bool again = false;
        for (unsigned k = 0; k < i; k++)
            again = again || strcasecmp(f->list[k].name, f->list[i].name) == 0;
        static const char *const own[] = {"object", "shallow", "retained", "shown", "class_name"};
        for (size_t k = 0; k < ARRAY_SIZE(own); k++)
            again = again || strcasecmp(own[k], f->list[i].name) == 0;
        char suffix[16] = "";
        if (again)
            snprintf(suffix, sizeof(suffix), "_%u", i);
        char *quoted = sqlite3_mprintf(", \"%w%s\" %s", f->list[i].name, suffix,
                                       f->list[i].type == HPROF_OBJECT ? "ADDRESS" : "");
        buf_string(b, quoted ? quoted : "");
        sqlite3_free(quoted);
    }
}

/* argv[0] is "heap", argv[2] the table's name, and argv[3], if present, the number of a class. */
static int vt_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                      char **ret_error)
{
    struct heap_sql *s = aux;
    struct sql_vtab *v = calloc(1, sizeof(*v));
    _cleanup_(buf_release) struct buf columns = BUF(1 << 20);
    if (!v)
        return SQLITE_NOMEM;
    v->sql = s;
    v->class = HEAP_NO_CLASS;
    v->table = argc > 3 ? &sql_class_table : table_named(argv[2]);
    if (argc > 3) {
        const struct heap_dump *d = s->h->dump;
        v->class = (int32_t)strtol(argv[3], NULL, 10);
        v->wants = calloc(d->classes.len + 1, 1);
        /* Classes with the same name from several loaders share a table. */
        for (size_t k = 0; v->wants && k < d->classes.len; k++) {
            for (int32_t c = (int32_t)k; c != HEAP_NO_CLASS && !v->wants[k];
                 c = d->classes.data[c].super)
                v->wants[k] = strcmp(d->classes.data[c].name, d->classes.data[v->class].name) == 0;
        }
        class_columns(s, v->class, &columns);
    } else if (v->table) {
        buf_string(&columns, v->table->columns);
    }
    int r = !v->table             ? SQLITE_ERROR
            : buf_error(&columns) ? SQLITE_NOMEM
                                  : declare(db, buf_str(&columns));
    if (r != SQLITE_OK) {
        free(v->wants);
        free(v);
        return r;
    }
    *ret = &v->base;
    return SQLITE_OK;
}

static int vt_disconnect(sqlite3_vtab *base)
{
    struct sql_vtab *v = (struct sql_vtab *)base;
    free(v->wants);
    free(v);
    return SQLITE_OK;
}

/* Chooses the cheapest column that is compared with a value. */
static int vt_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct sql_vtab *v = (const struct sql_vtab *)base;
    const struct sql_table *t = v->table;
    const double all = (double)v->sql->h->n + 1;
    int best = -1;
    enum sql_way way = SQL_ALL;
    double rows = all;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        /* a negative column is the row number */
        if (!c->usable || c->op != SQLITE_INDEX_CONSTRAINT_EQ || c->iColumn < 0)
            continue;
        enum sql_way found = c->iColumn == t->key         ? SQL_BY_KEY
                             : c->iColumn == t->dominator ? SQL_BY_DOMINATOR
                             : c->iColumn == t->class     ? SQL_BY_CLASS
                             : c->iColumn == t->target    ? SQL_BY_TARGET
                                                          : SQL_ALL;
        double expected = found == SQL_BY_KEY         ? t->rows_of_key
                          : found == SQL_BY_DOMINATOR ? 100
                          : found == SQL_BY_CLASS     ? all / 50
                          : found == SQL_BY_TARGET    ? 100
                                                      : all;
        if (found != SQL_ALL && expected < rows) {
            best = i;
            rows = expected;
            way = found;
        }
    }
    if (t->key_needed && way != SQL_BY_KEY)
        return SQLITE_CONSTRAINT;
    if (best >= 0) {
        info->aConstraintUsage[best].argvIndex = 1;
        info->aConstraintUsage[best].omit = 0;
    }
    info->idxNum = (int)way;
    /* Finding the instances of a class examines only the class of each object, which is quick. */
    info->estimatedCost = way == SQL_BY_CLASS ? rows + all / 20 : rows * 2 + 1;
    info->estimatedRows = (sqlite3_int64)rows + 1;
    if (way == SQL_BY_KEY && t->rows_of_key <= 1)
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    return SQLITE_OK;
}

static int vt_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
    struct sql_cursor *c = calloc(1, sizeof(*c));
    if (!c)
        return SQLITE_NOMEM;
    c->vtab = (const struct sql_vtab *)base;
    c->sql = c->vtab->sql;
    *ret = &c->base;
    return SQLITE_OK;
}

static int vt_close(sqlite3_vtab_cursor *base)
{
    struct sql_cursor *c = (struct sql_cursor *)base;
    vec_release(&c->stack);
    vec_release(&c->sources.list);
    free(c->wants);
    free(c);
    return SQLITE_OK;
}

static void start_class(struct sql_cursor *c, const char *name)
{
    const struct heap_dump *d = c->sql->h->dump;
    free(c->wants);
    c->wants = calloc(d->classes.len + 1, 1);
    for (size_t k = 0; c->wants && name && k < d->classes.len; k++)
        c->wants[k] = strcmp(d->classes.data[k].name, name) == 0;
}

/*
 * Finds the objects that refer to the object. For an object that is not in the dump, all objects
 * are searched.
 */
static int find_sources(struct sql_cursor *c)
{
    if (c->key == HEAP_NONE) {
        c->way = SQL_ALL;
        c->end = false;
        return 0;
    }
    if (!c->sql->incoming && !(c->sql->incoming = heap_incoming_new(c->sql->h)))
        return -ENOMEM;
    return heap_incoming_of(c->sql->incoming, c->key, &c->sources);
}

static int vt_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                     sqlite3_value **argv)
{
    struct sql_cursor *c = (struct sql_cursor *)base;
    const struct heap *h = c->sql->h;
    c->way = (enum sql_way)number;
    c->end = c->one = false;
    c->field = 0;
    c->row = 0;
    c->stack.len = 0;
    c->key = HEAP_NONE;
    if (c->way == SQL_BY_CLASS) {
        start_class(c, (const char *)sqlite3_value_text(argv[0]));
        if (!c->wants)
            return SQLITE_NOMEM;
    } else if (c->way != SQL_ALL) {
        if (sqlite3_value_numeric_type(argv[0]) == SQLITE_INTEGER)
            c->key = heap_ids_find(&h->ids, (uint64_t)sqlite3_value_int64(argv[0]));
        else if (sqlite3_value_type(argv[0]) == SQLITE_TEXT &&
                 strncmp((const char *)sqlite3_value_text(argv[0]), "0x", 2) == 0)
            c->key = heap_ids_find(&h->ids,
                                   strtoull((const char *)sqlite3_value_text(argv[0]), NULL, 16));
        c->end = c->key == HEAP_NONE;
    }
    if (c->way == SQL_BY_TARGET && find_sources(c) < 0)
        return SQLITE_NOMEM;
    if (!c->end)
        c->vtab->table->start(c);
    return SQLITE_OK;
}

static int vt_next(sqlite3_vtab_cursor *base)
{
    struct sql_cursor *c = (struct sql_cursor *)base;
    c->row++;
    c->vtab->table->next(c);
    return SQLITE_OK;
}

static int vt_eof(sqlite3_vtab_cursor *base)
{
    return ((struct sql_cursor *)base)->end;
}

static int vt_column(sqlite3_vtab_cursor *base, sqlite3_context *to, int column)
{
    struct sql_cursor *c = (struct sql_cursor *)base;
    c->vtab->table->column(c, to, column);
    return SQLITE_OK;
}

static int vt_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct sql_cursor *)base)->row;
    return SQLITE_OK;
}

static const sqlite3_module module = {.xCreate = vt_connect,
                                      .xConnect = vt_connect,
                                      .xBestIndex = vt_best_index,
                                      .xDisconnect = vt_disconnect,
                                      .xDestroy = vt_disconnect,
                                      .xOpen = vt_open,
                                      .xClose = vt_close,
                                      .xFilter = vt_filter,
                                      .xNext = vt_next,
                                      .xEof = vt_eof,
                                      .xColumn = vt_column,
                                      .xRowid = vt_rowid};

const struct sql_fields *sql_fields_of(struct heap_sql *s, int32_t class)
{
    static const struct sql_fields none = {0};
    VEC(struct heap_field) list = {0};
    struct heap_field f;
    if (class < 0 || (size_t) class >= s->h->dump->classes.len)
        return &none;
    struct sql_fields *known = &s->fields[class];
    if (known->known)
        return known;
    for (unsigned i = 0; heap_field_at(s->h->dump, class, i, &f); i++) {
        if (vec_push(&list, f) < 0)
            break;
    }
    *known = (struct sql_fields){list.data, (unsigned)list.len, true};
    return known;
}

/* Restricts the user's statements to reading: nothing may be attached, written or loaded. */
static int authorize(void *ctx, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE ||
                 (action == SQLITE_FUNCTION && b && strcmp(b, "load_extension") != 0);
    return reads ? SQLITE_OK : SQLITE_DENY;
}

static int create(struct heap_sql *s, const char *name, int32_t class)
{
    char number[16] = "";
    if (class != HEAP_NO_CLASS)
        snprintf(number, sizeof(number), "%d", class);
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE temp.\"%w\" USING heap(%s)", name, number);
    sqlite3_set_authorizer(s->db, NULL, NULL);
    int r = sql ? sqlite3_exec(s->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_set_authorizer(s->db, authorize, NULL);
    sqlite3_free(sql);
    return r;
}

int heap_sql_open(struct heap_sql **ret, const struct heap *h)
{
    struct heap_sql *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->h = h;
    s->fields = calloc(h->dump->classes.len + 1, sizeof(*s->fields));
    int r = s->fields && sqlite3_open(":memory:", &s->db) == SQLITE_OK ? SQLITE_OK : SQLITE_NOMEM;
    if (r == SQLITE_OK)
        r = sqlite3_create_module(s->db, "heap", &module, s);
    for (const struct sql_table *t = sql_tables; r == SQLITE_OK && t->name; t++)
        r = create(s, t->name, HEAP_NO_CLASS);
    if (r != SQLITE_OK) {
        heap_sql_close(s);
        return -ENOMEM;
    }
    *ret = s;
    return 0;
}

void heap_sql_close(struct heap_sql *s)
{
    if (!s)
        return;
    sqlite3_close(s->db);
    heap_incoming_free(s->incoming);
    for (size_t i = 0; s->fields && i < s->h->dump->classes.len; i++)
        free(s->fields[i].list);
    free(s->fields);
    free(s);
}

/* If the error is "no such table: X" and X is a class of the dump, creates its table. */
static bool make_class_table(struct heap_sql *s)
{
    const char *message = sqlite3_errmsg(s->db), *name = strstr(message, "no such table: ");
    char copy[1000];
    if (!name)
        return false;
    snprintf(copy, sizeof(copy), "%s", name + 15);
    int32_t class = heap_dump_class_named(s->h->dump, copy);
    return class != HEAP_NO_CLASS && create(s, copy, class) == SQLITE_OK;
}

sqlite3_stmt *heap_sql_prepare(struct heap_sql *s, const char *sql, char *why, size_t size)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = "";
    int r = SQLITE_ERROR;
    for (int tables = 0; tables <= MAX_CLASS_TABLES; tables++) {
        r = sqlite3_prepare_v2(s->db, sql, -1, &statement, &rest);
        if (r != SQLITE_ERROR || !make_class_table(s))
            break;
    }
    if (r != SQLITE_OK && strcmp(sqlite3_errmsg(s->db), "no query solution") == 0)
        snprintf(why, size, "the table retained needs WHERE holder = 0x...");
    else if (r != SQLITE_OK)
        snprintf(why, size, r == SQLITE_AUTH ? "only SELECT is possible" : "%s",
                 sqlite3_errmsg(s->db));
    else if (!statement)
        snprintf(why, size, "there is no statement in it");
    else if (!sqlite3_stmt_readonly(statement) || !sqlite3_column_count(statement))
        snprintf(why, size, "only SELECT is possible");
    else if (rest[strspn(rest, " \t\r\n;")])
        snprintf(why, size, "one statement at a time");
    else
        return statement;
    sqlite3_finalize(statement);
    return NULL;
}

static int is_late(void *ctx)
{
    const struct heap_sql *s = ctx;
    return now_ns() > s->deadline;
}

void heap_sql_limit(struct heap_sql *s, uint64_t ns)
{
    s->deadline = now_ns() + ns;
    sqlite3_progress_handler(s->db, 1000, is_late, s);
}

const char *heap_sql_error(const struct heap_sql *s)
{
    if (sqlite3_errcode(s->db) == SQLITE_INTERRUPT)
        return "the query exceeded the time limit of this server: narrow it, or run it with "
               "`jvmscope heap query`, which has no limit";
    return sqlite3_errmsg(s->db);
}
