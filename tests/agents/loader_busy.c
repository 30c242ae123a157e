/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: while a callback of the agent's visits the list of libraries, another thread
 * loads one (LOADER_BUSY names it). That thread holds the loader's own lock and waits for the
 * list's, so a callback that asks the loader for anything never returns. At its end the process
 * prints how many visits of the agent's there were.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ON_ITS_WAY_NS = 50 * 1000 * 1000 };

typedef int visitor(struct dl_phdr_info *info, size_t size, void *context);

static int (*real)(visitor *f, void *context);
static atomic_int visits;

struct visit {
    visitor *f;
    void *context;
    pthread_t loads;
    int began;
};

__attribute__((constructor)) static void find_real(void)
{
    real = (int (*)(visitor *, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
}

__attribute__((destructor)) static void report(void)
{
    if (visits)
        fprintf(stderr, "%d visits during a load\n", visits);
}

static void *load(void *unused)
{
    void *library = dlopen(getenv("LOADER_BUSY"), RTLD_NOW);
    if (library)
        dlclose(library);
    return NULL;
}

static int during_a_load(struct dl_phdr_info *info, size_t size, void *context)
{
    struct visit *v = context;
    if (!v->began) {
        v->began = pthread_create(&v->loads, NULL, load, NULL) == 0;
        nanosleep(&(struct timespec){.tv_nsec = ON_ITS_WAY_NS}, NULL);
    }
    return v->f(info, size, v->context);
}

__attribute__((visibility("default"))) int dl_iterate_phdr(visitor *f, void *context)
{
    Dl_info info;
    struct visit v = {.f = f, .context = context};
    if (!dladdr((void *)f, &info) || !strstr(info.dli_fname, "libhprof.so"))
        return real(f, context);
    int r = real(during_a_load, &v);
    if (v.began)
        pthread_join(v.loads, NULL);
    visits++;
    return r;
}
