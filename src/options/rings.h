/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a ring's file if none was given: RING_PREFIX, the VM's process id, a hyphen, the
 * time of the start, and RING_SUFFIX.
 */
#pragma once

#define RING_PREFIX "jvmscope-"
#define RING_SUFFIX ".ring"
