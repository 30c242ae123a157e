// SPDX-License-Identifier: Apache-2.0
package java.lang;

import java.net.URI;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Delayed;
import java.util.concurrent.Future;
import java.util.concurrent.RunnableScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import sun.misc.Unsafe;

/**
 * The probes of requests=, which run where requests begin and end and where work is handed to
 * another thread. Native memory contains the request that each thread works for
 * (capture/requests/tables.h has the layout); nothing here refers to an object of the program. A
 * task is identified by its identity hash from its hand-over to its start. An instance is a call
 * of another server whose response comes later, and is called when it has arrived.
 */
public final class JvmscopeRequests implements BiConsumer<Object, Throwable> {
    private static final Unsafe U = Unsafe.getUnsafe();

    // These are as in tables.h.
    private static final int REQUEST = 64, THREAD = 128, WORK = 192, FROM = 256, BY = 320, SLOTS_SIZE = 384;
    private static final int BUCKET = 64, BUCKET_SHIFT = 8;
    private static final int SLOT_MASK = (1 << 16) - 1, HANDED_MASK = (1 << 15) - 1, HOT_MASK = (1 << 8) - 1,
            TASK_MASK = (1 << 16) - 1;
    private static final long SERVER = 1 << 16;
    private static final long BUSY = 1, IS_TASK = 1L << 32, IS_ANSWER = 1L << 33, IS_CALL = 1L << 34,
            IS_THREAD = 1L << 62;
    private static final int WAY_SHIFT = 56, ENTRY_SIZE = 32;
    private static final int FUTURE = 3, TIMER = 5, ASYNC = 6, SERVLET = 0;
    private static final int CANCELLED = 3; // the state in TimerTask
    private static final int NAME_BITS = 13, NAMES = 1 << 16;
    /** The value that started() returns for a task without a request. */
    private static final long NO_REQUEST = -1;

    private static final long SLOTS = constant(0), HANDED = constant(1), TASKS = constant(2), NAMED = constant(3),
            TID = constant(4);
    /**
     * Addresses of the number of tasks that were overwritten, of a value that is not 0 once a task
     * was handed over, and of the tokens of open requests.
     */
    private static final long LOST = constant(5), ANY = constant(6), OPEN = constant(7), OPEN_SIZE = constant(8);
    private static final long PREPARED = constant(9), HOT = constant(10), SPILLED = constant(11);
    private static final long CHOICE = constant(12), DRAWS = constant(13);
    private static final int DRAW_MASK = (1 << 8) - 1, DRAW_SHIFT = 6, CHOICE_BITS = 63;
    /**
     * The class of the threads that carry virtual threads, and the pool that they belong to. The
     * agent sets them if it attaches to a running program; otherwise findCarriers sets them when
     * the first virtual thread starts. They are null until then.
     */
    private static Class<?> carrier;
    private static Object scheduler;

    private final long request, thread, start;
    private final int text;
    private final String header;

    private JvmscopeRequests(long request, long thread, long start, int text, String header) {
        this.request = request;
        this.thread = thread;
        this.start = start;
        this.text = text;
        this.header = header;
    }

    private static native long constant(int which);

    /** Sets carrier and scheduler. */
    private static native void findCarriers();

    /** Returns the number of a request's name. key is a hash of both texts. */
    private static native int name(int kind, String method, String path, long key);

    /** Begins a request on this thread. Returns its token, or 0 if it is not followed. */
    private static native long begin(int kind, int name, long tid);

    private static native void rename(long request, int name);

    /** Sets the status of a response, which may be known before the response ends. */
    private static native void status(long request, int status);

    /** Sets the number of bytes in a response. */
    private static native void bytes(long request, long n);

    /**
     * Names a request by a route, after the HTTP method that its name begins with. key is a hash of
     * both.
     */
    private static native void route(long request, String route, long key);

    /**
     * A scheduled task begins on this thread. due is a time of System.nanoTime(), or 0 if unknown.
     * Returns the token of its request, or 0 if the task is not a request.
     */
    private static native long taskBegin(Object task, long tid, long due);

    /** Ends the task or message that this thread works for. */
    private static native void taskEnd(long tid, Class<?> exception);

    private static native void trace(long request, String traceparent);

    private static native void end(long request, long tid, int status, Class<?> exception);

    /** The call returns in which a request began or was resumed. */
    private static native void pause(long request, long tid);

    /**
     * This thread begins to work for a request. Returns the number of the work, or 0 if it is not
     * recorded.
     */
    private static native long work(long tid, long request, int way, long time, long by);

    private static native void workEnd(long work, long tid);

    /** A task was cancelled before a thread took it. */
    private static native void withdraw(long tid, long request, long time, long by);

    /**
     * A thread of a pool works for no request from now on. If drop is true, what it has done so far
     * does not count as work.
     */
    private static native void leave(long tid, boolean drop);

    /** Returns the number of the text of a statement or peer. */
    private static native int text(int kind, String text, long key);

    /**
     * This thread begins a statement, a connection or a call to another server for its request.
     * Returns 0 if it is already within one of the same kind.
     */
    private static native long childBegin(long tid, int kind, int text);

    /** Sets the header in which the call in progress passes its trace to the other server. */
    private static native void calls(long tid, String traceparent);

    private static native void childEnd(long child, long tid, long rows, Class<?> exception);

    /** A call of another server is over. The thread is the one that made it. */
    private static native void childLater(long request, long thread, long start, int text, String traceparent,
            Class<?> exception);

