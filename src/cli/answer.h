/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as text on a terminal. */
#pragma once

#include "answers/answer.h"

#include <stdio.h>

void answer_print(const struct answer *a, FILE *to);
