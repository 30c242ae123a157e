/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of triggers: dumps of the ring, heap dumps, commands. A thread of the agent carries
 * them out, so that the recording continues meanwhile. The thread is started before it is needed,
 * because a VM that is out of memory cannot start one. It works only on copies (the ring's
 * descriptor and the texts of the trigger), so the end of the recording or of the trigger does not
 * affect it.
 */
#include "agent/capture/triggers/triggers.h"
#include "agent/vm/dump.h"
#include "agent/vm/own_thread.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/timed_wait.h"
#include "base/vec.h"
#include "jfr/ring_read.h"
#include "jfr/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 2000, CHILDREN_MAX = 16 };

struct firing {
    struct trigger *trigger; /* valid while the trigger is busy */
    int fd;                  /* of the ring */
    uint64_t since_ticks;    /* where the requested part of the ring begins */
    uint64_t max_files;
    char pattern[PATH_MAX];
    char reason[32], measured[320];
    char *condition, *actions[ACTIONS_MAX];
    unsigned n_actions;
};

static struct {
    pthread_mutex_t lock;
    VEC(struct firing *) queue;
    bool running, stop, working;
    bool can_dump_heap;
} firings = {.lock = PTHREAD_MUTEX_INITIALIZER};
TIMED_WAIT_STATIC(firings_changed)

/*
 * The commands that are running. Their number is limited, and each belongs to a different trigger.
 */
static struct child {
    struct ran ran;
    uint64_t trigger; /* its serial number */
    char action[160]; /* for the message, if it fails */
} children[CHILDREN_MAX];

static void firing_free(struct firing *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->condition);
    for (unsigned i = 0; i < s->n_actions; i++)
        free(s->actions[i]);
    free(s);
}

/* ---- files ---- */

/* Replaces %r. Returns 0 or -ENAMETOOLONG. */
static int put_reason(const char *pattern, const char *reason, char named[PATH_MAX])
{
    size_t n = 0;
    for (const char *p = pattern; *p; p++) {
        bool is_reason = p[0] == '%' && p[1] == 'r', is_pair = p[0] == '%' && p[1] && !is_reason;
        const char *from = is_reason ? reason : p;
        size_t len = is_reason ? strlen(reason) : is_pair ? 2 : 1;
        if (n + len >= PATH_MAX)
            return -ENAMETOOLONG;
        memcpy(named + n, from, len);
        n += len;
        p += is_reason || is_pair;
    }
    named[n] = 0;
    return 0;
}

static int expand(const char *pattern, const char *reason, char ret[PATH_MAX])
{
    char named[PATH_MAX];
    int r = put_reason(pattern, reason, named);
    return r < 0 ? r : expand_file_name(named, (long)getpid(), ret, PATH_MAX);
}

int firings_check_folder(const char *pattern, struct buf *why)
{
    const char *slash = strrchr(pattern, '/');
    char folder[PATH_MAX] = ".", path[PATH_MAX];
    if (slash)
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - pattern + 1), pattern);
    for (const char *p = folder; (p = strchr(p, '%')); p += 2)
        if (p[1] == 'r' || p[1] == 't')
            return 0; /* the program has not chosen it yet */
    int r = expand(folder, "", path);
    r = r == 0 && access(path, W_OK | X_OK) < 0 ? -errno : r;
    if (r < 0)
        buf_printf(why, "onfile=%s: cannot write: %s", pattern, strerror(-r));
    return r;
}

