/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/unpublished.h"

#include "base/file.h"
#include "proto/vm_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RELEASE_MAX = 1 << 16, LIBRARY_MAX = 64 << 20, FOLDERS_UP = 5 };

/* Returns whether a word is an option of the java launcher whose value is the next word. */
static bool has_value(const char *word)
{
    static const char *const names[] = {
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--upgrade-module-path",
        "--add-modules",
        "--limit-modules",
        "--add-exports",
        "--add-opens",
        "--add-reads",
        "--patch-module",
        "--enable-native-access",
        "--source",
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(word, names[i]) == 0)
            return true;
    return false;
}

size_t unpublished_main(const char *words, size_t len)
{
    const char *slash = strrchr(words, '/');
    if (strcmp(slash ? slash + 1 : words, "java") != 0)
        return 0;
    size_t at = strlen(words) + 1;
    while (at < len && words[at] == '-') {
        const char *word = words + at;
        at += strlen(word) + 1;
        if (strcmp(word, "-jar") == 0 || strcmp(word, "-m") == 0 || strcmp(word, "--module") == 0)
            return at < len ? at : 0;
        if (at < len && has_value(word))
            at += strlen(words + at) + 1;
    }
    return at < len && words[at] != '@' ? at : 0;
}

static bool is_vm(const char *base_name)
{
    return strcmp(base_name, "libjvm.so") == 0;
}

/* Returns the value of JAVA_VERSION="..." in the text of a `release` file. */
static char *find_version(const char *text)
{
    static const char key[] = "JAVA_VERSION=\"";
    const char *at = strstr(text, key);
    if (!at || (at > text && at[-1] != '\n'))
        return NULL;
    at += sizeof(key) - 1;
    return strndup(at, strcspn(at, "\"\n"));
}

/*
 * Returns the version in the `release` file of an installation. `library` is
 * JDK/lib/server/libjvm.so, and up to JDK 8 JDK/jre/lib/ARCH/server/libjvm.so.
 */
static char *version_of_installation(const struct vm *vm, const char *library)
{
    char path[PATH_MAX + 16], folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", library);
    for (int i = 0; i < FOLDERS_UP && strrchr(folder, '/'); i++) {
        _cleanup_free_ uint8_t *text = NULL;
        size_t len;
        *strrchr(folder, '/') = 0;
        snprintf(path, sizeof(path), "%s/release", folder);
        _cleanup_close_ int fd = vm_file_open(vm, path, O_RDONLY | O_NONBLOCK, 0);
        if (fd >= 0 && file_read_all(fd, RELEASE_MAX, &text, &len) == 0 && text)
            return find_version((const char *)text);
    }
    return NULL;
}

/*
 * Returns the version in the sentence with which the library describes itself: "OpenJDK 64-Bit
 * Server VM (25.504-b01) for linux-amd64 JRE (1.8.0_504-8u504-b01), built on ...".
 */
static char *version_of_library(const struct vm *vm, const char *library)
{
    static const char before[] = ") for linux-", key[] = " JRE (";
    _cleanup_free_ uint8_t *bytes = NULL;
    size_t len;
    _cleanup_close_ int fd = vm_file_open(vm, library, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 || file_read_all(fd, LIBRARY_MAX, &bytes, &len) < 0)
        return NULL;
    const char *at = (const char *)bytes, *end = at + len;
    while ((at = memmem(at, (size_t)(end - at), before, sizeof(before) - 1))) {
        at += sizeof(before) - 1;
        size_t n = strnlen(at, (size_t)MIN(end - at, 200));
        const char *version = memmem(at, n, key, sizeof(key) - 1);
        if (version) {
            version += sizeof(key) - 1;
            return strndup(version, strcspn(version, "-)"));
        }
    }
    return NULL;
}

char *unpublished_version(const struct vm *vm)
{
    char **libraries, *version = NULL;
    if (vm_mapped_files(vm, is_vm, &libraries) < 0)
        return NULL;
    for (char **l = libraries; *l; l++) {
        if (!version)
            version = version_of_installation(vm, *l) ?: version_of_library(vm, *l);
        free(*l);
    }
    free(libraries);
    return version;
}
