/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records waits for files and sockets: the JDK's natives that read, accept, poll and force are
 * bound to functions of ours. The VM binds natives by name at their first call, so the original
 * addresses are looked up beforehand. Natives of loaded classes are rebound; the others are
 * replaced when the VM reports that it is binding them. Calls shorter than 100 us do not count as
 * waits and are not recorded. The stack is walked after the call, and only if it was longer.
 */

#include "agent/capture/threads/io.h"

#include "agent/capture/threads/natives.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/stack.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/session/budget.h"
#include "agent/vm/loaded_classes.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHORTEST (NS_PER_MS / 10)

enum operation { IO_FILE, IO_SOCKET, IO_POLL, IO_EPOLL, IO_ACCEPT, IO_FORCE };

static const char *const operation_names[] = {
    [IO_FILE] = "read",  [IO_SOCKET] = "read",   [IO_POLL] = "poll",
    [IO_EPOLL] = "poll", [IO_ACCEPT] = "accept", [IO_FORCE] = "force"};

/*
 * A field that has a native's descriptor. It is looked up when it is first read, because looking up
 * a field initializes its class, which for java.net.SocketImpl takes a third of a small program's
 * start.
 */
struct fd_field {
    const char *class, *type;
    _Atomic(jfieldID) id;
};

#define DESCRIPTOR "Ljava/io/FileDescriptor;"

static struct fd_field descriptor_fd = {"java/io/FileDescriptor", "I", NULL},
                       stream_fd = {"java/io/FileInputStream", DESCRIPTOR, NULL},
                       random_fd = {"java/io/RandomAccessFile", DESCRIPTOR, NULL},
                       plain_fd = {"java/net/SocketImpl", DESCRIPTOR, NULL};

static jfieldID field_of(JNIEnv *jni, struct fd_field *f)
{
    jfieldID id = atomic_load_explicit(&f->id, memory_order_relaxed);
    if (!id) {
        id = vm_field(jni, f->class, "fd", f->type);
        atomic_store_explicit(&f->id, id, memory_order_relaxed);
    }
    return id;
}

static void io_begins(JNIEnv *jni)
{
    struct wait how = {0};
    uint64_t cost = budget_begin();
    if (!threads_natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w)
        wait_begin(w, WAIT_IO, &how);
    threads_natives_leave();
    budget_end(COST_WAITS, cost);
}

static int fd_of(JNIEnv *jni, jobject descriptor)
{
    jfieldID field = descriptor ? field_of(jni, &descriptor_fd) : NULL;
    return field ? (*jni)->GetIntField(jni, descriptor, field) : -1;
}

static int fd_of_holder(JNIEnv *jni, jobject holder, struct fd_field *in)
{
    jfieldID field = field_of(jni, in);
    jobject descriptor = field ? (*jni)->GetObjectField(jni, holder, field) : NULL;
    int fd = fd_of(jni, descriptor);
    if (descriptor)
        (*jni)->DeleteLocalRef(jni, descriptor);
    return fd;
}

/*
 * Writes the name that /proc would give a descriptor that is not a file, in a tenth of the time
 * that reading the link takes.
 */
static bool put_nameless(struct jfr_event *e, enum operation operation, int fd)
{
    char text[48] = "anon_inode:[eventpoll]";
    struct stat st;
    if (operation != IO_POLL && operation != IO_ACCEPT && operation != IO_EPOLL)
        return false;
    if (operation != IO_EPOLL) {
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
            return false;
        snprintf(text, sizeof(text), "socket:[%llu]", (unsigned long long)st.st_ino);
    }
    jfr_put_string(e, text);
    return true;
}

static void put_path(struct jfr_event *e, int fd)
{
    char link[48], path[1024];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = fd >= 0 ? readlink(link, path, sizeof(path)) : -1;
    jfr_put_string_n(e, n > 0 ? path : NULL, n > 0 ? (size_t)n : 0);
}

/* The peer of the calling thread's last socket. A socket is recognized by its FileDescriptor. */
static __thread struct peer {
    uint32_t descriptor;
    int fd, port;
    char address[INET6_ADDRSTRLEN]; /* "": unknown */
} last_peer;

