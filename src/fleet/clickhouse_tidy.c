/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what is old from a store in ClickHouse. */
#include "fleet/clickhouse.h"

#include "fleet/rollup.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { DAY_S = 86400, UPLOADS_KEPT_S = 40 * DAY_S };

/*
 * First records that the data has been removed, so that no query relies on data that is only partly
 * removed.
 */
static int record_removed(struct clickhouse_store *s, int resolution, int64_t up_to,
                          struct buf *why)
{
    _cleanup_(buf_release) struct buf row = BUF(4096);
    buf_u8(&row, (uint8_t)resolution);
    clickhouse_row_u64(&row, (uint64_t)up_to);
    return clickhouse_insert(s, NULL, CH_GONE, &row, why);
}

/* Removes the parts of a table, days or months, that end before a time. */
static int drop_partitions(struct clickhouse_store *s, enum clickhouse_table table, bool months,
                           int64_t up_to, struct buf *why)
{
    _cleanup_(buf_release) struct buf sql = BUF(4096);
    const char *name = clickhouse_local_table(table);
    time_t t = (time_t)up_to;
    struct tm utc;
    if (up_to <= 0 || !gmtime_r(&t, &utc))
        return 0;
    long limit = months ? (utc.tm_year + 1900L) * 100 + utc.tm_mon + 1
                        : ((utc.tm_year + 1900L) * 100 + utc.tm_mon + 1) * 100 + utc.tm_mday;
    buf_printf(&sql,
               "SELECT DISTINCT partition FROM system.parts WHERE database = currentDatabase()"
               " AND table = '%s' AND active AND toUInt32OrZero(partition) < %ld",
               name, limit);
    return clickhouse_drop_partitions(s, buf_str(&sql), name, why);
}

/*
 * Deletes stacks, series and uploads. As in SQLite, stacks are kept for one more day, because
 * uploads may be on their way.
 */
static int delete_rows(struct clickhouse_store *s, int64_t oldest_s, int64_t now_s, struct buf *why)
{
    const struct {
        const char *table, *column;
        int64_t before;
    } rows[] = {{"stack", "seen", oldest_s / DAY_S - 1},
                {"series", "seen", oldest_s / DAY_S - 1},
                {"upload", "received", now_s - UPLOADS_KEPT_S}};

    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++) {
        char sql[256];
        snprintf(sql, sizeof(sql), "ALTER TABLE %s DELETE WHERE %s < %" PRId64, rows[i].table,
                 rows[i].column, MAX(rows[i].before, INT64_C(0)));
        r = clickhouse_run_everywhere(s, sql, why);
    }
    return r;
}

/*
 * The tables with their resolutions. Rows that have not been merged yet are kept as long as the
 * longest roll-up.
 */
static const struct {
    enum clickhouse_table table;
    int resolution;
} blocks[] = {{CH_BLOCK_10S, 0}, {CH_BLOCK_5M, 1},   {CH_PROGRAM_5M, 1},
              {CH_BLOCK_1H, 2},  {CH_PROGRAM_1H, 2}, {CH_BLOCK_NEW, 2}};

int clickhouse_tidy(struct store *store, const struct store_keep *keep, int64_t now_s,
                    struct buf *why)
{
    struct clickhouse_store *s = (struct clickhouse_store *)store;
    int64_t up_to = 0;
    int r = 0;
    clickhouse_begin_inserting(s);
    for (int i = 0; i < STORE_RESOLUTIONS && r == 0; i++) {
        bool months = i == STORE_RESOLUTIONS - 1;
        up_to = fleet_floor(now_s - keep->seconds[i], store_resolution_s[STORE_RESOLUTIONS - 1]);
        r = record_removed(s, i, up_to, why);
        for (size_t k = 0; k < ARRAY_SIZE(blocks) && r == 0; k++)
            if (blocks[k].resolution == i)
                r = drop_partitions(s, blocks[k].table, false, up_to, why);
        if (r == 0)
            r = drop_partitions(s, CH_LATENCY + (enum clickhouse_table)i, months, up_to, why);
        if (r == 0 && months)
            r = drop_partitions(s, CH_FINDING, months, up_to, why);
    }
    if (r == 0 && s->tidied_day != now_s / DAY_S)
        r = delete_rows(s, up_to, now_s, why);
    if (r == 0)
        s->tidied_day = now_s / DAY_S;
    clickhouse_end_inserting(s);
    return r;
}
