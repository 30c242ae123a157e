/* SPDX-License-Identifier: Apache-2.0 */
/* Files exchanged between the command and a VM; our own process plays the VM. */
#include "tests.h"

#include "base/buf.h"
#include "proto/attach.h"
#include "proto/container.h"
#include "proto/lend.h"
#include "proto/scratch.h"
#include "proto/unpublished.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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
        {"0::/machine.slice/machine-deb\\x2d12.scope\n", "deb-12"},
        {"0::/machine.slice/machine-a\\x2\\x00.scope\n", "a\\x2\\x00"},
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

static void the_main_class_is_found_among_the_words(void **state)
{
    static const struct {
        const char *words; /* with blanks for NUL */
        const char *from;  /* NULL: not known */
    } lines[] = {
        {"java Shop", "Shop"},
        {"/opt/jdk/bin/java -Xmx1g -cp a:b com.shop.Main -x y", "com.shop.Main -x y"},
        {"java -ea --class-path -strange com.shop.Main", "com.shop.Main"},
        {"java --add-opens java.base/java.lang=ALL-UNNAMED -jar /app/shop.jar 8080",
         "/app/shop.jar 8080"},
        {"java -p mods --add-modules=ALL -m shop/com.shop.Main", "shop/com.shop.Main"},
        {"java @arguments Shop", NULL},
        {"java -cp", NULL},
        {"java -cp a", NULL},
        {"java -jar", NULL},
        {"java", NULL},
        {"/usr/bin/jsvc -cp a Shop", NULL},
        {"/opt/java/launcher Shop", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        char words[256];
        size_t len = strlen(lines[i].words) + 1;
        memcpy(words, lines[i].words, len);
        for (char *c = words; *c || c < words + len - 1; c++)
            *c = *c == ' ' ? 0 : *c;
        size_t at = unpublished_main(words, len);
        assert_int_equal(at, lines[i].from ? strstr(lines[i].words, lines[i].from) - lines[i].words
                                           : 0);
    }
}

static void only_whole_names_are_of_lent_libraries(void **state)
{
    static const char *const others[] = {
        "memfd:.jvmscope-0123456789abcdef.12.345",
        "memfd:.jvmscope-0123456789abcdef.12.345.so.so",
        "memfd:.jvmscope-0123456789abcdef.12.345.so/x",
        "memfd:.jvmscope-0123456789ABCDEF.12.345.so",
        "memfd:.jvmscope-123.12.345.so",
        "memfd:.jvmscope-0123456789abcdef.+12.345.so",
        "memfd:.jvmscope-0123456789abcdef.012.345.so",
        "memfd:.jvmscope-0123456789abcdef.99999999999999999999.345.so",
        "memfd:jvmscope-outcome",
        ".jvmscope-0123456789abcdef.so",
        "",
    };
    char path[64];
    assert_true(lend_path("memfd:.jvmscope-0123456789abcdef.12.345.so", path, sizeof(path)));
    assert_string_equal(path, "/proc/12/fd/345");
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_false(lend_path(others[i], path, sizeof(path)));
}

/* Sends one character after the other, and never the end, to whoever connects. */
static void answer_for_ever(int listener)
{
    int fd = accept(listener, NULL, NULL);
    while (fd >= 0 && send(fd, "1", 1, MSG_NOSIGNAL) == 1)
        usleep(20000);
    _exit(0);
}

/* A VM that accepts the connection and then says nothing, and one whose answer has no end. */
static void a_vm_that_does_not_answer_is_given_up(void **state)
{
    struct vm vm = {.pid = getpid(),
                    .inner_pid = getpid(),
                    .listens = true,
                    .uid = geteuid(),
                    .gid = getegid(),
                    .root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/.java_pid%d", vm.inner_pid);
    for (int answers = 0; answers < 2; answers++) {
        const char *const none[ATTACH_ARGS] = {NULL};
        _cleanup_(buf_release) struct buf answer = BUF(4096), why = BUF(4096);
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status = -1;
        assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof(address)), errno);
        assert_return_code(listen(listener, 1), errno);
        pid_t child = answers ? fork() : 0;
        if (answers && child == 0)
            answer_for_ever(listener);
        uint64_t start = now_ns();
        assert_int_equal(
            attach_command(&vm, "properties", none, NS_PER_SECOND, NULL, &answer, &status, &why),
            -ETIMEDOUT);
        assert_string_equal(buf_str(&why), "the VM gave no answer within 1 s");
        assert_true(now_ns() - start >= NS_PER_SECOND);
        assert_int_equal(answer.len, 0);
        close(listener);
        unlink(address.sun_path);
        if (child > 0) {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
        }
    }
    close(vm.root_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_leave_each_others_files_alone),
        cmocka_unit_test(containers_are_named_by_their_groups),
        cmocka_unit_test(the_main_class_is_found_among_the_words),
        cmocka_unit_test(only_whole_names_are_of_lent_libraries),
        cmocka_unit_test(a_vm_that_does_not_answer_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