    /** Calls each native method once. */
    private static void bind() {
        constant(-1);
        name(0, null, null, 0);
        begin(-1, 0, 0);
        end(0, 0, 0, null);
        pause(0, 0);
        rename(0, 0);
        status(0, 0);
        bytes(0, 0);
        route(0, null, 0);
        taskBegin(null, 0, 0);
        taskEnd(0, null);
        trace(0, null);
        work(0, 0, 0, 0, 0);
        workEnd(0, 0);
        withdraw(0, 0, 0, 0);
        leave(0, false);
        text(0, null, 0);
        childBegin(0, -1, 0);
        calls(0, null);
        childEnd(0, 0, 0, null);
        childLater(0, 0, 0, 0, null, null);
    }

    private static long tid() {
        return U.getLong(Thread.currentThread(), TID);
    }

    /**
     * Returns the entry of a thread, or 0 if it has none. A thread has one while it works for a
     * request; a platform thread keeps it until it ends.
     */
    private static long slot(long tid) {
        long b = SLOTS + (tid & SLOT_MASK) * SLOTS_SIZE;
        for (int i = 0; i < BUCKET; i += 8) {
            if (U.getLong(b + i) == tid)
                return b + i;
        }
        return 0;
    }

    private static boolean isOpen(long request) {
        return U.getLong(OPEN + (request & 0xffff) * OPEN_SIZE) == request;
    }

    /**
     * Returns the request that a thread works for, or 0 for none. A thread that was started for a
     * request may outlive it.
     */
    private static long request(long slot) {
        long request = slot == 0 ? 0 : U.getLong(slot + REQUEST);
        return request != 0 && isOpen(request) ? request : 0;
    }

    /** Returns whether a thread works for a request, even one that has ended. */
    private static boolean works(long tid) {
        long slot = slot(tid);
        return slot != 0 && U.getLong(slot + REQUEST) != 0;
    }

    /** Returns the recording's id of the thread with a slot, or 0 if it has none. */
    private static long threadOf(long slot) {
        return slot == 0 ? 0 : U.getLong(slot + THREAD);
    }

    // ---- requests ----

    /** Returns whether the requests of a thread are currently counted. */
    private static boolean counts(long tid) {
        long choice = U.getLong(CHOICE);
        return choice == 0 || (tid ^ choice) * 0x9e3779b97f4a7c15L >>> -choice == 0;
    }

    /** Returns whether this call of a method is chosen to be counted. */
    private static boolean isDrawn(long tid) {
        long bits = U.getLong(CHOICE) & CHOICE_BITS;
        if (bits == 0)
            return true;
        long at = DRAWS + ((tid & DRAW_MASK) << DRAW_SHIFT), x = U.getLong(at);
        x ^= x << 13;
        x ^= x >>> 7;
        x ^= x << 17;
        U.putLong(at, x);
        return x >>> -bits == 0;
    }

    private static long hash(long h, String s) {
        for (int i = 0, n = s == null ? 0 : s.length(); i < n; i++)
            h = (h ^ s.charAt(i)) * 0x100000001b3L;
        return (h ^ 0xff) * 0x9e3779b97f4a7c15L;
    }

    private static int nameOf(int kind, String method, String path) {
        long key = hash(hash(kind + 1, method), path);
        long known = U.getLong(NAMED + ((key >>> 48) << 3));
        if (known >>> NAME_BITS == (key & -1L >>> NAME_BITS) && known != 0)
            return (int) known & (1 << NAME_BITS) - 1;
        return name(kind, method, path, key);
    }

    /**
     * A server's entry point is called. Within another request of a server it begins no request.
     */
    private static long enterServer(int kind, String method, String path) {
        long tid = tid();
        if ((request(slot(tid)) & SERVER) != 0 || !counts(tid))
            return 0;
        return begin(kind & ~ROUTE, nameOf(kind, method, path), tid);
    }

    public static long enter(String method, String path, int kind) {
        return enterServer(kind, method, path);
    }

    public static long enter(String method, URI path, int kind) {
        return enterServer(kind, method, path == null ? null : path.getRawPath());
    }

    /**
     * The entry point of a server that reads the method and path later; named receives them then.
     */
    public static long enter(int kind) {
        return enterServer(kind, null, "[unrouted]");
    }

    public static void named(String method, String path, int kind) {
        long tid = tid(), request = request(slot(tid));
        if ((request & SERVER) != 0)
            rename(request, nameOf(kind, method, path));
    }

    /**
     * Sets the header in which the caller passed its trace, for the request that this thread works
     * for. null means that there is none.
     */
    public static void called(String traceparent) {
        if (traceparent == null)
            return;
        long request = request(slot(tid()));
        if ((request & SERVER) != 0)
            trace(request, traceparent);
    }

    /** The same for a server whose headers may have values of other types. */
    public static void called(Object traceparent) {
        if (traceparent instanceof String)
            called((String) traceparent);
    }

    /** A method that the option names is called. */
    public static long enter(int kind, int name) {
        long tid = tid();
        return isDrawn(tid) ? begin(kind, name, tid) : 0;
    }

    public static void exit(long request) {
        if (request != 0)
            end(request, tid(), 0, null);
    }

    public static void exit(long request, int status) {
        if (request != 0)
            end(request, tid(), status, null);
    }

    public static void failed(Throwable t, long request) {
        if (request != 0)
            end(request, tid(), 0, t.getClass());
    }

    // ---- requests that outlive their first call; an object of the server identifies each ----

    private static long answerOf(Object server) {
        return find(IS_ANSWER | System.identityHashCode(server));
    }