static void ask_peer(struct peer *ret, int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } peer = {.v6 = {0}};

    socklen_t len = sizeof(peer);
    ret->port = 0;
    ret->address[0] = 0;
    if (fd < 0 || getpeername(fd, &peer.any, &len) < 0)
        return;
    bool v6 = peer.any.sa_family == AF_INET6;
    const void *address = v6 ? (const void *)&peer.v6.sin6_addr : &peer.v4.sin_addr;
    if ((v6 || peer.any.sa_family == AF_INET) &&
        inet_ntop(peer.any.sa_family, address, ret->address, INET6_ADDRSTRLEN))
        ret->port = ntohs(v6 ? peer.v6.sin6_port : peer.v4.sin_port);
}

static void put_peer(struct jfr_event *e, int fd, uint32_t descriptor)
{
    struct peer *p = &last_peer;
    if (descriptor == 0 || p->descriptor != descriptor || p->fd != fd || !p->address[0]) {
        p->descriptor = descriptor;
        p->fd = fd;
        ask_peer(p, fd);
    }
    jfr_put_string(e, NULL);
    jfr_put_string(e, p->address[0] ? p->address : NULL);
    jfr_put_int(e, p->port);
    jfr_put_long(e, 0);
}

/*
 * Writes the event of an operation. descriptor: the java.io.FileDescriptor, or NULL if the native
 * has no such argument.
 */
static void put_io(struct waiter *w, const struct wait *was, uint64_t ns, enum operation operation,
                   int fd, jobject descriptor, int64_t result)
{
    struct jfr_event e;
    uint32_t type = operation == IO_FILE     ? (uint32_t)JFR_FILE_READ
                    : operation == IO_SOCKET ? (uint32_t)JFR_SOCKET_READ
                                             : thread_capture.types[TYPE_IO];
    if (!jfr_begin(thread_capture.jfr, type, 1400, &e))
        return;
    jfr_put_time(&e, was->start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)was->trace);
    if (operation == IO_SOCKET) {
        put_peer(&e, fd, object_identity(descriptor));
    } else if (operation == IO_FILE) {
        put_path(&e, fd);
    } else {
        jfr_put_string(&e, operation_names[operation]);
        if (!put_nameless(&e, operation, fd))
            put_path(&e, fd);
    }
    if (operation == IO_FILE || operation == IO_SOCKET) {
        jfr_put_long(&e, MAX(result, 0));
        jfr_put_byte(&e, result < 0);
    }
    jfr_commit(&e);
}

/*
 * Returns whether the call was long enough to be recorded and the budget allows it; if so, sets
 * `was` and `ns`, and no exception is pending. A result above 0 implies that there is none; testing
 * for one takes as long as everything else here.
 */
static bool io_ended(JNIEnv *jni, struct waiter **w, struct wait *was, uint64_t *ns, int64_t result,
                     jthrowable *ret_pending)
{
    *w = native_self(jni);
    if (!*w || !wait_end(*w, WAIT_IO, was, ns) || *ns < SHORTEST)
        return false;
    was->plain = !budget_keeps(&budget_waits_of);
    if (wait_left_out(was, *ns))
        return false;
    *ret_pending = result > 0 ? NULL : (*jni)->ExceptionOccurred(jni);
    if (*ret_pending)
        (*jni)->ExceptionClear(jni);
    was->trace = stack_of_wait(jni, *w);
    return true;
}

static void io_resume(JNIEnv *jni, jthrowable pending)
{
    if (!pending)
        return;
    (*jni)->Throw(jni, pending);
    (*jni)->DeleteLocalRef(jni, pending);
}

/*
 * The code that follows the call of the original native; fd and descriptor are expressions of its
 * arguments.
 */
#define IO_REPORT(operation, fd, descriptor, result)                                         \
    if (threads_natives_enter()) {                                                           \
        uint64_t cost = budget_begin();                                                      \
        struct waiter *w;                                                                    \
        struct wait was;                                                                     \
        uint64_t ns;                                                                         \
        jthrowable pending = NULL;                                                           \
        if (io_ended(jni, &w, &was, &ns, (int64_t)(result), &pending)) {                     \
            put_io(w, &was, ns, operation, fd, descriptor, pending ? 0 : (int64_t)(result)); \
            io_resume(jni, pending);                                                         \
        }                                                                                    \
        threads_natives_leave();                                                             \
        budget_end(COST_WAITS, cost);                                                        \
    }

