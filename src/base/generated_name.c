/* SPDX-License-Identifier: Apache-2.0 */
#include "base/generated_name.h"

#include "base/macro.h"

#include <stdio.h>
#include <string.h>

static const char lambda[] = "$$Lambda";

enum { LAMBDA_LEN = sizeof(lambda) - 1 };

static const char *find(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word));
}

static size_t digits(const char *at, const char *end, bool hex)
{
    const char *p = at;
    while (p < end && ((*p >= '0' && *p <= '9') ||
                       (hex && ((*p >= 'a' && *p <= 'f') || (*p >= 'A' && *p <= 'F')))))
        p++;
    return (size_t)(p - at);
}

/*
 * Returns whether the name ends here: at the end of the text, at a descriptor's semicolon, or
 * before an array's brackets.
 */
static bool is_end(const char *at, const char *end)
{
    return at == end || *at == ';' || *at == '[';
}

static size_t cut(char *name, size_t len, size_t from, size_t n)
{
    memmove(name + from, name + from + n, len - from - n);
    return len - n;
}

/* Removes "/0x0000000800c031f0", ".0x...", "+0x...", and JDK 8's "/471910020". */
static size_t cut_address(char *name, size_t len)
{
    const char *end = name + len;
    for (char *p = name; p < end; p++) {
        if (*p != '/' && *p != '.' && *p != '+')
            continue;
        size_t n = end - p > 3 && p[1] == '0' && p[2] == 'x' ? digits(p + 3, end, true) : 0;
        if (n)
            n += 2;
        else if (*p == '/')
            n = digits(p + 1, end, false);
        if (n && is_end(p + 1 + n, end))
            return cut(name, len, (size_t)(p - name), n + 1);
    }
    return len;
}

/* Removes the running number after a word. `mark` says that a dollar sign separates the two. */
static size_t cut_number(char *name, size_t len, const char *word, bool mark)
{
    const char *at = find(name, len, word), *end = name + len;
    if (!at)
        return len;
    at += strlen(word);
    size_t skip = mark && at < end && *at == '$' ? 1 : 0;
    size_t n = digits(at + skip, end, false);
    return n && skip == mark && is_end(at + skip + n, end)
               ? cut(name, len, (size_t)(at - name), skip + n)
               : len;
}

size_t generated_name_normalize(char *name, size_t len)
{
    static const char *const accessors[] = {"GeneratedMethodAccessor",
                                            "GeneratedConstructorAccessor",
                                            "GeneratedSerializationConstructorAccessor"};
    for (size_t before = 0; before != len;) { /* Flight Recorder has "+0x..." and "/" with a hash */
        before = len;
        len = cut_address(name, len);
    }
    len = cut_number(name, len, lambda, true);
    if (find(name, len, "reflect"))
        for (size_t i = 0; i < ARRAY_SIZE(accessors); i++)
            len = cut_number(name, len, accessors[i], false);
    return len;
}

bool generated_name_is_anonymous(const char *name, size_t len)
{
    const char *end = name + len, *slash = memrchr(name, '/', len);
    return slash && slash + 1 < end && slash + 1 + digits(slash + 1, end, false) == end;
}

bool generated_name_is_lambda(const char *name, size_t len, size_t *ret_host)
{
    const char *at = find(name, len, lambda);
    if (!at || at == name)
        return false;
    const char *rest = at + LAMBDA_LEN, *end = name + len;
    if (!is_end(rest, end) && !strchr("$/.+", *rest))
        return false;
    *ret_host = (size_t)(at - name);
    return true;
}

/* Returns whether a name with slashes or dots begins with a text with slashes. */
static bool begins_with(const char *name, size_t len, const char *text)
{
    size_t n = strlen(text), i = 0;
    while (len >= n && i < n && (name[i] == text[i] || (text[i] == '/' && name[i] == '.')))
        i++;
    return i == n;
}

bool generated_name_is_agents(const char *name, size_t len)
{
    return begins_with(name, len, "java/lang/Jvmscope") ||
           begins_with(name, len, "jvmscope/Binder");
}

bool generated_name_is_profilers(const char *name, size_t len)
{
    return begins_with(name, len, "java/lang/JvmscopeValues.") ||
           begins_with(name, len, "java/lang/JvmscopeEnding.");
}

