/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/text.h"

#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { OUT_LIMIT = 64 << 10 };

static const char preamble[] =
    "\n"
    "Written by jvmscope in the text format of the HPROF agent.\n"
    "\n"
    "THREAD START  a thread: its object's id, its serial number (id), its name and group; THREAD "
    "END names the serial number.\n"
    "TRACE         a stack, the innermost frame first, cut at depth=. Other sections refer to it "
    "by its number.\n"
    "SITES         allocation by class and TRACE: bytes and objects that are live, and all that "
    "were ever allocated.\n"
    "HEAP DUMP     every reachable object with the references it holds:\n"
    "              ROOT  why an object is alive     CLS  a class, its static references and "
    "constants\n"
    "              OBJ   an instance                ARR  an array; sz is the object's size in the "
    "heap\n"
    "CPU SAMPLES   TRACEs by how often a thread that used a CPU was seen in them.\n"
    "CPU TIME      TRACEs by the CPU time spent in their first method; count is the number of "
    "calls, all of them.\n"
    "              After them, by count and with a self of 0.00 %, those whose time is not known: "
    "the CPU clock was read\n"
    "              less than ten times for it, or it is their callers'.\n"
    "MONITOR TIME  TRACEs and monitors by the time that threads were blocked there; count is how "
    "often.\n"
    "MONITOR DUMP  threads and monitors at one moment. Status: R runs, S suspended, CW waits for a "
    "condition,\n"
    "              MW waits to enter a monitor, SL sleeps, P parked, ZO ended.\n"
    "Sizes are those that the VM reports for the object. Live means after a full collection.\n"
    "\n"
    "--------\n"
    "\n";

/* Formats the time like ctime, without the newline. */
static const char *date(char text[32], time_t when)
{
    struct tm tm;
    if (!localtime_r(&when, &tm) || !asctime_r(&tm, text))
        return "";
    text[strcspn(text, "\n")] = '\0';
    return text;
}

int hprof_text_flush(struct hprof_text *t)
{
    if (!t->error && buf_error(&t->out))
        t->error = buf_error(&t->out);
    if (!t->error && t->out.len) {
        int r = t->sink.write(t->sink.ctx, t->out.data, t->out.len);
        if (r < 0)
            t->error = r;
    }
    buf_clear(&t->out);
    return t->error;
}

/* Returns room for a line of at most n bytes, or NULL after a failure. */
static char *line_room(struct hprof_text *t, size_t n)
{
    if (t->out.len >= OUT_LIMIT)
        hprof_text_flush(t);
    if (t->error)
        return NULL;
    char *p = (char *)buf_add(&t->out, n);
    if (!p)
        hprof_text_flush(t);
    return p;
}

/* Gives back the unused part, after `end`, of what line_room() provided. */
static void line_done(struct hprof_text *t, const char *end)
{
    t->out.len = (size_t)(end - (char *)t->out.data);
}

static void line(struct hprof_text *t, const char *format, ...) printf_like(2, 3);

static void line(struct hprof_text *t, const char *format, ...)
{
    if (t->out.len >= OUT_LIMIT)
        hprof_text_flush(t);
    if (t->error)
        return;
    va_list args;
    va_start(args, format);
    buf_vprintf(&t->out, format, args);
    va_end(args);
}

int hprof_text_init(struct hprof_text *t, struct hprof_sink sink, time_t created)
{
    char when[32];
    *t = (struct hprof_text){.sink = sink, .out = BUF(SIZE_MAX / 2)};
    if (created == 0)
        return 0;
    line(t, HPROF_MAGIC_1_0_1 ", created %s\n", date(when, created));
    buf_string(&t->out, preamble);
    return hprof_text_flush(t);
}

void hprof_text_release(struct hprof_text *t)
{
    buf_release(&t->out);
}

/*
 * Flushes after a section, because a front-end at the other end of a socket must see it
 * immediately.
 */
static void section_end(struct hprof_text *t)
{
    if (t->lines)
        hprof_text_flush(t);
}

