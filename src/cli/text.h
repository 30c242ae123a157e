/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/strpool.h"

#include <stdio.h>

/* Prints text that came from outside: no control character of it reaches the terminal. */
void print_text(FILE *to, struct str s);
