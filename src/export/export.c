/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

const struct export_format export_formats[] = {
    {".html", "flame graph and table, one file that works offline", true, export_html,
     .detail = LOAD_CELLS},
    {".collapsed", "stacks a line, for flame graph tools", false, export_collapsed,
     .detail = LOAD_SUMS},
    {".pb.gz", "pprof", false, export_pprof, .detail = LOAD_THREADS},
    {".otlp", "OpenTelemetry's profiles (OTLP 1.11)", false, export_otlp},
    {".hprof.txt", "HPROF's text: traces and ranked samples", false, export_hprof_text,
     .detail = LOAD_SUMS},
    {".hprof", "HPROF's binary records", false, export_hprof, .detail = LOAD_SUMS},
    {".jfr", "a part of a flight recording: a window, threads, classes", true, export_jfr,
     .detail = LOAD_SUMS},
    {".trcxml", "the thread profiler's XML (TPTP)", false, export_trcxml, .threads = true},
    {".pftrace", "threads for Perfetto", false, export_perfetto, .threads = true},
    {".json", "threads for chrome://tracing and speedscope", false, export_chrome, .threads = true},
    {0},
};

const struct export_format *export_format_of(const char *path)
{
    const struct export_format *best = NULL;
    size_t len = strlen(path);
    for (const struct export_format *f = export_formats; f->extension; f++) {
        size_t n = strlen(f->extension);
        if (len > n && strcmp(path + len - n, f->extension) == 0 &&
            (!best || n > strlen(best->extension)))
            best = f;
    }
    return best;
}
