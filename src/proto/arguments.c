/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/arguments.h"

#include "base/file.h"
#include "proto/unpublished.h"
#include "proto/vm_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROC_MAX = 16 << 20, FILE_MAX = 1 << 20, WORDS_MAX = 64 << 20 };

/*
 * Returns the words of a buffer, each of which ends with NUL. The buffer is emptied if an append
 * failed.
 */
static const char *words_of(struct buf *b)
{
    if (buf_error(b))
        buf_clear(b);
    return buf_str(b);
}

static void add_word(struct buf *to, const char *word)
{
    buf_bytes(to, word, strlen(word) + 1);
}

static bool is_blank(char c)
{
    return c && strchr(" \t\n\v\f\r", c);
}

void arguments_split(struct buf *to, const char *text, bool comments)
{
    while (*text) {
        while (is_blank(*text))
            text++;
        if (comments && *text == '#') {
            text += strcspn(text, "\n");
            continue;
        }
        if (!*text)
            return;
        char quote = 0;
        for (; *text && (quote || !is_blank(*text)); text++) {
            if (*text == quote)
                quote = 0;
            else if (!quote && (*text == '"' || *text == '\''))
                quote = *text;
            else if (quote && comments && *text == '\\' && text[1])
                buf_u8(to, (uint8_t) * ++text);
            else
                buf_u8(to, (uint8_t)*text);
        }
        buf_u8(to, 0);
    }
}

/*
 * Finds the VM's working directory, by its name in the VM's root: the longest suffix of the name
 * that we see that exists there, because the name of a VM in a chroot begins with the chroot's
 * folder.
 */
static bool working_folder(const struct vm *vm, char name[PATH_MAX])
{
    char path[64], seen[PATH_MAX];
    struct stat its, st;
    snprintf(path, sizeof(path), "/proc/%d/cwd", vm->pid);
    ssize_t n = readlink(path, seen, sizeof(seen) - 1);
    if (n <= 0 || stat(path, &its) < 0)
        return false;
    seen[n] = 0;
    for (const char *at = seen; at; at = strchr(at + 1, '/')) {
        _cleanup_close_ int folder = vm_locate(vm, at);
        if (folder >= 0 && fstat(folder, &st) == 0 && st.st_dev == its.st_dev &&
            st.st_ino == its.st_ino) {
            snprintf(name, PATH_MAX, "%s", at);
            return true;
        }
    }
    snprintf(name, PATH_MAX, "/");
    _cleanup_close_ int root = vm_locate(vm, "/");
    return root >= 0 && fstat(root, &st) == 0 && st.st_dev == its.st_dev && st.st_ino == its.st_ino;
}

/* Returns the text of a file that the VM's arguments name, or NULL; the caller frees it. */
static char *read_named(const struct vm *vm, const char *name)
{
    char folder[PATH_MAX] = "", path[2 * PATH_MAX];
    uint8_t *text = NULL;
    size_t len;
    struct stat st;
    if (*name != '/' && !working_folder(vm, folder))
        return NULL;
    snprintf(path, sizeof(path), "%s%s%s", folder, *name == '/' ? "" : "/", name);
    _cleanup_close_ int fd = vm_file_open(vm, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        file_read_all(fd, FILE_MAX, &text, &len) < 0)
        return NULL;
    return (char *)text;
}

/* ---- what the launcher makes of the command line ---- */

static bool is_java_8(const struct vm *vm)
{
    return vm->version && strncmp(vm->version, "1.8", 3) == 0;
}

/*
 * Copies words, in which @FILE before the main class stands for the words of the file. The first
 * word is the program.
 */
static void expand(struct arguments *a, const struct vm *vm, const char *words, size_t len,
                   struct buf *to)
{
    for (size_t at = 0; at < len; at += strlen(words + at) + 1) {
        const char *word = words + at;
        bool names_file = at && word[0] == '@' && word[1] && word[1] != '@' &&
                          !unpublished_main(words_of(to), to->len);
        _cleanup_free_ char *text = names_file ? read_named(vm, word + 1) : NULL;
        a->incomplete |= names_file && !text;
        if (text)
            arguments_split(to, text, true);
        else
            add_word(to, word);
    }
}

/*
 * Returns the value of a variable of an environment whose variables each end with NUL, or NULL. The
 * environment may be NULL.
 */
static const char *variable(const char *all, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (size_t at = 0; all && at < len; at += strlen(all + at) + 1)
        if (strncmp(all + at, name, n) == 0 && all[at + n] == '=')
            return all + at + n + 1;
    return NULL;
}

static char *join_words(const char *words, size_t len)
{
    _cleanup_(buf_release) struct buf text = BUF(WORDS_MAX);
    for (size_t at = 0; at < len; at += strlen(words + at) + 1)
        buf_printf(&text, "%s%s", at ? " " : "", words + at);
    return text.len ? strdup(buf_str(&text)) : NULL;
}

/* ---- the VM's options ---- */

/* Adds words as the VM reads them: with those of the files that -XX:VMOptionsFile names. */
static void add_options(struct arguments *a, const struct vm *vm, const char *words, size_t len)
{
    static const char file[] = "-XX:VMOptionsFile=";
    for (size_t at = 0; at < len; at += strlen(words + at) + 1) {
        const char *word = words + at;
        if (strncmp(word, file, sizeof(file) - 1) == 0) {
            _cleanup_free_ char *text = read_named(vm, word + sizeof(file) - 1);
            a->incomplete |= !text;
            if (text)
                arguments_split(&a->options, text, false);
        } else {
            add_word(&a->options, word + (strncmp(word, "-J-", 3) == 0 ? 2 : 0));
        }
    }
}