    /**
     * The call returns, but the response may be sent later by another thread: finish reports the
     * end, or exit after resume.
     */
    public static void suspend(long request, Object server) {
        if (request == 0)
            return;
        long e = answerOf(server), tid = tid(), slot = slot(tid);
        if (e != 0)
            take(e, U.getLong(e)); // of an earlier request whose end was not seen
        if (isOpen(request))
            put(IS_ANSWER | System.identityHashCode(server), request, System.nanoTime(),
                    threadOf(slot));
        pause(request, tid);
    }

    public static void exit(long request, int status, Object server, boolean async) {
        if (async)
            suspend(request, server);
        else
            exit(request, status);
    }

    /** A thread resumes a request. Returns the token to pass to exit or suspend. */
    public static long resume(Object server) {
        long e = U.getLong(ANY) == 0 ? 0 : answerOf(server);
        if (e == 0)
            return 0;
        long request = U.getLong(e + 8), by = U.getLong(e + 24);
        take(e, U.getLong(e));
        work(tid(), request, ASYNC, 0, by);
        return request;
    }

    public static void finish(Object server, int status) {
        long e = U.getLong(ANY) == 0 ? 0 : answerOf(server);
        if (e == 0)
            return;
        long request = U.getLong(e + 8);
        take(e, U.getLong(e));
        exit(request, status);
    }


    // ---- Jetty 12, gRPC: an object of the server identifies the request from its beginning ----

    /**
     * A request begins whose response belongs to an object. The response may be sent before the
     * call returns that begins the request.
     */
    public static long enter(String method, String path, Object server, int kind) {
        /*
         * When an earlier request of the connection has been answered, Jetty gives its pool a task
         * that may then find the next one. Its time in the queue is not that of this request.
         */
        forgetTask(tid());
        return owned(enterServer(kind, method, path), server);
    }

    public static long stream(Object server, String method, int kind) {
        return owned(enterServer(kind | ROUTE, null, method), server);
    }

    private static long owned(long request, Object server) {
        if (request != 0) {
            long slot = slot(tid());
            put(IS_ANSWER | System.identityHashCode(server), request, System.nanoTime(),
                    threadOf(slot));
        }
        return request;
    }

    /**
     * A thread resumes a request that may be resumed again later. Returns the token to pass to
     * paused.
     */
    public static long going(Object server) {
        long tid = tid(), e = U.getLong(ANY) == 0 || request(slot(tid)) != 0 ? 0 : answerOf(server);
        if (e == 0)
            return 0;
        long request = U.getLong(e + 8);
        return work(tid, request, ASYNC, 0, 0) == 0 ? 0 : request;
    }

    public static void paused(long request) {
        if (request != 0)
            pause(request, tid());
    }

    public static void status(int status) {
        long request = request(slot(tid()));
        if ((request & SERVER) != 0)
            status(request, status);
    }

    public static void bytes(long n) {
        long request = request(slot(tid()));
        if ((request & SERVER) != 0)
            bytes(request, n);
    }

    public static void bytes(Object server, long n) {
        long e = U.getLong(ANY) == 0 ? 0 : answerOf(server);
        if (e != 0)
            bytes(U.getLong(e + 8), n);
    }

    /**
     * Sets the length of a response in the form that com.sun.net.httpserver takes: -1 means no
     * body, and 0 means any length.
     */
    public static void length(long n) {
        if (n != 0)
            bytes(n < 0 ? 0 : n);
    }

    /**
     * A stream of gRPC is being closed with this status. The event loop may report to the listener
     * that everything was sent, with OK, before the call that closes the stream returns.
     */
    public static void answers(Object server, int status) {
        long e = U.getLong(ANY) == 0 ? 0 : answerOf(server);
        if (e != 0)
            status(U.getLong(e + 8), status);
    }

    /** A stream of gRPC was closed with this status of gRPC. */
    public static void answered(Object server, int status) {
        finish(server, status);
    }

    public static void finish(Object server, Throwable t) {
        long e = U.getLong(ANY) == 0 ? 0 : answerOf(server);
        if (e == 0)
            return;
        long request = U.getLong(e + 8);
        take(e, U.getLong(e));
        failed(t, request);
    }

    // ---- routes ----

    /** A flag in the kind: the text is a route, so ids in it are not folded. */
    private static final int ROUTE = 0x100;

    private static void rename(String method, String route) {
        long request = request(slot(tid()));
        if ((request & SERVER) != 0)
            rename(request, nameOf(ROUTE | SERVLET, method, route));
    }

    /** Spring matched the path to a pattern. A pattern that matches every path is ignored. */
    public static void routed(String method, String context, Object pattern) {
        if (pattern instanceof String && !"/**".equals(pattern))
            rename(method, context == null || context.isEmpty() ? (String) pattern : context + pattern);
    }

    /**
     * JAX-RS found the method of a resource, whose route is in the annotations Path of its class
     * and of itself.
     */
    public static void resource(Object of) {
        long request = request(slot(tid()));
        if ((request & SERVER) == 0 || !(of instanceof java.lang.reflect.Method))
            return;
        java.lang.reflect.Method method = (java.lang.reflect.Method) of;
        long key = hash(hash(ROUTE + System.identityHashCode(method), method.getDeclaringClass().getName()),
                method.getName());
        long known = U.getLong(NAMED + ((key >>> 48) << 3));
        if (known >>> NAME_BITS == (key & -1L >>> NAME_BITS) && known != 0) {
            rename(request, (int) known & (1 << NAME_BITS) - 1);
            return;
        }
        String outer = pathOf(method.getDeclaringClass()), inner = pathOf(method);
        if (outer != null || inner != null)
            route(request, slashed(outer) + slashed(inner), key);
    }