void hprof_text_thread_start(struct hprof_text *t, uint64_t object, uint32_t serial,
                             const char *name, const char *group)
{
    line(t, "THREAD START (obj=%" PRIx64 ", id = %" PRIu32 ", name=\"%s\", group=\"%s\")\n", object,
         serial, name, group);
}

void hprof_text_thread_end(struct hprof_text *t, uint32_t serial)
{
    line(t, "THREAD END (id = %" PRIu32 ")\n", serial);
}

void hprof_text_trace(struct hprof_text *t, uint32_t serial, uint32_t thread)
{
    if (thread)
        line(t, "TRACE %" PRIu32 ": (thread=%" PRIu32 ")\n", serial, thread);
    else
        line(t, "TRACE %" PRIu32 ":\n", serial);
}

void hprof_text_trace_empty(struct hprof_text *t)
{
    line(t, "\t<empty>\n");
}

void hprof_text_frame(struct hprof_text *t, const char *method, const char *source, int32_t number)
{
    if (!source)
        source = "Unknown Source";
    if (number > 0)
        line(t, "\t%s(%s:%" PRId32 ")\n", method, source, number);
    else
        line(t, "\t%s(%s:%s)\n", method, source,
             number == HPROF_LINE_COMPILED ? "Compiled method" : "Unknown line");
}

void hprof_text_sites_begin(struct hprof_text *t, const char *order, time_t when)
{
    char text[32];
    line(t,
         "SITES BEGIN (ordered by %s) %s\n"
         "          percent          live          alloc'ed  stack class\n"
         " rank   self  accum     bytes objs     bytes  objs trace name\n",
         order, date(text, when));
}

void hprof_text_site(struct hprof_text *t, const struct hprof_text_site *s)
{
    line(t,
         "%5" PRIu32 " %5.2f%% %5.2f%% %9" PRIu64 " %4" PRIu64 " %9" PRIu64 " %5" PRIu64
         " %5" PRIu32 " %s\n",
         s->rank, s->self, s->accumulated, s->live_bytes, s->live_objects, s->alloc_bytes,
         s->alloc_objects, s->trace, s->class_name);
}

void hprof_text_sites_end(struct hprof_text *t)
{
    line(t, "SITES END\n");
    section_end(t);
}

void hprof_text_live_errors_begin(struct hprof_text *t)
{
    line(t, "LIVE ERRORS BEGIN (standard errors of live figures in SITES; ranks that are not here "
            "are exact)\n"
            " rank     bytes objs\n");
}

void hprof_text_live_error(struct hprof_text *t, uint32_t rank, uint64_t bytes, uint64_t objects)
{
    line(t, "%5" PRIu32 " %9" PRIu64 " %4" PRIu64 "\n", rank, bytes, objects);
}

void hprof_text_live_errors_end(struct hprof_text *t, unsigned below, uint64_t below_bytes,
                                uint64_t all_bytes)
{
    line(t,
         "of all live bytes: %" PRIu64 "; below the error and ranked last: %s, %s in all\n"
         "LIVE ERRORS END\n",
         all_bytes, COUNT_TEXT(below, "sites"), COUNT_TEXT(below_bytes, "bytes"));
    section_end(t);
}

void hprof_text_left_out(struct hprof_text *t, uint64_t sites, uint64_t bytes, uint64_t objects)
{
    line(t, "LEFT OUT BEGIN (what sites below the cutoff allocated)\n");
    line(t, "%s: %s in %s\n", COUNT_TEXT(sites, "sites"), COUNT_TEXT(bytes, "bytes"),
         COUNT_TEXT(objects, "objects"));
    line(t, "LEFT OUT END\n");
    section_end(t);
}

void hprof_text_not_counted(struct hprof_text *t, uint64_t bytes, uint64_t objects)
{
    line(t, "NOT COUNTED BEGIN (what the VM itself and code that is not changed allocated)\n");
    if (objects)
        line(t, "estimated from samples: %" PRIu64 " bytes in %s\n", bytes,
             COUNT_TEXT(objects, "objects"));
    else
        line(t, "unknown: no samples were taken\n");
    line(t, "NOT COUNTED END\n");
    section_end(t);
}