/* Copies a path with another extension than ".jfr". */
static int with_ending(const char *path, const char *ending, char ret[PATH_MAX])
{
    int len = (int)(strlen(path) - strlen(".jfr"));
    return snprintf(ret, PATH_MAX, "%.*s%s", len, path, ending) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/*
 * Chooses a name that no file has yet, because several triggers may act in one second:
 * "f-TIME.jfr", "f-TIME-2.jfr", ... Triggers act one after the other, so earlier files already
 * exist under their names.
 */
static int name_file(const struct firing *s, char ret[PATH_MAX])
{
    enum { TRIES = 1000 };

    char plain[PATH_MAX], heap[PATH_MAX], ending[32];
    int r = expand(s->pattern, s->reason, plain);
    for (int i = 1; r == 0 && i < TRIES; i++) {
        snprintf(ending, sizeof(ending), "-%d.jfr", i);
        r = with_ending(plain, i == 1 ? ".jfr" : ending, ret);
        r = r < 0 ? r : with_ending(ret, ".hprof", heap);
        if (r == 0 && access(ret, F_OK) < 0 && access(heap, F_OK) < 0)
            return 0;
    }
    return r < 0 ? r : -EEXIST;
}

/*
 * Returns the length of the process id at the start of a name if it is ours or that of a process
 * that has ended, otherwise 0.
 */
static size_t dead_or_own(const char *name)
{
    size_t n = strspn(name, "0123456789");
    long pid = n && n < 10 ? strtol(name, NULL, 10) : 0;
    return pid > 0 && (pid == getpid() || (kill((pid_t)pid, 0) < 0 && errno == ESRCH)) ? n : 0;
}

/* Returns the length of a time as expand_file_name writes it, yyyymmdd-hhmmss, or 0. */
static size_t time_length(const char *name)
{
    static const char digits[] = "0123456789";
    return strspn(name, digits) == 8 && name[8] == '-' && strspn(name + 9, digits) == 6 ? 15 : 0;
}

/*
 * Returns whether a name can come from a pattern, for this process or for one that has ended. Heap
 * dumps have another extension.
 */
static bool is_made_by(const char *pattern, const char *name)
{
    if (strcmp(pattern, ".jfr") == 0) {
        size_t n = *name == '-' ? strspn(name + 1, "0123456789") : 0;
        name += n ? n + 1 : 0;
        return strcmp(name, ".jfr") == 0 || strcmp(name, ".hprof") == 0;
    }
    if (pattern[0] != '%')
        return *name && pattern[0] == *name && is_made_by(pattern + 1, name + 1);
    size_t n = pattern[1] == 'p'   ? dead_or_own(name)
               : pattern[1] == 't' ? time_length(name)
               : pattern[1] == 'r' ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")
                                   : *name == '%';
    if (pattern[1] != 'r')
        return n && is_made_by(pattern + 2, name + n);
    for (; n; n--)
        if (is_made_by(pattern + 2, name + n))
            return true;
    return false;
}

struct old_file {
    char name[256];
    struct timespec at;
};

static int by_age(const void *a, const void *b)
{
    const struct timespec *x = &((const struct old_file *)a)->at,
                          *y = &((const struct old_file *)b)->at;
    return x->tv_sec != y->tv_sec ? (x->tv_sec < y->tv_sec ? -1 : 1)
                                  : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/*
 * Removes the oldest of the files that a pattern has made, so that at most max_files remain. Where
 * the pattern has the reason, the limit applies to each reason, so that the files of a frequent one
 * do not displace those of a rare one.
 */
static void remove_oldest(const struct firing *firing)
{
    char folder[PATH_MAX], pattern[PATH_MAX];
    uint64_t max = firing->max_files;
    if (put_reason(firing->pattern, firing->reason, pattern) < 0)
        return;
    VEC(struct old_file) files = {0};
    const char *base = strrchr(pattern, '/');
    snprintf(folder, sizeof(folder), "%.*s", base ? (int)MAX(base - pattern, 1) : 1,
             base ? pattern : ".");
    base = base ? base + 1 : pattern;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        struct old_file f;
        if (!is_made_by(base, e->d_name) ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            st.st_uid != geteuid() || strlen(e->d_name) >= sizeof(f.name))
            continue;
        snprintf(f.name, sizeof(f.name), "%s", e->d_name);
        f.at = st.st_mtim;
        if (vec_push(&files, f) < 0)
            break;
    }
    if (files.len > max)
        qsort(files.data, files.len, sizeof(files.data[0]), by_age);
    for (size_t i = 0; files.len > max && i < files.len - max; i++)
        (void)!unlinkat(dirfd(dir), files.data[i].name, 0);
    vec_release(&files);
    if (dir)
        closedir(dir);
}

/* ---- actions ---- */

/* Writes the end of the ring. */
static int dump_ring(const struct firing *s, const char *path, const char **ret_why)
{
    /*
     * The VM continues to write the ring, so the beginning of the part cannot be given as a
     * distance from its end.
     */
    struct jfr_ring_cut cut = {.since_ticks = s->since_ticks, .flushed = true};
    struct jfr_ring_part part;
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    int r = out_file_open_private(&out, path);
    if (r == 0)
        r = jfr_ring_take(s->fd, &cut, out.fd, &part, ret_why);
    if (r == -EAGAIN)
        *ret_why = "the ring is overwritten faster than it can be read";
    return r < 0 ? r : out_file_commit(&out);
}

static int dump_heap(const char *path, JNIEnv *jni, const char **ret_why)
{
    bool collected, is_ours = access(path, F_OK) < 0;
    if (!firings.can_dump_heap || vm.dying) {
        *ret_why = vm.dying ? "the VM is ending" : "jvmscope does not know this VM's heap dumper";
        return -ENOTSUP;
    }
    int r = vm_dump(jni, path, NULL, &collected);
    vm_clear_exception(jni);
    if (r == 0 && chmod(path, 0600) < 0)
        r = -errno;
    /* On a full disk, half a dump would take the room of the next one. */
    if (r < 0 && is_ours)
        unlink(path);
    return r;
}

/* Requires the lock. */
static void store_error(struct trigger *t, const char *what, const char *why)
{
    t->failed++;
    snprintf(t->last_error, sizeof(t->last_error), "%s: %s", what, why);
}

static void report_result(struct trigger *t, int error, const char *why, const char *what,
                          const char *file)
{
    pthread_mutex_lock(&firings.lock);
    if (error < 0) {
        store_error(t, what, why ? why : strerror(-error));
    } else if (file) {
        t->written++;
        snprintf(t->last_file, sizeof(t->last_file), "%s", file);
    }
    pthread_mutex_unlock(&firings.lock);
}

/*
 * Reports to the trigger, unless it has been removed, that its command failed. Requires the lock.
 */
static void report_ended(const struct child *c, int status)
{
    enum { NOT_FOUND = 127 }; /* exit statuses of the shell */

    char why[80];
    struct trigger *t;
    if (WIFSIGNALED(status))
        snprintf(why, sizeof(why), "killed by signal %d", WTERMSIG(status));
    else
        snprintf(why, sizeof(why), "exit status %d%s", WEXITSTATUS(status),
                 WEXITSTATUS(status) == NOT_FOUND ? ", for a command that was not found" : "");
    triggers_enter();
    for (unsigned i = 0; (t = trigger_at(i)); i++)
        if (t->serial == c->trigger)
            store_error(t, c->action, why);
    triggers_leave();
}

/*
 * Returns whether a command is still running; if it has ended, reports its failure. Requires the
 * lock.
 */
static bool is_running(struct child *c)
{
    int status;
    if (!c->ran.pid || run_is_alive(&c->ran, &status))
        return c->ran.pid != 0;
    if (status)
        report_ended(c, status);
    return false;
}

/* Requires the lock. */
static struct child *free_place(uint64_t trigger, const char **ret_why)
{
    struct child *found = NULL;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *c = &children[i];
        bool running = is_running(c);
        if (running && c->trigger == trigger) {
            *ret_why = "the previous command is still running";
            return NULL;
        }
        found = running ? found : c;
    }
    if (!found)
        *ret_why = "too many commands are still running";
    return found;
}