    /**
     * Returns the path without the patterns of its parameters: "/{id: [0-9]{2}}/" becomes "/{id}".
     */
    private static String slashed(String path) {
        if (path == null || path.isEmpty() || "/".equals(path))
            return "";
        StringBuilder plain = new StringBuilder();
        int depth = 0;
        boolean pattern = false;
        for (int i = 0; i < path.length(); i++) {
            char c = path.charAt(i);
            depth += c == '{' ? 1 : c == '}' ? -1 : 0;
            pattern = depth > 0 && (pattern || c == ':');
            if (!pattern && (depth == 0 || c != ' '))
                plain.append(c);
        }
        path = plain.toString();
        if (path.endsWith("/"))
            path = path.substring(0, path.length() - 1);
        return path.startsWith("/") ? path : "/" + path;
    }

    private static String pathOf(java.lang.reflect.AnnotatedElement of) {
        try {
            for (java.lang.annotation.Annotation a : of.getAnnotations()) {
                String type = a.annotationType().getName();
                if (type.equals("javax.ws.rs.Path") || type.equals("jakarta.ws.rs.Path"))
                    return (String) a.annotationType().getMethod("value").invoke(a);
            }
        } catch (Throwable e) {
            // then the message has no name
        }
        return null;
    }

    // ---- messages ----

    /** A listener is about to be called with a message. */
    public static long message(Object message, int kind) {
        return message == null ? 0 : enterServer(kind, "process", destination(call(message, "getJMSDestination")));
    }

    /** A thread requests its next message, so it has finished the last one. */
    public static void received() {
        long tid = tid();
        if (request(slot(tid)) != 0)
            taskEnd(tid, null);
    }

    public static void received(Object message, int kind) {
        message(message, kind);
    }

    /** Kafka's consumer returned records. Their set of partitions contains the topic. */
    public static void polled(Object records, int kind) {
        Object partitions = records == null ? null : call(records, "partitions");
        if (!(partitions instanceof java.util.Set) || ((java.util.Set<?>) partitions).isEmpty())
            return;
        String topic = String.valueOf(((java.util.Set<?>) partitions).iterator().next());
        int dash = topic.lastIndexOf('-');
        enterServer(kind, "process", dash > 0 ? topic.substring(0, dash) : topic);
    }

    private static Object call(Object of, String method) {
        try {
            return of.getClass().getMethod(method).invoke(of);
        } catch (Throwable e) {
            return null;
        }
    }

    /**
     * Returns the name of a destination: "orders" for "queue://orders" and "ActiveMQQueue[orders]".
     * The names of temporary queues are all different, so they have a common name.
     */
    private static String destination(Object of) {
        String s = String.valueOf(of);
        if (s.startsWith("temp-"))
            return "[temporary]";
        int scheme = s.indexOf("://"), bracket = s.indexOf('[');
        if (scheme > 0)
            return s.substring(scheme + 3);
        return bracket > 0 && s.endsWith("]") ? s.substring(bracket + 1, s.length() - 1) : s;
    }

    // ---- scheduled tasks ----

    /**
     * A task of a ScheduledThreadPoolExecutor begins to run. A task that a request scheduled is
     * work for that request. One that was cancelled, or has failed, does not run any more.
     */
    public static long task(Object task) {
        long tid = tid(), due = 0;
        if (request(slot(tid)) != 0)
            return 0;
        try {
            if (((Future<?>) task).isDone())
                return 0;
            due = due((Delayed) task, 0);
        } catch (Throwable e) {
            // from code of the program, in a pool that has its own class of tasks
        }
        return taskBegin(task, tid, due);
    }

    /**
     * Returns the time of System.nanoTime() at which a task was due, computed from the task's delay
     * or, without a task, from a time in ms since 1970. This reads two clocks. If the thread was
     * stopped for long between the readings, they are repeated.
     */
    private static long due(Delayed task, long millis) {
        long due = 0, least = Long.MAX_VALUE;
        for (int i = 0; i < 5 && least > 100000; i++) {
            long before = System.nanoTime();
            long delay = task != null ? task.getDelay(TimeUnit.NANOSECONDS)
                    : (millis - System.currentTimeMillis()) * 1000000;
            long took = System.nanoTime() - before;
            if (took >= least)
                continue;
            least = took;
            due = before + delay;
        }
        return due;
    }

    /** The thread of a Timer is about to run a task that was due at a time in ms since 1970. */
    public static void timed(Object task, int state, long due) {
        long tid = tid();
        if (state != CANCELLED && request(slot(tid)) == 0)
            taskBegin(task, tid, due(null, due));
    }

    public static void taskFailed(Throwable t) {
        long tid = tid();
        if (t != null && request(slot(tid)) != 0)
            taskEnd(tid, t.getClass());
    }

    // ---- hand-overs ----

    // Tasks that wait to be run are in HOT, which is small enough to stay in a processor's cache.
    // When a bucket of HOT is full, its oldest entry moves to HANDED, which is large. SPILLED has
    // the number of entries in HANDED for each bucket of HOT that they came from.

    private static long hotBucket(long key) {
        return HOT + ((key & HOT_MASK) << BUCKET_SHIFT);
    }

    private static long spilled(long key) {
        return SPILLED + ((key & HOT_MASK) << 3);
    }

    private static long unused(long bucket) {
        for (long e = bucket; e < bucket + (BUCKET / 8) * ENTRY_SIZE; e += ENTRY_SIZE) {
            if (U.getLong(e) == 0 && U.compareAndSwapLong(null, e, 0, BUSY))
                return e;
        }
        return 0;
    }

