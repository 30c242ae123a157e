/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the container in which a process runs, from its control group and its files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct vm;

enum { CONTAINER_ID_MAX = 128 };

/*
 * Extracts the container's id from the text of /proc/PID/cgroup: the first 12 of the 64 hexadecimal
 * digits by which Docker, containerd, CRI-O and Podman name groups, or the name that LXC and
 * systemd-nspawn give their groups. Returns false when the text names none.
 */
bool container_of_groups(const char *text, char ret[CONTAINER_ID_MAX]);

/*
 * Returns whether the VM runs in another container than the command: its root is another one, and
 * it has another id, another host name, or other namespaces of host names or processes. A chroot
 * and a mount namespace alone are no container. Stores the VM's container id, even if it is that of
 * the command's own container, and the name that the container has for itself, each "" if there is
 * none: its host name or, where that cannot be asked for, the one in its /etc/hostname. The name is
 * also "" if it only repeats the id, or if the container is the command's own.
 */
bool container_of(const struct vm *vm, char ret_id[CONTAINER_ID_MAX],
                  char ret_name[CONTAINER_ID_MAX]);
