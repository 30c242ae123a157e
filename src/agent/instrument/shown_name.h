/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/instrument/instrument.h"

struct shown_name {
    char text[768];
};

/*
 * Returns the name of a class as outputs show it (base/generated_name.h), in the internal form: of
 * a proxy with its interfaces instead of its number. The name may lie in `room`.
 */
struct str instrument_shown_name(const struct instrument_class *c, struct shown_name *room);
