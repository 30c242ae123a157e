/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/choice.h"

#include "agent/vm/vm.h"

#include "base/dotted.h"
#include "base/nearest.h"
#include "options/signature.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static char at(struct str class_name, struct str method, size_t i)
{
    if (i < class_name.len)
        return dotted(class_name.data[i]);
    i -= class_name.len;
    if (method.len == 0)
        return 0;
    return i == 0 ? '.' : i - 1 < method.len ? method.data[i - 1] : 0;
}

/* Matches pattern p[0..n) against package.Class.method from character i on. */
static bool glob(const char *p, size_t n, struct str class_name, struct str method, size_t i)
{
    for (; n; p++, n--, i++) {
        char c = at(class_name, method, i);
        if (*p == '*') {
            do {
                if (glob(p + 1, n - 1, class_name, method, i))
                    return true;
            } while (at(class_name, method, i++));
            return false;
        }
        if (c != *p)
            return false;
    }
    char c = at(class_name, method, i);
    return c == 0 || c == '.' || c == '$';
}

/* Returns the length of a pattern without a dot at its end, as in "com.shop.". */
static size_t without_dot(const char *p, size_t n)
{
    return n && p[n - 1] == '.' ? n - 1 : n;
}

bool choice_matches_first(const char *p, struct str class_name, struct str method,
                          struct str descriptor)
{
    size_t n = strcspn(p, ":"), name = MIN(strcspn(p, "("), n), len = without_dot(p, name);
    return len && glob(p, len, class_name, method, 0) &&
           (name == n || (method.len && signature_matches(p + name, n - name, descriptor)));
}

bool choice_names_parameters(const char *pattern)
{
    const char *at = pattern + strcspn(pattern, "(:");
    return *at == '(' && strncmp(at, "(..)", 4) != 0;
}

bool choice_matches(const char *patterns, struct str class_name, struct str method,
                    struct str descriptor)
{
    bool matches = false;
    for (const char *p = patterns; p && *p && !matches; p += strcspn(p, ":"), p += *p == ':')
        matches = choice_matches_first(p, class_name, method, descriptor);
    return matches;
}

bool choice_matches_class(const char *patterns, struct str class_name)
{
    const struct str none = {"", 0};
    return choice_matches(patterns, class_name, none, none);
}

/*
 * Returns whether some method name appended to the class name matches a pattern whose last part
 * contains a star.
 */
static bool starts_like(const char *p, size_t n, struct str class_name)
{
    size_t i = 0;
    for (; i < n && i <= class_name.len && p[i] != '*'; i++)
        if (p[i] != (i < class_name.len ? at(class_name, (struct str){"", 0}, i) : '.'))
            return false;
    for (; i < n && p[i] != '*'; i++)
        if (p[i] == '.')
            return false; /* pkg.Outer.Inner.* matches no method of pkg.Outer */
    return true;
}

/*
 * Method names contain no dots. A pattern without a star after its last dot therefore matches the
 * class by the part before that dot, or by the whole pattern. Another pattern can match by a star
 * that stands for the rest of the class name, a dot and a method.
 */
bool choice_may_match(const char *patterns, struct str class_name)
{
    const struct str a_method = {"$", 1}; /* a match may end here */
    for (const char *p = patterns; p && *p;) {
        size_t whole = strcspn(p, ":"), n = without_dot(p, MIN(strcspn(p, "("), whole)), cut = n;
        while (cut && p[cut - 1] != '.')
            cut--;
        if (n && ((memchr(p + cut, '*', n - cut) && starts_like(p, n, class_name)) ||
                  glob(p, n, class_name, (struct str){"", 0}, 0) ||
                  (cut && glob(p, cut, class_name, a_method, 0))))
            return true;
        p += whole + (p[whole] == ':');
    }
    return false;
}

