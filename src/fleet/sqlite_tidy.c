/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what is old from a store in SQLite. */
#include "fleet/sqlite.h"

#include "base/cursor.h"

enum { DAY_S = 86400, UPLOADS_KEPT_S = 40 * DAY_S };

static int64_t removed_until(const struct store_keep *keep, int resolution, int64_t now_s)
{
    return fleet_floor(now_s - keep->seconds[resolution],
                       store_resolution_s[STORE_RESOLUTIONS - 1]);
}

static int run_with(struct sqlite_store *s, const char *sql, int64_t one, int64_t two,
                    struct buf *why)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *q = sqlite_prepare(s->db, sql, why);
    if (!q)
        return sqlite_failed(s->db, why);
    sqlite3_bind_int64(q, 1, one);
    if (sqlite3_bind_parameter_count(q) > 1)
        sqlite3_bind_int64(q, 2, two);
    return sqlite3_step(q) == SQLITE_DONE ? 0 : sqlite_failed(s->db, why);
}

static int tidy_resolution(struct sqlite_store *s, int resolution, int64_t up_to, struct buf *why)
{
    static const char *const statements[] = {
        "DELETE FROM block WHERE resolution = ?1 AND type IN (SELECT id FROM type)"
        " AND series IN (SELECT id FROM series) AND start < ?2",
        "DELETE FROM latency WHERE resolution = ?1 AND series IN (SELECT id FROM series)"
        " AND start < ?2",
        ("INSERT INTO gone VALUES(?1, ?2) ON CONFLICT(resolution) DO UPDATE SET"
         " up_to = max(up_to, ?2)")};

    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(statements) && r == 0; i++)
        r = run_with(s, statements[i], resolution, up_to, why);
    return r;
}

/* Marks the frames of a stack. */
static int mark_frames(struct map *used, sqlite3_stmt *stacks)
{
    const void *bytes = sqlite3_column_blob(stacks, 0);
    struct cursor c = cursor_of(bytes ? bytes : "", (size_t)sqlite3_column_bytes(stacks, 0));
    int r = 0;
    while (r == 0 && cursor_left(&c) && !c.failed)
        r = map_put(used, cursor_varint(&c), 1);
    return r;
}

/* Removes the frames that are not among the used ones. */
static int remove_others(struct sqlite_store *s, const struct map *used, struct buf *why)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *frames =
        sqlite_prepare(s->db, "SELECT id FROM frame", why);
    _cleanup_(sqlite_finish) sqlite3_stmt *remove =
        sqlite_prepare(s->db, "DELETE FROM frame WHERE id = ?1", why);
    int r = frames && remove ? 0 : sqlite_failed(s->db, why);
    int step = SQLITE_DONE;
    while (r == 0 && (step = sqlite3_step(frames)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(frames, 0);
        if (map_get(used, (uint64_t)id))
            continue;
        sqlite3_bind_int64(remove, 1, id);
        r = sqlite3_step(remove) == SQLITE_DONE ? 0 : sqlite_failed(s->db, why);
        sqlite3_reset(remove);
    }
    return r == 0 && step != SQLITE_DONE ? sqlite_failed(s->db, why) : r;
}

/*
 * Removes unused frames. A stack lists its frames in one column of numbers, for which there is no
 * index.
 */
static int tidy_frames(struct sqlite_store *s, struct buf *why)
{
    struct map used = {0};
    _cleanup_(sqlite_finish) sqlite3_stmt *stacks =
        sqlite_prepare(s->db, "SELECT frames FROM stack", why);
    int r = stacks ? 0 : sqlite_failed(s->db, why);
    int step = SQLITE_DONE;
    while (r == 0 && (step = sqlite3_step(stacks)) == SQLITE_ROW)
        r = mark_frames(&used, stacks);
    if (r == 0 && step != SQLITE_DONE)
        r = sqlite_failed(s->db, why);
    if (r == 0)
        r = remove_others(s, &used, why);
    map_release(&used);
    return r;
}

/*
 * Stacks, names and series are marked with the day on which they were last sent. What was sent
 * before the oldest block began is in no block any more; one more day allows for uploads that were
 * on their way. Traces exist in the finest resolution only.
 */
static int tidy_all(struct sqlite_store *s, const struct store_keep *keep, int64_t now_s,
                    struct buf *why)
{
    const int64_t oldest = removed_until(keep, STORE_RESOLUTIONS - 1, now_s);
    const int64_t day = oldest / DAY_S - 1, trace_day = removed_until(keep, 0, now_s) / DAY_S - 1;

    const struct {
        const char *sql;
        int64_t before;
    } steps[] = {
        {"DELETE FROM upload WHERE received < ?1", now_s - UPLOADS_KEPT_S},
        {"DELETE FROM finding WHERE start < ?1", removed_until(keep, 0, now_s)},
        {"DELETE FROM label WHERE series IN (SELECT id FROM series WHERE seen < ?1)", day},
        {"DELETE FROM series WHERE seen < ?1", day},
        {"DELETE FROM request WHERE seen < ?1", day},
        {"DELETE FROM trace WHERE seen < ?1", trace_day},
        /* the last statement, whose changes are counted */
        {"DELETE FROM stack WHERE seen < ?1", day},
    };

    int r = 0;
    for (int i = 0; i < STORE_RESOLUTIONS && r == 0; i++)
        r = tidy_resolution(s, i, removed_until(keep, i, now_s), why);
    for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
        r = run_with(s, steps[i].sql, steps[i].before, 0, why);
    return r == 0 && sqlite3_changes(s->db) ? tidy_frames(s, why) : r;
}

int sqlite_store_tidy(struct store *store, const struct store_keep *keep, int64_t now_s,
                      struct buf *why)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    pthread_mutex_lock(&s->writing);
    int r = sqlite_run(s->db, "BEGIN IMMEDIATE", why);
    if (r == 0) {
        r = tidy_all(s, keep, now_s, why);
        if (r == 0)
            r = sqlite_run(s->db, "COMMIT", why);
        if (r < 0)
            sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        sqlite_forget(s);
    }
    pthread_mutex_unlock(&s->writing);
    return r;
}
