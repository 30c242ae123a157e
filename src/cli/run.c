/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run: starts a program with the agent in it, by an argument of java or through JAVA_TOOL_OPTIONS.
 */
#include "base/file.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/convert.h"
#include "cli/push.h"
#include "cli/recording.h"
#include "cli/replaced.h"
#include "cli/run_notes.h"
#include "hotspot/layout.h"
#include "options/control.h"
#include "proto/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static const struct arg_set *const run_sets[] = {&push_set, &capture_set, NULL};

struct run {
    struct capture_options capture;
    struct push_options push;
    struct operands program;
    /* file: what the agent writes, which is the output itself if `direct` */
    char library[PATH_MAX], output[PATH_MAX], file[PATH_MAX];
    struct timespec started; /* in the clock of file times */
    int outcome; /* memory file in which agents write how their recordings ended; -1: none */
};

static volatile sig_atomic_t child;

static void forward(int signal_number)
{
    if (child > 0)
        kill(child, signal_number);
}

/* Returns the output as it was given, with %p. */
static const char *output_pattern(const struct run *run)
{
    return run->capture.output ? run->capture.output : "jvmscope-%p.jfr";
}

/* Returns whether the agent finds the place for the ring. */
static bool has_no_place(const struct run *run)
{
    return capture_always(&run->capture) && !run->capture.output;
}

/*
 * Completes the names that depend on the program's process id; called in the child and in the
 * parent.
 */
static int name_files(struct run *run, pid_t pid)
{
    char name[PATH_MAX], cwd[PATH_MAX];
    int r = expand_file_name(output_pattern(run), pid, name, sizeof(name));
    if (r < 0)
        return r;
    if (!getcwd(cwd, sizeof(cwd)))
        return -errno;
    int n = snprintf(run->output, sizeof(run->output), "%s", name);
    bool as_it_is = recording_is_direct(name) || capture_always(&run->capture);
    int m = snprintf(run->file, sizeof(run->file), "%s%s%s%s", *name == '/' ? "" : cwd,
                     *name == '/' ? "" : "/", name, as_it_is ? "" : ".jfr");
    return n < PATH_MAX && m < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool is_java(const struct run *run)
{
    return strcmp(file_base(run->program.list[0]), "java") == 0;
}

/*
 * Returns whether the file exists or can be created, which the rights of its folder do not say of
 * every file system; sets errno. A name with % is not tried.
 */
static bool can_create(const char *file)
{
    struct stat st;
    if (strchr(file, '%'))
        return true;
    if (stat(file, &st) == 0) {
        errno = EISDIR;
        return !S_ISDIR(st.st_mode);
    }
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST;
    close(fd);
    unlink(file);
    return true;
}

/*
 * Returns 0 if the recording can be written where it is wanted. A program that starts java may do
 * so in another root directory.
 */
static int check_folder(const struct run *run)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(run->file, '/') - run->file) + 1,
             run->file);
    if (has_no_place(run) || (access(folder, W_OK) == 0 && can_create(run->file)))
        return 0;
    bool everywhere = errno == ENOENT || errno == ENOTDIR || errno == EISDIR;
    return is_java(run) || everywhere ? -errno : 0;
}

/* The agent's argument. */
static void put_agent(const struct run *run, struct buf *to)
{
    buf_printf(to, "-agentpath:%s=", run->library);
    recording_options(&run->capture, run->output, has_no_place(run) ? NULL : run->file, to);
    if (run->capture.time_ns)
        buf_printf(to, ",duration=%lluns", (unsigned long long)run->capture.time_ns);
    if (run->outcome >= 0)
        buf_printf(to, ",outcome=%d", run->outcome);
}

/* The value of JAVA_TOOL_OPTIONS: its previous value, followed by the agent. */
static void put_variable(struct buf *to, const char *agent)
{
    const char *before = getenv("JAVA_TOOL_OPTIONS");
    buf_printf(to, "%s%s'", before ? before : "", before ? " " : "");
    for (const char *p = agent; *p; p++)
        /* the VM joins adjacent quoted parts */
        buf_printf(to, *p == '\'' ? "'\"%c\"'" : "%c", *p);
    buf_u8(to, '\'');
}

