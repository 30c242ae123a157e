/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the commands of --then exec. vfork copies no page tables, which would take long in a process
 * with a large heap, and it stops only the calling thread. Until exec the child shares our memory,
 * so it only makes system calls.
 */
#include "agent/capture/triggers/triggers.h"

#include "base/forked.h"
#include "base/macro.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Executes the shell in the child. Returns only if that fails. */
static void become(char *const *argv, char *const *envp)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        sigaction(i, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i <= 2 && null >= 0; i++)
        dup2(null, i);
    forked_close_others(NULL, 0);
    execve(argv[0], argv, envp);
}

/*
 * Returns the child's process id, or a negative value. If the command could not be executed,
 * *ret_error is a positive errno.
 */
static pid_t start(char *const *argv, char *const *envp, int *ret_error)
{
    volatile int error = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        become(argv, envp);
        error = errno;
        _exit(127);
    }
    *ret_error = pid < 0 ? errno : error;
    return pid;
}

/*
 * Returns the environment with more variables, and without the variable that puts the agent into
 * every VM.
 */
static char **environment(char *const *variables, size_t n)
{
    size_t count = 0, to = 0;
    while (environ && environ[count])
        count++;
    char **all = malloc((count + n + 1) * sizeof(*all));
    for (size_t i = 0; all && i < count; i++)
        if (strncmp(environ[i], "JAVA_TOOL_OPTIONS=", 18) != 0)
            all[to++] = environ[i];
    for (size_t i = 0; all && i < n; i++)
        all[to++] = variables[i];
    if (all)
        all[to] = NULL;
    return all;
}

int run_command(const char *command, char *const *variables, size_t n, struct ran *ret)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
    char **envp = environment(variables, n);
    if (!envp)
        return -ENOMEM;
    /* A handler of this process must not run in the child. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    pid_t pid = start(argv, envp, &error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(envp);
    if (pid > 0 && error)
        (void)!waitpid(pid, NULL, 0);
    if (error == 0)
        ret->pid = pid;
    return -error;
}

bool run_is_alive(struct ran *r, int *ret_status)
{
    int status = 0;
    pid_t ended = r->pid ? waitpid(r->pid, &status, WNOHANG) : -1;
    if (ended == 0 || (ended < 0 && errno == EINTR && r->pid))
        return true;
    r->pid = 0;
    *ret_status = ended > 0 ? status : 0;
    return false;
}