static int start_command(const struct firing *s, const char *action, const char *file,
                         const char **ret_why)
{
    char *variables[5] = {0};
    const char *const values[][2] = {{"JVMSCOPE_REASON", s->reason},
                                     {"JVMSCOPE_CONDITION", s->condition},
                                     {"JVMSCOPE_MEASURED", s->measured},
                                     {"JVMSCOPE_FILE", file}};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        if (asprintf(&variables[n], "%s=%s", values[i][0], values[i][1]) >= 0)
            n++;
    if (asprintf(&variables[n], "JVMSCOPE_PID=%ld", (long)getpid()) >= 0)
        n++;
    pthread_mutex_lock(&firings.lock);
    struct child *child = free_place(s->trigger->serial, ret_why);
    if (child) {
        child->trigger = s->trigger->serial;
        snprintf(child->action, sizeof(child->action), "%s", action);
    }
    int r = child ? run_command(action + strlen(ACTION_EXEC), variables, n, &child->ran) : -EBUSY;
    pthread_mutex_unlock(&firings.lock);
    for (size_t i = 0; i < n; i++)
        free(variables[i]);
    return r;
}

static void carry_out(const struct firing *s, JNIEnv *jni)
{
    char last[PATH_MAX] = "", name[PATH_MAX] = "";
    bool any = s->n_actions == 0;
    int named = name_file(s, name);
    for (unsigned i = 0; i < MAX(s->n_actions, 1u); i++) {
        const char *action = any ? "dump" : s->actions[i];
        const char *why = NULL;
        char path[PATH_MAX] = "";
        int r = named;
        if (strcmp(action, "dump") == 0) {
            memcpy(path, name, sizeof(path));
            r = r < 0 ? r : dump_ring(s, path, &why);
        } else if (strcmp(action, "heap-dump") == 0) {
            r = r < 0 ? r : with_ending(name, ".hprof", path);
            r = r < 0 ? r : dump_heap(path, jni, &why);
        } else {
            r = start_command(s, action, last, &why);
        }
        report_result(s->trigger, r, why, *path ? path : action, r == 0 && *path ? path : NULL);
        if (r == 0 && *path) {
            snprintf(last, sizeof(last), "%s", path);
            remove_oldest(s);
        }
    }
    atomic_store(&s->trigger->busy, false);
}

/* ---- the thread ---- */

/* Waits for at most a second, because commands may end meanwhile. Requires the lock. */
static void wait_for_firings(void)
{
    timed_wait(&firings_changed, &firings.lock, NS_PER_SECOND);
}