/*
 * java gets an argument. Any other program, which starts java itself, gets the environment
 * variable.
 */
static char **program_arguments(struct run *run, const char *agent)
{
    char **argv = calloc((size_t)run->program.count + 2, sizeof(*argv));
    if (!argv)
        return NULL;
    memcpy(argv, run->program.list, (size_t)run->program.count * sizeof(*argv));
    if (is_java(run)) {
        memmove(argv + 2, argv + 1, (size_t)(run->program.count - 1) * sizeof(*argv));
        argv[1] = (char *)agent;
        return argv;
    }
    _cleanup_(buf_release) struct buf words = BUF(1 << 20);
    put_variable(&words, agent);
    if (buf_error(&words) || setenv("JAVA_TOOL_OPTIONS", buf_str(&words), 1) < 0) {
        free(argv);
        return NULL;
    }
    return argv;
}

/*
 * In the child: becomes the program. If that fails, the parent gets the reason through the pipe;
 * otherwise the pipe closes.
 */
static void become_program(struct run *run, int pipe_out)
{
    int r = name_files(run, getpid());
    _cleanup_(buf_release) struct buf agent = BUF(1 << 20);
    put_agent(run, &agent);
    char **argv = r == 0 && !buf_error(&agent) ? program_arguments(run, buf_str(&agent)) : NULL;
    if (argv)
        execvp(argv[0], argv);
    r = r < 0 ? r : argv ? -errno : -ENOMEM;
    if (write(pipe_out, &r, sizeof(r)) < 0)
        _exit(126);
    _exit(127);
}

/* Starts the program and waits for its end. Returns 0, or a negative errno if it did not start. */
static int run_program(struct run *run, int *ret_status)
{
    int ends[2], why = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    clock_gettime(CLOCK_REALTIME_COARSE, &run->started);
    /*
     * The terminal's signals reach the program as well, and this process must remain to convert.
     * Other signals are passed on.
     */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTERM, forward);
    signal(SIGHUP, forward);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        file_limit_end();
        close(ends[0]);
        become_program(run, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -errno;
    }
    child = pid;
    ssize_t n = read(ends[0], &why, sizeof(why));
    close(ends[0]);
    struct run_notes notes;
    bool listens = run_notes_begin(&notes, run->outcome);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    if (listens)
        run_notes_end(&notes);
    return n == sizeof(why) ? why : name_files(run, pid);
}

static void report_ring(const char *path)
{
    if (path[0] != '/')
        return;
    if (access(path, F_OK) < 0)
        complain("note", path,
                 "the ring is missing: it was removed, or its folder is visible only to the VM");
    else
        fprintf(stderr,
                "jvmscope: the last minutes are in %s; extract them with: jvmscope dump "
                "--last 5m -o FILE.jfr %s\n",
                path, path);
}

/*
 * Reads how the agents' recordings ended, and complains about each that is incomplete. Returns 0 or
 * the exit status. *ret_refused is set if an agent could not begin, which has been reported.
 * *ret_any is set if an agent has reported the end of a recording.
 */
static int read_outcomes(const struct run *run, bool *ret_refused, bool *ret_any)
{
    _cleanup_free_ uint8_t *lines = NULL;
    size_t len;
    int status = 0;
    *ret_refused = *ret_any = false;
    if (run->outcome < 0 || lseek(run->outcome, 0, SEEK_SET) < 0 ||
        file_read_all(run->outcome, 1 << 24, &lines, &len) < 0)
        return 0;
    for (char *rest = (char *)lines, *line; (line = strsep(&rest, "\n"));) {
        const char *error = strsep(&line, "\t"), *path = strsep(&line, "\t"), *why = line;
        *ret_any |= path && *path;
        if (path && *path && capture_always(&run->capture))
            report_ring(path);
        if (!why || strcmp(error, "0") == 0)
            continue;
        *ret_refused |= !*path;
        status = *path ? complain(path, "some data was not recorded", why) : 1;
    }
    return status;
}

