/* SPDX-License-Identifier: Apache-2.0 */
/* The files of rings that were given no name: PREFIX, the VM's process number, and SUFFIX. */
#pragma once

#define RING_PREFIX "jvmscope-"
#define RING_SUFFIX ".ring"
