/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/builtin.h"
#include "cli/heap/verbs.h"

#include <stdio.h>
#include <string.h>

static _Thread_local struct buf *complaints;

void complain_to(struct buf *b)
{
    complaints = b;
}

static const char *alias_path, *alias_shown;

void complain_as(const char *path, const char *shown)
{
    alias_path = path;
    alias_shown = shown;
}

int complain(const char *where, const char *what, const char *why)
{
    _cleanup_(buf_release) struct buf line = BUF(1 << 20);
    const char *parts[] = {where, what, why};
    buf_string(&line, "jvmscope");
    if (where && alias_path && strcmp(where, alias_path) == 0)
        parts[0] = alias_shown;
    for (int i = 0; i < 3; i++) {
        if (parts[i])
            buf_printf(&line, ": %s", parts[i]);
    }
    if (complaints)
        buf_printf(complaints, "%s\n", buf_str(&line));
    else
        fprintf(stderr, "%s\n", buf_str(&line));
    return 1;
}

int complain_errno(const char *where, const char *what, int error)
{
    return complain(where, what, strerror(-error));
}

const struct command commands[] = {
    {
        .name = "run",
        .run = cmd_run,
        .operands = "[--] java ...",
        .min_operands = 1,
        .max_operands = -1,
        .operands_end_options = true,
        .summary = "run a Java program and record it",
        .description =
            "Runs the program with the agent in it from the start. When the program is java itself "
            "the agent is an "
            "argument of it; a script that starts java gets it through JAVA_TOOL_OPTIONS. The "
            "program's standard "
            "streams and its exit status are untouched; where it ends with 0 and not all was "
            "recorded, a full disk for one, the command says what is missing and exits with "
            "1.\n\nWithout an option that says what to record, CPU is sampled. "
            "The extension of the output picks the format: .jfr, .hprof.txt and .hprof are written "
            "by the agent, "
            "others are made of a .jfr at the end. What is written is readable by its owner alone: "
            "a "
            "recording holds command lines and the strings that were traced.",
        .examples = "  jvmscope run -o app.html -- java -jar app.jar    a flame graph\n"
                    "  jvmscope run -o app.jfr -- java -jar app.jar     a recording, for report "
                    "and convert\n"
                    "  jvmscope run -i 1ms -- mvn package               whatever starts java\n",
        .sets = run_sets,
    },
    {
        .name = "attach",
        .run = cmd_attach,
        .operands = "PID | --all | --match PATTERN",
        .min_operands = 0,
        .max_operands = 1,
        .summary = "record a program that runs, for a time",
        .description =
            "Loads the agent into a running VM, of another container or user too when "
            "root asks, and records for the "
            "time given, or until *jvmscope stop* when that comes first; without a time "
            "until *jvmscope stop*. The agent "
            "keeps the time: it ends even if the command is killed, and *jvmscope stop "
            "-o* fetches what was recorded. "
            "Nothing of the agent is active after the end. With *--all* or *--match* the VMs of "
            "all "
            "containers are recorded at the same time; *%p* in the output's name is the process "
            "id.\n\nA VM that cannot write "
            "the output itself (another user's, "
            "one in a container, one with a /tmp of its own) writes to its own /tmp; "
            "the recording is fetched from there, "
            "with the rights of the VM's user, and removed. Outputs are readable by "
            "their owner alone.\n\n"
            "What changes the classes of the program (*--exceptions*, *--live*, "
            "*--alloc*=exact, *--cpu*=times, *--cover*, "
            "*--trace*) takes up to a minute each to begin and to end in a server "
            "with many classes. A batch of classes "
            "stops all threads for 5 to 25 ms; the pauses between them are so long that "
            "of the program's requests the slowest hundredth "
            "waits at most 5 ms longer than without, but never over 30 ms a class or "
            "60 s in all. With *--live*, which collects garbage twice, it was 6 to 10 ms; on "
            "JDK 8 to 12, whose VM stops longer, 8 to 32 ms. Compiled code is made anew "
            "meanwhile. How far it is is shown on standard error. The time that is "
            "given counts from there. *--include* "
            "makes it short.\n\n*--on* without *--always* gives a trigger to a recording that is "
            "always on already; *--on* none removes all of them.",
        .examples =
            "  jvmscope attach -t 30s --match 'com.shop.*'      every such VM, into "
            "jvmscope-PID.jfr\n"
            "  jvmscope attach -t 30s -o app.html 4711          half a minute, as a flame graph\n"
            "  jvmscope attach 4711                             until jvmscope stop 4711\n",
        .sets = attach_sets,
    },
    {
        .name = "list",
        .run = cmd_list,
        .operands = "",
        .summary = "list the Java VMs of this machine",
        .description =
            "Lists the VMs that can be seen, in all containers of the machine, with user, version, "
            "the time since they started, the CPU time that they have used, and program. Those in "
            "containers are marked with the container's id, as its control group tells it, and "
            "its host name; those with a /tmp of their own (systemd's PrivateTmp=yes) and stopped "
            "ones are marked too.",
        .examples = "  jvmscope list\n",
        .sets = list_sets,
    },
    {
        .name = "check",
        .run = cmd_check,
        .operands = "PID",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "check what will work with a VM, and what is missing for the rest",
        .description =
            "Checks whether the VM can be attached to and recorded, whether a heap dump "
            "can be taken, whether CPU samples will have kernel frames, and whether *top* works, "
            "and for each of these that will not, names the permission or setting that is "
            "missing. The VM is not asked and not stopped; files like those of *attach* are made "
            "in its folders and removed. Exits with 0 when it can be recorded.",
        .examples = "  jvmscope check 4711\n",
        .sets = check_sets,
    },
    {
        .name = "status",
        .run = cmd_status,
        .operands = "PID",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "show what the agent in a VM does",
        .description =
            "Asks the agent what it records, since when, and what it has counted. While it "
            "starts or stops a recording, it says how many classes it has changed. For a recording "
            "that is always on, it shows the ring and the triggers: how often each one fired, what "
            "it measured last, and what it wrote.",
        .examples = "  jvmscope status 4711\n",
        .sets = status_sets,
    },
    {
        .name = "dump",
        .run = cmd_dump,
        .operands = "PID|RING",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "write out what was recorded so far; the recording goes on",
        .description =
            "Has the agent write out what it has recorded so far, and says where, how much, "
            "and what was lost. *-o* makes "
            "a complete copy of the recording up to now.\n"
            "\n"
            "For a recording that is always on (*--always*), *--last* takes exactly the "
            "events that ended in that time. Its ring is a file, which can be read in "
            "the same way after the VM has ended, even after a crash.",
        .examples =
            "  jvmscope dump -o so-far.html 4711\n"
            "  jvmscope dump --last 5m -o spike.jfr 4711           the last five minutes\n"
            "  jvmscope dump --last 5m -o crash.jfr /var/tmp/jvmscope-4711-20261124-070000.ring\n",
        .sets = dump_sets,
    },
    {
        .name = "stop",
        .run = cmd_stop,
        .operands = "PID",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "end a recording",
        .description = "Ends the recording that *jvmscope attach* or *jvmscope run* began, and "
                       "writes it out. A recording that "
                       "ended by its own time is fetched as well, with *-o*.",
        .examples = "  jvmscope stop 4711\n"
                    "  jvmscope stop -o app.html 4711\n",
        .sets = stop_sets,
    },
    {
        .name = "top",
        .run = cmd_top,
        .operands = "PID",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "show a running VM: heap, collections, threads, classes, compilation",
        .description = "Shows a table every second, on a terminal in place. What is shown comes "
                       "from the counters that the VM "
                       "publishes and from /proc, at no cost for the program; thread states need "
                       "the agent (*--states*).",
        .examples = "  jvmscope top 4711\n"
                    "  jvmscope top --json -i 10s 4711 >>vm.jsonl       a line every ten seconds\n",
        .sets = top_sets,
    },
    {
        .name = "inspect",
        .run = cmd_inspect,
        .operands = "PID WHAT [OPERAND]",
        .min_operands = 2,
        .max_operands = 3,
        .summary = "look at the threads, classes and objects of a running VM",
        .description = "Asks the agent in the VM, which is loaded if need be. WHAT is one of: "
                       "*threads*, *groups*, *stack* THREAD (a name "
                       "or number), *classes* [PATTERN], *class* NAME, *statics* NAME, *modules*, "
                       "*instances* CLASS, *object* NUMBER, *free* "
                       "NUMBER|all, *properties*, *vm*, *deadlocks*. Objects are shown as "
                       "Class@NUMBER; a number stays valid over collections until the "
                       "object dies or is freed. No code of the program is called. A stack has its "
                       "locals when the agent was there from the "
                       "start: the VM gives them to none that comes later. A logpoint (*attach "
                       "--log*) reads locals at a line in any VM.",
        .examples = "  jvmscope inspect 4711 threads\n"
                    "  jvmscope inspect 4711 stack main                 frames with their locals\n"
                    "  jvmscope inspect 4711 class java.util.HashMap    fields, methods, where "
                    "compiled code lies\n"
                    "  jvmscope inspect 4711 instances java.util.Timer\n"
                    "  jvmscope inspect 4711 object 17\n",
        .sets = inspect_sets,
    },
    {
        .name = "control",
        .run = cmd_control,
        .operands = "PID VERB [OPERAND ...]",
        .min_operands = 2,
        .max_operands = 6,
        .operands_end_options = true,
        .summary =
            "hold threads, change locals, step, redefine classes in a running VM that allows it",
        .description =
            "Works only in a VM that was started with *--allow-control*. The VM prints and "
            "records every order. VERB is one of: *suspend* "
            "THREAD (a name, or a number that inspect shows), *resume* THREAD, "
            "*interrupt* THREAD, *stop* THREAD [EXCEPTION], *pop* "
            "THREAD (its top call begins anew), *return* THREAD [VALUE] (its top call "
            "returns at once), *set* THREAD DEPTH NAME VALUE "
            "(a local of a frame, 0 is the innermost; #3:I is slot 3 as int), *break* "
            "PLACE and *clear* PLACE (pkg.Class.method "
            "or pkg.Class:LINE), *step* THREAD [into|over|out], *redefine* FILE, "
            "*verbose* gc|class|jni on|off, *list*. A value is a "
            "number, true, false, 'c', null, \"text\" or @NUMBER, an object that "
            "inspect shows. When the recording ends, held "
            "threads run on and breakpoints are removed.",
        .examples =
            "  jvmscope run --allow-control -o app.jfr -- java -jar app.jar\n"
            "  jvmscope control 4711 break com.shop.Cart:42\n"
            "  jvmscope control 4711 list                       who is held where\n"
            "  jvmscope inspect 4711 stack worker-1             its frames with their locals\n"
            "  jvmscope control 4711 set worker-1 0 total 100\n"
            "  jvmscope control 4711 step worker-1 over\n"
            "  jvmscope control 4711 resume worker-1\n",
        .sets = control_sets,
    },
    {
        .name = "report",
        .run = cmd_report,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "print the ranked methods and the hottest stacks of a recording",
        .description = "Reads a recording (JFR of any JDK, HPROF text or binary, pprof, collapsed "
                       "stacks) and prints its methods, ranked by "
                       "their own time (self), with the time of what they called (total; recursion "
                       "counts once), and the hottest "
                       "stacks, the running method first.\n\nFor CPU samples, the head says how "
                       "much CPU time the "
                       "whole process used, and how much of "
                       "it the compilers, the collector and other threads without Java code used. "
                       "These are not sampled, and the shares of "
                       "methods are of the Java threads' time alone. In the page's flame graph "
                       "they stand beside the program.",
        .examples = "  jvmscope report app.jfr                          the whole recording\n"
                    "  jvmscope report --thread 'worker-*' app.jfr      of some threads alone\n"
                    "  jvmscope report --from 10s --to 20s app.jfr      of a window of time\n"
                    "  jvmscope report --json app.jfr                   for a program\n",
        .sets = report_sets,
    },
    {
        .name = "diff",
        .run = cmd_diff,
        .operands = "BASE NEW",
        .min_operands = 2,
        .max_operands = 2,
        .summary = "compare the methods of two recordings",
        .description = "Prints the methods whose share of the whole changed most from one "
                       "recording to the other.",
        .examples = "  jvmscope diff before.jfr after.jfr\n",
        .sets = diff_sets,
    },
    {
        .name = "trace",
        .run = cmd_trace,
        .operands = "FILE | PID add|remove|list [PATTERN]",
        .min_operands = 1,
        .max_operands = 3,
        .summary = "list traced calls with arguments and results; switch tracing in a running VM",
        .description =
            "For a recording made with *--trace*: prints its calls in order of time, nested calls "
            "indented, each with its "
            "arguments and what it returned or threw. For a process that is being traced, given by "
            "its number: *add* a pattern, "
            "*remove* one, *list* them.\n\nA pattern is package.Class.method, where a star stands "
            "for any characters, or a prefix of it "
            "that ends at a dot; a descriptor behind it chooses one of several methods of a name. "
            "@pkg.Annotation matches annotated methods and all methods "
            "of annotated classes, 'implements pkg.Type' those of the program's classes below a "
            "type. Commas separate patterns, and *--trace* may be given several times.\n\nValues "
            "are shown as people read them: boxes, enum constants, classes and "
            "optionals by their values, arrays, collections and maps with their sizes and first "
            "five elements, exceptions with their messages; "
            "all of this is read from memory and runs none of the program's code. Other objects "
            "are Class@hash, with what *--show* names "
            "of their fields; *--to-string* calls the method on a thread of the agent's, which the "
            "program waits for 100 ms at most, "
            "once a class.\n\nA condition of *--if* compares argN, return, this, their .length (of "
            "strings, arrays, collections and maps), time, "
            "depth, thrown and thread, the thread's name, and fields as the call begins: this.f, "
            "arg1.f.g, pkg.Class.f for a static one; a comparison with null on the way is false. "
            "It belongs to the *--trace* before it; "
            "with "
            "*PID add* it is of the pattern that is added. Boxes count as their values, enum "
            "constants as their names.\n\nWhat *--log* and "
            "*--watch* recorded stands between the calls. A logpoint is a class or source file and "
            "a line, then a text with locals, "
            "fields, lengths and the thread in braces: 'com.shop.Cart:42 {total} of "
            "{this.user.name}, "
            "{items.length} in {thread}'; several are separated "
            "by a semicolon. {#1:I} is slot 1 as int, "
            "where the class was compiled without a table of locals. Files are found by source "
            "maps (JSR-45) too: 'cart.jsp:7'. "
            "A watch sees what code does with a field, not reflection or native code.",
        .examples = "  jvmscope run --trace 'com.shop.Cart.*' -o app.jfr -- java -jar app.jar\n"
                    "  jvmscope run --trace com.shop.Db.query --if 'time > 5ms' -o app.jfr -- java "
                    "-jar app.jar\n"
                    "  jvmscope trace app.jfr\n"
                    "  jvmscope trace 4711 add 'com.shop.Order.total()J' --if 'return > 100'\n",
        .sets = trace_sets,
    },
    {
        .name = "coverage",
        .run = cmd_coverage,
        .operands = "FILE ...",
        .min_operands = 1,
        .max_operands = -1,
        .summary = "show which classes, methods, lines and branches ran",
        .description =
            "Reads recordings made with *--cover* and adds them up: a line ran when it ran in one "
            "of them. Prints a "
            "table, or writes a file for other tools; the extension of the output picks its form.",
        .examples = "  jvmscope run --cover -o app.jfr -- java -jar app.jar\n"
                    "  jvmscope coverage app.jfr                        a table of classes\n"
                    "  jvmscope coverage --sources src -o app.html a.jfr b.jfr\n",
        .sets = coverage_sets,
    },
    {
        .name = "convert",
        .run = cmd_convert,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "turn a recording, or a part of it, into another format",
        .description =
            "Writes a recording, or the selected part of it, in another format. The extension of "
            "the output picks the format: "
            "*.html*, *.collapsed*, *.pb.gz*, *.otlp*, *.hprof.txt*, *.hprof* and *.jfr* "
            "for samples, *.trcxml*, *.pftrace* and "
            "*.json* for threads. With --push it is sent to a profiling backend: as "
            "OTLP over HTTP to a path that ends in /v1development/profiles, as a "
            "Pyroscope upload to one that ends in /ingest (as pprof with ?format=pprof, "
            "otherwise as JFR). otlp+http://HOST:PORT and pyroscope+http://HOST:PORT stand for "
            "these paths.",
        .examples = "  jvmscope convert app.jfr -o app.html             flame graph and table, one "
                    "file, works offline\n"
                    "  jvmscope convert app.jfr -o app.pb.gz            for pprof\n"
                    "  jvmscope convert app.jfr -o app.otlp             for OpenTelemetry\n"
                    "  OTEL_SERVICE_NAME=shop jvmscope convert --push "
                    "http://localhost:4318/v1development/profiles app.jfr\n"
                    "  jvmscope convert --thread main app.jfr -o main.collapsed\n"
                    "  jvmscope convert app.jfr -o app.hprof.txt        HPROF's text; .hprof for "
                    "its binary records\n"
                    "  jvmscope convert --from 5s app.jfr -o part.jfr   a part of the recording\n"
                    "  jvmscope convert app.jfr -o app.pftrace          threads for Perfetto; "
                    ".json for chrome://tracing,\n"
                    "                                                   .trcxml for the thread "
                    "profiler of TPTP\n",
        .sets = convert_sets,
    },
    {
        .name = "serve",
        .run = cmd_serve,
        .operands = "FILE ...",
        .min_operands = 1,
        .max_operands = -1,
        .summary = "show recordings and heap dumps in a browser, from this machine",
        .description = "Prints an address to open and serves the files there until it is "
                       "interrupted. The address carries a random token; "
                       "requests without it, for another host or from another site are refused. "
                       "Only this machine can reach it, "
                       "unless --listen says otherwise.",
        .examples = "  jvmscope serve app.jfr                           one recording\n"
                    "  jvmscope serve before.jfr after.jfr app.hprof    several files\n",
        .sets = serve_sets,
    },
    {
        .name = "completion",
        .run = cmd_completion,
        .operands = "bash|zsh|fish",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "print the completion of this command for a shell",
        .description =
            "Prints a script that makes the shell complete commands, options and process ids.",
        .examples = "  . <(jvmscope completion bash)                    for this shell\n",
    },
    {
        .name = "manual",
        .run = cmd_manual,
        .operands = "[COMMAND]",
        .max_operands = 1,
        .summary = "print a manual page as scdoc's source",
        .description = "Prints the source of a manual page; the build makes the pages from it.",
        .examples =
            "  jvmscope manual report | scdoc | man -l -        read one without installing\n",
    },
    {
        .name = "heap",
        .verbs = heap_verbs,
        .summary = "show what a heap dump holds, and why",
    },
    {
        .name = "requests",
        .run = cmd_requests,
        .verbs = requests_verbs,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary =
            "show the requests of a server, how long they took, and why the slow ones are slow",
        .description =
            "Reads a recording made with *--requests* and prints a row for each request name, the "
            "one "
            "with the most time in all first: how many requests there were, how many a second, "
            "how many failed, percentiles of their latency, CPU time a request, and what took most "
            "of the latency. Spans of async-profiler, Datadog's endpoint events, and events of any "
            "recorder with a field annotated as jdk.jfr.Contextual count as requests too.",
        .examples = "  jvmscope run --requests -o app.jfr -- java -jar app.jar\n"
                    "  jvmscope requests app.jfr                        a row for each name\n"
                    "  jvmscope requests slow app.jfr                   why the slow ones are "
                    "slow\n"
                    "  jvmscope requests show 4711 app.jfr              one request\n",
        .sets = requests_sets,
    },
    {
        .name = "vm",
        .run = cmd_vm,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "show what the VM did by itself: collections, safepoints, compilations, memory",
        .description =
            "Reads a recording made with *--events*, one that is always on, or one of the JDK's "
            "Flight "
            "Recorder, and prints collections by collector and cause, with their pauses and what "
            "they freed; "
            "safepoints by operation, with the way to them, and the thread that was late to the "
            "slow ones, with the method that it was in; compilations, deoptimizations by method "
            "and "
            "reason; CPU, memory, threads, files and classes of the process, and what its "
            "container "
            "denied it.\n\nOn JDK 8 the VM names no operation but "
            "collections, and of safepoints that follow each other within a tenth of a second only "
            "number and total time are known. Late threads are named by the samples of *--cpu*.",
        .examples = "  jvmscope run --events --cpu -o app.jfr -- java -jar app.jar\n"
                    "  jvmscope vm app.jfr\n"
                    "  jvmscope vm --from 10s --to 20s --json app.jfr\n",
        .sets = vm_sets,
    },
    {
        .name = "slow",
        .run = cmd_slow,
        .operands = "PID",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "explain why the slow requests of a running server are slow",
        .description =
            "Records the requests of a running VM for 20 seconds, or as long as *-t* says, as "
            "*jvmscope attach --requests* does, and prints for each name how many were slow, what "
            "the slow ones did that the typical ones did not, and whose fault that was. The "
            "recording stays: *jvmscope requests slow* shows the stacks, *jvmscope requests show* "
            "one request.",
        .examples = "  jvmscope slow 4711\n"
                    "  jvmscope slow -t 1m --over 500ms -o slow.jfr 4711\n"
                    "  jvmscope slow --requests 'com.shop.Order.handle(..)' 4711\n",
        .sets = slow_now_sets,
    },
    {
        .name = "collect",
        .run = cmd_collect,
        .operands = "",
        .summary = "collect and keep the profiles of many machines, for jvmscope fleet",
        .description =
            "Accepts recordings and profiles over HTTP and keeps them in a store: each sample with "
            "its time, stack, service, version, host, instance and labels, and the latencies of "
            "requests. *jvmscope fleet* queries it. An upload that is sent twice counts once, and "
            "an upload is on the disk before it is acknowledged, so a crash at any moment neither "
            "loses nor duplicates anything.\n\n"
            "Without *--token* it listens on loopback addresses only. An upload that exceeds a "
            "limit is answered with 413 or 429 and the name of the limit. doc/fleet.md describes "
            "paths, answers and tables.",
        .examples = "  jvmscope collect --store sqlite:fleet.db\n"
                    "  curl --data-binary @app.jfr "
                    "'http://127.0.0.1:4040/v1/upload?service=shop&version=1.8&host=web1'\n"
                    "  jvmscope collect --store sqlite:fleet.db --listen 0.0.0.0:4040 --token "
                    "shop=SECRET\n",
        .sets = collect_sets,
    },
    {
        .name = "host",
        .run = cmd_host,
        .operands = "",
        .summary = "record all VMs of this machine and send their profiles to a collector",
        .description =
            "Finds the VMs of this machine, including those in containers, starts *jvmscope attach "
            "--always* in each, and sends what they recorded to a *jvmscope collect* every minute. "
            "A profile is named by OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES in the VM's "
            "environment and by the variables that Kubernetes sets (POD_NAME, POD_NAMESPACE, "
            "NODE_NAME), and otherwise by its main class or jar.\n\n"
            "A profile that cannot be sent is kept on the disk and sent later, in order and once. "
            "When this command ends, the agents keep recording, and the next start of this command "
            "continues where it stopped.",
        .examples = "  jvmscope host --to http://collector:4040 --token @/etc/jvmscope.token\n"
                    "  jvmscope host --match 'com.shop.*' --to http://127.0.0.1:4040\n",
        .sets = host_sets,
    },
    {.name = "fleet",
     .verbs = fleet_verbs,
     .summary = "query the profiles of many machines: cost, flame graphs, differences"},
    {.name = "threads",
     .verbs = threads_verbs,
     .summary = "show who waits for whom: tables, timeline, critical path, what-if"},
    {0},
};