/* Returns the flag with which the program was started to archive its classes, or NULL. */
static const char *archive_flag(const struct run *run)
{
    static const char *const variables[] = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
                                            "_JAVA_OPTIONS"};
    for (const char *const *flag = hotspot_archive_texts; *flag; flag++) {
        char words[64];
        snprintf(words, sizeof(words), "-XX:%s=", *flag);
        for (int i = 0; i < run->program.count; i++)
            if (strncmp(run->program.list[i], words, strlen(words)) == 0)
                return *flag;
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
            if (strstr(getenv(variables[i]) ?: "", words))
                return *flag;
    }
    return NULL;
}

/* Complains that no VM has recorded anything. */
static int print_no_recording(const struct run *run)
{
    enum { VARIABLE_MAX = 1023 }; /* JDK 8 ignores the variable when it is longer */

    char why[256] = "the program started no VM that loaded the agent";
    _cleanup_(buf_release) struct buf agent = BUF(1 << 20), variable = BUF(1 << 20);
    put_agent(run, &agent);
    if (!is_java(run) && !buf_error(&agent))
        put_variable(&variable, buf_str(&agent));
    const char *flag = archive_flag(run);
    if (flag)
        snprintf(why + strlen(why), sizeof(why) - strlen(why),
                 ": JDK 17 and 21 refuse one that is there from the start while they archive "
                 "classes (-XX:%s); jvmscope attach records them",
                 flag);
    else if (variable.len > VARIABLE_MAX)
        snprintf(why + strlen(why), sizeof(why) - strlen(why),
                 "; JDK 8 takes no more than %d characters of JAVA_TOOL_OPTIONS, and it had %zu",
                 VARIABLE_MAX, variable.len);
    return complain(run->file, "no recording was written", why);
}

/*
 * Turns the recording into the output after the program's end. Returns 0, or the exit status after
 * a complaint that something was lost or could not be recorded.
 */
static int finish(struct run *run)
{
    bool refused, any;
    int status = read_outcomes(run, &refused, &any), missing = 0;
    if (refused)
        return status;
    if (has_no_place(run))
        return any ? status
                   : complain("run", "no VM reported the end of a ring",
                              "the program started no VM that loaded the agent, or it was killed");
    if (capture_always(&run->capture) && any)
        return status;
    if (!recording_written(run->file, &run->started))
        return print_no_recording(run);
    if (capture_always(&run->capture)) { /* the VM was killed */
        report_ring(run->file);
        return status;
    }
    if (!recording_is_direct(run->output)) {
        if (convert_copy(run->file, run->output))
            return recording_complain_kept(run->file, NULL);
        missing = contents_report(run->file, run->output);
        unlink(run->file);
    }
    if (status == 0) {
        int announced = recording_announce(&run->capture, run->output);
        missing = MAX(missing, announced);
        recording_announce_dumps(run->file, &run->started);
    }
    if (run->push.url) {
        int pushed = push_file(&run->push, &(struct selection){0}, run->output, run->output);
        status = MAX(status, pushed);
    }
    return MAX(status, missing);
}

/* Complains that a program did not start. Returns the exit status. */
static int cannot_run(const char *program, int error)
{
    char why[PATH_MAX + 200];
    if (error != -ENOENT || strchr(program, '/'))
        return complain_errno(program, "cannot run", error);
    bool jar = file_name_ends_in(program, ".jar");
    snprintf(why, sizeof(why), "no such program; of a %s: jvmscope run -- java %s%.*s",
             jar ? "jar" : "class", jar ? "-jar " : "", PATH_MAX, program);
    return complain(program, "cannot run", why);
}

