/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/native_thunks.h"

#include "classfile/classfile.h"

#include <string.h>

unsigned native_stack_words(struct str descriptor)
{
    unsigned integers = 2, reals = 0, words = 0, slots;
    for (size_t at = 1, len; (len = class_descriptor_next(descriptor, at, &slots)); at += len) {
        bool real = strchr("FD", descriptor.data[at]) != NULL;
        words += real ? reals >= THUNK_REALS : integers >= THUNK_INTEGERS;
        reals += real;
        integers += !real;
    }
    return words;
}

/*
 * To unwinders, all thunks and the code to which they jump are a single function: before its first
 * instruction a thunk does not change the stack.
 */
#if defined(__x86_64__)
#define THUNK_BYTES 16
__asm__(".text\n"
        ".p2align 4\n"
        ".type jvmscope_thunks, @function\n"
        "jvmscope_thunks:\n"
        ".cfi_startproc\n"
        ".set jvmscope_n, 0\n"
        ".rept 4096\n"
        "    .p2align 4\n"
        "    movl $jvmscope_n, %r11d\n"
        "    jmp 1f\n"
        "    .set jvmscope_n, jvmscope_n + 1\n"
        ".endr\n"
        ".p2align 4\n"
        "1:\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    pushq %rbx\n"
        "    .cfi_offset %rbx, -24\n"
        /* the frame's 208 bytes, and 8 to reach a multiple of 16 with rbx */
        "    subq $216, %rsp\n"
        "    movq %rdi, 0(%rsp)\n"
        "    movq %rsi, 8(%rsp)\n"
        "    movq %rdx, 16(%rsp)\n"
        "    movq %rcx, 24(%rsp)\n"
        "    movq %r8, 32(%rsp)\n"
        "    movq %r9, 40(%rsp)\n"
        "    movsd %xmm0, 64(%rsp)\n"
        "    movsd %xmm1, 72(%rsp)\n"
        "    movsd %xmm2, 80(%rsp)\n"
        "    movsd %xmm3, 88(%rsp)\n"
        "    movsd %xmm4, 96(%rsp)\n"
        "    movsd %xmm5, 104(%rsp)\n"
        "    movsd %xmm6, 112(%rsp)\n"
        "    movsd %xmm7, 120(%rsp)\n"
        "    movl %r11d, %r11d\n"
        "    movq %r11, 128(%rsp)\n"
        "    leaq 16(%rbp), %rax\n"
        "    movq %rax, 136(%rsp)\n"
        "    movq %rsp, %rbx\n"
        "    movq %rsp, %rdi\n"
        "    call native_thunk_enter\n"
        "    movq 152(%rbx), %rcx\n"
        "    leaq 8(,%rcx,8), %rax\n"
        "    andq $-16, %rax\n"
        "    subq %rax, %rsp\n"
        "    movq %rsp, %rdi\n"
        "    movq 136(%rbx), %rsi\n"
        "    rep movsq\n"
        "    movq 0(%rbx), %rdi\n"
        "    movq 8(%rbx), %rsi\n"
        "    movq 16(%rbx), %rdx\n"
        "    movq 24(%rbx), %rcx\n"
        "    movq 32(%rbx), %r8\n"
        "    movq 40(%rbx), %r9\n"
        "    movsd 64(%rbx), %xmm0\n"
        "    movsd 72(%rbx), %xmm1\n"
        "    movsd 80(%rbx), %xmm2\n"
        "    movsd 88(%rbx), %xmm3\n"
        "    movsd 96(%rbx), %xmm4\n"
        "    movsd 104(%rbx), %xmm5\n"
        "    movsd 112(%rbx), %xmm6\n"
        "    movsd 120(%rbx), %xmm7\n"
        "    call *144(%rbx)\n"
        "    movq %rax, 160(%rbx)\n"
        "    movsd %xmm0, 168(%rbx)\n"
        "    movq %rbx, %rsp\n"
        "    movq %rbx, %rdi\n"
        "    call native_thunk_exit\n"
        "    movq 160(%rbx), %rax\n"
        "    movsd 168(%rbx), %xmm0\n"
        "    movq -8(%rbp), %rbx\n"
        "    leave\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size jvmscope_thunks, . - jvmscope_thunks\n");