/* Defines one replacement: its parameters and the arguments of the original. */
#define IO_NATIVE(id, type, operation, fd, descriptor, parameters, arguments) \
    static type(JNICALL *real_##id) parameters;                               \
    static type JNICALL our_##id parameters                                   \
    {                                                                         \
        io_begins(jni);                                                       \
        type result = real_##id arguments;                                    \
        IO_REPORT(operation, fd, descriptor, result)                          \
        return result;                                                        \
    }

#define BYTE_ARRAY_READ(id, field)                                                   \
    IO_NATIVE(id, jint, IO_FILE, fd_of_holder(jni, self, field), NULL,               \
              (JNIEnv * jni, jobject self, jbyteArray to, jint offset, jint length), \
              (jni, self, to, offset, length))
#define BYTE_READ(id, field)                                           \
    IO_NATIVE(id, jint, IO_FILE, fd_of_holder(jni, self, field), NULL, \
              (JNIEnv * jni, jobject self), (jni, self))
#define MEMORY_READ(id, operation)                                          \
    IO_NATIVE(id, jint, operation, fd_of(jni, fdo), fdo,                    \
              (JNIEnv * jni, jclass c, jobject fdo, jlong to, jint length), \
              (jni, c, fdo, to, length))
#define VECTOR_READ(id, operation)                        \
    IO_NATIVE(id, jlong, operation, fd_of(jni, fdo), fdo, \
              (JNIEnv * jni, jclass c, jobject fdo, jlong to, jint n), (jni, c, fdo, to, n))
#define PLACE_READ(id)                                                                \
    IO_NATIVE(id, jint, IO_FILE, fd_of(jni, fdo), fdo,                                \
              (JNIEnv * jni, jclass c, jobject fdo, jlong to, jint length, jlong at), \
              (jni, c, fdo, to, length, at))
#define FORCE(id)                                       \
    IO_NATIVE(id, jint, IO_FORCE, fd_of(jni, fdo), fdo, \
              (JNIEnv * jni, jclass c, jobject fdo, jboolean metadata), (jni, c, fdo, metadata))

BYTE_READ(stream_read, &stream_fd)
BYTE_ARRAY_READ(stream_bytes, &stream_fd)
BYTE_READ(random_read, &random_fd)
BYTE_ARRAY_READ(random_bytes, &random_fd)
BYTE_ARRAY_READ(random_bytes0, &random_fd)
MEMORY_READ(socket_read, IO_SOCKET)
VECTOR_READ(socket_vector, IO_SOCKET)
MEMORY_READ(file_read, IO_FILE)
VECTOR_READ(file_vector, IO_FILE)
PLACE_READ(file_place)
FORCE(file_force)
MEMORY_READ(unix_read, IO_FILE)
VECTOR_READ(unix_vector, IO_FILE)
PLACE_READ(unix_place)
FORCE(unix_force)
IO_NATIVE(old_socket_read, jint, IO_SOCKET, fd_of(jni, fdo), fdo,
          (JNIEnv * jni, jobject self, jobject fdo, jbyteArray to, jint offset, jint length,
           jint timeout),
          (jni, self, fdo, to, offset, length, timeout))
IO_NATIVE(net_poll, jint, IO_POLL, fd_of(jni, fdo), fdo,
          (JNIEnv * jni, jclass c, jobject fdo, jint events, jlong timeout),
          (jni, c, fdo, events, timeout))
IO_NATIVE(net_accept, jint, IO_ACCEPT, fd_of(jni, fdo), fdo,
          (JNIEnv * jni, jclass c, jobject fdo, jobject to, jobjectArray from),
          (jni, c, fdo, to, from))
IO_NATIVE(channel_accept, jint, IO_ACCEPT, fd_of(jni, fdo), fdo,
          (JNIEnv * jni, jobject self, jobject fdo, jobject to, jobjectArray from),
          (jni, self, fdo, to, from))
IO_NATIVE(epoll_wait, jint, IO_EPOLL, (int)fd, NULL,
          (JNIEnv * jni, jclass c, jint fd, jlong to, jint n, jint timeout),
          (jni, c, fd, to, n, timeout))
IO_NATIVE(array_wait, jint, IO_EPOLL, (int)fd, NULL,
          (JNIEnv * jni, jobject self, jlong to, jint n, jlong timeout, jint fd),
          (jni, self, to, n, timeout, fd))

static void(JNICALL *real_plain_accept)(JNIEnv *jni, jobject self, jobject to);

static void JNICALL our_plain_accept(JNIEnv *jni, jobject self, jobject to)
{
    io_begins(jni);
    real_plain_accept(jni, self, to);
    IO_REPORT(IO_ACCEPT, fd_of_holder(jni, self, &plain_fd), NULL, 0)
}

#define ROW(class, name, signature, id)                                     \
    {                                                                       \
        class, name, signature, (void *)our_##id, (void **)&real_##id, NULL \
    }

/* The natives, in any order. `real` is NULL if this JDK has no such native. */
static struct io_native {
    const char *class, *name, *signature;
    void *ours, **real;
    void *address;
} rows[] = {
    ROW("java/io/FileInputStream", "read0", "()I", stream_read),
    ROW("java/io/FileInputStream", "readBytes", "([BII)I", stream_bytes),
    ROW("java/io/RandomAccessFile", "read0", "()I", random_read),
    ROW("java/io/RandomAccessFile", "readBytes", "([BII)I", random_bytes),
    ROW("java/io/RandomAccessFile", "readBytes0", "([BII)I", random_bytes0),
    ROW("java/net/SocketInputStream", "socketRead0", "(Ljava/io/FileDescriptor;[BIII)I",
        old_socket_read),
    ROW("java/net/PlainSocketImpl", "socketAccept", "(Ljava/net/SocketImpl;)V", plain_accept),
    ROW("sun/nio/ch/SocketDispatcher", "read0", "(Ljava/io/FileDescriptor;JI)I", socket_read),
    ROW("sun/nio/ch/SocketDispatcher", "readv0", "(Ljava/io/FileDescriptor;JI)J", socket_vector),
    ROW("sun/nio/ch/FileDispatcherImpl", "read0", "(Ljava/io/FileDescriptor;JI)I", file_read),
    ROW("sun/nio/ch/FileDispatcherImpl", "readv0", "(Ljava/io/FileDescriptor;JI)J", file_vector),
    ROW("sun/nio/ch/FileDispatcherImpl", "pread0", "(Ljava/io/FileDescriptor;JIJ)I", file_place),
    ROW("sun/nio/ch/FileDispatcherImpl", "force0", "(Ljava/io/FileDescriptor;Z)I", file_force),
    ROW("sun/nio/ch/UnixFileDispatcherImpl", "read0", "(Ljava/io/FileDescriptor;JI)I", unix_read),
    ROW("sun/nio/ch/UnixFileDispatcherImpl", "readv0", "(Ljava/io/FileDescriptor;JI)J",
        unix_vector),
    ROW("sun/nio/ch/UnixFileDispatcherImpl", "pread0", "(Ljava/io/FileDescriptor;JIJ)I",
        unix_place),
    ROW("sun/nio/ch/UnixFileDispatcherImpl", "force0", "(Ljava/io/FileDescriptor;Z)I", unix_force),
    ROW("sun/nio/ch/Net", "poll", "(Ljava/io/FileDescriptor;IJ)I", net_poll),
    ROW("sun/nio/ch/Net", "accept",
        "(Ljava/io/FileDescriptor;Ljava/io/FileDescriptor;[Ljava/net/InetSocketAddress;)I",
        net_accept),
    ROW("sun/nio/ch/ServerSocketChannelImpl", "accept0",
        "(Ljava/io/FileDescriptor;Ljava/io/FileDescriptor;[Ljava/net/InetSocketAddress;)I",
        channel_accept),
    ROW("sun/nio/ch/EPoll", "wait", "(IJII)I", epoll_wait),
    ROW("sun/nio/ch/EPollArrayWrapper", "epollWait", "(JIJI)I", array_wait),
};

void threads_put_io_wait(uint64_t thread, const struct wait *was, uint64_t ns)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_IO], 0, &e))
        return;
    jfr_put_time(&e, atomic_load(&was->start));
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)was->trace);
    jfr_put_string(&e, NULL);
    jfr_put_string(&e, NULL);
    jfr_commit(&e);
}