bool generated_name_is_agents_library(const char *name, size_t len)
{
    static const char *const begins[] = {"libhprof.so.", ".jvmscope-", "memfd:.jvmscope-"};
    for (size_t k = 0; k < ARRAY_SIZE(begins); k++)
        if (len >= strlen(begins[k]) && memcmp(name, begins[k], strlen(begins[k])) == 0)
            return true;
    return false;
}

bool generated_name_is_vms_library(const char *name, size_t len)
{
    static const char begin[] = "libjvm.so.";
    return len >= sizeof(begin) - 1 && memcmp(name, begin, sizeof(begin) - 1) == 0;
}

/*
 * Returns whether a lambda's class calls a method only to box or unbox a value; it is then not the
 * target.
 */
static bool is_boxing(struct str class, struct str method)
{
    static const char *const boxes[] = {"Boolean", "Byte",  "Character", "Short", "Integer",
                                        "Long",    "Float", "Double",    "Number"};
    for (size_t i = 0; i < ARRAY_SIZE(boxes); i++)
        if (class.len == 10 + strlen(boxes[i]) && memcmp(class.data, "java/lang/", 10) == 0 &&
            str_ends_in(class, boxes[i]))
            return str_is(method, "valueOf") || str_ends_in(method, "Value");
    return false;
}

void generated_target_consider(struct generated_target *t, struct str host, struct str class,
                               struct str method)
{
    bool own = class.len == host.len && memcmp(class.data, host.data, host.len) == 0;
    bool made = str_is(method, "<init>");
    size_t its_host;
    if (!class.len || generated_name_is_lambda(class.data, class.len, &its_host))
        return; /* the class's own constructor */
    int rank = own ? 3 : is_boxing(class, method) ? 1 : 2;
    if (rank <= t->rank || (made && str_is(class, "java/lang/Object")) ||
        str_is(class, "java/lang/invoke/MethodHandle"))
        return;
    t->rank = rank;
    t->is_lambda = own && method.len > 7 && memcmp(method.data, "lambda$", 7) == 0;
    bool fits = class.len + 1 + method.len < sizeof(t->pattern);
    snprintf(t->pattern, sizeof(t->pattern), "%.*s.%.*s", fits ? (int)class.len : 0, class.data,
             (int)method.len, method.data);
    if (!fits)
        t->pattern[0] = 0;
    if (t->is_lambda) {
        snprintf(t->text, sizeof(t->text), "%.*s", (int)method.len, method.data);
        return;
    }
    const char *slash = memrchr(class.data, '/', class.len);
    size_t skip = slash ? (size_t)(slash + 1 - class.data) : 0;
    snprintf(t->text, sizeof(t->text), "%.*s::%.*s", (int)(class.len - skip), class.data + skip,
             made ? 3 : (int)method.len, made ? "new" : method.data);
}

static const char proxy[] = "$Proxy";

/* Returns where the number of a proxy's class begins, or NULL for other classes. */
static const char *proxy_number(const char *name, size_t len)
{
    const char *at = find(name, len, proxy), *end = name + len;
    if (!at || (at > name && at[-1] != '/' && at[-1] != '.' && !(at == name + 1 && *name == 'L')))
        return NULL;
    at += sizeof(proxy) - 1;
    size_t n = digits(at, end, false);
    return n && is_end(at + n, end) ? at : NULL;
}

bool generated_name_is_proxy(const char *name, size_t len)
{
    return proxy_number(name, len) != NULL;
}

void generated_target_implements(struct generated_target *t, struct str interface)
{
    const char *slash = memrchr(interface.data, '/', interface.len);
    size_t skip = slash ? (size_t)(slash + 1 - interface.data) : 0;
    size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof(t->text) - used, "%s%.*s", used ? "," : "",
             (int)(interface.len - skip), interface.data + skip);
}

size_t generated_name_normalize_for(char *name, size_t len, const struct generated_target *t)
{
    /* each class loader has such a package, with a number */
    static const char package[] = "jdk/proxy";
    len = generated_name_normalize(name, len);
    const char *at = t->text[0] ? proxy_number(name, len) : NULL;
    if (!at)
        return len;
    len = cut(name, len, (size_t)(at - name), digits(at, name + len, false));
    size_t from = (len && *name == 'L') + sizeof(package) - 1;
    if (find(name, len, package) != name + (*name == 'L'))
        return len;
    size_t n = digits(name + from, name + len, false);
    return from + n < len && name[from + n] == '/' ? cut(name, len, from, n) : len;
}