    /**
     * Returns an entry of HANDED that may be written, whose key is BUSY: a free one, else the
     * oldest, with those of ended requests before others. Returns 0 if there is none.
     */
    private static long room(long key) {
        long bucket = HANDED + ((key & HANDED_MASK) << BUCKET_SHIFT), found = unused(bucket);
        if (found != 0)
            return found;
        long oldest = 0, time = Long.MAX_VALUE, known = 0;
        boolean open = true;
        for (long e = bucket; e < bucket + (BUCKET / 8) * ENTRY_SIZE; e += ENTRY_SIZE) {
            long k = U.getLong(e), t = U.getLong(e + 16);
            boolean o = isOpen(U.getLong(e + 8));
            if (k != BUSY && k != 0 && (o == open ? t < time : open)) {
                oldest = e;
                time = t;
                known = k;
                open = o;
            }
        }
        if (oldest == 0 || !U.compareAndSwapLong(null, oldest, known, BUSY))
            oldest = 0;
        if (oldest == 0 || open)
            U.getAndAddLong(null, LOST, 1);
        if (oldest != 0)
            U.getAndAddLong(null, spilled(known), -1);
        return oldest;
    }

    private static void fill(long e, long key, long request, long time, long by) {
        U.putLong(e + 8, request);
        U.putLong(e + 16, time);
        U.putLong(e + 24, by);
        U.putOrderedLong(null, e, key);
    }

    /**
     * Moves the entry so that a concurrent search finds it in one table or the other. Returns the
     * old place, whose key is BUSY, or 0.
     */
    private static long spill(long bucket) {
        long oldest = 0, time = Long.MAX_VALUE, key = 0;
        for (long e = bucket; e < bucket + (BUCKET / 8) * ENTRY_SIZE; e += ENTRY_SIZE) {
            long k = U.getLong(e), t = U.getLong(e + 16);
            if (k != BUSY && k != 0 && t < time) {
                oldest = e;
                time = t;
                key = k;
            }
        }
        long to = oldest == 0 ? 0 : room(key);
        if (to == 0)
            return 0;
        U.getAndAddLong(null, spilled(key), 1);
        fill(to, key, U.getLong(oldest + 8), time, U.getLong(oldest + 24));
        if (U.compareAndSwapLong(null, oldest, key, BUSY))
            return oldest;
        take(to, key); // another thread has taken it in the meantime
        return 0;
    }

    private static void put(long key, long request, long time, long by) {
        long bucket = hotBucket(key), e = unused(bucket);
        if (e == 0)
            e = spill(bucket);
        if (e == 0) {
            e = room(key);
            if (e == 0)
                return;
            U.getAndAddLong(null, spilled(key), 1);
        }
        fill(e, key, request, time, by);
        if (U.getLong(ANY) == 0)
            U.putLong(ANY, 1);
    }

    private static long oldest(long bucket, long key) {
        long found = 0, time = Long.MAX_VALUE;
        for (long e = bucket; e < bucket + (BUCKET / 8) * ENTRY_SIZE; e += ENTRY_SIZE) {
            if (U.getLong(e) == key && U.getLong(e + 16) < time) {
                found = e;
                time = U.getLong(e + 16);
            }
        }
        return found;
    }

    /** Returns the oldest entry of a key, or 0 if there is none. */
    private static long find(long key) {
        long e = oldest(hotBucket(key), key);
        if (U.getLong(spilled(key)) == 0)
            return e;
        long other = oldest(HANDED + ((key & HANDED_MASK) << BUCKET_SHIFT), key);
        return e == 0 || other != 0 && U.getLong(other + 16) < U.getLong(e + 16) ? other : e;
    }

    /** Frees an entry. Returns false if it no longer has this key. */
    private static boolean take(long e, long key) {
        if (!U.compareAndSwapLong(null, e, key, 0))
            return false;
        if (e < HOT || e >= HOT + ((HOT_MASK + 1) << BUCKET_SHIFT))
            U.getAndAddLong(null, spilled(key), -1);
        return true;
    }

    private static long key(Object task) {
        return IS_TASK | System.identityHashCode(task);
    }

    /**
     * A task is given to a pool of threads. A task of no request is entered too, because a request
     * may begin in it.
     */
    public static void handed(Object task) {
        if (task == null)
            return;
        long slot = slot(tid()), key = key(task), request = request(slot);
        if (task instanceof CompletableFuture.AsynchronousCompletionTask) {
            long stage = unready(key);
            request = stage != 0 ? stage : request;
        }
        put(key, request, System.nanoTime(), threadOf(slot));
    }

    /** A task of a ForkJoinPool is pushed by its fork(), and again by the pool's own methods. */
    public static void forked(Object task) {
        long slot = slot(tid()), request = request(slot);
        boolean stage = task instanceof CompletableFuture.AsynchronousCompletionTask;
        if (request == 0 && !stage || task == null)
            return;
        long key = key(task), of = stage ? unready(key) : 0, there = of != 0 ? 0 : find(key);
        request = of != 0 ? of : request;
        if (request != 0 && (there == 0 || U.getLong(there + 8) != request))
            put(key, request, System.nanoTime(), threadOf(slot));
    }

    /**
     * Does what forked() does, for a method of a pool. The scheduler of virtual threads is left out:
     * it gets only their continuations, and each virtual thread has an entry of its own.
     */
    public static void pushed(Object pool, Object task) {
        if (pool != scheduler || pool == null)
            forked(task);
    }

