/* SPDX-License-Identifier: Apache-2.0 */
#include "options/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

/*
 * CALLS: options that record values. CHANGED: options that change all classes except excluded ones.
 * WAITS: options that record what threads wait for, with stacks.
 */
#define CALLS   "trace|log|watch"
#define CHANGED "cpu=times|cpu=old|alloc|live|heap=sites|heap=all|exceptions=counts|cover"
#define WAITS   "threads|locks|deadlock|monitor|requests|always=y|always=memory"

/* clang-format off */
const struct option_row option_table[OPTION_COUNT] = {
    /* options of HPROF, in the order of its help */
    [OPT_HEAP] = {"heap", "--heap", 0, OPTION_WORD, "dump|sites|all", "heap profiling; all means sites,dump",
                  .default_value = NULL, .bare = "all",
                  .gives = GIVES_STACKS | GIVES_HPROF, .always_refuses = "*"},
    [OPT_CPU] = {"cpu", "--cpu", 0, OPTION_WORD, "samples|times|old|wall", "CPU usage; wall also samples waiting threads and mounted virtual threads; samples,times records both",
                 .bare = "samples",
                 .gives = GIVES_STACKS | GIVES_HPROF, .always_value = "samples", .always_refuses = "times|old|wall"},
    [OPT_MONITOR] = {"monitor", "--monitors", 0, OPTION_YES_NO, "y|n", "monitor contention", .default_value = "n",
                     .bare = "y",
                     .gives = GIVES_STACKS | GIVES_WAITS | GIVES_HPROF},
    [OPT_FORMAT] = {"format", NULL, 0, OPTION_WORD, "a|b|r", "text (txt), binary or recording (jfr) output",
                    .default_value = "a"},
    [OPT_FILE] = {"file", "--output", 'o', OPTION_TEXT, "<file>", "write data to file; %p is the process id, %t the time",
                  .flag_help = "write to this file (jvmscope-PID.jfr); its extension picks the format, as for convert (slow writes only .jfr); %p is the process id, %t the time",
                  .default_value = "java.hprof[{.txt}]"},
    [OPT_NET] = {"net", NULL, 0, OPTION_TEXT, "<host>:<port>", "send data over a socket", .always_refuses = "*"},
    [OPT_DEPTH] = {"depth", "--depth", 'd', OPTION_NUMBER, "<size>", "stack trace depth", .flag_help = "how many methods of each stack to record", .default_value = "4", .acts_on = "cpu|alloc|live|heap=sites|heap=all|exceptions=stacks|" WAITS,
                   .default_record = "128", .max = 16384, .min_record = 1},
    [OPT_INTERVAL] = {"interval", "--interval", 'i', OPTION_DURATION, "<time>", "sample interval, such as 10ms or 500us",
                      .default_value = "10", .min = MS / 20, .max = 3600 * 1000 * MS,
                      .acts_on = "cpu=samples|cpu=wall|requests|always=y|always=memory"},
    [OPT_CUTOFF] = {"cutoff", NULL, 0, OPTION_FRACTION, "<value>", "output cutoff point", .default_value = "0.0001"},
    [OPT_LINENO] = {"lineno", NULL, 0, OPTION_YES_NO, "y|n", "line numbers in traces", .default_value = "y"},
    [OPT_THREAD] = {"thread", NULL, 0, OPTION_YES_NO, "y|n", "threads in traces", .default_value = "n"},
    [OPT_DOE] = {"doe", NULL, 0, OPTION_YES_NO, "y|n", "dump on exit", .default_value = "y"},
    [OPT_MSA] = {"msa", NULL, 0, OPTION_YES_NO, "y|n", "Solaris micro state accounting", .default_value = "n"},
    [OPT_FORCE] = {"force", NULL, 0, OPTION_YES_NO, "y|n", "force output to <file>", .default_value = "y"},
    [OPT_VERBOSE] = {"verbose", NULL, 0, OPTION_YES_NO, "y|n", "print messages about dumps", .default_value = "y",
                     .default_record = "n"},
    [OPT_GC_OKAY] = {"gc_okay", NULL, 0, OPTION_YES_NO, "y|n", "obsolete, no effect", .default_value = "n", .hidden = true},
    /* options that HPROF does not have */
    [OPT_CLOCK] = {"clock", "--clock", 0, OPTION_WORD, "cpu|elapsed", "what exact times measure: CPU time or elapsed time", .default_value = "cpu", .goes_with = "cpu=times|cpu=old"},
    [OPT_NATIVE] = {"native", "--native", 0, OPTION_YES_NO, "y|n", "native frames in samples",
                    .default_value = "n", .bare = "y", .goes_with = "cpu=samples|cpu=wall"},
    [OPT_ALLOC] = {"alloc", "--alloc", 0, OPTION_WORD, "sampled|exact", "allocation profile", .bare = "sampled",
                   .gives = GIVES_STACKS | GIVES_HPROF, .always_value = "sampled", .always_refuses = "exact"},
    [OPT_LIVE] = {"live", "--live", 0, OPTION_WORD, "exact", "live objects by site", .bare = "exact",
                  .gives = GIVES_STACKS | GIVES_HPROF, .always_refuses = "*"},
    [OPT_ONOOM] = {"onoom", "--on-oom", 0, OPTION_WORD, "dump", "heap dump at OutOfMemoryError", .bare = "dump",
                   .gives = GIVES_HPROF},
    [OPT_PARK] = {"park", NULL, 0, OPTION_YES_NO, "y|n", "locks of java.util.concurrent with monitor=y", .default_value = "n",
                  .gives = GIVES_STACKS | GIVES_WAITS | GIVES_HPROF},
    [OPT_THREADS] = {"threads", "--threads", 0, OPTION_YES_NO, "y|n", "thread timeline", .flag_help = "thread timeline: when each thread ran, and what it waited for", .default_value = "n", .bare = "y",
                     .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "threads summary", .always_value = "y"},
    [OPT_CONTANALYSIS] = {"contanalysis", "--contanalysis", 0, OPTION_YES_NO, "y|n", "contention analysis in the timeline",
                          .default_value = "y", .goes_with = "threads|locks|deadlock"},
    [OPT_LOCKS] = {"locks", "--locks", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "every hold of monitors of these classes, in the timeline",
                   .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "threads summary"},
    [OPT_DEADLOCK] = {"deadlock", "--deadlocks", 0, OPTION_YES_NO, "y|n", "deadlocks, as they form", .flag_help = "deadlocks, at the moment at which they form", .default_value = "n",
                      .bare = "y",
                      .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "threads deadlocks"},
    [OPT_REQUESTS] = {"requests", "--requests", 0, OPTION_TEXT, .separator = ':', .values = "<method>", .help = "requests to servers and calls of 'pkg.Class.method(..)', with CPU samples and what threads wait for",
                      .bare = "auto",
                      .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "requests slow", .always_value = "auto"},
    [OPT_TRACE] = {"trace", "--trace", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "calls of these methods, with arguments and results",
                   .gives = GIVES_EVENTS | GIVES_PAGE, .shown_by = "trace"},
    [OPT_IF] = {"if", "--if", 0, OPTION_TEXT, "<condition>", "condition of the --trace before it: arg1 > 100 && time > 5ms", .goes_with = "trace"},
    [OPT_LIMIT] = {"limit", "--limit", 0, OPTION_NUMBER, "<calls>", "maximum number of calls that --trace records", .default_value = "10000000",
                   .min = 1, .max = UINT64_MAX, .goes_with = CALLS "|exceptions=stacks"},
    [OPT_RATE] = {"rate", "--rate", 0, OPTION_NUMBER, "<calls>", "maximum number of calls per second that --trace records",
                  .default_value = "10000000", .min = 1, .max = UINT64_MAX, .goes_with = CALLS},
    [OPT_BYTES] = {"bytes", "--bytes", 0, OPTION_SIZE, "<size>", "maximum size of all calls that --trace records",
                   .default_value = "1g", .min = 1, .max = UINT64_MAX, .goes_with = CALLS},
    [OPT_SHOW] = {"show", "--show", 0, OPTION_TEXT, .separator = ',', .values = "<fields>", .help = "fields of traced objects to record: pkg.Class.field,...", .goes_with = CALLS},
    [OPT_TOSTRING] = {"tostring", "--to-string", 0, OPTION_TEXT, .separator = ',', .values = "<classes>", .help = "call toString() of these classes' traced objects, on a thread of the agent", .goes_with = CALLS},
    [OPT_LOG] = {"log", "--log", 0, OPTION_TEXT, .separator = ';', .values = "<place text>", .help = "values at lines: 'pkg.Class:12 {local} {this.field}, pkg.Class:30 {arg1}'",
                 .gives = GIVES_EVENTS, .shown_by = "trace"},
    [OPT_WATCH] = {"watch", "--watch", 0, OPTION_TEXT, .separator = ':', .values = "<fields>", .help = "reads and writes of pkg.Class.field,... by bytecode, not by reflection, VarHandle, Unsafe or JNI",
                   .gives = GIVES_EVENTS, .shown_by = "trace"},
    [OPT_EXCEPTIONS] = {"exceptions", "--exceptions", 0, OPTION_WORD, "counts|stacks", "exceptions by class, place and handler; each stack costs a few microseconds",
                        .bare = "counts",
                        .gives = GIVES_EVENTS, .shown_by = "trace --exceptions", .always_refuses = "counts"},
    [OPT_EVENTS] = {"events", "--events", 0, OPTION_YES_NO, "y|n", "the VM's own activity: collections, safepoints, compilations, threads, classes",
                    .default_value = "n", .bare = "y",
                    .gives = GIVES_EVENTS, .shown_by = "vm", .always_value = "y"},
    [OPT_JFR] = {"jfr", "--jfr", 0, OPTION_TEXT, "<settings>", "also record with the VM's own Flight Recorder; settings: default, profile or a file.jfc",
                 .bare = "default",
                 .gives = GIVES_EVENTS | GIVES_PAGE, .always_refuses = "*"},
    [OPT_COVER] = {"cover", "--cover", 0, OPTION_YES_NO, "y|n", "line and branch coverage", .default_value = "n",
                   .bare = "y",
                   .gives = GIVES_EVENTS | GIVES_PAGE, .shown_by = "coverage", .always_refuses = "y"},
    [OPT_ALLOW_CONTROL] = {"allow-control", "--allow-control", 0, OPTION_YES_NO, "y|n",
                           "let jvmscope control suspend threads, set locals, redefine classes", .default_value = "n", .bare = "y"},
    [OPT_INCLUDE] = {"include", "--include", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "instrument only these classes", .goes_with = CHANGED},
    [OPT_EXCLUDE] = {"exclude", "--exclude", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "do not instrument these classes", .goes_with = CHANGED "|trace"},
    [OPT_ALWAYS] = {"always", "--always", 0, OPTION_WORD, "y|n|memory", "record all the time and keep the last minutes in a file, or in memory", .default_value = "n", .bare = "y"},
    [OPT_KEEP] = {"keep", "--keep", 0, OPTION_DURATION, "<time>", "how long --always keeps what it records", .default_value = "10m",
                  .min = 1000 * MS, .max = UINT64_C(30) * 86400 * 1000 * MS, .goes_with = "always=y|always=memory"},
    [OPT_MAX_SIZE] = {"maxsize", "--max-size", 0, OPTION_SIZE, "<size>", "how much space --always may use; it is allocated at the start", .default_value = "256m",
                      .min = 4 << 20, .max = UINT64_C(32) << 30, .goes_with = "always=y|always=memory"},
    [OPT_BUDGET] = {"budget", "--budget", 0, OPTION_SHARE, "<share, 0.01% to 100%>", "share of the program's CPU time that --always may cost; it records less to stay below it",
                    .default_value = "1%", .goes_with = "always=y|always=memory"},
    [OPT_ON] = {"on", "--on", 0, OPTION_TEXT, .separator = ';', .values = "<condition>", .help = "with --always: when this holds, write what was recorded around that time into a file: 'request > 500ms', 'cpu > 90% for 30s'", .goes_with = "always=y|always=memory"},
    [OPT_THEN] = {"then", "--then", 0, OPTION_TEXT, .separator = ';', .values = "<action>", .help = "what the --on before it does: dump (the default), heap-dump or exec:COMMAND; several --then do each of them", .goes_with = "on"},
    [OPT_BEFORE] = {"before", "--before", 0, OPTION_DURATION, "<time>", "how much time before its cause a dump of --on covers", .default_value = "60s",
                    .min = 1000 * MS, .max = UINT64_C(30) * 86400 * 1000 * MS, .goes_with = "on"},
    [OPT_AFTER] = {"after", "--after", 0, OPTION_DURATION, "<time>", "how much time after its cause a dump of --on covers", .default_value = "10s",
                   .min = 0, .max = 3600 * 1000 * MS, .goes_with = "on"},
    [OPT_ON_FILE] = {"onfile", "--on-file", 0, OPTION_TEXT, "<file>", "where --on writes; %r is the reason, %t the time, %p the process id; by default next to the ring", .goes_with = "on"},
    [OPT_FILES] = {"files", "--files", 0, OPTION_NUMBER, "<files>", "how many files of --on to keep; the oldest are removed", .default_value = "10",
                   .min = 1, .max = 10000, .goes_with = "on"},
    [OPT_DURATION] = {"duration", "--time", 't', OPTION_DURATION, "<time>", "stop after this time, such as 30s or 5m (slow: 20s); attach counts it from when all classes are changed",
                      .min = MS, .max = UINT64_MAX, .always_refuses = "*"},
    [OPT_CHUNK] = {"chunk", "--chunk", 0, OPTION_SIZE, "<size>", "start a new chunk of a .jfr at this size", .acts_on = "format=r",
                   .default_value = "64m", .min = 1 << 16, .max = UINT64_C(1) << 40},
    [OPT_TIMER] = {"timer", NULL, 0, OPTION_WORD, "auto|thread|perf",
                   "what drives cpu=samples: timers on threads' CPU clocks, or perf_event", .default_value = "auto"},
    [OPT_WALKER] = {"walker", NULL, 0, OPTION_WORD, "auto|vm|agct|jvmti",
                    "how stacks are walked: from the VM's structures, by AsyncGetCallTrace, or by JVM TI at safepoints", .default_value = "auto"},
    [OPT_STACKS] = {"stacks", NULL, 0, OPTION_WORD, "check", "check stacks of callbacks against GetStackTrace", .hidden = true},
    [OPT_CONTROL] = {"control", NULL, 0, OPTION_WORD, "start|stop|ending|dump|status", "a message to an agent that is loaded",
                     .hidden = true},
    [OPT_REPLY] = {"reply", NULL, 0, OPTION_TEXT, "<file>", "where the answer to control goes", .hidden = true},
    [OPT_FAIL] = {"fail", NULL, 0, OPTION_TEXT, "<capture>:<step>", "for tests: this step of a capture's start fails",
                  .hidden = true},
    [OPT_OUTCOME] = {"outcome", NULL, 0, OPTION_NUMBER, "<descriptor>", "where run learns how the recording ended", .max = 65535,
                     .hidden = true},
};

