/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as commands: read in one piece and byte by byte, they must mean the same. */
#include "hprof/command.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hprof_commands whole = {.id_size = 8}, pieces = {.id_size = 8};
    struct hprof_request a = {0}, b = {0};
    size_t at = 0, used, at_pieces = 0;
    while (at < size && hprof_command_next(&whole, data + at, size - at, &used, &a)) {
        at += used;
        int got = 0;
        while (!got && at_pieces < size) {
            got = hprof_command_next(&pieces, data + at_pieces, 1, &used, &b);
            at_pieces += used;
        }
        if (!got || at != at_pieces || a.command != b.command || a.serial != b.serial ||
            a.object != b.object)
            abort();
    }
    return 0;
}