static void add_text(struct arguments *a, const struct vm *vm, const char *text)
{
    _cleanup_(buf_release) struct buf words = BUF(WORDS_MAX);
    if (text)
        arguments_split(&words, text, false);
    const char *all = words_of(&words);
    add_options(a, vm, all, words.len);
}

/*
 * Adds the flags of the file of -XX:Flags=FILE. They are written without "-XX:", and precede all
 * others.
 */
static void add_flags_file(struct arguments *a, const struct vm *vm, const char *words, size_t len)
{
    static const char flags[] = "-XX:Flags=";
    _cleanup_(buf_release) struct buf found = BUF(WORDS_MAX), all = BUF(WORDS_MAX);
    const char *name = NULL;
    for (size_t at = 0; at < len; at += strlen(words + at) + 1)
        if (strncmp(words + at, flags, sizeof(flags) - 1) == 0)
            name = words + at + sizeof(flags) - 1;
    if (!name)
        return;
    _cleanup_free_ char *text = read_named(vm, name);
    a->incomplete |= !text;
    if (text)
        arguments_split(&found, text, true);
    const char *read = words_of(&found);
    for (size_t at = 0; at < found.len; at += strlen(read + at) + 1) {
        buf_string(&all, "-XX:");
        add_word(&all, read + at);
    }
    buf_bytes(&all, a->options.data, a->options.len);
    buf_release(&a->options);
    a->options = all;
    all = BUF(0);
}

/*
 * Puts the words with which the launcher starts the program into `words`, including those of
 * JDK_JAVA_OPTIONS and of argument files, which only `java` reads, and only from JDK 9 on.
 */
static void launch(struct arguments *a, const struct vm *vm, const char *line, size_t len,
                   const char *more, struct buf *words)
{
    _cleanup_(buf_release) struct buf given = BUF(WORDS_MAX);
    size_t first = strlen(line) + 1;
    if (strcmp(file_base(line), "java") != 0 || is_java_8(vm)) {
        buf_bytes(words, line, len);
        return;
    }
    add_word(&given, line);
    if (more)
        arguments_split(&given, more, false);
    buf_bytes(&given, line + first, len - first);
    const char *all = words_of(&given);
    expand(a, vm, all, given.len, words);
}

void arguments_read(struct arguments *ret, const struct vm *vm)
{
    *ret = (struct arguments){.options = BUF(WORDS_MAX)};
    char path[64];
    _cleanup_free_ char *line = NULL, *environment = NULL;
    size_t line_len = 0, len = 0;
    _cleanup_(buf_release) struct buf launched = BUF(WORDS_MAX);
    snprintf(path, sizeof(path), "/proc/%d/environ", vm->pid);
    ret->incomplete = file_read_path(path, PROC_MAX, (uint8_t **)&environment, &len) < 0;
    snprintf(path, sizeof(path), "/proc/%d/cmdline", vm->pid);
    if (file_read_path(path, PROC_MAX, (uint8_t **)&line, &line_len) < 0 || !line_len) {
        ret->incomplete = true;
        return;
    }
    line_len += line[line_len - 1] != 0; /* a program may have overwritten the last NUL */
    launch(ret, vm, line, line_len, variable(environment, len, "JDK_JAVA_OPTIONS"), &launched);
    const char *words = words_of(&launched);
    size_t main = unpublished_main(words, launched.len);
    if (main)
        ret->command = join_words(words + main, launched.len - main);

    add_text(ret, vm, variable(environment, len, "JAVA_TOOL_OPTIONS"));
    size_t line_from = ret->options.len;
    size_t first = MIN(strlen(line) + 1, launched.len);
    add_options(ret, vm, words + first, (main ? main : launched.len) - first);
    size_t line_to = ret->options.len;
    add_text(ret, vm, variable(environment, len, "_JAVA_OPTIONS"));
    const char *all = words_of(&ret->options);
    /* JDK 8 takes the name of the file only from the command line. */
    if (is_java_8(vm) && ret->options.len)
        add_flags_file(ret, vm, all + line_from, line_to - line_from);
    else
        add_flags_file(ret, vm, all, ret->options.len);
    (void)words_of(&ret->options);
}

void arguments_release(struct arguments *a)
{
    buf_release(&a->options);
    free(a->command);
    *a = (struct arguments){0};
}

int arguments_switch(const struct arguments *a, const char *name)
{
    int found = -1;
    const char *words = buf_str(&a->options);
    for (size_t at = 0; at < a->options.len; at += strlen(words + at) + 1) {
        const char *word = words + at;
        if (strncmp(word, "-XX:", 4) == 0 && (word[4] == '+' || word[4] == '-') &&
            strcmp(word + 5, name) == 0)
            found = word[4] == '+';
        else if (strcmp(word, "-Xrs") == 0 && strcmp(name, "ReduceSignalUsage") == 0)
            found = 1;
    }
    return found;
}

bool arguments_have_value(const struct arguments *a, const char *name)
{
    const char *words = buf_str(&a->options);
    size_t n = strlen(name);
    for (size_t at = 0; at < a->options.len; at += strlen(words + at) + 1) {
        const char *word = words + at;
        if (strncmp(word, "-XX:", 4) == 0 && strncmp(word + 4, name, n) == 0 &&
            word[4 + n] == '=' && word[5 + n])
            return true;
    }
    return false;
}