#elif defined(__aarch64__)
#define THUNK_BYTES 8
__asm__(".text\n"
        ".p2align 4\n"
        ".type jvmscope_thunks, %function\n"
        "jvmscope_thunks:\n"
        ".cfi_startproc\n"
        ".set jvmscope_n, 0\n"
        ".rept 4096\n"
        "    mov w16, #jvmscope_n\n"
        "    b 1f\n"
        "    .set jvmscope_n, jvmscope_n + 1\n"
        ".endr\n"
        "1:\n"
        "    stp x29, x30, [sp, #-32]!\n"
        "    .cfi_def_cfa_offset 32\n"
        "    .cfi_offset x29, -32\n"
        "    .cfi_offset x30, -24\n"
        "    str x19, [sp, #16]\n"
        "    .cfi_offset x19, -16\n"
        "    mov x29, sp\n"
        "    .cfi_def_cfa x29, 32\n"
        "    sub sp, sp, #208\n"
        "    stp x0, x1, [sp, #0]\n"
        "    stp x2, x3, [sp, #16]\n"
        "    stp x4, x5, [sp, #32]\n"
        "    stp x6, x7, [sp, #48]\n"
        "    stp d0, d1, [sp, #64]\n"
        "    stp d2, d3, [sp, #80]\n"
        "    stp d4, d5, [sp, #96]\n"
        "    stp d6, d7, [sp, #112]\n"
        "    add x9, x29, #32\n"
        "    uxtw x16, w16\n"
        "    stp x16, x9, [sp, #128]\n"
        "    mov x19, sp\n"
        "    mov x0, sp\n"
        "    bl native_thunk_enter\n"
        "    ldr x9, [x19, #152]\n"
        "    add x10, x9, #1\n"
        "    lsr x10, x10, #1\n"
        "    sub sp, sp, x10, lsl #4\n"
        "    ldr x11, [x19, #136]\n"
        "    mov x12, sp\n"
        "2:  cbz x9, 3f\n"
        "    ldr x10, [x11], #8\n"
        "    str x10, [x12], #8\n"
        "    sub x9, x9, #1\n"
        "    b 2b\n"
        "3:  ldp x0, x1, [x19, #0]\n"
        "    ldp x2, x3, [x19, #16]\n"
        "    ldp x4, x5, [x19, #32]\n"
        "    ldp x6, x7, [x19, #48]\n"
        "    ldp d0, d1, [x19, #64]\n"
        "    ldp d2, d3, [x19, #80]\n"
        "    ldp d4, d5, [x19, #96]\n"
        "    ldp d6, d7, [x19, #112]\n"
        "    ldr x16, [x19, #144]\n"
        "    blr x16\n"
        "    str x0, [x19, #160]\n"
        "    str d0, [x19, #168]\n"
        "    mov sp, x19\n"
        "    mov x0, x19\n"
        "    bl native_thunk_exit\n"
        "    ldr x0, [x19, #160]\n"
        "    ldr d0, [x19, #168]\n"
        "    mov sp, x29\n"
        "    ldr x19, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_def_cfa sp, 0\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size jvmscope_thunks, . - jvmscope_thunks\n");
#endif

#ifdef THUNK_BYTES
extern const char jvmscope_thunks[] __asm__("jvmscope_thunks");

void *native_thunk(unsigned n)
{
    return (void *)(uintptr_t)(jvmscope_thunks + n * THUNK_BYTES);
}

bool native_is_thunk(const void *function)
{
    return (uintptr_t)function - (uintptr_t)jvmscope_thunks <
           (uintptr_t)NATIVE_THUNKS * THUNK_BYTES;
}
#else
void *native_thunk(unsigned n)
{
    return NULL;
}

bool native_is_thunk(const void *function)
{
    return false;
}
#endif
