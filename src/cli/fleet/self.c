/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet/self.h"

#include "base/file.h"
#include "base/macro.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int self_run(const char *const *arguments, struct buf *out, bool with_messages)
{
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (with_messages)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    else
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int r =
        posix_spawn(&child, "/proc/self/exe", &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    int status = -1;
    if (r == 0) {
        _cleanup_free_ uint8_t *text = NULL;
        size_t len = 0;
        if (file_read_all(ends[0], 1 << 20, &text, &len) == 0)
            buf_bytes(out, text, len);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    close(ends[0]);
    return status;
}

const char *self_reason(struct buf *messages)
{
    static const char name[] = "jvmscope: ", *const no_reasons[] = {"note: ", "`jvmscope "};
    const char *reason = "no reason was given";
    for (char *rest = (char *)buf_str(messages), *line; (line = strsep(&rest, "\n"));) {
        bool is = strncmp(line, name, strlen(name)) == 0;
        for (size_t i = 0; is && i < ARRAY_SIZE(no_reasons); i++)
            is = strncmp(line + strlen(name), no_reasons[i], strlen(no_reasons[i])) != 0;
        reason = is ? line + strlen(name) : reason;
    }
    return reason;
}
