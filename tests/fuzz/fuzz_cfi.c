/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information of a library that is not valid: any bytes, at any address within them. */
#include "unwind/cfi.h"

#include <errno.h>
#include <string.h>

enum { BASE = 0x10000 };

struct bytes {
    const uint8_t *data;
    size_t len;
};

static int read_bytes(void *context, uint64_t address, void *bytes, size_t len)
{
    const struct bytes *b = context;
    if (address < BASE || address - BASE > b->len || len > b->len - (address - BASE))
        return -EFAULT;
    memcpy(bytes, b->data + (address - BASE), len);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 16)
        return 0;
    /* The table's header is valid, so that its contents are tested. */
    uint8_t head[16] = {1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0};
    uint8_t copy[4096] = {0};
    size_t n = len < sizeof(copy) ? len : sizeof(copy);
    memcpy(copy, data, n);
    memcpy(copy, head, 12);
    copy[8] = (uint8_t)(data[8] % 16);
    struct bytes b = {copy, sizeof(copy)};
    struct memory m = {&b, read_bytes};
    struct module module = {
        .begin = 0, .end = UINT64_MAX, .eh_frame_hdr = BASE, .eh_frame_size = n};
    struct cfi_rule rule;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t pc = BASE + (uint64_t)data[i] * 17;
        (void)cfi_find(&arch_x86_64, &m, &module, pc, &rule);
        (void)cfi_find(&arch_aarch64, &m, &module, pc, &rule);
    }
    return 0;
}
