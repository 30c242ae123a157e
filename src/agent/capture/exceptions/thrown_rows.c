/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/exceptions/thrown_rows.h"

#include "base/hash.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1 << 14, KEYS_MAX = 4 * ROWS_MAX };

static struct {
    pthread_mutex_t lock; /* protects the table; the counts of rows are atomic */
    struct map index;     /* of a row's key -> number */
    struct thrown_row rows[ROWS_MAX];
    _Atomic unsigned n;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct thrown_row *thrown_row(uint64_t key)
{
    pthread_mutex_lock(&table.lock);
    const uint64_t *known = map_get(&table.index, key);
    struct thrown_row *row = known ? &table.rows[*known] : NULL;
    pthread_mutex_unlock(&table.lock);
    return row;
}

/*
 * Returns the key of a row. It is always odd, so that it differs from the keys that callers pass.
 */
static uint64_t key_of(const char *class_name, const char *place, const char *caught)
{
    uint64_t key =
        thrown_mix(hash_bytes(class_name, strlen(class_name)), hash_bytes(place, strlen(place)));
    return thrown_mix(key, caught ? hash_bytes(caught, strlen(caught)) : 0) | 1;
}

struct thrown_row *thrown_row_of(char *class_name, char *place, char *caught)
{
    bool added = false;
    uint64_t key = class_name && place ? key_of(class_name, place, caught) : 0;
    pthread_mutex_lock(&table.lock);
    unsigned n = table.n;
    uint64_t *slot =
        key ? (n < ROWS_MAX ? map_at(&table.index, key, n, &added) : map_get(&table.index, key))
            : NULL;
    struct thrown_row *row = slot ? &table.rows[*slot] : NULL;
    if (row && added) {
        row->class_name = class_name;
        row->place = place;
        row->caught = caught;
        table.n = n + 1;
    }
    pthread_mutex_unlock(&table.lock);
    if (!added) {
        free(class_name);
        free(place);
        free(caught);
    }
    return row;
}

void thrown_row_also(const struct thrown_row *row, uint64_t key)
{
    pthread_mutex_lock(&table.lock);
    if (table.index.len < KEYS_MAX)
        (void)!map_put(&table.index, key, (uint64_t)(row - table.rows));
    pthread_mutex_unlock(&table.lock);
}

unsigned thrown_rows(void)
{
    return table.n;
}

struct thrown_row *thrown_row_at(unsigned i)
{
    return &table.rows[i];
}

/* Code that was compiled with probes may still add to the counts, so the memory is kept. */
void thrown_rows_release(void)
{
    pthread_mutex_lock(&table.lock);
    for (unsigned i = 0; i < table.n; i++) {
        free(table.rows[i].class_name);
        free(table.rows[i].place);
        free(table.rows[i].caught);
        memset(&table.rows[i], 0, sizeof(table.rows[i]));
    }
    table.n = 0;
    map_release(&table.index);
    pthread_mutex_unlock(&table.lock);
}
