/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before everything else (-include) in what the agents link: binds the libc symbols that moved or were re-versioned
 * to their old versions, so that a library built here loads on glibc 2.17. tests/integration/test_build.py checks the result.
 */
#pragma once

#if defined(__x86_64__) && defined(__GLIBC__)
#define OLD_(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__aarch64__) && defined(__GLIBC__)
#define OLD_(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif

#ifdef OLD_
OLD_(dlclose);
OLD_(dlerror);
OLD_(dlopen);
OLD_(dlsym);
OLD_(dladdr);
OLD_(pthread_create);
OLD_(pthread_detach);
OLD_(pthread_getspecific);
OLD_(pthread_join);
OLD_(pthread_key_create);
OLD_(pthread_key_delete);
OLD_(pthread_kill);
OLD_(pthread_mutexattr_init);
OLD_(pthread_mutexattr_settype);
OLD_(pthread_mutex_trylock);
OLD_(pthread_once);
OLD_(pthread_setspecific);
OLD_(pthread_sigmask);
OLD_(sem_init);
OLD_(sem_destroy);
OLD_(sem_post);
OLD_(sem_wait);
#undef OLD_
#endif