bool io_waits_in(const char *class_name, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].class, class_name) == 0 && strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}

/* Returns the library's function for a native method: Java_ and the method's name with _ for /. */
static void *find_address(void *const *libraries, size_t n, const struct io_native *row)
{
    char symbol[160];
    snprintf(symbol, sizeof(symbol), "Java_%s_%s", row->class, row->name);
    for (char *c = symbol; *c; c++)
        if (*c == '/')
            *c = '_';
    void *found = NULL;
    for (size_t i = 0; i < n && !found; i++)
        found = libraries[i] ? dlsym(libraries[i], symbol) : NULL;
    return found;
}

static void find_addresses(void)
{
    static const char *const names[] = {"libjava.so", "libnet.so", "libnio.so"};
    void *libraries[ARRAY_SIZE(names)] = {NULL};
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)(*vm.ti)->GetPhase, &info))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[4096];
        const char *slash = strrchr(info.dli_fname, '/');
        snprintf(path, sizeof(path), "%.*s/../%s", (int)(slash ? slash - info.dli_fname : 0),
                 info.dli_fname, names[i]);
        /* the VM will load the library anyway; here only the address is needed */
        libraries[i] = dlopen(path, RTLD_LAZY);
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        rows[i].address = find_address(libraries, ARRAY_SIZE(libraries), &rows[i]);
        if (rows[i].address)
            memcpy(rows[i].real, &rows[i].address, sizeof(void *));
    }
}

