/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sources.h"

#include "answers/coverage.h"
#include "base/file.h"
#include "cli/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool check_folder(const char *folder)
{
    struct stat st;
    if (stat(folder, &st) < 0)
        complain_errno(folder, "cannot read the sources", -errno);
    else if (!S_ISDIR(st.st_mode))
        complain(folder, "is not a folder", "--sources names the folder below which sources are");
    else if (access(folder, R_OK | X_OK) < 0)
        complain_errno(folder, "cannot read the sources", -errno);
    else
        return true;
    return false;
}

bool sources_check(const char *folders)
{
    char folder[PATH_MAX];
    for (const char *rest = folders; file_list_next(&rest, folder);)
        if (!check_folder(folder))
            return false;
    return true;
}

void sources_note_none(const char *folders, const struct coverage *c)
{
    _cleanup_(buf_release) struct buf what = BUF(1 << 16);
    for (size_t i = 0; i < c->classes.len; i++) {
        _cleanup_free_ char *path = cover_source_path(folders, &c->classes.data[i]);
        if (path)
            return;
    }
    _cleanup_free_ char *first =
        c->classes.len ? cover_source_path(NULL, &c->classes.data[0]) : NULL;
    buf_printf(&what, "%s has no source file of a class that is covered", folders);
    if (first)
        buf_printf(&what, ", such as %s", first);
    complain("--sources", "note", buf_str(&what));
}

void sources_note_without_effect(const char *folders, char *const *recordings, int n)
{
    _cleanup_(coverage_release) struct coverage c = {0};
    _cleanup_(coverage_found_release) struct coverage_found found = {0};
    for (int i = 0; i < n; i++) {
        _cleanup_(losses_release) struct losses losses = {0};
        const char *why = NULL;
        if (coverage_read(&c, recordings[i], &found, &losses, &why) < 0)
            continue; /* a heap dump, for example */
    }
    if (found.any)
        sources_note_none(folders, &c);
    else
        complain("--sources", "note", "has no effect, because no coverage was recorded (--cover)");
}