    /**
     * A stage of a CompletableFuture that depends on another stage was created. It lies in no queue
     * until it is given to a pool.
     */
    public static void depends(Object completion) {
        long tid = tid(), slot = slot(tid), request = request(slot);
        if (request != 0 && completion != null && sender[(int) tid & LOOPS - 1] != tid)
            put(key(completion), request, System.nanoTime(), U.getLong(slot + THREAD) | (long) FUTURE << WAY_SHIFT);
    }

    /**
     * Takes the entry that the creation of a stage made, because the stage is now given to a pool.
     * Returns the request that created it, or 0 if there is no such entry.
     */
    private static long unready(long key) {
        long e = U.getLong(ANY) == 0 ? 0 : find(key);
        if (e == 0 || U.getLong(e + 24) >>> WAY_SHIFT != FUTURE)
            return 0;
        long request = U.getLong(e + 8);
        return take(e, key) ? request : 0;
    }

    /**
     * A task of a ScheduledThreadPoolExecutor is scheduled. The time before it is due does not
     * count as time in a queue. A periodic task belongs to no request.
     */
    public static void scheduled(Object task) {
        long slot = slot(tid()), request = request(slot), delay;
        if (request == 0 || !(task instanceof RunnableScheduledFuture))
            return;
        try {
            if (((RunnableScheduledFuture<?>) task).isPeriodic())
                return;
            delay = ((Delayed) task).getDelay(TimeUnit.NANOSECONDS);
        } catch (Throwable e) {
            return; // from code of the program, in a pool that has its own class of tasks
        }
        put(key(task), request, System.nanoTime() + (delay > 0 ? delay : 0),
            U.getLong(slot + THREAD) | (long) TIMER << WAY_SHIFT);
    }

    /** A task of a Timer is scheduled, which is due at a time in milliseconds since 1970. */
    public static void scheduled(Object task, long time, long period) {
        long slot = slot(tid()), request = request(slot);
        if (request == 0 || task == null || period != 0)
            return;
        long delay = time - System.currentTimeMillis();
        put(key(task), request, System.nanoTime() + (delay > 0 ? delay * 1000000 : 0), U.getLong(slot + THREAD));
    }

    /** A thread is about to be started. */
    public static void starting(Object thread) {
        long slot = slot(tid());
        put(IS_THREAD | U.getLong(thread, TID), request(slot), System.nanoTime(),
            threadOf(slot));
    }

    /** A virtual thread is about to be started. */
    public static void startingVirtual(Object thread) {
        if (carrier == null)
            findCarriers();
        starting(thread);
    }

    /**
     * A task is cancelled or removed, so its time in the queue ends. If it was due later, it has
     * not waited.
     */
    public static void cancelled(Object task) {
        long e = task == null || U.getLong(ANY) == 0 ? 0 : find(key(task));
        if (e == 0)
            return;
        long request = U.getLong(e + 8), time = U.getLong(e + 16), by = U.getLong(e + 24);
        if (take(e, key(task)) && request != 0 && time < System.nanoTime())
            withdraw(tid(), request, time, by & (1L << WAY_SHIFT) - 1);
    }

    /** A pool rejects the task that this thread has given to it last. */
    public static void rejected(Object task) {
        if (task == null || U.getLong(ANY) == 0)
            return;
        long key = key(task), e = latest(hotBucket(key), key);
        if (e == 0 && U.getLong(spilled(key)) != 0)
            e = latest(HANDED + ((key & HANDED_MASK) << BUCKET_SHIFT), key);
        if (e != 0)
            take(e, key);
    }

    private static long latest(long bucket, long key) {
        long found = 0, request = request(slot(tid()));
        for (long e = bucket; e < bucket + (BUCKET / 8) * ENTRY_SIZE; e += ENTRY_SIZE) {
            if (U.getLong(e) == key && U.getLong(e + 8) == request
                    && (found == 0 || U.getLong(e + 16) > U.getLong(found + 16)))
                found = e;
        }
        return found;
    }

    /**
     * Begins a work without a call of the agent, on a thread that has an entry and works for no
     * request. Returns its number, which contains the time.
     */
    private static long begun(long slot, long request, long time, long by) {
        long number = Long.MIN_VALUE | System.nanoTime();
        U.putLong(slot + FROM, time);
        U.putLong(slot + BY, by);
        U.putLong(slot + WORK, number);
        U.putLong(slot + REQUEST, request);
        return number;
    }

    /** A task begins to run. Returns the value to pass to ended. */
    public static long started(Object task, int way) {
        if (task == null || U.getLong(ANY) == 0)
            return 0;
        Thread thread = Thread.currentThread();
        if (carrier != null && thread.getClass() == carrier)
            return 0;
        long key = key(task), e, request, time, by, tid = U.getLong(thread, TID);
        do {
            e = find(key);
            if (e == 0)
                return 0;
            request = U.getLong(e + 8);
            time = U.getLong(e + 16);
            by = U.getLong(e + 24);
        } while (!take(e, key)); // another thread has taken it, or it was moved
        if (request != 0) {
            if (by >>> WAY_SHIFT == 0)
                by |= (long) way << WAY_SHIFT;
            long slot = slot(tid);
            if (slot != 0 && U.getLong(slot + REQUEST) == 0 && isOpen(request))
                return begun(slot, request, time, by);
            return work(tid, request, (int) (by >>> WAY_SHIFT), time, by & (1L << WAY_SHIFT) - 1);
        }
        long t = TASKS + ((tid & TASK_MASK) << 5);
        U.putLong(t + 8, System.nanoTime());
        U.putLong(t + 16, time);
        U.putLong(t + 24, by);
        U.putLong(t, tid);
        return NO_REQUEST;
    }