static const struct {
    const char *lead, *title, *unit, *what, *suffix;
} ranked[] = {
    [HPROF_RANKED_SAMPLES] = {"", "CPU SAMPLES", "", "method", ""},
    [HPROF_RANKED_TIMES] = {"", "CPU TIME (ms)", "", "method", ""},
    [HPROF_RANKED_MONITORS] = {"", "MONITOR TIME", " ms", "monitor", " (Java)"},
    [HPROF_RANKED_WALL] = {HPROF_TEXT_WALL "\n", "CPU SAMPLES", "", "method", ""},
};

void hprof_text_ranked_begin(struct hprof_text *t, enum hprof_ranked kind, uint64_t total,
                             time_t when)
{
    char text[32];
    line(t, "%s%s BEGIN (total = %" PRIu64 "%s) %s\nrank   self  accum   count trace %s\n",
         ranked[kind].lead, ranked[kind].title, total, ranked[kind].unit, date(text, when),
         ranked[kind].what);
}

void hprof_text_ranked(struct hprof_text *t, enum hprof_ranked kind, uint32_t rank, double self,
                       double accumulated, uint64_t count, uint32_t trace, const char *name)
{
    line(t, "%4" PRIu32 " %5.2f%% %5.2f%% %7" PRIu64 " %5" PRIu32 " %s%s\n", rank, self,
         accumulated, count, trace, name, ranked[kind].suffix);
}

void hprof_text_ranked_end(struct hprof_text *t, enum hprof_ranked kind)
{
    line(t, "%s END\n", ranked[kind].title);
    section_end(t);
}

void hprof_text_old_begin(struct hprof_text *t)
{
    line(t, "count callee caller time\n");
}

void hprof_text_old(struct hprof_text *t, uint64_t count, const char *callee, const char *caller,
                    uint64_t ms)
{
    line(t, "%" PRIu64 " %s %s %" PRIu64 "\n", count, callee, caller ? caller : "<unknown caller>",
         ms);
}

static void thread_or_unknown(struct hprof_text *t, uint32_t thread)
{
    if (thread)
        line(t, " thread %" PRIu32, thread);
    else
        line(t, " <unknown thread>");
}

void hprof_text_wait(struct hprof_text *t, const char *descriptor, int64_t timeout_ms,
                     uint32_t thread)
{
    line(t, "WAIT: MONITOR %s, timeout=%" PRId64 ",", descriptor, timeout_ms);
    thread_or_unknown(t, thread);
    line(t, "\n");
}

void hprof_text_waited(struct hprof_text *t, const char *descriptor, int64_t time_ms,
                       uint32_t thread)
{
    line(t, "WAITED: MONITOR %s, time_waited=%" PRId64 ",", descriptor, time_ms);
    thread_or_unknown(t, thread);
    line(t, "\n");
}

void hprof_text_monitors_begin(struct hprof_text *t)
{
    line(t, "MONITOR DUMP BEGIN\n");
}

void hprof_text_monitors_thread(struct hprof_text *t, uint32_t thread, uint32_t trace,
                                uint32_t state)
{
    /*
     * The bits of java.lang.Thread's state, as in JVM TI's GetThreadState. The first row that
     * matches is used.
     */
    static const struct {
        uint32_t bits;
        const char *letters;
    } states[] = {
        {0x400, "MW"}, {0x40, "SL"}, {0x200, "P"}, {0x100, "CW"},
        {0x80, "CW"},  {0x2, "ZO"},  {0x1, "R"},   {0, "NS"},
    };

    unsigned i = 0;
    while (states[i].bits && !(state & states[i].bits))
        i++;
    /* Suspended is printed first and interrupted last, as parts of the same word. */
    line(t, "    THREAD %" PRIu32 ", trace %" PRIu32 ", status: %s%s%s\n", thread, trace,
         state & 0x100000 ? "S|" : "", states[i].letters, state & 0x200000 ? "|INTR" : "");
}