/* Requires the lock. */
static void reap(void)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        (void)is_running(&children[i]);
}

static void JNICALL run(jvmtiEnv *ti, JNIEnv *jni, void *context)
{
    pthread_mutex_lock(&firings.lock);
    for (;;) {
        if (firings.queue.len == 0 && firings.stop)
            break;
        if (firings.queue.len == 0) {
            wait_for_firings();
            reap();
            continue;
        }
        struct firing *s = firings.queue.data[0];
        memmove(firings.queue.data, firings.queue.data + 1,
                --firings.queue.len * sizeof(firings.queue.data[0]));
        firings.working = true;
        pthread_mutex_unlock(&firings.lock);
        carry_out(s, jni);
        firing_free(s);
        pthread_mutex_lock(&firings.lock);
        firings.working = false;
    }
    firings.running = false;
    vec_release(&firings.queue);
    pthread_cond_broadcast(&firings_changed);
    pthread_mutex_unlock(&firings.lock);
}

int firings_start(JNIEnv *jni)
{
    pthread_mutex_lock(&firings.lock);
    bool running = firings.running;
    firings.stop = false;
    firings.running = true;
    pthread_mutex_unlock(&firings.lock);
    if (running)
        return 0;
    firings.can_dump_heap = vm_dump_prepare(jni) == 0;
    int r = own_thread_start(jni, "jvmscope triggers", run, NULL, NULL);
    pthread_mutex_lock(&firings.lock);
    firings.running = r == 0;
    pthread_mutex_unlock(&firings.lock);
    return r;
}

static struct firing *firing_of(struct session *session, struct trigger *t)
{
    struct firing *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->trigger = t;
    s->max_files = t->max_files;
    uint64_t since_ns = t->fired_ns - MIN(t->before_ns, t->fired_ns);
    /* A beginning of 0 would mean the whole ring. */
    s->since_ticks = MAX(jfr_writer_ticks(session->out.jfr, since_ns), UINT64_C(1));
    s->fd = fcntl(jfr_writer_descriptor(session->out.jfr), F_DUPFD_CLOEXEC, 3);
    s->condition = strdup(t->text);
    memcpy(s->reason, t->reason, sizeof(s->reason));
    memcpy(s->measured, t->measured, sizeof(s->measured));
    snprintf(s->pattern, sizeof(s->pattern), "%s", t->pattern);
    bool good = s->fd >= 0 && s->condition;
    for (unsigned i = 0; i < t->n_actions && good; i++) {
        s->actions[i] = strdup(t->actions[i]);
        s->n_actions += s->actions[i] != NULL;
        good = s->actions[i] != NULL;
    }
    if (good)
        return s;
    firing_free(s);
    return NULL;
}

void firings_take(struct session *session, struct trigger *t)
{
    t->due = false;
    (void)jfr_writer_flush(session->out.jfr);
    struct firing *s = firing_of(session, t);
    pthread_mutex_lock(&firings.lock);
    bool queued = s && firings.running && vec_push(&firings.queue, s) == 0;
    pthread_cond_broadcast(&firings_changed);
    pthread_mutex_unlock(&firings.lock);
    if (queued)
        return;
    report_result(t, -ENOMEM, NULL, "dump", NULL);
    atomic_store(&t->busy, false);
    if (s)
        firing_free(s);
}

void firings_stop(struct session *session, JNIEnv *jni)
{
    struct trigger *t;
    for (unsigned i = 0; (t = trigger_at(i)); i++)
        if (t->due)
            firings_take(session, t);
    uint64_t began = now_ns();
    pthread_mutex_lock(&firings.lock);
    firings.stop = true;
    pthread_cond_broadcast(&firings_changed);
    /*
     * While the VM ends, its threads may make no progress, so the actions that are still due are
     * carried out here. Otherwise this waits for a heap dump as long as it takes.
     */
    while (firings.running && (!vm.dying || firings.working) &&
           (!vm.dying || now_ns() - began < END_MS * NS_PER_MS)) {
        timed_wait(&firings_changed, &firings.lock, 20 * NS_PER_MS);
    }
    while (firings.queue.len) {
        struct firing *s = firings.queue.data[--firings.queue.len];
        pthread_mutex_unlock(&firings.lock);
        carry_out(s, jni);
        firing_free(s);
        pthread_mutex_lock(&firings.lock);
    }
    reap();
    pthread_mutex_unlock(&firings.lock);
}

bool firings_last(const struct trigger *t, char file[PATH_MAX], char error[256])
{
    pthread_mutex_lock(&firings.lock);
    memcpy(file, t->last_file, PATH_MAX);
    memcpy(error, t->last_error, 256);
    pthread_mutex_unlock(&firings.lock);
    return access(file, F_OK) == 0;
}
