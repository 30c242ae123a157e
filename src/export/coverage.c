/* SPDX-License-Identifier: Apache-2.0 */
#include "export/coverage.h"

#include "base/file.h"
#include "base/json.h"

#include <string.h>
#include <time.h>

static void lcov_class(const struct coverage *c, const struct cover_class *class,
                       const struct cover_line *lines, size_t n, FILE *out)
{
    unsigned functions_hit = 0, edges = 0, taken = 0, hit = 0;
    for (size_t i = 0; i < class->bodies.len; i++) {
        const struct cover_body *b = &c->bodies.data[class->bodies.data[i]];
        fprintf(out, "FN:%u,%s.%s%s\n", cover_body_line(b), class->name, b->name, b->descriptor);
        fprintf(out, "FNDA:%d,%s.%s%s\n", cover_body_hit(b), class->name, b->name, b->descriptor);
        functions_hit += cover_body_hit(b);
    }
    fprintf(out, "FNF:%zu\nFNH:%u\n", class->bodies.len, functions_hit);
    for (size_t i = 0; i < class->bodies.len; i++) {
        const struct cover_body *b = &c->bodies.data[class->bodies.data[i]];
        uint32_t nth = 0;
        for (size_t k = 0; k < b->edges.len; k++) {
            const struct cover_edge *e = &b->edges.data[k];
            nth = k && b->edges.data[k - 1].pc == e->pc ? nth + 1 : 0;
            /* A branch in a line that never ran has no count at all. */
            bool ran = e->hit;
            for (size_t j = 0; j < b->edges.len; j++)
                ran |= b->edges.data[j].pc == e->pc && b->edges.data[j].hit;
            fprintf(out, ran ? "BRDA:%u,%zu.%u,%u,%d\n" : "BRDA:%u,%zu.%u,%u,-\n", e->line, i,
                    e->pc, nth, e->hit);
            edges++;
            taken += e->hit;
        }
    }
    fprintf(out, "BRF:%u\nBRH:%u\n", edges, taken);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "DA:%u,%d\n", lines[i].line, lines[i].hit > 0);
        hit += lines[i].hit > 0;
    }
    fprintf(out, "LF:%zu\nLH:%u\nend_of_record\n", n, hit);
}

int export_lcov(const struct coverage *c, const char *sources, FILE *out)
{
    fputs("TN:jvmscope\n", out);
    for (size_t i = 0; i < c->classes.len; i++) {
        const struct cover_class *class = &c->classes.data[i];
        _cleanup_free_ struct cover_line *lines = NULL;
        _cleanup_free_ char *path = cover_source_path(sources, class),
                            *plain = path ? NULL : cover_source_path(NULL, class);
        size_t n;
        int r = coverage_lines(c, class, &lines, &n);
        if (r < 0)
            return r;
        fprintf(out, "SF:%s\n", path ? path : plain ? plain : class->name);
        lcov_class(c, class, lines, n, out);
    }
    return 0;
}

/* Escapes text for XML and HTML, because a class file may contain markup. */
static void put_escaped(FILE *out, const char *s)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    json_put_utf8(&b, s, strlen(s));
    for (const char *p = buf_str(&b); *p; p++) {
        switch (*p) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            if ((unsigned char)*p >= 0x20 || *p == '\t')
                fputc(*p, out);
        }
    }
}

static double rate(uint64_t hit, uint64_t of)
{
    return of ? (double)hit / (double)of : 1;
}

static void cobertura_line(const struct cover_line *l, FILE *out)
{
    fprintf(out, "<line number=\"%u\" hits=\"%d\"", l->line, l->hit > 0);
    if (l->edges)
        fprintf(out, " branch=\"true\" condition-coverage=\"%.0f%% (%u/%u)\"",
                100 * rate(l->taken, l->edges), l->taken, l->edges);
    fputs(l->edges ? "/>\n" : " branch=\"false\"/>\n", out);
}

/* Writes the rates of a sum as attributes and ends the tag. */
static void cobertura_rates(const struct cover_sum *s, FILE *out)
{
    fprintf(out, "\" line-rate=\"%.4f\" branch-rate=\"%.4f\" complexity=\"0\">",
            rate(s->lines_hit, s->lines), rate(s->branches_hit, s->branches));
}

static int cobertura_method(const struct cover_body *b, FILE *out)
{
    _cleanup_free_ struct cover_line *lines = NULL;
    struct cover_sum s = {0};
    size_t n = 0;
    int r = coverage_body_lines(b, &lines, &n);
    if (r == 0)
        r = coverage_add_body_sum(b, &s);
    if (r < 0)
        return r;
    fputs("<method name=\"", out);
    put_escaped(out, b->name);
    fputs("\" signature=\"", out);
    put_escaped(out, b->descriptor);
    cobertura_rates(&s, out);
    fputs("<lines>\n", out);
    for (size_t i = 0; i < n; i++)
        cobertura_line(&lines[i], out);
    fputs("</lines></method>\n", out);
    return 0;
}

