/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes first. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
