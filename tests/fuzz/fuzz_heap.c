/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a heap dump, which is indexed and given to every verb of `jvmscope heap`; then once
 * more with the index, if that got a name.
 */
#include "answers/heap/ask.h"

#include "answers/heap/heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct heap *h, const char *verb, const struct heap_options *o,
                const char *operand)
{
    struct buf out = BUF(64 << 20);
    (void)!heap_ask_json(h, verb, o, operand, &out);
    buf_release(&out);
}

static void ask_all(const struct heap *h)
{
    static const char *const verbs[] = {"summary", "histogram",   "leaks",       "threads",
                                        "strings", "collections", "arrays",      "references",
                                        "classes", "components",  "unreachable", "dominators"};
    struct heap_options o = {.json = true, .limit = 50};
    char id[32];
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        ask(h, verbs[i], &o, NULL);
    ask(h, "query", &o, "SELECT * FROM fields JOIN objects ON objects.id = fields.ref");
    ask(h, "query", &o, "SELECT * FROM refs, strings, roots, classes");
    o.find = "a";
    ask(h, "strings", &o, NULL);
    for (uint64_t i = 0; i < MIN(h->n, UINT64_C(4)); i++) {
        snprintf(id, sizeof(id), "0x%llx", (unsigned long long)heap_id(h, i * (h->n - 1) / 3));
        ask(h, "objects", &o, id);
        ask(h, "paths", &o, id);
        ask(h, "retained", &o, id);
        o.exclude = "none";
        ask(h, "paths", &o, heap_id(h, i) & 1 ? id : "java.lang.*");
        o.exclude = NULL;
    }
}

/*
 * What holds in every heap: the roots retain what is reachable, and a dominator retains its
 * children.
 */
static void check(const struct heap *h)
{
    uint64_t first, count, sum = 0;
    heap_children(h, h->n, &first, &count);
    for (uint64_t k = 0; k < count; k++)
        sum += heap_retained(h, heap_child(h, first + k));
    if (sum != heap_retained(h, h->n))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = size ? memfd_create("dump", MFD_CLOEXEC) : -1;
    if (!size)
        return 0;
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    /* There is no folder for the index, so no file remains. */
    struct heap_settings settings = {.index = "/nonexistent/index",
                                     .which = -1,
                                     .strong = data[size - 1] & 1,
                                     .wide = data[size - 1] & 2};
    struct heap *h;
    if (heap_open(&h, path, &settings) == 0) {
        check(h);
        ask_all(h);
        heap_free(h);
    }
    close(fd);
    return 0;
}