static void threads(struct hprof_text *t, const char *what, const uint32_t *serials, size_t n)
{
    line(t, "\t%s:", what);
    for (size_t i = 0; i < n; i++)
        line(t, "%s thread %" PRIu32, i ? "," : "", serials[i]);
    line(t, "\n");
}

void hprof_text_monitor(struct hprof_text *t, const char *descriptor, uint32_t owner,
                        uint32_t entries, const uint32_t *enterers, size_t n_enterers,
                        const uint32_t *waiters, size_t n_waiters)
{
    if (owner)
        line(t, "    MONITOR %s\n\towner: thread %" PRIu32 ", entry count: %" PRIu32 "\n",
             descriptor, owner, entries);
    else
        line(t, "    MONITOR %s unowned\n", descriptor);
    threads(t, "waiting to enter", enterers, n_enterers);
    threads(t, "waiting to be notified", waiters, n_waiters);
}

void hprof_text_monitors_end(struct hprof_text *t)
{
    line(t, "MONITOR DUMP END\n");
    section_end(t);
}

void hprof_text_heap_begin(struct hprof_text *t, uint64_t objects, uint64_t bytes, time_t when)
{
    char text[32];
    line(t, "HEAP DUMP BEGIN (%" PRIu64 " objects, %" PRIu64 " bytes) %s\n", objects, bytes,
         date(text, when));
}

void hprof_text_root(struct hprof_text *t, enum hprof_sub_tag kind, uint64_t object, uint64_t a,
                     uint32_t b, const char *name)
{
    uint32_t thread = (uint32_t)a;
    line(t, "ROOT %" PRIx64 " ", object);
    switch (kind) {
    case HPROF_ROOT_THREAD_OBJECT:
        line(t, "(kind=<thread>, id=%" PRIu32 ", trace=%" PRIu32 ")\n", thread, b);
        break;
    case HPROF_ROOT_JNI_GLOBAL:
        line(t, "(kind=<JNI global ref>, id=%" PRIx64 ", trace=%" PRIu32 ")\n", a, b);
        break;
    case HPROF_ROOT_JNI_LOCAL:
        line(t, "(kind=<JNI local ref>, thread=%" PRIu32 ", frame=%" PRId32 ")\n", thread,
             (int32_t)b);
        break;
    case HPROF_ROOT_JAVA_FRAME:
        line(t, "(kind=<Java stack>, thread=%" PRIu32 ", frame=%" PRId32 ")\n", thread, (int32_t)b);
        break;
    case HPROF_ROOT_NATIVE_STACK:
        line(t, "(kind=<native stack>, thread=%" PRIu32 ")\n", thread);
        break;
    case HPROF_ROOT_THREAD_BLOCK:
        line(t, "(kind=<thread block>, thread=%" PRIu32 ")\n", thread);
        break;
    case HPROF_ROOT_STICKY_CLASS:
        line(t, "(kind=<system class>, name=%s)\n", name);
        break;
    case HPROF_ROOT_MONITOR_USED:
        line(t, "(kind=<busy monitor>)\n");
        break;
    default:
        line(t, "(kind=<unknown>)\n");
    }
}

void hprof_text_class(struct hprof_text *t, uint64_t id, const char *name, uint32_t trace)
{
    line(t, "CLS %" PRIx64 " (name=%s, trace=%" PRIu32 ")\n", id, name, trace);
}

/*
 * There are tens of millions of objects, fields and elements, so their lines are formatted by hand.
 * p must have room. Each function returns the address after what it wrote.
 */
static char *put_str(char *p, const char *s, size_t len)
{
    memcpy(p, s, len);
    return p + len;
}

static char *put_hex(char *p, uint64_t v)
{
    unsigned digits = v ? (67 - (unsigned)__builtin_clzll(v)) / 4 : 1;
    for (unsigned i = digits; i-- > 0; v >>= 4)
        p[i] = "0123456789abcdef"[v & 15];
    return p + digits;
}

