/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damages a recording in memory in many ways and reads all of it each time, as the fuzz target
 * does:
 *
 *     jfr_damage FILE FIRST STEP [TRIES]
 *
 * At the positions FIRST, FIRST + STEP ... it changes the byte to several values in turn, and cuts
 * the file, TRIES times at most. It prints the number of tries. It fails by crashing or by a
 * report of the sanitizer.
 */
#include "base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    uint8_t *bytes;
    size_t len;
    if (argc < 4 || file_read_path(argv[1], 1 << 30, &bytes, &len))
        return 2;
    size_t step = strtoul(argv[3], NULL, 10), n = 0;
    size_t tries = argc > 4 ? strtoul(argv[4], NULL, 10) : SIZE_MAX;
    LLVMFuzzerTestOneInput(bytes, len);
    for (size_t i = strtoul(argv[2], NULL, 10); i < len && n < tries; i += step) {
        uint8_t old = bytes[i];
        const uint8_t values[] = {(uint8_t)~old, 0, 0xff, 0x7f, (uint8_t)(old + 1)};
        bytes[i] = values[n++ % sizeof(values)];
        LLVMFuzzerTestOneInput(bytes, len);
        bytes[i] = old;
        /* Use a separate copy, so that the sanitizer sees reads beyond the cut. */
        uint8_t *cut = malloc(i + 1);
        if (cut) {
            memcpy(cut, bytes, i);
            LLVMFuzzerTestOneInput(cut, i);
        }
        free(cut);
    }
    free(bytes);
    printf("damaged %zu\n", n);
    return 0;
}
