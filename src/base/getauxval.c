/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only for the agents on aarch64: libgcc's choice of atomic instructions calls glibc's name of
 * getauxval(), which musl does not have.
 */
#include <sys/auxv.h>

__attribute__((visibility("hidden"))) unsigned long __getauxval(unsigned long type);

unsigned long __getauxval(unsigned long type)
{
    return getauxval(type);
}