static char *put_decimal(char *p, uint64_t v)
{
    char digits[20];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

#define PUT(p, literal) put_str((p), literal, sizeof(literal) - 1)

enum { NUMBER_ROOM = 20 };

/* Writes a line with one name and one id and with literal text before, between and after them. */
static void name_id(struct hprof_text *t, const char *before, const char *name, const char *between,
                    uint64_t id)
{
    size_t lens[] = {strlen(before), strlen(name), strlen(between)};
    char *p = line_room(t, lens[0] + lens[1] + lens[2] + NUMBER_ROOM + 1);
    if (!p)
        return;
    p = put_str(p, before, lens[0]);
    p = put_str(p, name, lens[1]);
    p = put_str(p, between, lens[2]);
    p = put_hex(p, id);
    *p++ = '\n';
    line_done(t, p);
}

void hprof_text_class_link(struct hprof_text *t, const char *what, uint64_t id)
{
    if (id)
        name_id(t, "\t", what, "\t\t", id);
}

void hprof_text_static(struct hprof_text *t, const char *name, uint64_t id)
{
    if (id)
        name_id(t, "\tstatic ", name, "\t", id);
}

void hprof_text_constant(struct hprof_text *t, uint32_t index, uint64_t id)
{
    if (id)
        line(t, "\tconstant pool entry %" PRIu32 "\t%" PRIx64 "\n", index, id);
}

void hprof_text_field(struct hprof_text *t, const char *name, uint64_t id)
{
    /* Columns are eight wide, so a short name needs two tabs. */
    if (id)
        name_id(t, "\t", name, strlen(name) < 8 ? "\t\t" : "\t", id);
}

void hprof_text_element(struct hprof_text *t, uint32_t index, uint64_t id)
{
    char *p = id ? line_room(t, 2 * NUMBER_ROOM + 6) : NULL;
    if (!p)
        return;
    p = PUT(p, "\t[");
    p = put_decimal(p, index);
    p = PUT(p, "]\t\t");
    p = put_hex(p, id);
    *p++ = '\n';
    line_done(t, p);
}

/* Writes the common beginning of OBJ and ARR. */
static char *put_object(char *p, const char *kind, uint64_t id, uint64_t size, uint32_t trace)
{
    p = put_str(p, kind, 4);
    p = put_hex(p, id);
    p = PUT(p, " (sz=");
    p = put_decimal(p, size);
    p = PUT(p, ", trace=");
    p = put_decimal(p, trace);
    return p;
}

static void put_class_end(struct hprof_text *t, char *p, const char *name, size_t len,
                          uint64_t class_id)
{
    p = put_str(p, name, len);
    if (class_id) {
        *p++ = '@';
        p = put_hex(p, class_id);
    }
    p = PUT(p, ")\n");
    line_done(t, p);
}

void hprof_text_object(struct hprof_text *t, uint64_t id, uint64_t size, uint32_t trace,
                       const char *class_name, uint64_t class_id)
{
    size_t len = strlen(class_name);
    char *p = line_room(t, len + 4 * NUMBER_ROOM + 40);
    if (!p)
        return;
    p = put_object(p, "OBJ ", id, size, trace);
    p = PUT(p, ", class=");
    put_class_end(t, p, class_name, len, class_id);
}

void hprof_text_array(struct hprof_text *t, uint64_t id, uint64_t size, uint32_t trace, uint32_t n,
                      const char *class_name, uint64_t class_id)
{
    size_t len = strlen(class_name);
    char *p = line_room(t, len + 5 * NUMBER_ROOM + 60);
    if (!p)
        return;
    p = put_object(p, "ARR ", id, size, trace);
    p = PUT(p, ", nelems=");
    p = put_decimal(p, n);
    p = PUT(p, ", elem type=");
    put_class_end(t, p, class_name, len, class_id);
}

void hprof_text_heap_end(struct hprof_text *t)
{
    line(t, "HEAP DUMP END\n");
    section_end(t);
}