static int cmd_run(const struct command *self, int argc, char **argv)
{
    struct run run = {.outcome = (int)syscall(SYS_memfd_create, OUTCOME_NAME, 0)};
    int status;
    if (!args_parse(self, ARGS({&push_set, &run.push}, {&capture_set, &run.capture}), argc, argv,
                    &run.program, &status)) {
        capture_release(&run.capture);
        return status;
    }
    if (name_files(&run, 0) < 0) {
        complain(run.capture.output, "not a file name",
                 "%p is the process id, %t the time, %% a percent sign");
        status = 2;
    } else if ((!capture_always(&run.capture) && !recording_check_output(run.output)) ||
               !recording_check(&run.capture, run.output, self->name)) {
        status = 2;
    } else if (!push_check_capture(self->name, &run.push, &run.capture, run.output)) {
        status = 2;
    } else if (strchr(run.file, ',')) {
        complain(run.file, "the name must not contain a comma", NULL);
        status = 2;
    } else if (!capture_always(&run.capture) && check_folder(&run) < 0) {
        status = complain_errno(output_pattern(&run), "cannot write", check_folder(&run));
    } else if (!strchr(output_pattern(&run), '%') &&
               !(capture_always(&run.capture)
                     ? !run.capture.output || replaced_check(run.file, REPLACED_RING)
                     : replaced_check(run.output, NULL) && replaced_check(run.file, NULL))) {
        status = 2;
    } else if (agent_find_library(run.library, sizeof(run.library)) < 0) {
        status = complain("libhprof.so", "not found", "it lies next to the command in a build");
    } else {
        if (!strchr(output_pattern(&run), '%'))
            recording_note_older(run.output);
        int r = run_program(&run, &status);
        if (r < 0) {
            status = cannot_run(run.program.list[0], r);
        } else {
            int lost = finish(&run);
            status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            /*
             * The program's own status is passed on. A loss sets the status only if the program
             * succeeded.
             */
            status = status ? status : lost;
        }
    }
    capture_release(&run.capture);
    return status;
}

const struct command command_run = {
    .name = "run",
    .run = cmd_run,
    .operands = "[--] java ...",
    .min_operands = 1,
    .max_operands = -1,
    .operands_end_options = true,
    .summary = "run a Java program and record it",
    .related = "attach report convert serve dump stop",
    .description =
        "Use it for a program that you start yourself. For one that is already running, use "
        "*jvmscope attach*.\n\n"
        "Runs the program with the agent in it from the start. If the program is java itself, the "
        "agent is passed as an argument; a script that starts java gets it through "
        "JAVA_TOOL_OPTIONS. The program's standard streams and exit status are untouched. Only if "
        "it ends with 0 but something could not be recorded, for example because the disk was "
        "full, no VM was started, or nothing that an option with patterns names (*--trace*, "
        "*--log*, *--watch*, *--requests*, *--locks*, *--show*, *--to-string*, *--include* or "
        "*--exclude*) is there, does the command say what is missing and exit with 1.\n\n"
        "Without an option that says what to record, CPU time is sampled. The extension of the "
        "output picks the format: the agent writes .jfr, .hprof.txt and .hprof itself, and other "
        "formats are made from a .jfr at the end. Only the owner can read what is written, because "
        "a recording holds command lines and the strings that were traced.",
    .caveats =
        "Options that count or trace each call (*--cpu*=times, *--alloc*=exact, *--trace*) slow"
        " down the methods that they change; doc/overhead.md says by how much. "
        "*--alloc*=exact, and *--alloc* on JDK 8, include short-lived objects that the JIT does "
        "not "
        "allocate when nothing counts them (doc/memory.md). If the VM is killed, the .jfr holds "
        "what was written until then.",
    .examples = "  jvmscope run -o app.html -- java -jar app.jar    a flame graph\n"
                "  jvmscope run -o app.jfr -- java -jar app.jar     a recording, for report and "
                "convert\n"
                "  jvmscope run -i 1ms -- mvn package               whatever starts java\n",
    .sets = run_sets,
};
