/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of the Java virtual machine (JVMS SE 25, chapter 6). */
#pragma once

#include <stdint.h>

enum opcode {
    OP_NOP = 0x00,
    OP_ACONST_NULL = 0x01,
    OP_ICONST_M1 = 0x02,
    OP_ICONST_0 = 0x03,
    OP_LCONST_0 = 0x09,
    OP_BIPUSH = 0x10,
    OP_SIPUSH = 0x11,
    OP_LDC = 0x12,
    OP_LDC_W = 0x13,
    OP_LDC2_W = 0x14,
    OP_ILOAD = 0x15,
    OP_ALOAD = 0x19,
    OP_ILOAD_0 = 0x1a,
    OP_ALOAD_0 = 0x2a,
    OP_IALOAD = 0x2e,
    OP_AALOAD = 0x32,
    OP_ISTORE = 0x36,
    OP_ASTORE = 0x3a,
    OP_ISTORE_0 = 0x3b,
    OP_ASTORE_3 = 0x4e,
    OP_POP = 0x57,
    OP_POP2 = 0x58,
    OP_DUP = 0x59,
    OP_DUP_X1 = 0x5a,
    OP_DUP_X2 = 0x5b,
    OP_DUP2 = 0x5c,
    OP_DUP2_X1 = 0x5d,
    OP_DUP2_X2 = 0x5e,
    OP_SWAP = 0x5f,
    OP_IINC = 0x84,
    OP_IFEQ = 0x99,
    OP_IF_ACMPNE = 0xa6,
    OP_GOTO = 0xa7,
    OP_JSR = 0xa8,
    OP_RET = 0xa9,
    OP_TABLESWITCH = 0xaa,
    OP_LOOKUPSWITCH = 0xab,
    OP_IRETURN = 0xac,
    OP_LRETURN = 0xad,
    OP_FRETURN = 0xae,
    OP_DRETURN = 0xaf,
    OP_ARETURN = 0xb0,
    OP_RETURN = 0xb1,
    OP_GETSTATIC = 0xb2,
    OP_PUTSTATIC = 0xb3,
    OP_GETFIELD = 0xb4,
    OP_PUTFIELD = 0xb5,
    OP_INVOKEVIRTUAL = 0xb6,
    OP_INVOKESPECIAL = 0xb7,
    OP_INVOKESTATIC = 0xb8,
    OP_INVOKEINTERFACE = 0xb9,
    OP_INVOKEDYNAMIC = 0xba,
    OP_NEW = 0xbb,
    OP_NEWARRAY = 0xbc,
    OP_ANEWARRAY = 0xbd,
    OP_ARRAYLENGTH = 0xbe,
    OP_ATHROW = 0xbf,
    OP_CHECKCAST = 0xc0,
    OP_INSTANCEOF = 0xc1,
    OP_MONITORENTER = 0xc2,
    OP_MONITOREXIT = 0xc3,
    OP_WIDE = 0xc4,
    OP_MULTIANEWARRAY = 0xc5,
    OP_IFNULL = 0xc6,
    OP_IFNONNULL = 0xc7,
    OP_GOTO_W = 0xc8,
    OP_JSR_W = 0xc9,
    OP_LAST = OP_JSR_W,
};

/*
 * The low bits of op_info hold the length in bytes, or 0 for switches and `wide`; the others are
 * flags.
 */
enum {
    OP_LENGTH = 0x07,
    /* A 16- or 32-bit offset follows the opcode: if*, goto, jsr and their wide forms. */
    OP_IS_BRANCH = 0x08,
    OP_IS_SWITCH = 0x10,
    OP_IS_RETURN = 0x20, /* the *return instructions, not athrow */
    OP_NO_FALL = 0x40,   /* execution never continues with the next instruction */
    /*
     * loads and stores of locals, constants except ldc, stack operations, int and long arithmetic
     * except division
     */
    OP_CANNOT_THROW = 0x80,
};

/* The length and flags of every opcode; 0 for bytes above OP_LAST. */
extern const uint8_t op_info[256];
