/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command with one JDK of the matrix as `tools/jdks run` does where JDKS_BIND is not set,
 * but without the dozen processes that the script starts, which cost as much CPU time as a short
 * VM:
 *
 *     in_jdk ROOT JAVA_HOME CHECKOUT CMD ...
 *
 * ROOT is the matrix's chroot. The mounts are in a namespace of their own and vanish with the
 * command, whose process id is that of this program.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char text[8192];

static void fail(const char *what)
{
    fprintf(stderr, "in_jdk: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Returns both put together, in a buffer that the next call overwrites. */
static char *joined(const char *a, const char *b)
{
    if ((size_t)snprintf(text, sizeof text, "%s%s", a, b) >= sizeof text) {
        errno = ENAMETOOLONG;
        fail(a);
    }
    return text;
}

static void make_folders(char *path)
{
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0755);
        *p = '/';
    }
    if (mkdir(path, 0755) && errno != EEXIST)
        fail(path);
}

/* Makes a folder of the system visible inside at the same path, if the system has it. */
static void show(const char *root, const char *folder)
{
    struct stat s;
    if (stat(folder, &s) || !S_ISDIR(s.st_mode))
        return;
    char *inside = joined(root, folder);
    if (stat(inside, &s))
        make_folders(inside);
    if (mount(folder, inside, NULL, MS_BIND | MS_REC, NULL))
        fail(inside);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: in_jdk ROOT JAVA_HOME CHECKOUT CMD ...\n");
        return 2;
    }
    const char *root = argv[1], *java_home = argv[2], *checkout = argv[3];
    char pwd[4096];
    if (!getcwd(pwd, sizeof pwd))
        fail("the current folder");
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        fail("a mount namespace");
    const char *folders[] = {"/proc",
                             "/sys",
                             "/dev",
                             "/tmp",
                             "/var/tmp",
                             checkout,
                             "/usr/share/java",
                             "/usr/share/maven-repo"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        show(root, folders[i]);
    if (setenv("JAVA_HOME", java_home, 1) || setenv("LC_ALL", "C.UTF-8", 1) ||
        setenv("PATH", joined(java_home, "/bin:/usr/sbin:/usr/bin:/sbin:/bin"), 1))
        fail("the environment");
    if (chroot(root) || chdir(pwd))
        fail(root);
    execvp(argv[4], argv + 4);
    fail(argv[4]);
}
