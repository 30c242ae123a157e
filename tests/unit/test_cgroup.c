/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/vm/cgroup.h"
#include "tests.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

static void put(const char *text, const char *format, ...)
{
    char path[512];
    va_list args;
    int n = snprintf(path, sizeof(path), "%s/", root);
    va_start(args, format);
    vsnprintf(path + n, sizeof(path) - (size_t)n, format, args);
    va_end(args);
    for (char *slash = path + n; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_root(void **state)
{
    snprintf(root, sizeof(root), "test_cgroup.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

static struct cgroup_figures figures(struct cgroup *c)
{
    char list[128], tree[128];
    struct cgroup_figures f;
    snprintf(list, sizeof(list), "%s/list", root);
    snprintf(tree, sizeof(tree), "%s/tree", root);
    cgroup_find(c, list, tree);
    cgroup_read(c, &f);
    return f;
}

static void version_2_with_a_limit_around(void **state)
{
    struct cgroup c;
    put("0::/pod/app\n", "list");
    put("cpu memory\n", "tree/cgroup.controllers");
    put("150000 100000\n", "tree/pod/cpu.max");
    put("usage_usec 9\nnr_periods 100\nnr_throttled 7\nthrottled_usec 2500\n", "tree/pod/cpu.stat");
    put("some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0 total=5\n",
        "tree/pod/cpu.pressure");
    put("max 100000\n", "tree/pod/app/cpu.max");
    put("1048576\n", "tree/pod/app/memory.max");
    put("4096\n", "tree/pod/app/memory.current");
    put("low 0\nhigh 0\nmax 3\noom 0\n", "tree/pod/app/memory.events");
    struct cgroup_figures f = figures(&c);
    assert_true(c.v2);
    assert_int_equal(f.quota_us, 150000);
    assert_int_equal(f.period_us, 100000);
    assert_int_equal(f.slices, 100);
    assert_int_equal(f.throttled_slices, 7);
    assert_int_equal(f.throttled_ns, 2500000);
    assert_int_equal(f.memory_limit, 1048576);
    assert_int_equal(f.memory_used, 4096);
    assert_int_equal(f.memory_failures, 3);
    assert_int_equal(cgroup_pressure_ns(&c, "cpu"), 77000);
}

static void version_1(void **state)
{
    struct cgroup c;
    put("4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n0::/\n", "list");
    put("-1\n", "tree/cpu,cpuacct/cpu.cfs_quota_us");
    put("50000\n", "tree/cpu,cpuacct/docker/a/cpu.cfs_quota_us");
    put("100000\n", "tree/cpu,cpuacct/docker/a/cpu.cfs_period_us");
    put("nr_periods 10\nnr_throttled 4\nthrottled_time 123456789\n",
        "tree/cpu,cpuacct/docker/a/cpu.stat");
    put("9223372036854771712\n", "tree/memory/docker/a/memory.limit_in_bytes");
    put("1000\n", "tree/memory/docker/a/memory.usage_in_bytes");
    put("2\n", "tree/memory/docker/a/memory.failcnt");
    struct cgroup_figures f = figures(&c);
    assert_false(c.v2);
    assert_int_equal(f.quota_us, 50000);
    assert_int_equal(f.throttled_ns, 123456789);
    assert_int_equal(f.throttled_slices, 4);
    assert_int_equal(f.memory_limit, -1); /* this number stands for no limit */
    assert_int_equal(f.memory_used, 1000);
    assert_int_equal(f.memory_failures, 2);
}

static double processors(void)
{
    char list[128], tree[128];
    snprintf(list, sizeof(list), "%s/list", root);
    snprintf(tree, sizeof(tree), "%s/tree", root);
    return cgroup_processors(list, tree);
}

/* The groups of "cpuset" and "cpuacct", which are listed first, are not those of "cpu". */
static void processors_of_version_1(void **state)
{
    put("5:name=systemd:/\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/docker/a\n0::/\n", "list");
    put("-1\n", "tree/cpu/cpu.cfs_quota_us");
    put("100000\n", "tree/cpu/cpu.cfs_period_us");
    assert_true(processors() > 1e9); /* no limit */
    put("50000\n", "tree/cpu/docker/cpu.cfs_quota_us");
    put("100000\n", "tree/cpu/docker/cpu.cfs_period_us");
    assert_true(processors() == 0.5);
    put("10000\n", "tree/cpu/docker/a/cpu.cfs_quota_us");
    put("50000\n", "tree/cpu/docker/a/cpu.cfs_period_us");
    assert_true(processors() == 0.2);
    put("200000\n", "tree/cpu/docker/a/cpu.cfs_quota_us");
    assert_true(processors() == 0.5); /* of the group around it */
}

static void processors_of_version_2(void **state)
{
    put("0::/pod/app\n", "list");
    put("max 100000\n", "tree/pod/app/cpu.max");
    assert_true(processors() > 1e9);
    put("150000 100000\n", "tree/pod/cpu.max");
    assert_true(processors() == 1.5);
    put("25000 100000\n", "tree/pod/app/cpu.max");
    assert_true(processors() == 0.25);
    put("0::/path/on/the/host\n", "list");
    put("20000 100000\n", "tree/cpu.max");
    assert_true(processors() == 0.2);
}

/* Both controllers share a folder, and there is no link named "cpu". */
static void processors_of_a_shared_folder(void **state)
{
    put("4:cpuset:/\n3:cpuacct,cpu:/a\n", "list");
    put("30000\n", "tree/cpuacct,cpu/a/cpu.cfs_quota_us");
    put("60000\n", "tree/cpuacct,cpu/a/cpu.cfs_period_us");
    assert_true(processors() == 0.5);
}

/* A container sees its own group as the root, while the list has the path on the host. */
static void a_path_that_is_not_there(void **state)
{
    struct cgroup c;
    put("0::/../../elsewhere\n", "list");
    put("cpu\n", "tree/cgroup.controllers");
    put("20000 100000\n", "tree/cpu.max");
    put("nr_periods 1\nnr_throttled 1\nthrottled_usec 1\n", "tree/cpu.stat");
    struct cgroup_figures f = figures(&c);
    assert_int_equal(f.quota_us, 20000);
    assert_int_equal(f.throttled_ns, 1000);
    assert_int_equal(f.memory_limit, -1);
}

static void nothing_there(void **state)
{
    struct cgroup c;
    struct cgroup_figures f = figures(&c);
    assert_int_equal(f.quota_us, -1);
    assert_int_equal(f.throttled_ns, -1);
    assert_int_equal(f.memory_limit, -1);
    put("garbage\n0:\n::\n", "list");
    f = figures(&c);
    assert_int_equal(f.quota_us, -1);
    assert_int_equal(cgroup_line_number("nr_periods\nnr_periodsx 3\n", "nr_periods"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2_with_a_limit_around, make_root, remove_root),
        cmocka_unit_test_setup_teardown(version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(processors_of_version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(processors_of_version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(processors_of_a_shared_folder, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_path_that_is_not_there, make_root, remove_root),
        cmocka_unit_test_setup_teardown(nothing_there, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
