/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nth.h"

#include "base/hash.h"

uint64_t nth_number(uint64_t *numbers, size_t n, size_t k)
{
    uint64_t seed = n;
    size_t low = 0, high = n; /* the element is among these */
    while (high - low > 1) {
        seed = hash_u64(seed);
        uint64_t pivot = numbers[low + seed % (high - low)];
        size_t below = low, above = high;
        for (size_t i = low; i < above;) {
            uint64_t one = numbers[i];
            if (one < pivot) {
                numbers[i++] = numbers[below];
                numbers[below++] = one;
            } else if (one > pivot) {
                numbers[i] = numbers[--above];
                numbers[above] = one;
            } else {
                i++;
            }
        }
        if (k >= below && k < above)
            break;
        low = k < below ? low : above;
        high = k < below ? below : high;
    }
    return numbers[k];
}