/* Matches a name or, with a star at the end, a prefix of names. */
static bool listed(const char *const *list, struct str s)
{
    for (; *list; list++) {
        size_t n = strlen(*list);
        bool prefix = (*list)[n - 1] == '*';
        if (prefix ? s.len >= n - 1 && memcmp(s.data, *list, n - 1) == 0
                   : s.len == n && memcmp(s.data, *list, n) == 0)
            return true;
    }
    return false;
}

bool choice_is_excluded(struct str class_name)
{
    static const char *const excluded[] = {
        "java/lang/Jvmscope*", "java/lang/Object",          "java/lang/Thread",
        "java/lang/Thread$*",  "java/lang/VirtualThread*",  "java/lang/BaseVirtualThread",
        "jdk/internal/vm/*",   "jdk/internal/misc/Unsafe*", NULL,
    };
    /*
     * On JDK 8 the probes use this Unsafe. From JDK 9 on they use the one above, and this one is an
     * ordinary class.
     */
    static const char *const excluded_8[] = {"sun/misc/Unsafe*", NULL};
    return listed(excluded, class_name) || (vm.version < 9 && listed(excluded_8, class_name));
}

bool choice_thread_changes(struct str method)
{
    static const char *const names[] = {
        "setInterrupt",
        "clearInterrupt",
        "getAndClearInterrupt",
        "isInterrupted",
        "interrupt0",
        "runWith",
        "scopedValueBindings",
        "threadState",
        "clearInterruptEvent",
        "setCurrentThread",
        "threadId",
        "isVirtual",
        "isTerminated",
        "holdsLock",
        "currentCarrierThread",
        NULL,
    };
    return listed(names, method);
}

/*
 * Returns whether a list contains a method. "name" stands for all methods of this name,
 * "name(types" for those whose descriptor begins with these types.
 */
static bool is_among(const char *const *list, struct str method, struct str descriptor)
{
    for (; *list; list++) {
        size_t name = strcspn(*list, "("), types = strlen(*list) - name;
        if (method.len == name && memcmp(method.data, *list, name) == 0 &&
            descriptor.len >= types && memcmp(descriptor.data, *list + name, types) == 0)
            return true;
    }
    return false;
}

