/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thunks of natives.c. Each knows its number; what they share saves the arguments in registers, asks jvmpi_thunk_enter
 * for the method's own code and how many words of arguments lie on the stack, copies those, calls, keeps the result over
 * jvmpi_thunk_exit, and returns.
 *
 * The frame, below the saved %rbp: %rbx and %r12 at -8 and -16; %xmm0-7 from -144 on; %rdi, %rsi, %rdx, %rcx, %r8, %r9 from
 * -192 on; the copied arguments.
 */
#ifdef __x86_64__
#define THUNKS 4096 /* as in natives.c */

    .text
    .p2align 4
common:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rbx
    .cfi_offset %rbx, -24
    pushq %r12
    .cfi_offset %r12, -32
    subq $176, %rsp
    movq %rdi, -192(%rbp)
    movq %rsi, -184(%rbp)
    movq %rdx, -176(%rbp)
    movq %rcx, -168(%rbp)
    movq %r8, -160(%rbp)
    movq %r9, -152(%rbp)
    movaps %xmm0, -144(%rbp)
    movaps %xmm1, -128(%rbp)
    movaps %xmm2, -112(%rbp)
    movaps %xmm3, -96(%rbp)
    movaps %xmm4, -80(%rbp)
    movaps %xmm5, -64(%rbp)
    movaps %xmm6, -48(%rbp)
    movaps %xmm7, -32(%rbp)
    movl %r11d, %r12d
    movq %rsi, %rdx
    movq %rdi, %rsi
    movl %r11d, %edi
    call jvmpi_thunk_enter
    movq %rax, %r10
    movq %rdx, %rbx /* what enter answered in the low byte, above it the words on the stack */
    movq %rdx, %rcx
    shrq $8, %rcx
    leaq (,%rcx,8), %rdx
    subq %rdx, %rsp
    leaq 16(%rbp), %rsi
    movq %rsp, %rdi
    rep movsq
    movq -192(%rbp), %rdi
    movq -184(%rbp), %rsi
    movq -176(%rbp), %rdx
    movq -168(%rbp), %rcx
    movq -160(%rbp), %r8
    movq -152(%rbp), %r9
    movaps -144(%rbp), %xmm0
    movaps -128(%rbp), %xmm1
    movaps -112(%rbp), %xmm2
    movaps -96(%rbp), %xmm3
    movaps -80(%rbp), %xmm4
    movaps -64(%rbp), %xmm5
    movaps -48(%rbp), %xmm6
    movaps -32(%rbp), %xmm7
    call *%r10
    movq -192(%rbp), %rsi
    movq %rax, -192(%rbp)
    movaps %xmm0, -144(%rbp)
    movl %r12d, %edi
    movzbl %bl, %edx
    call jvmpi_thunk_exit
    movq -192(%rbp), %rax
    movaps -144(%rbp), %xmm0
    leaq -16(%rbp), %rsp
    popq %r12
    popq %rbx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc

    .globl jvmpi_thunks
    .hidden jvmpi_thunks, jvmpi_thunk_enter, jvmpi_thunk_exit
    .p2align 4
jvmpi_thunks:
    .set number, 0
    .rept THUNKS
    movl $number, %r11d
    jmp common
    .p2align 4
    .set number, number + 1
    .endr
#endif
    .section .note.GNU-stack, "", @progbits
