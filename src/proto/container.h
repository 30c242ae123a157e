/* SPDX-License-Identifier: Apache-2.0 */
/* Which container a process runs in, as its control group and its files say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct vm;

enum { CONTAINER_ID_MAX = 128 };

/*
 * The container's id in the text of /proc/PID/cgroup: the first 12 of the 64 hexadecimal digits by
 * which Docker, containerd, CRI-O and Podman name groups, or the name that LXC and systemd-nspawn
 * put there. False when the text names none.
 */
bool container_of_groups(const char *text, char ret[CONTAINER_ID_MAX]);

/* The id of the VM's container and the name that it has for itself (its host name); "" for none. */
void container_of(const struct vm *vm, char ret_id[CONTAINER_ID_MAX],
                  char ret_name[CONTAINER_ID_MAX]);
