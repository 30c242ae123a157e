/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are created in the index file, and what happens when the file cannot grow. */
#include "tests.h"

#include "base/clock.h"
#include "model/timeline_builder.h"
#include "model/timeline_index.h"
#include "model/timeline_nodes.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MANY = 3000000 };

/* Creates a timeline of a thread that notifies many times, in a file or (NULL) in memory. */
static struct timeline *notifies(const char *path)
{
    struct timeline_builder *b;
    struct timeline *t;
    assert_int_equal(timeline_builder_new(&b), 0);
    if (path)
        assert_int_equal(timeline_nodes_in(b, path), 0);
    assert_int_equal(timeline_thread(b, 10), 0);
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    for (uint64_t i = 1; i < MANY; i++) {
        struct tl_event e = {
            .time = NS_PER_MS + i * 700, .kind = TLE_NOTIFY, .stack = TL_NONE, .other = TL_NONE};
        assert_int_equal(timeline_add(b, &e), 0);
    }
    assert_int_equal(timeline_finish(b, NS_PER_MS + MANY * UINT64_C(700), &t), 0);
    timeline_builder_free(b);
    assert_int_equal(t->n_nodes, MANY);
    return t;
}

static size_t files_in(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void same(const struct timeline *a, const struct timeline *b)
{
    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_memory_equal(a->nodes, b->nodes, a->n_nodes * sizeof(*a->nodes));
}

static void nodes_lie_where_the_index_has_them(void **state)
{
    char folder[] = "/tmp/test-nodes-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.timeline", folder);
    struct timeline *memory = notifies(NULL), *file = notifies(path), *mapped;
    same(file, memory);
    assert_non_null(file->nodes_file);
    assert_null(memory->nodes_file);
    timeline_save(file, path, 42);
    timeline_free(file);
    assert_int_equal(timeline_map(&mapped, path, 42), 0);
    same(mapped, memory);
    timeline_free(mapped);
    assert_int_equal(unlink(path), 0);
    /*
     * An unsaved timeline must never have a visible file, which a killed process would leave
     * behind.
     */
    file = notifies(path);
    assert_int_equal(files_in(folder), 0);
    timeline_free(file);
    assert_int_equal(files_in(folder), 0);
    timeline_free(memory);
    rmdir(folder);
}

static void a_full_disk_is_no_end(void **state)
{
    char folder[] = "/tmp/test-nodes-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.timeline", folder);
    struct rlimit all, some;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    /* Less than the nodes need. */
    some = (struct rlimit){MIN((rlim_t)100 << 20, all.rlim_max), all.rlim_max};
    struct timeline *memory = notifies(NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
    struct timeline *file = notifies(path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    same(file, memory);
    assert_null(file->nodes_file);
    assert_int_equal(files_in(folder), 0);
    timeline_free(file);
    file = notifies("/tmp/no/such/folder/x.timeline");
    same(file, memory);
    timeline_free(file);
    timeline_free(memory);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_lie_where_the_index_has_them),
        cmocka_unit_test(a_full_disk_is_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