    /**
     * A task begins to run in the loop of a pool's thread. The thread has already taken it, unless
     * the thread was created for this task.
     */
    public static long runs(Object task, int way) {
        long tid = tid();
        return U.getLong(TASKS + ((tid & TASK_MASK) << 5)) == tid || works(tid) ? 0 : started(task, way);
    }

    /**
     * A thread tries to run a stage of a CompletableFuture. This may fail, so the entry remains.
     */
    public static long tried(Object completion, int way) {
        if (U.getLong(ANY) == 0)
            return 0;
        long e = find(key(completion));
        if (e == 0)
            return 0;
        long tid = tid(), slot = slot(tid), request = U.getLong(e + 8);
        if (request == 0 || slot != 0 && U.getLong(slot + REQUEST) == request)
            return 0;
        return work(tid, request, way, 0, U.getLong(e + 24) & (1L << WAY_SHIFT) - 1);
    }

    /**
     * A thread of a pool begins. It works for no request, even if the pool started it because of
     * one.
     */
    public static void pooled() {
        free(true);
    }

    /** A thread of a pool looks for its next task, so the last one has ended. */
    public static void idle() {
        free(false);
    }

    /** Forgets when the thread's task, which works for no request, was put into a queue. */
    private static void forgetTask(long tid) {
        long t = TASKS + ((tid & TASK_MASK) << 5);
        if (U.getLong(t) == tid)
            U.putLong(t, 0);
    }

    private static void free(boolean drop) {
        long tid = tid();
        forgetTask(tid);
        if (works(tid))
            leave(tid, drop);
    }

    /** A thread of a pool has taken a task, which it will run until it is idle. */
    public static void taken(Object task, int way) {
        started(task, way);
    }

    public static void ended(long work) {
        if (work == NO_REQUEST) {
            long tid = tid(), t = TASKS + ((tid & TASK_MASK) << 5);
            if (U.getLong(t) == tid)
                U.putLong(t, 0);
        } else if (work != 0) {
            workEnd(work, tid());
        }
    }

    // ---- Netty: a request begins when its first line is decoded; its channel identifies it ----

    private static final int LOOPS = 1 << 12;
    /**
     * For each thread: its id, the last request that it decoded, whether the request's channel is
     * not yet known, and a status.
     */
    private static final long[] loopThread = new long[LOOPS], loopRequest = new long[LOOPS],
            loopStatus = new long[LOOPS];
    private static final boolean[] loopNew = new boolean[LOOPS];

    public static void decoded(String[] line, int kind) {
        if (line == null || line.length < 2)
            return;
        read();
        long tid = tid(), request = enterServer(kind, line[0], line[1]);
        int i = (int) tid & LOOPS - 1;
        if (request == 0)
            return;
        loopThread[i] = tid;
        loopRequest[i] = request;
        loopNew[i] = true;
    }

    /**
     * More bytes of a channel's request have arrived, so its thread works for the request again.
     */
    public static void decoding(Object channel) {
        long tid = tid();
        int i = (int) tid & LOOPS - 1;
        if (U.getLong(ANY) == 0 || loopThread[i] == tid || request(slot(tid)) != 0)
            return;
        long e = answerOf(channel);
        if (e == 0)
            return;
        loopThread[i] = tid;
        loopRequest[i] = U.getLong(e + 8);
        loopNew[i] = false;
        work(tid, loopRequest[i], ASYNC, 0, 0);
    }

    /** The headers of the request that this thread decodes are complete, or some of them are. */
    public static void headed(String traceparent) {
        if (traceparent == null)
            return;
        long tid = tid();
        int i = (int) tid & LOOPS - 1;
        if (loopThread[i] == tid)
            trace(loopRequest[i], traceparent);
    }

    /** Sets the channel whose bytes this thread decodes. */
    public static void decodes(Object channel) {
        long tid = tid();
        int i = (int) tid & LOOPS - 1;
        if (loopThread[i] != tid || !loopNew[i])
            return;
        loopNew[i] = false;
        long slot = slot(tid);
        put(IS_ANSWER | System.identityHashCode(channel), loopRequest[i], System.nanoTime(),
                threadOf(slot));
    }

    /**
     * The bytes that were read have been handled. The response may be sent later by another thread.
     */
    public static void read() {
        long tid = tid();
        int i = (int) tid & LOOPS - 1;
        if (loopThread[i] != tid)
            return;
        loopThread[i] = 0;
        pause(loopRequest[i], tid);
    }

    public static void encodes(int status) {
        long tid = tid();
        loopStatus[(int) tid & LOOPS - 1] = tid << 16 | status;
    }

    /** A part of a response was encoded. state is 0 if it was the last part. */
    public static void encoded(int state, Object channel) {
        if (state != 0 || U.getLong(ANY) == 0)
            return;
        long tid = tid(), known = loopStatus[(int) tid & LOOPS - 1];
        int status = known >>> 16 == tid ? (int) known & 0xffff : 0;
        if (status >= 200 || status < 100 || status == 101)
            finish(channel, status);
    }

    /** A channel was closed, so its open requests will get no response. */
    public static void closed(Object channel) {
        if (U.getLong(ANY) == 0)
            return;
        for (int i = 0; i < BUCKET / 8 && answerOf(channel) != 0; i++)
            finish(channel, 0);
    }

    // ---- calls to other servers for a request: statements, connections, messages ----

    private static final int JDBC = 0, HTTP = 2;

