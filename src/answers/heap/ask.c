/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/ask.h"

#include "answers/heap/heap.h"

#include <errno.h>
#include <string.h>

int heap_ask_json(const struct heap *h, const char *verb, const struct heap_options *o,
                  const char *operand, struct buf *out)
{
    _cleanup_(answer_release) struct answer a = {.title = ""};
    char *operands[] = {(char *)operand, NULL};
    const struct heap_call call = {(struct heap *)h, h->dump, o, operands, operand != NULL, &a};
    heap_note_damage(&a, h->dump);
    int status = heap_ask(verb, &call);
    if (status > 0 && a.refusal)
        buf_printf(out, "jvmscope: %s\n", a.refusal);
    if (status)
        return status > 0 ? -EINVAL : status;
    return a.error ? -ENOMEM : answer_json(&a, out);
}