bool choice_intrinsic_8(struct str class_name, struct str method, struct str descriptor)
{
    static const struct {
        const char *class, *methods[24];
    } rows[] = {
        {"java/lang/Math",
         {"abs(D)", "sin", "cos", "tan", "atan2", "sqrt", "log", "log10", "pow", "exp", "min(II)",
          "max(II)", "addExact", "subtractExact", "multiplyExact", "incrementExact",
          "decrementExact", "negateExact", NULL}},
        {"java/lang/String",
         {"compareTo(Ljava/lang/String;)", "indexOf(Ljava/lang/String;)", "equals", NULL}},
        {"java/lang/Integer",
         {"bitCount", "numberOfLeadingZeros", "numberOfTrailingZeros", "reverseBytes", NULL}},
        {"java/lang/Long",
         {"bitCount", "numberOfLeadingZeros", "numberOfTrailingZeros", "reverseBytes", NULL}},
        {"java/util/Arrays",
         {"equals([C", "copyOf([Ljava/lang/Object;ILjava/lang/Class;)",
          "copyOfRange([Ljava/lang/Object;IILjava/lang/Class;)", NULL}},
        {"java/lang/Float", {"floatToIntBits", "floatToRawIntBits", "intBitsToFloat", NULL}},
        {"java/lang/Double", {"doubleToLongBits", "doubleToRawLongBits", "longBitsToDouble", NULL}},
        {"java/lang/ref/Reference", {"get", NULL}},
        {"sun/nio/cs/ISO_8859_1$Encoder", {"encodeISOArray", NULL}},
        {"java/math/BigInteger", {"multiplyToLen", NULL}},
        {"com/sun/crypto/provider/AESCrypt", {"encryptBlock", "decryptBlock", NULL}},
        {"com/sun/crypto/provider/CipherBlockChaining", {"encrypt", "decrypt", NULL}},
        {"sun/security/provider/SHA", {"implCompress", NULL}},
        {"sun/security/provider/SHA2", {"implCompress", NULL}},
        {"sun/security/provider/SHA5", {"implCompress", NULL}},
        {"sun/security/provider/DigestBase", {"implCompressMultiBlock", NULL}},
        {"java/util/zip/CRC32", {"update(II)", "updateBytes", "updateByteBuffer", NULL}},
        {"java/lang/Object", {"hashCode", "getClass", "clone", NULL}},
        {"java/lang/System",
         {"identityHashCode", "currentTimeMillis", "nanoTime", "arraycopy", NULL}},
        {"java/lang/Thread", {"currentThread", "isInterrupted(Z)", NULL}},
        {"java/lang/Class",
         {"isInstance", "getModifiers", "isInterface", "isArray", "isPrimitive", "getSuperclass",
          "getComponentType", "isAssignableFrom", NULL}},
        {"java/lang/reflect/Array", {"newArray", "getLength", NULL}},
        {"sun/reflect/Reflection", {"getCallerClass", "getClassAccessFlags", NULL}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (class_name.len == strlen(rows[i].class) &&
            memcmp(class_name.data, rows[i].class, class_name.len) == 0)
            return is_among(rows[i].methods, method, descriptor);
    return false;
}

bool choice_is_class(struct str class_name, const char *name)
{
    size_t n = strlen(name);
    if (class_name.len != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (dotted(class_name.data[i]) != dotted(name[i]))
            return false;
    return true;
}

enum {
    RANK_PACKAGE = 1,
    RANK_SIMILAR,
    RANK_LIBRARY,
    RANK_UTIL,
    RANK_LANG,
    RANK_PROGRAM,
    RANK_NESTED,
    RANK_CASE
};

static bool begins_with(struct str name, const char *prefix)
{
    size_t n = strlen(prefix);
    return name.len > n && memcmp(name.data, prefix, n) == 0;
}

bool choice_is_core(struct str class_name)
{
    return begins_with(class_name, "java/") || begins_with(class_name, "jdk/") ||
           begins_with(class_name, "sun/");
}

/*
 * Returns a rank: how likely it is that users leave out the package, or the outer class, of this
 * class.
 */
static unsigned rank_of(struct str name)
{
    static const char *const libraries[] = {"java/", "javax/", "jdk/", "sun/", "com/sun/"};
    const char *slash = memrchr(name.data, '/', name.len);
    size_t package = slash ? (size_t)(slash + 1 - name.data) : 0;
    if (package == strlen("java/lang/") && begins_with(name, "java/lang/"))
        return RANK_LANG;
    if (package == strlen("java/util/") && begins_with(name, "java/util/"))
        return RANK_UTIL;
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
        if (begins_with(name, libraries[i]))
            return RANK_LIBRARY;
    return RANK_PROGRAM;
}

void choice_guess_see(struct choice_guess *g, struct str class_name,
                      bool (*means)(void *context, struct str name), void *context)
{
    char slashed[sizeof(g->name)];
    const char *raw = class_name.data;
    size_t n = class_name.len;
    unsigned rank = 0;
    if (n >= sizeof(slashed) || memmem(raw, n, "$$", 2))
        return;
    for (size_t i = 0; i < n; i++)
        slashed[i] = raw[i] == '$' ? '/' : raw[i];
    if (memchr(raw, '$', n) && means(context, (struct str){slashed, n}))
        rank = RANK_NESTED;
    for (size_t i = 1; i < n && !rank; i++)
        if (slashed[i - 1] == '/' && (means(context, (struct str){raw + i, n - i}) ||
                                      means(context, (struct str){slashed + i, n - i})))
            rank = rank_of(class_name);
    if (rank > g->rank || (rank && rank == g->rank && n < strlen(g->name))) {
        g->rank = rank;
        dotted_copy(g->name, sizeof(g->name), class_name);
    }
}

static bool is_case(struct str class_name, const char *wanted)
{
    bool same = strlen(wanted) == class_name.len;
    for (size_t i = 0; i < class_name.len && same; i++)
        same = tolower((unsigned char)dotted(class_name.data[i])) ==
               tolower((unsigned char)dotted(wanted[i]));
    return same;
}

/* Returns whether both names begin with the same package, or outer class, of n characters. */
static bool same_beginning(struct str class_name, const char *wanted, size_t n)
{
    bool same = class_name.len > n;
    for (size_t i = 0; i < n && same; i++)
        same = dotted(class_name.data[i]) == dotted(wanted[i]);
    return same && !memchr(class_name.data + n, '/', class_name.len - n);
}

static void guess_similar(struct choice_guess *g, struct str class_name, const char *wanted)
{
    const char *dot = strrchr(wanted, '.'), *dollar = strrchr(wanted, '$');
    size_t package = dot ? (size_t)(dot + 1 - wanted) : 0;
    size_t outer = dollar && dollar[1] && (size_t)(dollar - wanted) >= package
                       ? (size_t)(dollar + 1 - wanted)
                       : package;
    size_t n = same_beginning(class_name, wanted, outer) ? outer : package;
    char name[NEAREST_MAX + 1];
    struct nearest nearest = {.word = wanted + n};
    if (!same_beginning(class_name, wanted, n) || class_name.len - n >= sizeof(name) ||
        memmem(class_name.data, class_name.len, "$$", 2))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)(class_name.len - n), class_name.data + n);
    if (nearest_try(&nearest, name) && (g->rank < RANK_SIMILAR || nearest.distance < g->distance)) {
        g->rank = RANK_SIMILAR;
        g->distance = nearest.distance;
        dotted_copy(g->name, sizeof(g->name), class_name);
    }
}

/*
 * Considers a class of the same name in another package: the first, but one of the program's first.
 * A class of the JDK is only considered for a name that is meant to be one.
 */
static void guess_package(struct choice_guess *g, struct str class_name, const char *wanted)
{
    const char *dot = strrchr(wanted, '.'), *slash = memrchr(class_name.data, '/', class_name.len);
    struct str simple = class_name;
    if (slash)
        simple = (struct str){slash + 1, class_name.len - (size_t)(slash + 1 - class_name.data)};
    if (!dot || !dot[1] || !choice_is_class(simple, dot + 1))
        return;
    unsigned library = rank_of(class_name) != RANK_PROGRAM;
    if ((library && strncmp(wanted, "java", 4) != 0) || (g->rank && library >= g->distance))
        return;
    g->rank = RANK_PACKAGE;
    g->distance = library;
    dotted_copy(g->name, sizeof(g->name), class_name);
}

void choice_guess_spelling(struct choice_guess *g, struct str class_name, const char *wanted)
{
    if (class_name.len < sizeof(g->name) && g->rank < RANK_CASE && is_case(class_name, wanted)) {
        g->rank = RANK_CASE;
        dotted_copy(g->name, sizeof(g->name), class_name);
    } else if (g->rank <= RANK_SIMILAR) {
        guess_similar(g, class_name, wanted);
        if (g->rank <= RANK_PACKAGE && class_name.len < sizeof(g->name))
            guess_package(g, class_name, wanted);
    }
}

void choice_guess_prefer(struct choice_guess *g, const struct choice_guess *other)
{
    bool better = other->has_member != g->has_member ? other->has_member
                  : other->rank != g->rank           ? other->rank > g->rank
                  : other->rank <= RANK_SIMILAR      ? other->distance < g->distance
                                                     : strlen(other->name) < strlen(g->name);
    if (other->rank && (!g->rank || better))
        *g = *other;
}
