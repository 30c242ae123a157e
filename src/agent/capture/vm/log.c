/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/vm/log.h"

#include "agent/vm/management.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Only glibc 2.27 and later have a function for this system call. */
#ifndef SYS_memfd_create
#ifdef __x86_64__
#define SYS_memfd_create 319
#else
#define SYS_memfd_create 279
#endif
#endif

enum {
    BLOCK = 64 << 10,
    /* more than this is skipped: the agent has not read for a long time, or the VM logs too much */
    BACKLOG_MAX = 8 << 20,
    RELEASE_EVERY = 256 << 10,
};

static struct {
    int fd;    /* 0: closed */
    ino_t ino; /* a program may close this number and open it for another file */
    char name[64];
    uint64_t read;     /* bytes of whole lines */
    uint64_t released; /* bytes whose memory was given back */
    char block[BLOCK];
} vm_log;

/* Each selection is requested separately, because some JDKs lack some of the tags. */
static const char *const selections[] = {
    "safepoint=info,gc=info,gc+start=info,gc+phases=info",
    "jit+compilation=debug",
    "deoptimization=debug",
};

static int order(JNIEnv *jni, const char *what)
{
    char command[512];
    _cleanup_(buf_release) struct buf answer = BUF(4096);
    snprintf(command, sizeof(command),
             "VM.log output=file=%s output_options=filecount=0 what=%s decorators=tn,ti,tg",
             vm_log.name, what);
    int r = management_diagnostic_command(jni, command, &answer);
    return r < 0                                                                    ? r
           : strstr(buf_str(&answer), "nvalid") || strstr(buf_str(&answer), "rror") ? -EINVAL
                                                                                    : 0;
}

int vm_log_open(JNIEnv *jni)
{
    struct rlimit limit;
    struct stat st;
    if (vm.version < 9 || !vm.hotspot)
        return -ENOTSUP;
    /*
     * The size of the log file keeps growing, although its earlier memory is released, so a limit
     * on file sizes would stop it.
     */
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur != RLIM_INFINITY)
        return -ENOTSUP;
    int fd = (int)syscall(SYS_memfd_create, "jvmscope-vm-log", 1u /* MFD_CLOEXEC */);
    if (fd <= 0 || fstat(fd, &st) < 0)
        return -ENOTSUP;
    vm_log.ino = st.st_ino;
    vm_log.read = vm_log.released = 0;
    snprintf(vm_log.name, sizeof(vm_log.name), "/proc/self/fd/%d", fd);
    char all[256];
    snprintf(all, sizeof(all), "%s,%s,%s", selections[0], selections[1], selections[2]);
    bool together = order(jni, all) == 0; /* each command takes a third of a millisecond */
    if (!together && order(jni, selections[0]) < 0) {
        close(fd);
        return -ENOTSUP;
    }
    vm_log.fd = fd;
    for (size_t i = 1; !together && i < ARRAY_SIZE(selections); i++)
        (void)order(jni, selections[i]);
    return 0;
}

bool vm_log_is_open(void)
{
    return vm_log.fd > 0;
}

/* Skips whole blocks up to a position. Returns the number of lines in them. */
static uint64_t skip_to(uint64_t place)
{
    uint64_t lines = 0;
    while (vm_log.read < place) {
        ssize_t n = pread(vm_log.fd, vm_log.block, BLOCK, (off_t)vm_log.read);
        if (n <= 0)
            break;
        const char *at = vm_log.block, *end = at + n;
        for (const char *newline; (newline = memchr(at, '\n', (size_t)(end - at)));
             at = newline + 1)
            lines++;
        /* No line of the requested kinds is longer than a block, so a longer one is skipped. */
        vm_log.read += at > vm_log.block ? (uint64_t)(at - vm_log.block) : (uint64_t)n;
    }
    return lines;
}

static void release_memory(void)
{
    uint64_t until = vm_log.read & ~UINT64_C(4095);
    if (until - vm_log.released < RELEASE_EVERY)
        return;
    (void)fallocate(vm_log.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)vm_log.released,
                    (off_t)(until - vm_log.released));
    vm_log.released = until;
}

/* Passes the whole lines of a block to `see`. Returns where the rest begins. */
static const char *see_lines(const char *at, const char *end,
                             void (*see)(const struct log_line *line), uint64_t *unknown)
{
    struct log_line line;
    for (const char *newline; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        if (log_line_read(at, (size_t)(newline - at), &line))
            see(&line);
        else
            ++*unknown;
    return at;
}

int vm_log_read(JNIEnv *jni, void (*see)(const struct log_line *line), struct vm_log_lost *ret)
{
    struct stat st;
    *ret = (struct vm_log_lost){0};
    if (fstat(vm_log.fd, &st) < 0 || st.st_ino != vm_log.ino) {
        vm_log.fd = -1; /* the number now belongs to a descriptor of the program */
        vm_log_close(jni);
        return -ESTALE;
    }
    if ((uint64_t)st.st_size < vm_log.read) {
        vm_log.read = vm_log.released = 0;
        ret->cuts = 1;
    }
    if ((uint64_t)st.st_size > vm_log.read + BACKLOG_MAX)
        ret->skipped = skip_to((uint64_t)st.st_size - BLOCK);
    for (ssize_t n; (n = pread(vm_log.fd, vm_log.block, BLOCK, (off_t)vm_log.read)) > 0;) {
        const char *end = vm_log.block + n, *at = see_lines(vm_log.block, end, see, &ret->unknown);
        if (at == vm_log.block) {
            if (n < BLOCK)
                break;
            at = end;
        }
        vm_log.read += (uint64_t)(at - vm_log.block);
    }
    release_memory();
    return 0;
}

void vm_log_close(JNIEnv *jni)
{
    if (!vm_log.fd)
        return;
    if (jni)
        (void)order(jni, "all=off");
    if (vm_log.fd > 0)
        close(vm_log.fd);
    vm_log.fd = 0;
}