static int cobertura_class(const struct coverage *c, const struct cover_class *class, FILE *out)
{
    _cleanup_free_ struct cover_line *lines = NULL;
    _cleanup_(buf_release) struct buf file = BUF(8192);
    struct cover_sum s = {0};
    size_t n = 0;
    int r = coverage_lines(c, class, &lines, &n);
    if (r == 0)
        r = coverage_sum(c, class, &s);
    if (r < 0)
        return r;
    cover_source_name(class, &file);
    fputs("<class name=\"", out);
    put_escaped(out, class->name);
    fputs("\" filename=\"", out);
    put_escaped(out, buf_str(&file));
    cobertura_rates(&s, out);
    fputs("<methods>\n", out);
    for (size_t i = 0; i < class->bodies.len && r == 0; i++)
        r = cobertura_method(&c->bodies.data[class->bodies.data[i]], out);
    fputs("</methods><lines>\n", out);
    for (size_t i = 0; i < n; i++)
        cobertura_line(&lines[i], out);
    fputs("</lines></class>\n", out);
    return r;
}

static size_t package_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : 0;
}

static int compare_packages(const char *a, const char *b)
{
    size_t n = package_length(a), m = package_length(b);
    int r = memcmp(a, b, MIN(n, m));
    return r ? r : (n > m) - (n < m);
}

/*
 * Orders classes by package and then by name. By name alone "a.b.c.D" would come between "a.b.C"
 * and "a.b.d".
 */
static int by_package(const void *a, const void *b)
{
    const struct cover_class *x = *(const struct cover_class *const *)a,
                             *y = *(const struct cover_class *const *)b;
    int r = compare_packages(x->name, y->name);
    return r ? r : (x > y) - (x < y);
}

/* Writes a package of n classes. */
static int cobertura_package(const struct coverage *c, const struct cover_class *const *classes,
                             size_t n, FILE *out)
{
    struct cover_sum s = {0};
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = coverage_add_sum(c, classes[i], &s);
    _cleanup_free_ char *package = strndup(classes[0]->name, package_length(classes[0]->name));
    if (!package)
        return -ENOMEM;
    fputs("<package name=\"", out);
    put_escaped(out, package);
    cobertura_rates(&s, out);
    fputs("<classes>\n", out);
    for (size_t i = 0; i < n && r == 0; i++)
        r = cobertura_class(c, classes[i], out);
    fputs("</classes></package>\n", out);
    return r;
}

static int cobertura_packages(const struct coverage *c, FILE *out)
{
    _cleanup_free_ const struct cover_class **classes =
        calloc(c->classes.len + 1, sizeof(const struct cover_class *));
    int r = classes ? 0 : -ENOMEM;
    for (size_t i = 0; i < c->classes.len && r == 0; i++)
        classes[i] = &c->classes.data[i];
    if (classes && c->classes.len)
        qsort(classes, c->classes.len, sizeof(*classes), by_package);
    for (size_t i = 0, next; i < c->classes.len && r == 0; i = next) {
        next = i + 1;
        while (next < c->classes.len &&
               compare_packages(classes[i]->name, classes[next]->name) == 0)
            next++;
        r = cobertura_package(c, classes + i, next - i, out);
    }
    return r;
}

int export_cobertura(const struct coverage *c, const char *sources, FILE *out)
{
    struct cover_sum s;
    int r = coverage_sum(c, NULL, &s);
    if (r < 0)
        return r;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n",
          out);
    fprintf(out,
            "<coverage line-rate=\"%.4f\" branch-rate=\"%.4f\" lines-covered=\"%llu\" "
            "lines-valid=\"%llu\" "
            "branches-covered=\"%llu\" branches-valid=\"%llu\" complexity=\"0\" "
            "version=\"jvmscope " JVMSCOPE_VERSION "\" timestamp=\"%lld\">\n<sources>",
            rate(s.lines_hit, s.lines), rate(s.branches_hit, s.branches),
            (unsigned long long)s.lines_hit, (unsigned long long)s.lines,
            (unsigned long long)s.branches_hit, (unsigned long long)s.branches,
            (long long)time(NULL) * 1000);
    char folder[PATH_MAX];
    for (const char *rest = sources ? sources : "."; file_list_next(&rest, folder);) {
        fputs("<source>", out);
        put_escaped(out, folder);
        fputs("</source>", out);
    }
    fputs("</sources><packages>\n", out);
    r = cobertura_packages(c, out);
    fputs("</packages></coverage>\n", out);
    return r;
}

