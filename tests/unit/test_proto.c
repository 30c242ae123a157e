/* SPDX-License-Identifier: Apache-2.0 */
/* Files exchanged between the command and a VM; our own process plays the VM. */
#include "tests.h"

#include "base/buf.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_leave_each_others_files_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