/* clang-format on */

int option_find(const char *name, size_t len)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_table[i].name) == len && memcmp(option_table[i].name, name, len) == 0)
            return i;
    return -ENOENT;
}

bool option_has_word(const char *words, const char *word, size_t len)
{
    for (const char *at = words; at && *at;) {
        size_t n = strcspn(at, "|");
        if (n == len && memcmp(at, word, n) == 0)
            return true;
        at += n + (at[n] == '|');
    }
    return false;
}

void options_help(struct buf *out)
{
    buf_printf(out,
               "hprof, the profiling agent of jvmscope " JVMSCOPE_VERSION "\n\n"
               "usage: java -agentlib:hprof=[help]|[<option>=<value>, ...]\n\n"
               "%-32s %-55s %s\n%-32s %-55s %s\n",
               "Option Name and Value", "Description", "Default", "---------------------",
               "-----------", "-------");
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_table[i];
        if (row->hidden)
            continue;
        char left[80];
        snprintf(left, sizeof(left), "%s=%s", row->name, row->values);
        buf_printf(out, "%-32s %-55s %s\n", left, row->help,
                   i == OPT_HEAP        ? "all"
                   : row->default_value ? row->default_value
                                        : "off");
    }
    buf_printf(out, "\n-Xrunhprof:... and -agentpath:<libhprof.so>=... accept the same options. "
                    "format=b cannot be\n"
                    "combined with monitor=y, cpu=old or cpu=times. On JDK 8 the name hprof finds "
                    "the JDK's own agent\n"
                    "first: use -agentpath there.\n");
}