static void JNICALL on_bind(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jmethodID method,
                            void *address, void **ret_address)
{
    for (size_t i = 0; thread_capture.jfr && address && i < ARRAY_SIZE(rows); i++)
        if (rows[i].address == address)
            *ret_address = rows[i].ours;
}

static const struct vm_callbacks bind_events = {.ti = {.NativeMethodBind = on_bind}};

static int bind_class(JNIEnv *jni, jclass c, const char *class, bool ours)
{
    int bound = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (!rows[i].address || strcmp(rows[i].class, class) != 0)
            continue;
        JNINativeMethod one = {(char *)rows[i].name, (char *)rows[i].signature,
                               ours ? rows[i].ours : rows[i].address};
        bound += (*jni)->RegisterNatives(jni, c, &one, 1) == JNI_OK;
        vm_clear_exception(jni);
    }
    return bound;
}

/*
 * Binds the methods of the classes that are loaded. Returns how many, or -ENOTSUP if the VM does
 * not say whether one class is loaded.
 */
static int bind_named(JNIEnv *jni, bool ours)
{
    int bound = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool known = true;
        if (i && strcmp(rows[i].class, rows[i - 1].class) == 0)
            continue; /* the rows of a class are neighbours */
        jclass c = vm_loaded_boot_class(jni, rows[i].class, &known);
        if (!known)
            return -ENOTSUP;
        if (!c)
            continue;
        bound += bind_class(jni, c, rows[i].class, ours);
        (*jni)->DeleteLocalRef(jni, c);
    }
    return bound;
}

int io_bind(JNIEnv *jni, bool ours)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    int bound = bind_named(jni, ours);
    if (bound >= 0)
        return bound;
    bound = 0;
    if (loaded_classes(vm.ti, jni, &all) < 0)
        return 0;
    for (jint i = 0; i < all.n; i++) {
        char *signature = NULL;
        if ((*vm.ti)->GetClassSignature(vm.ti, all.of[i], &signature, NULL) == JVMTI_ERROR_NONE &&
            (strncmp(signature, "Ljava/", 6) == 0 || strncmp(signature, "Lsun/nio/ch/", 12) == 0)) {
            signature[strlen(signature) - 1] = 0;
            bound += bind_class(jni, all.of[i], signature + 1, ours);
        }
        vm_free(signature);
    }
    return bound;
}

void io_start(JNIEnv *jni)
{
    jvmtiCapabilities want = {.can_generate_native_method_bind_events = 1};
    if (!vm.hotspot || vm_need(&want, NULL) < 0 || !vm.have.can_generate_native_method_bind_events)
        return;
    find_addresses();
    (void)!vm_events_on(&bind_events);
}

void io_stop(void)
{
    (void)vm_events_off(&bind_events);
}
