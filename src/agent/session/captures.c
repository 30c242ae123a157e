/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/captures.h"

#include "agent/common/fault.h"
#include "agent/instrument/batches.h"
#include "agent/vm/flags.h"
#include "base/clock.h"
#include "jfr/writer.h"

#include <errno.h>
#include <string.h>

/*
 * Returns the k-th capture to load and start, in the table's order. Tests (fault.h) rotate the
 * table so that the capture of the fault comes last.
 */
static int nth_capture(int k)
{
    int last = captures_count - 1;
    for (int i = 0; i < captures_count; i++)
        if (fault_is_of(captures[i]->name))
            last = i;
    return (last + 1 + k) % captures_count;
}

/*
 * Returns the k-th capture to start in a running VM. Captures that change classes come first,
 * because the other captures would otherwise record this, which nobody requested.
 */
static int nth_capture_late(int k)
{
    for (int changes = 1; changes >= 0; changes--)
        for (int i = 0; i < captures_count; i++) {
            const struct capture *capture = captures[nth_capture(i)];
            bool first = capture->changes_classes && !fault_is_of(capture->name);
            if (first == changes && k-- == 0)
                return nth_capture(i);
        }
    return -1; /* k is too large */
}

static int nth_to_start(int k)
{
    return vm.late ? nth_capture_late(k) : nth_capture(k);
}

/* Returns the next option from i on that was given and requests a capture, or OPTION_COUNT. */
static int next_option(const struct session *s, const struct capture *capture, int i)
{
    while (i < OPTION_COUNT && !(capture->options >> i & 1 && s->options.v[i].given))
        i++;
    return i;
}

/*
 * Returns whether an option requests a capture. A capture may also be on because of --always alone.
 */
static bool is_asked_for(const struct session *s, const struct capture *capture)
{
    return next_option(s, capture, 0) < OPTION_COUNT;
}

/*
 * Writes the options that requested a capture: "cpu=samples". An option that is a list may have
 * been given several times, so it is written without its value.
 */
static void name_options(const struct session *s, const struct capture *capture, struct buf *out)
{
    const char *between = "";
    for (int i = -1; (i = next_option(s, capture, i + 1)) < OPTION_COUNT; between = ", ")
        if (option_table[i].separator)
            buf_printf(out, "%s%s", between, option_table[i].name);
        else
            buf_printf(out, "%s%s=%s", between, option_table[i].name, s->options.v[i].text);
    if (!is_asked_for(s, capture))
        buf_string(out, capture->name);
}

/*
 * Refuses a capture that changes classes in a VM that makes an archive of its classes. An agent
 * that was loaded at start-up checks this when the captures start, because a refusal earlier would
 * keep the VM from starting.
 */
static int check_archive(const struct session *s, const struct capture *capture, struct buf *why)
{
    const char *flag = capture->changes_classes ? vm_archive_flag() : NULL;
    if (!flag)
        return 0;
    name_options(s, capture, why);
    buf_printf(why,
               ": changes classes, and this VM archives its classes for later starts (-XX:%s); "
               "the archive would be lost",
               flag);
    return -ENOTSUP;
}

/*
 * Checks, without side effects, whether the output, the VM and the option's value allow a capture.
 */
static int check_capture(const struct session *s, const struct capture *capture, struct buf *why)
{
    jvmtiCapabilities missing = {0};
    int r = vm_could(&capture->needs, &missing);
    if (r < 0)
        return r;
    if (capture->records_only && !option_format(&s->options)->events) {
        name_options(s, capture, why);
        buf_string(why, ": goes into a recording: add format=r");
        return -ENOTSUP;
    }
    if (!vm_capabilities_empty(&missing)) {
        name_options(s, capture, why);
        buf_printf(why, ": this VM cannot%s: no ", vm.attached ? " any more once it runs" : "");
        vm_capability_words(&missing, why);
        return -ENOTSUP;
    }
    r = vm.attached ? check_archive(s, capture, why) : 0;
    return r == 0 && capture->check ? capture->check(&s->options, why) : r;
}

int captures_check(const struct session *s, struct buf *why)
{
    int r = 0;
    for (int i = 0; i < captures_count && r == 0; i++)
        if (captures_has(s->wanted, i))
            r = check_capture(s, captures[i], why);
    return r;
}

static int ask_capabilities(struct session *s, const struct capture *capture, struct buf *why)
{
    jvmtiCapabilities missing = {0};
    int r = vm_need(&capture->needs, NULL);
    r = r < 0 ? r : vm_need(&capture->likes, &missing);
    if (r == 0 && is_asked_for(s, capture) && !vm_capabilities_empty(&missing)) {
        struct buf text = BUF(4096);
        name_options(s, capture, &text);
        buf_printf(&text, ": records without ");
        vm_capability_words(&missing, &text);
        buf_printf(&text, ", which this VM %s",
                   vm.attached ? "reports only to an agent that was there when it started"
                               : "does not report");
        session_message(s, "%.*s", (int)text.len, text.data);
        buf_release(&text);
    }
    return r;
}

/* Requests the capabilities for source files and line numbers, which every capture needs. */
static int ask_basics(struct buf *why)
{
    jvmtiCapabilities basics = {.can_get_source_file_name = 1, .can_get_line_numbers = 1}, missing;
    /* to find the method that a lambda implements */
    static const jvmtiCapabilities likes = {.can_get_constant_pool = 1};
    int r = vm_need(&basics, NULL);
    if (r == 0)
        r = vm_need(&likes, &missing);
    if (r < 0)
        buf_printf(why, "the VM refuses JVM TI capabilities");
    return r;
}

static uint64_t unreleased; /* captures of earlier recordings that calls of the program still use */

