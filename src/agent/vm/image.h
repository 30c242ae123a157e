/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "hotspot/image.h"

/* The VM of this process. Any thread. */
extern const struct hotspot_image vm_image;
