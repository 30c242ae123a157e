/* SPDX-License-Identifier: Apache-2.0 */
/* Files exchanged between the command and a VM; our own process plays the VM. */
#include "tests.h"

#include "base/buf.h"
#include "proto/container.h"
#include "proto/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMANDS = 16, ROUNDS = 1000 };

/*
 * Imitates many commands of one user that run at the same time: each removes leftovers of killed
 * ones and creates a file of its own.
 */
static int make_and_look(const struct vm *vm)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct scratch s = SCRATCH;
        struct stat st;
        _cleanup_(buf_release) struct buf why = BUF(4096);
        if (scratch_make(&s, vm, &why) < 0)
            return 1;
        /* Give the others a moment to remove it. */
        usleep(200);
        if (fstatat(s.folder, s.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return 2;
        scratch_release(&s);
    }
    return 0;
}

static void commands_leave_each_others_files_alone(void **state)
{
    struct vm vm = {.pid = getpid(), .inner_pid = getpid(), .uid = geteuid(), .gid = getegid()};
    vm.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(vm.root_fd >= 0);
    pid_t children[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(make_and_look(&vm));
    }
    for (int i = 0; i < COMMANDS; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    close(vm.root_fd);
}

static void containers_are_named_by_their_groups(void **state)
{
#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

    static const struct {
        const char *text, *id;
    } groups[] = {
        {"0::/system.slice/docker-" DIGITS ".scope\n", "0123456789ab"},
        {"12:cpu,cpuacct:/docker/" DIGITS "\n11:pids:/docker/" DIGITS "\n", "0123456789ab"},
        {"0::/kubepods.slice/kubepods-burstable.slice/"
         "kubepods-burstable-pod1c2d3e4f_0000_1111_2222_333344445555.slice/"
         "cri-containerd-" DIGITS ".scope\n",
         "0123456789ab"},
        {"0::/machine.slice/libpod-" DIGITS ".scope/container\n", "0123456789ab"},
        {"0::/lxc.payload.web-1/init.scope\n", "web-1"},
        {"0::/machine.slice/machine-build.scope\n", "build"},
        {"0::/\n", NULL},
        {"0::/user.slice/user-0.slice/session-3.scope\n", NULL},
        {"0::/system.slice/docker-" DIGITS "0.scope\n", NULL}, /* 65 digits */
        {"", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        char id[CONTAINER_ID_MAX] = "?";
        assert_int_equal(container_of_groups(groups[i].text, id), groups[i].id != NULL);
        assert_string_equal(id, groups[i].id ? groups[i].id : "?");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_leave_each_others_files_alone),
        cmocka_unit_test(containers_are_named_by_their_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