    private static int textOf(int kind, String text) {
        long key = hash(64 + kind, text);
        long known = U.getLong(NAMED + ((key >>> 48) << 3));
        if (known >>> NAME_BITS == (key & -1L >>> NAME_BITS) && known != 0)
            return (int) known & (1 << NAME_BITS) - 1;
        return text(kind, text, key);
    }

    public static long child(String text, int kind) {
        long tid = tid();
        return text == null || request(slot(tid)) == 0 ? 0 : childBegin(tid, kind, textOf(kind, text));
    }

    public static long child(java.net.URL url, int kind) {
        return url == null || request(slot(tid())) == 0 ? 0 : child(url.getHost(), kind);
    }

    public static long child(URI uri, int kind) {
        return uri == null || request(slot(tid())) == 0 ? 0 : child(uri.getHost(), kind);
    }

    /** Apache's HttpHost has the form "http://shop:8080". */
    public static long host(Object host, int kind) {
        if (host == null || request(slot(tid())) == 0)
            return 0;
        String s = host.toString();
        int from = s.indexOf("://") + 3, port = s.lastIndexOf(':');
        return child(s.substring(from < 3 ? 0 : from, port > from && s.indexOf(']', port) < 0 ? port : s.length()),
                kind);
    }

    /**
     * A call sets a header. The parameter is its value, or for Apache's clients the text
     * "traceparent: VALUE".
     */
    public static void calls(Object header) {
        long tid = tid();
        String value = request(slot(tid)) == 0 ? null : value(header);
        if (value != null)
            calls(tid, value);
    }

    private static String value(Object header) {
        Object value = header instanceof java.util.Optional ? ((java.util.Optional<?>) header).orElse(null) : header;
        if (value == null)
            return null;
        String s = value.toString();
        int colon = s.indexOf(':');
        return colon < 0 ? s : s.substring(colon + 1).trim();
    }

    /** The threads that are in sent(); what it adds to a future is no work for the request. */
    private static final long[] sender = new long[LOOPS];

    /** A call whose response comes later begins. Returns the time, or 0 outside of a request. */
    public static long sending() {
        return request(slot(tid())) == 0 ? 0 : System.nanoTime();
    }

    /** The call has returned the future of its response. */
    public static void sent(Object future, URI uri, Object header, int kind, long start) {
        long tid = tid(), slot = slot(tid), request = request(slot);
        String host = uri == null ? null : uri.getHost();
        if (start == 0 || request == 0 || host == null || !(future instanceof CompletableFuture))
            return;
        JvmscopeRequests call = new JvmscopeRequests(request, threadOf(slot), start, textOf(kind, host), value(header));
        sender[(int) tid & LOOPS - 1] = tid;
        ((CompletableFuture<?>) future).whenComplete(call);
        sender[(int) tid & LOOPS - 1] = 0;
    }

    @Override
    public void accept(Object response, Throwable t) {
        Throwable cause = t instanceof CompletionException && t.getCause() != null ? t.getCause() : t;
        childLater(request, thread, start, text, header, cause == null ? null : cause.getClass());
    }

    /** A client is told to send a request later, on a thread of its own. */
    public static void asks(Object call) {
        long slot = slot(tid()), request = request(slot);
        if (request != 0)
            put(IS_CALL | System.identityHashCode(call), request, System.nanoTime(), threadOf(slot));
    }

    /**
     * A client sends a request and waits for the response. Returns what to pass to arrived or lost;
     * null if no request of the program told it to do so later.
     */
    public static Object asked(Object call, String host, Object header, int kind) {
        long key = IS_CALL | System.identityHashCode(call), e = U.getLong(ANY) == 0 ? 0 : find(key);
        if (e == 0)
            return null;
        long request = U.getLong(e + 8), start = U.getLong(e + 16), by = U.getLong(e + 24);
        return !take(e, key) || host == null ? null
                : new JvmscopeRequests(request, by, start, textOf(kind, host), value(header));
    }

    /** The response has arrived for which asked was called. */
    public static void arrived(Object call) {
        if (call != null)
            ((JvmscopeRequests) call).accept(null, null);
    }

    public static void lost(Throwable t, Object call) {
        if (call != null)
            ((JvmscopeRequests) call).accept(null, t);
    }

    public static long sends(Object destination, int kind) {
        return destination == null || request(slot(tid())) == 0 ? 0 : child(destination(destination), kind);
    }

    private static long prepared(Object statement) {
        return PREPARED + ((System.identityHashCode(statement) & NAMES - 1) << 3);
    }

    /** A connection has created a statement. */
    public static void prepared(Object statement, Object sql) {
        if (statement != null && sql instanceof String)
            U.putLong(prepared(statement),
                    (long) System.identityHashCode(statement) << NAME_BITS | textOf(JDBC, (String) sql));
    }

    /** A prepared statement is executed. */
    public static long executes(Object statement) {
        long tid = tid();
        if (request(slot(tid)) == 0)
            return 0;
        long known = U.getLong(prepared(statement));
        boolean is = known >>> NAME_BITS == System.identityHashCode(statement);
        return childBegin(tid, JDBC, is ? (int) known & (1 << NAME_BITS) - 1 : textOf(JDBC, "[prepared statement]"));
    }

    public static void done(long child) {
        if (child != 0)
            childEnd(child, tid(), -1, null);
    }

    public static void done(int rows, long child) {
        if (child != 0)
            childEnd(child, tid(), rows, null);
    }

    public static void done(long rows, long child) {
        if (child != 0)
            childEnd(child, tid(), rows, null);
    }

    public static void broken(Throwable t, long child) {
        if (child != 0)
            childEnd(child, tid(), -1, t.getClass());
    }
}