static const char page_head[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Coverage</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"><style>\n"
    ":root{color-scheme:light dark;--hit:#d9f2d9;--part:#fff0c2;--miss:#fbdcdc;--edge:#8886}\n"
    "@media(prefers-color-scheme:dark){:root{--hit:#173d1f;--part:#4a3c0c;--miss:#4d1c1c}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}\n"
    "table{border-collapse:collapse;width:100%}td,th{text-align:right;padding:.2rem "
    ".6rem;border-bottom:1px solid var(--edge)}\n"
    "td:first-child,th:first-child{text-align:left;word-break:break-all}\n"
    "@media(max-width:45rem){table{display:block;overflow-x:auto}td:first-child{min-width:9rem}}\n"
    "pre{margin:0;font:13px/1.5 ui-monospace,monospace;overflow-x:auto;border:1px solid "
    "var(--edge)}\n"
    "pre span{display:block;padding:0 .6rem;min-height:1.5em}pre "
    "i{font-style:normal;opacity:.6;user-select:none}\n"
    ".h{background:var(--hit)}.p{background:var(--part)}.m{background:var(--miss)}meter{width:8rem}"
    "\n"
    "</style>\n";

static void html_row(const struct cover_class *class, size_t i, const struct cover_sum *s,
                     FILE *out)
{
    if (class)
        fprintf(out, "<tr><td><a href=\"#c%zu\">", i);
    else
        fputs("<tr><td>", out);
    put_escaped(out, class ? class->name : "All");
    fprintf(out,
            "%s<td>%llu / %llu<td>%llu / %llu<td>%llu / %llu<td>%.1f %%<td><meter min=\"0\" "
            "max=\"1\" value=\"%.4f\"></meter>\n",
            class ? "</a>" : "", (unsigned long long)s->methods_hit, (unsigned long long)s->methods,
            (unsigned long long)s->lines_hit, (unsigned long long)s->lines,
            (unsigned long long)s->branches_hit, (unsigned long long)s->branches,
            100 * rate(s->lines_hit, s->lines), rate(s->lines_hit, s->lines));
}

/*
 * Writes a line that is marked as run completely, in part, or not at all. Its branches are also
 * described in words, for readers who do not see colours.
 */
static void html_line(uint32_t number, const char *text, int len, const struct cover_line *l,
                      FILE *out)
{
    _cleanup_free_ char *copy = strndup(text, (size_t)len);
    const char *mark = !l                                          ? ""
                       : l->hit == 0                               ? "m"
                       : l->hit < l->starts || l->taken < l->edges ? "p"
                                                                   : "h";
    fprintf(out, "<span class=\"%s\"", mark);
    if (l && l->edges)
        fprintf(out, " title=\"%u of %u branches\"", l->taken, l->edges);
    fprintf(out, "><i>%5u %c </i>", number,
            !l             ? ' '
            : *mark == 'h' ? '+'
            : *mark == 'p' ? '~'
                           : '-');
    put_escaped(out, copy ? copy : "");
    fputs("</span>", out);
}

static int html_source(const struct coverage *c, const struct cover_class *class, const char *path,
                       FILE *out)
{
    _cleanup_free_ struct cover_line *lines = NULL;
    _cleanup_free_ uint8_t *text = NULL;
    size_t n, len;
    int r = coverage_lines(c, class, &lines, &n);
    if (r < 0)
        return r;
    fputs("<pre>", out);
    if (path && file_read_path(path, 16 << 20, &text, &len) == 0) {
        const char *at = (const char *)text;
        size_t k = 0;
        for (uint32_t number = 1; *at; number++) {
            size_t width = strcspn(at, "\n");
            while (k < n && lines[k].line < number)
                k++;
            html_line(number, at, (int)width, k < n && lines[k].line == number ? &lines[k] : NULL,
                      out);
            at += width + (at[width] == '\n');
        }
    } else {
        for (size_t k = 0; k < n; k++)
            html_line(lines[k].line, "", 0, &lines[k], out);
    }
    fputs("</pre>\n", out);
    return 0;
}

int export_cover_html(const struct coverage *c, const char *sources, FILE *out)
{
    struct cover_sum s;
    int r = coverage_sum(c, NULL, &s);
    if (r < 0)
        return r;
    fputs(page_head, out);
    fputs("<h1>Coverage</h1><table><thead><tr><th>Class<th>Methods<th>Lines<th>Branches<th>Lines "
          "run<th><tbody>\n",
          out);
    html_row(NULL, 0, &s, out);
    for (size_t i = 0; r == 0 && i < c->classes.len; i++) {
        r = coverage_sum(c, &c->classes.data[i], &s);
        if (r == 0)
            html_row(&c->classes.data[i], i, &s, out);
    }
    fputs("</table>\n", out);
    for (size_t i = 0; r == 0 && i < c->classes.len; i++) {
        _cleanup_free_ char *path =
            sources ? cover_source_path(sources, &c->classes.data[i]) : NULL;
        fprintf(out, "<h2 id=\"c%zu\">", i);
        put_escaped(out, c->classes.data[i].name);
        fputs("</h2>\n", out);
        r = html_source(c, &c->classes.data[i], path, out);
    }
    fputs("</html>\n", out);
    return r;
}
