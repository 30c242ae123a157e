/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/requests/names.h"

#include "base/hash.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ID_MIN = 8, TOKEN_MIN = 20, TOKEN_DIGITS = 3, METHOD_MAX = 24 };

#define ID      "{id}"
#define MINUTE  UINT64_C(60000000000)
#define CUT_OFF "..."

static struct {
    pthread_mutex_t lock;
    struct map index; /* hash of kind and text -> number */
    struct request_name *_Atomic of[REQUEST_NAMES_MAX + 1];
    atomic_uint n;
    uint64_t (*define)(const char *text);
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- folding ---- */

struct folded {
    char *text;
    size_t n;
    bool example; /* the text is an example, in which only possible secrets are folded */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void put(struct folded *f, const char *s, size_t n)
{
    enum { MAX = REQUEST_NAME_SIZE - sizeof(CUT_OFF) };

    for (size_t i = 0; i < n && f->n <= MAX; i++) {
        if (f->n == MAX) {
            memcpy(f->text + f->n, CUT_OFF, strlen(CUT_OFF));
            f->n += strlen(CUT_OFF);
        } else {
            f->text[f->n++] = s[i] > ' ' && s[i] < 0x7f ? s[i] : '?';
        }
    }
}

/* Folds an id. A list of ids, "1,2,3", counts as one id. */
static void put_id(struct folded *f, size_t segment)
{
    const size_t n = strlen(ID);
    if (f->n >= segment + n + 1 && memcmp(f->text + f->n - n - 1, ID, n) == 0)
        f->n--;
    else
        put(f, ID, n);
}

/*
 * Returns whether a text is a number, a hexadecimal id or a UUID: it has a digit, and only
 * hexadecimal digits and '-'.
 */
static bool is_id(const char *s, size_t n)
{
    size_t digits = 0, hex = 0;
    for (size_t i = 0; i < n; i++) {
        digits += is_digit(s[i]);
        hex += is_hex(s[i]) || (s[i] == '-' && i > 0);
    }
    return n > 0 && (digits == n || (hex == n && digits > 0 && n >= ID_MIN));
}

static bool is_token(const char *s, size_t n)
{
    size_t digits = 0;
    for (size_t i = 0; i < n; i++)
        digits += is_digit(s[i]);
    return n >= TOKEN_MIN && digits >= TOKEN_DIGITS;
}

/* Folds the ids in a segment of a path; other characters may separate them. */
static void put_segment(struct folded *f, const char *s, size_t n)
{
    size_t segment = f->n;
    if (!f->example && is_id(s, n)) {
        put_id(f, segment);
        return;
    }
    for (size_t i = 0; i < n;) {
        size_t run = 0;
        while (i + run < n && (is_digit(s[i + run]) || is_letter(s[i + run])))
            run++;
        if (run && ((!f->example && is_id(s + i, run)) || is_token(s + i, run))) {
            put_id(f, segment);
        } else if (!run) {
            run = s[i] == '%' ? MIN((size_t)3, n - i) : 1; /* the digits of %20 are not a number */
            put(f, s + i, run);
        } else {
            put(f, s + i, run);
        }
        i += run;
    }
}

static void put_method(struct folded *f, const char *method)
{
    if (method && *method) {
        put(f, method, strnlen(method, METHOD_MAX));
        f->text[f->n++] = ' ';
    }
}

void request_join(const char *method, const char *route, char ret[REQUEST_NAME_SIZE])
{
    struct folded f = {.text = ret};
    put_method(&f, method);
    put(&f, *route ? route : "/", *route ? strlen(route) : 1);
    f.text[f.n] = 0;
}

static void put_path(struct folded *f, const char *path)
{
    const char *end = path + strcspn(path, "?#");
    for (const char *p = path; p < end;) {
        size_t n = strcspn(p, "/?#"), shown = strcspn(p, "/?#;");
        put_segment(f, p, shown);
        p += n;
        if (p < end && *p == '/') {
            put(f, "/", 1);
            p++;
        }
    }
    if (path == end)
        put(f, "/", 1);
    f->text[f->n] = 0;
}

void request_fold(const char *method, const char *path, char ret[REQUEST_NAME_SIZE])
{
    struct folded f = {.text = ret};
    put_method(&f, method);
    put_path(&f, path);
}

void request_example(const char *path, char ret[REQUEST_NAME_SIZE])
{
    struct folded f = {.text = ret, .example = true};
    put_path(&f, path);
}

/* ---- the table ---- */

static unsigned add(int kind, const char *text)
{
    unsigned number = atomic_load(&names.n);
    struct request_name *n = calloc(1, sizeof(*n));
    if (!n)
        return 0;
    strncpy(n->text, text, sizeof(n->text) - 1);
    n->kind = kind;
    n->string = names.define ? names.define(n->text) : 0;
    atomic_store(&names.of[number], n);
    atomic_store(&names.n, number + 1);
    return number;
}

unsigned request_name_find(int kind, const char *text)
{
    uint64_t key = hash_bytes(text, strlen(text)) ^ (uint64_t)(kind + 1);
    pthread_mutex_lock(&names.lock);
    if (names.n == 0)
        (void)add(kind, REQUEST_OTHER);
    const uint64_t *known = map_get(&names.index, key);
    unsigned number = known ? (unsigned)*known : 0;
    if (!known && names.n > 0 && names.n <= REQUEST_NAMES_MAX) {
        number = add(kind, text);
        if (number && map_put(&names.index, key, number) < 0)
            number = 0;
    }
    pthread_mutex_unlock(&names.lock);
    return number;
}

/* Returns the path in a name of HTTP, "GET /cart", or NULL for other names. */
static const char *path_in(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash > name && slash[-1] == ' ' ? slash : NULL;
}

static void set_example(unsigned number, const char *example)
{
    struct request_name *n = number ? request_name_at(number) : NULL;
    const char *path = n ? path_in(n->text) : NULL;
    if (!n || atomic_load_explicit(&n->has_example, memory_order_relaxed))
        return;
    pthread_mutex_lock(&names.lock);
    if (!atomic_load(&n->has_example) && path && strcmp(path, example) != 0)
        memcpy(n->example, example, strlen(example) + 1);
    atomic_store(&n->has_example, true);
    pthread_mutex_unlock(&names.lock);
}

void request_name_example(unsigned number, const char *path)
{
    char example[REQUEST_NAME_SIZE];
    request_example(path, example);
    set_example(number, example);
}

void request_name_renamed(unsigned from, unsigned to)
{
    const struct request_name *n = from ? request_name_at(from) : NULL;
    const char *path = n ? path_in(n->text) : NULL;
    if (path && from != to && atomic_load(&n->has_example))
        set_example(to, n->example[0] ? n->example : path);
}

struct request_name *request_name_at(unsigned number)
{
    return number < atomic_load(&names.n) ? atomic_load(&names.of[number]) : NULL;
}

unsigned request_names_count(void)
{
    return atomic_load(&names.n);
}

void request_names_define(uint64_t (*define)(const char *text))
{
    names.define = define;
}

void request_names_release(void)
{
    pthread_mutex_lock(&names.lock);
    unsigned n = atomic_exchange(&names.n, 0);
    for (unsigned i = 0; i < n; i++)
        free(atomic_exchange(&names.of[i], NULL));
    map_release(&names.index);
    names.define = NULL;
    pthread_mutex_unlock(&names.lock);
}

/* ---- counts ---- */

static void count(_Atomic uint64_t *what, uint64_t n)
{
    atomic_fetch_add_explicit(what, n, memory_order_relaxed);
}

void request_count(struct request_name *n, uint64_t ns, bool error, uint32_t weight)
{
    count(&n->count, weight);
    count(&n->errors, error ? weight : 0);
    count(&n->total_ns, ns * weight);
    count(&n->buckets[latency_bucket(ns)], weight);
    uint64_t max = atomic_load_explicit(&n->max_ns, memory_order_relaxed);
    while (ns > max && !atomic_compare_exchange_weak(&n->max_ns, &max, ns))
        ;
}

/* Replaces the root of a heap, the smallest value, by ns. */
static void sift(uint64_t *heap, unsigned n, uint64_t ns)
{
    unsigned at = 0;
    for (unsigned child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= ns)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = ns;
}

bool request_is_slow(struct request_name *n, uint64_t ns, uint64_t now)
{
    bool slow = true;
    /*
     * If another thread is changing the list, keeping one request too many is better than waiting.
     */
    if (atomic_flag_test_and_set_explicit(&n->slow.busy, memory_order_acquire))
        return ns > n->slow.ns[0];
    if (n->slow.minute != now / MINUTE) {
        n->slow.minute = now / MINUTE;
        memset(n->slow.ns, 0, sizeof(n->slow.ns));
    }
    slow = ns > n->slow.ns[0];
    if (slow)
        sift(n->slow.ns, SLOWEST_KEPT, ns);
    atomic_flag_clear_explicit(&n->slow.busy, memory_order_release);
    return slow;
}