/* Releases a capture that could not be released when its recording ended. */
static int release_late(struct session *s, int i, struct buf *why)
{
    const struct capture *capture = captures[i];
    if (!captures_has(unreleased, i))
        return 0;
    if (!capture->is_idle()) {
        name_options(s, capture, why);
        buf_string(why, ": a thread of the program is still in a probe of the recording before");
        return -EAGAIN;
    }
    if (capture->release)
        capture->release(s);
    unreleased &= ~(UINT64_C(1) << i);
    return 0;
}

static int load_capture(struct session *s, int i, struct buf *why)
{
    const struct capture *capture = captures[i];
    int r = release_late(s, i, why);
    if (r == 0)
        r = ask_capabilities(s, capture, why);
    if (r < 0)
        return r;
    s->loaded |= UINT64_C(1) << i;
    r = capture->load ? capture->load(s, why) : 0;
    if (r == 0 && capture->events)
        r = vm_events_on(capture->events);
    s->events |= r == 0 && capture->events ? UINT64_C(1) << i : 0;
    return r == 0 && fault_here() ? -EIO : r;
}

static int start_capture(struct session *s, JNIEnv *jni, int i, struct buf *why)
{
    const struct capture *capture = captures[i];
    s->on |= UINT64_C(1) << i;
    s->capture_started_ns[i] = now_ns();
    int r = capture->start ? capture->start(s, jni, why) : 0;
    return r == 0 && fault_here() ? -EIO : r;
}

/* Writes that a capture failed, if the capture itself has not said why. */
static void describe_failure(const struct session *s, const struct capture *capture, int error,
                             struct buf *why)
{
    if (why->len)
        return;
    name_options(s, capture, why);
    buf_printf(why, ": cannot start: %s", strerror(-error));
}

/* Loads the requested captures, or starts those that are loaded. */
static int each_capture(struct session *s, JNIEnv *jni, bool load, struct buf *why)
{
    int r = 0;
    for (int k = 0; k < captures_count && r == 0; k++) {
        int i = load ? nth_capture(k) : nth_to_start(k);
        if (!captures_has(load ? s->wanted : s->loaded, i))
            continue;
        fault_steps_of(captures[i]->name);
        r = load ? load_capture(s, i, why) : start_capture(s, jni, i, why);
        if (r < 0)
            describe_failure(s, captures[i], r, why);
    }
    fault_steps_of("session");
    return r;
}

int captures_load(struct session *s, struct buf *why)
{
    int r = ask_basics(why);
    if (r < 0)
        return r;
    /*
     * No event can be written before the VM runs, so the types of all captures are written
     * together.
     */
    bool together = s->out.jfr && !vm.live;
    if (together)
        jfr_hold_types(s->out.jfr);
    r = each_capture(s, NULL, true, why);
    int described = together ? jfr_release_types(s->out.jfr) : 0;
    return r < 0 ? r : described;
}

/*
 * Begins the captures that have started. Captures that only count come last: counts have no times,
 * so a reader cannot exclude what happened before the span. The span begins before their counts are
 * cleared, which takes a while, so they contain nothing that happened before it.
 */
static int begin_captures(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = 0;
    for (int counts = 0; counts <= 1; counts++) {
        s->span_ns = now_ns();
        for (int i = 0; i < captures_count && r == 0; i++) {
            const struct capture *capture = captures[i];
            if (!captures_has(s->on, i) || !capture->begin || (capture->counts != NULL) != counts)
                continue;
            r = capture->begin(s, jni, why);
            if (r < 0)
                describe_failure(s, capture, r, why);
        }
    }
    return r;
}

/* Returns how many of the captures change classes. */
static unsigned rounds_of(uint64_t set)
{
    unsigned n = 0;
    for (int i = 0; i < captures_count; i++)
        n += captures_has(set, i) && captures[i]->changes_classes;
    return n;
}

int captures_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = 0;
    for (int i = 0; i < captures_count && r == 0 && !vm.attached; i++)
        if (captures_has(s->loaded, i))
            r = check_archive(s, captures[i], why);
    batches_rounds(rounds_of(s->loaded));
    if (r == 0)
        r = each_capture(s, jni, false, why);
    batches_rounds(0);
    if (r == 0)
        r = begin_captures(s, jni, why);
    s->running = r == 0;
    if (r == 0 && vm.late)
        captures_start_later(s, jni);
    return r;
}

void captures_start_later(struct session *s, JNIEnv *jni)
{
    for (int i = 0; i < captures_count; i++)
        if (captures_has(s->on, i) && captures[i]->later)
            captures[i]->later(s, jni);
}

void captures_stop(struct session *s, JNIEnv *jni)
{
    s->running = false;
    batches_rounds(rounds_of(s->on));
    for (int k = captures_count - 1; k >= 0; k--) {
        int i = nth_to_start(k);
        const struct capture *capture = captures[i];
        bool leave =
            vm.dying && capture->reachable && captures_has(s->on, i) && !capture->reachable();
        /* Changing classes back is not part of the recording. */
        if (captures_has(s->on, i) && capture->changes_classes && s->out.jfr)
            jfr_writer_ends(s->out.jfr, now_ns());
        if (captures_has(s->on, i) && capture->stop && !leave)
            capture->stop(s, jni);
        s->on &= ~(UINT64_C(1) << i);
        if (captures_has(s->events, i))
            vm_events_off(capture->events);
        if (leave || !captures_has(s->loaded, i))
            continue;
        if (capture->is_idle && !capture->is_idle()) {
            unreleased |= UINT64_C(1) << i;
            s->out.keeps_writer = true;
        } else if (capture->release) {
            capture->release(s);
        }
    }
    batches_rounds(0);
}
