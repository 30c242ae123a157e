/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the methods in which requests begin and end, or in which work is handed from one
 * thread to another: methods of the JDK, of servers and of clients, and what is inserted into each.
 * The inserted code calls the probe with values that are available in the method.
 */
#include "agent/capture/requests/points.h"

#include "agent/instrument/choice.h"
#include "agent/stacks/names.h"
#include "base/dotted.h"
#include "classfile/debug.h"
#include "options/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNNABLE "java/lang/Runnable"
#define OBJECT   "(Ljava/lang/Object;)V"
#define STRING   "()Ljava/lang/String;"

#define TOMCAT           "org/apache/catalina/"
#define CATALINA_REQUEST TOMCAT "connector/Request"
#define TOMCAT_POOL      "org/apache/tomcat/util/threads/ThreadPoolExecutor"

#define JETTY          "org/eclipse/jetty/"
#define JETTY_POOL     JETTY "util/thread/QueuedThreadPool"
#define JETTY_CHANNEL  JETTY "server/HttpChannel"
#define JETTY_REQUEST  JETTY "server/Request"
#define JETTY_RESPONSE JETTY "server/Response"
#define JETTY_ASKED    "v:" JETTY_CHANNEL ".getRequest()L" JETTY_REQUEST ";"
#define JETTY_STATE    JETTY "server/internal/HttpChannelState"
#define JETTY_URI      JETTY "http/HttpURI"

#define NETTY         "io/netty/"
#define NETTY_LOOP    NETTY "util/concurrent/SingleThreadEventExecutor"
#define NETTY_CODEC   NETTY "handler/codec/"
#define NETTY_HTTP    NETTY "handler/codec/http/"
#define NETTY_CONTEXT NETTY "channel/ChannelHandlerContext"
#define NETTY_CHANNEL "i:" NETTY_CONTEXT ".channel()L" NETTY "channel/Channel;"
#define NETTY_STATUS  NETTY_HTTP "HttpResponseStatus"
#define NETTY_ANSWER  NETTY_HTTP "HttpResponse"

#define GRPC          "io/grpc/internal/"
#define GRPC_LISTENER GRPC "ServerImpl$JumpToApplicationThreadServerStreamListener"
#define GRPC_STREAM   "f:" GRPC_LISTENER ".stream:L" GRPC "ServerStream;"
#define GRPC_CODE                                      \
    "v:io/grpc/Status.getCode()Lio/grpc/Status$Code; " \
    "v:io/grpc/Status$Code.value()I"

#define HTTP_EXCHANGE "com/sun/net/httpserver/HttpExchange"
#define HEADERS       "com/sun/net/httpserver/Headers"
#define HEADER        "(Ljava/lang/String;)Ljava/lang/String;"
#define TRACEPARENT   "=traceparent"

#define JAVAX_REQUEST   "javax/servlet/http/HttpServletRequest"
#define JAKARTA_REQUEST "jakarta/servlet/http/HttpServletRequest"
#define SERVLET(r)      "1 i:" r ".getMethod" STRING " 1 i:" r ".getRequestURI" STRING " #"
#define SPRING          "org/springframework/"
#define SPRING_ROUTE(r)                                                           \
    "1 i:" r ".getMethod" STRING " 1 i:" r ".getContextPath" STRING               \
    " 1 =org.springframework.web.servlet.HandlerMapping.bestMatchingPattern i:" r \
    ".getAttribute(Ljava/lang/String;)Ljava/lang/Object;"
#define REFLECTED ":Ljava/lang/reflect/Method;"
#define JERSEY1   "com/sun/jersey/server/impl/model/method/dispatch/ResourceJavaMethodDispatcher"
#define JERSEY    "org/glassfish/jersey/server/model/internal/AbstractJavaResourceMethodDispatcher"
#define RESTEASY  "org/jboss/resteasy/core/ResourceMethodInvoker"

#define ACTIVEMQ    "org/apache/activemq/"
#define ARTEMIS     ACTIVEMQ "artemis/jms/client/"
#define KAFKA       "org/apache/kafka/clients/"
#define OKHTTP_HOST "v:okhttp3/Request.url()Lokhttp3/HttpUrl; v:okhttp3/HttpUrl.host" STRING
#define OKHTTP      OKHTTP_HOST " #"
#define OKHTTP_ASKED(class)                                                        \
    "0 0 f:" class ".originalRequest:Lokhttp3/Request; " OKHTTP_HOST               \
                   " 0 f:" class ".originalRequest:Lokhttp3/Request; " TRACEPARENT \
                                 " v:okhttp3/Request.header" HEADER " #"
#define OKHTTP_ROWS(class)                                                                      \
    {class, "enqueue", "(Lokhttp3/Callback;)", point_entry, "asks" OBJECT, NULL, 0, "0"},       \
    {                                                                                           \
        class, "getResponseWithInterceptorChain*", "()Lokhttp3/Response;", point_answered,      \
            "asked(Ljava/lang/Object;Ljava/lang/String;Ljava/lang/Object;I)Ljava/lang/Object;", \
            NULL, CHILD_HTTP, OKHTTP_ASKED(class)                                               \
    }

/* The patterns of the option without "auto", separated by ':', or NULL. */
static char *methods;

/* Instruments a method that the option names. */
static int point_named(const struct instrument_class *c, struct edit *e)
{
    _cleanup_(buf_release) struct buf first = BUF(32), text = BUF(2048);
    struct str method = class_utf8(c->file, e->method->name);
    dotted_append(&text, c->name.data, c->name.len);
    buf_printf(&text, ".%.*s", (int)method.len, method.data);
    unsigned name = request_name_find(REQUEST_METHOD, buf_str(&text));
    int r = code_int(e->rewrite, &first, REQUEST_METHOD);
    r = r ? r : code_int(e->rewrite, &first, (int32_t)name);
    r = r ? r : point_probe(e, &first, "enter", "(II)J");
    return r ? r : point_request(e, &first, 2, NULL);
}

/* ---- the table ---- */

/* clang-format off */
/* If several rows match a method, each inserts its code, in this order. */
static const struct point points[] = {
    /* hand-overs of the JDK */
    {JUC "ThreadPoolExecutor", "execute", NULL, point_entry, "handed" OBJECT, RUNNABLE, 0, "p"},
    {JUC "ThreadPoolExecutor", "runWorker", NULL, point_runs, "started", RUNNABLE, WAY_EXECUTOR},
    {JUC "ThreadPoolExecutor", "getTask", "()", point_takes, NULL, NULL, WAY_EXECUTOR},
    {JUC "ThreadPoolExecutor", "processWorkerExit", NULL, point_entry, "idle()V"},
    {JUC "ScheduledThreadPoolExecutor", "delayedExecute", NULL, point_entry, "scheduled" OBJECT, JUC "RunnableScheduledFuture", 0, "p"},
    {JUC "ThreadPoolExecutor", "reject", NULL, point_entry, "rejected" OBJECT, RUNNABLE, 0, "p"},
    {JUC "ThreadPoolExecutor", "remove", NULL, point_entry, "cancelled" OBJECT, RUNNABLE, 0, "p"},
    {JUC "FutureTask", "cancel", "(Z)", point_entry, "cancelled" OBJECT, NULL, 0, "0"},
    {JUC "ForkJoinTask*", "cancel", "(Z)", point_entry, "cancelled" OBJECT, NULL, 0, "0"},
    {"java/util/TimerTask", "cancel", "()", point_entry, "cancelled" OBJECT, NULL, 0, "0"},
    {"java/util/Timer", "sched", "(Ljava/util/TimerTask;JJ)V", point_entry, "scheduled(Ljava/lang/Object;JJ)V", NULL, 0, "1 J2 J4"},
    {"java/util/TimerThread", "mainLoop", NULL, point_entry, "pooled()V"},
    {"java/util/TaskQueue", "removeMin", "()", point_timer_takes, NULL, NULL, WAY_TIMER},
    {"java/util/TaskQueue", "rescheduleMin", "(J)", point_timer_takes, NULL, NULL, WAY_TIMER},
    {"java/util/TaskQueue", "isEmpty", "()", point_entry, "idle()V"},
    {JUC "ForkJoinTask", "fork", NULL, point_entry, "forked" OBJECT, NULL, 0, "0"},
    {JUC "ForkJoinTask", "doExec", NULL, point_is_run, "started", NULL, WAY_FORK_JOIN},
    {JUC "ForkJoinPool", "externalPush", NULL, point_entry, "pushed(Ljava/lang/Object;Ljava/lang/Object;)V", JUC "ForkJoinTask", 0, "0 p"},
    {JUC "ForkJoinPool", "externalSubmit", NULL, point_entry, "pushed(Ljava/lang/Object;Ljava/lang/Object;)V", JUC "ForkJoinTask", 0, "0 p"},
    {JUC "ForkJoinPool", "poolSubmit", NULL, point_entry, "pushed(Ljava/lang/Object;Ljava/lang/Object;)V", JUC "ForkJoinTask", 0, "0 p"},
    {JUC "CompletableFuture$UniCompletion", "<init>", NULL, point_exit, "depends" OBJECT, NULL, 0, "0"},
    {JUC "CompletableFuture$*", "tryFire", "(I)", point_is_run, "tried", NULL, WAY_FUTURE},
    {JUC "ForkJoinPool", "runWorker", NULL, point_entry, "pooled()V"},
    {"sun/net/www/http/KeepAliveCache", "run", "()V", point_entry, "pooled()V"},
    {"jdk/internal/net/http/HttpClientImpl$SelectorManager", "run", "()V", point_entry, "pooled()V"},
    {"java/lang/Thread", "start", NULL, point_entry, "starting" OBJECT, NULL, 0, "0"},
    {"java/lang/VirtualThread", "start", "(Ljdk/internal/vm/ThreadContainer;)", point_entry, "startingVirtual" OBJECT, NULL, 0, "0"},
    /* hand-overs of servers */
    {TOMCAT_POOL, "executeInternal", NULL, point_entry, "handed" OBJECT, RUNNABLE, 0, "p"},
    {TOMCAT_POOL, "runWorker", NULL, point_runs, "started", RUNNABLE, WAY_EXECUTOR},
    {TOMCAT_POOL, "getTask", "()", point_takes, NULL, NULL, WAY_EXECUTOR},
    {TOMCAT_POOL, "processWorkerExit", NULL, point_entry, "idle()V"},
    {JETTY_POOL, "execute", NULL, point_entry, "handed" OBJECT, RUNNABLE, 0, "p"},
    {JETTY_POOL, "runJob", NULL, point_is_run, "started", RUNNABLE, WAY_EXECUTOR},
    {JETTY_POOL "$Runner", "run", "()", point_entry, "pooled()V"},
    {NETTY_LOOP, "execute", "(Ljava/lang/Runnable;)V", point_entry, "handed" OBJECT, RUNNABLE, 0, "p"},
    {NETTY_LOOP, "takeTask", "()", point_takes, NULL, NULL, WAY_EXECUTOR},
    {NETTY "util/concurrent/AbstractEventExecutor", "safeExecute", "(Ljava/lang/Runnable;)V", point_is_run, "started", RUNNABLE, WAY_EXECUTOR},
    {NETTY "channel/nio/NioEventLoop", "run", "()V", point_entry, "pooled()V"},
    {NETTY "channel/epoll/EpollEventLoop", "run", "()V", point_entry, "pooled()V"},

    /* requests */
    {"com/sun/net/httpserver/Filter$Chain", "doFilter", NULL, point_within, "enter(Ljava/lang/String;Ljava/net/URI;I)J", NULL, REQUEST_HTTP,
     "1 v:" HTTP_EXCHANGE ".getRequestMethod" STRING " 1 v:" HTTP_EXCHANGE ".getRequestURI()Ljava/net/URI; #", "1 v:" HTTP_EXCHANGE ".getResponseCode()I"},
    {"com/sun/net/httpserver/Filter$Chain", "doFilter", NULL, point_entry, "called(Ljava/lang/String;)V", NULL, 0,
     "1 v:" HTTP_EXCHANGE ".getRequestHeaders()L" HEADERS "; " TRACEPARENT " v:" HEADERS ".getFirst" HEADER},
    {"sun/net/httpserver/ExchangeImpl", "sendResponseHeaders", "(IJ)V", point_entry, "length(J)V", NULL, 0, "J2"},
    {"javax/servlet/http/HttpServlet", "service", "(L" JAVAX_REQUEST ";", point_within, "enter(Ljava/lang/String;Ljava/lang/String;I)J", NULL, REQUEST_SERVLET, SERVLET(JAVAX_REQUEST)},
    {"jakarta/servlet/http/HttpServlet", "service", "(L" JAKARTA_REQUEST ";", point_within, "enter(Ljava/lang/String;Ljava/lang/String;I)J", NULL, REQUEST_SERVLET, SERVLET(JAKARTA_REQUEST)},
    {NETTY_HTTP "HttpRequestDecoder", "createMessage", "([Ljava/lang/String;)", point_entry, "decoded([Ljava/lang/String;I)V", NULL, REQUEST_HTTP, "1 #"},
    {NETTY_HTTP "HttpObjectDecoder", "decode", "(L" NETTY_CONTEXT ";", point_entry, "decoding" OBJECT, NULL, 0, "1 " NETTY_CHANNEL},
    {NETTY_HTTP "HttpObjectDecoder", "decode", "(L" NETTY_CONTEXT ";", point_exit, "decodes" OBJECT, NULL, 0, "1 " NETTY_CHANNEL},
    {NETTY_HTTP "HttpObjectDecoder", "readHeaders", "(Lio/netty/buffer/ByteBuf;)", point_exit, "headed(Ljava/lang/String;)V", NULL, 0,
     "0 f:" NETTY_HTTP "HttpObjectDecoder.message:L" NETTY_HTTP "HttpMessage; i:" NETTY_HTTP "HttpMessage.headers()L" NETTY_HTTP "HttpHeaders; " TRACEPARENT " v:" NETTY_HTTP "HttpHeaders.get" HEADER},
    {NETTY_HTTP "HttpResponseEncoder", "encodeInitialLine", "(Lio/netty/buffer/ByteBuf;L" NETTY_ANSWER ";)", point_entry, "encodes(I)V", NULL, 0,
     "2 ?i:" NETTY_ANSWER ".status()L" NETTY_STATUS "; v:" NETTY_STATUS ".code()I"},
    {NETTY_HTTP "HttpObjectEncoder", "encode", "(L" NETTY_CONTEXT ";Ljava/lang/Object;", point_exit, "encoded(ILjava/lang/Object;)V", NULL, 0,
     "0 f:" NETTY_HTTP "HttpObjectEncoder.state:I 1 " NETTY_CHANNEL},
    {NETTY_CODEC "ByteToMessageDecoder", "channelRead", "(L" NETTY_CONTEXT ";", point_netty_read},
    {NETTY_CODEC "ByteToMessageDecoder", "channelInactive", "(L" NETTY_CONTEXT ";", point_entry, "closed" OBJECT, NULL, 0, "1 " NETTY_CHANNEL},
    {TOMCAT "connector/CoyoteAdapter", "service", NULL, point_tomcat, NULL, NULL, REQUEST_SERVLET},
    {TOMCAT "connector/CoyoteAdapter", "asyncDispatch", NULL, point_tomcat_async},
    {TOMCAT "core/StandardEngineValve", "invoke", "(L" CATALINA_REQUEST ";", point_entry, "named(Ljava/lang/String;Ljava/lang/String;I)V", NULL, REQUEST_SERVLET,
     "1 v:" CATALINA_REQUEST ".getMethod" STRING " 1 v:" CATALINA_REQUEST ".getRequestURI" STRING " #"},
    {TOMCAT "core/StandardEngineValve", "invoke", "(L" CATALINA_REQUEST ";", point_entry, "called(Ljava/lang/String;)V", NULL, 0,
     "1 " TRACEPARENT " v:" CATALINA_REQUEST ".getHeader" HEADER},
    {JETTY "server/Server", "handle", "(L" JETTY_CHANNEL ";)", point_suspended, "enter(Ljava/lang/String;Ljava/lang/String;I)J", NULL, REQUEST_SERVLET,
     "1 ?" JETTY_ASKED " ?v:" JETTY_REQUEST ".getMethod" STRING " 1 " JETTY_ASKED " v:" JETTY_REQUEST ".getRequestURI" STRING " #"},
    {JETTY "server/Server", "handle", "(L" JETTY_CHANNEL ";)", point_entry, "called(Ljava/lang/String;)V", NULL, 0,
     "1 ?" JETTY_ASKED " " TRACEPARENT " v:" JETTY_REQUEST ".getHeader" HEADER},
    {JETTY "server/Server", "handleAsync", "(L" JETTY_CHANNEL ";)", point_suspended, "resume(Ljava/lang/Object;)J", NULL, 0, "1"},
    {JETTY_CHANNEL, "onCompleted", "()", point_entry, "bytes(Ljava/lang/Object;J)V", NULL, 0, "0 0 v:" JETTY_CHANNEL ".getBytesWritten()J"},
    {JETTY_CHANNEL, "onCompleted", "()", point_entry, "finish(Ljava/lang/Object;I)V", NULL, 0,
     "0 0 v:" JETTY_CHANNEL ".getResponse()L" JETTY_RESPONSE "; v:" JETTY_RESPONSE ".getStatus()I"},
    /* Jetty 12 */
    {JETTY "server/Server", "handle", "(L" JETTY_REQUEST ";L" JETTY_RESPONSE ";", point_paused, "enter(Ljava/lang/String;Ljava/lang/String;Ljava/lang/Object;I)J", NULL, REQUEST_HTTP,
     "1 i:" JETTY_REQUEST ".getMethod" STRING " 1 i:" JETTY_REQUEST ".getHttpURI()L" JETTY_URI "; i:" JETTY_URI ".getPath" STRING " 3 #"},
    {JETTY "server/Server", "handle", "(L" JETTY_REQUEST ";L" JETTY_RESPONSE ";", point_entry, "called(Ljava/lang/String;)V", NULL, 0,
     "1 i:" JETTY_REQUEST ".getHeaders()L" JETTY "http/HttpFields; " TRACEPARENT " i:" JETTY "http/HttpFields.get" HEADER},
    {JETTY_STATE "$ChannelResponse", "setStatus", "(I)V", point_entry, "status(I)V", NULL, 0, "I1"},
    {JETTY_STATE "$ChannelCallback", "succeeded", "()", point_entry, "finish(Ljava/lang/Object;I)V", NULL, 200, "0 #"},
    /* which sends a response that says so, unless it is too late for one */
    {JETTY_STATE "$ChannelCallback", "failed", "(Ljava/lang/Throwable;)", point_paused, "going(Ljava/lang/Object;)J", NULL, 0, "0"},
    {JETTY_STATE "$ChannelCallback", "failed", "(Ljava/lang/Throwable;)", point_exit, "finish(Ljava/lang/Object;Ljava/lang/Throwable;)V", NULL, 0, "0 1"},
    {GRPC "ServerImpl$ServerTransportListenerImpl", "streamCreated", "(L" GRPC "ServerStream;Ljava/lang/String;", point_paused, "stream(Ljava/lang/Object;Ljava/lang/String;I)J", NULL, REQUEST_GRPC, "1 2 #"},
    {GRPC "ServerImpl$ServerTransportListenerImpl", "streamCreated", "(L" GRPC "ServerStream;Ljava/lang/String;Lio/grpc/Metadata;", point_entry, "called" OBJECT, NULL, 0,
     "3 " TRACEPARENT " g:io/grpc/Metadata.ASCII_STRING_MARSHALLER:Lio/grpc/Metadata$AsciiMarshaller; s:io/grpc/Metadata$Key.of(Ljava/lang/String;Lio/grpc/Metadata$AsciiMarshaller;)Lio/grpc/Metadata$Key; v:io/grpc/Metadata.get(Lio/grpc/Metadata$Key;)Ljava/lang/Object;"},
    {GRPC_LISTENER, "messagesAvailable", NULL, point_paused, "going(Ljava/lang/Object;)J", NULL, 0, "0 " GRPC_STREAM},
    {GRPC_LISTENER, "halfClosed", NULL, point_paused, "going(Ljava/lang/Object;)J", NULL, 0, "0 " GRPC_STREAM},
    {GRPC_LISTENER, "onReady", NULL, point_paused, "going(Ljava/lang/Object;)J", NULL, 0, "0 " GRPC_STREAM},
    {GRPC_LISTENER, "closed", "(Lio/grpc/Status;)", point_entry, "answered(Ljava/lang/Object;I)V", NULL, 0, "0 " GRPC_STREAM " 1 " GRPC_CODE},
    {GRPC "AbstractServerStream", "close", "(Lio/grpc/Status;", point_entry, "answers(Ljava/lang/Object;I)V", NULL, 0, "0 1 " GRPC_CODE},
    {GRPC "AbstractServerStream", "close", "(Lio/grpc/Status;", point_exit, "answered(Ljava/lang/Object;I)V", NULL, 0, "0 1 " GRPC_CODE},
    {GRPC "AbstractServerStream", "cancel", "(Lio/grpc/Status;", point_entry, "answered(Ljava/lang/Object;I)V", NULL, 0, "0 1 " GRPC_CODE},
    /* messages: those of a listener, and those from one receive() to the next */
    {ACTIVEMQ "ActiveMQMessageConsumer", "dispatch", NULL, point_listener, NULL, NULL, REQUEST_MESSAGE},
    {ACTIVEMQ "ActiveMQSession", "run", "()V", point_listener, NULL, NULL, REQUEST_MESSAGE},
    {ARTEMIS "JMSMessageListenerWrapper", "onMessage", NULL, point_listener, NULL, NULL, REQUEST_MESSAGE},
    {SPRING "jms/listener/AbstractMessageListenerContainer", "doInvokeListener", NULL, point_listener, NULL, NULL, REQUEST_MESSAGE},
    {ACTIVEMQ "ActiveMQMessageConsumer", "receive*", "(", point_entry, "received()V"},
    {ACTIVEMQ "ActiveMQMessageConsumer", "receive*", "(", point_exit, "received(Ljava/lang/Object;I)V", NULL, REQUEST_MESSAGE, "r #"},
    {ACTIVEMQ "ActiveMQMessageConsumer", "close", "()", point_entry, "received()V"},
    {ARTEMIS "ActiveMQMessageConsumer", "receive*", "(", point_entry, "received()V"},
    {ARTEMIS "ActiveMQMessageConsumer", "receive*", "(", point_exit, "received(Ljava/lang/Object;I)V", NULL, REQUEST_MESSAGE, "r #"},
    {ARTEMIS "ActiveMQMessageConsumer", "close", "()", point_entry, "received()V"},
    {KAFKA "consumer/KafkaConsumer", "poll", "(", point_entry, "received()V"},
    {KAFKA "consumer/KafkaConsumer", "poll", "(", point_exit, "polled(Ljava/lang/Object;I)V", NULL, REQUEST_MESSAGE, "r #"},
    {KAFKA "consumer/KafkaConsumer", "close", "(", point_entry, "received()V"},
    /* scheduled tasks; those of a Timer with its hand-overs */
    {JUC "ScheduledThreadPoolExecutor$ScheduledFutureTask", "run", "()V", point_within, "task(Ljava/lang/Object;)J", NULL, 0, "0"},
    {JUC "FutureTask", "setException", NULL, point_entry, "taskFailed(Ljava/lang/Throwable;)V", NULL, 0, "1"},
    /* routes */
    {SPRING "web/servlet/HandlerExecutionChain", "applyPreHandle", "(L" JAVAX_REQUEST ";", point_entry, "routed(Ljava/lang/String;Ljava/lang/String;Ljava/lang/Object;)V", NULL, 0, SPRING_ROUTE(JAVAX_REQUEST)},
    {SPRING "web/servlet/HandlerExecutionChain", "applyPreHandle", "(L" JAKARTA_REQUEST ";", point_entry, "routed(Ljava/lang/String;Ljava/lang/String;Ljava/lang/Object;)V", NULL, 0, SPRING_ROUTE(JAKARTA_REQUEST)},
    {JERSEY1, "dispatch", NULL, point_entry, "resource" OBJECT, NULL, 0, "0 f:" JERSEY1 ".method" REFLECTED},
    {JERSEY, "dispatch", NULL, point_entry, "resource" OBJECT, NULL, 0, "0 f:" JERSEY ".method" REFLECTED},
    {RESTEASY, "invokeOnTarget", NULL, point_entry, "resource" OBJECT, NULL, 0, "0 v:" RESTEASY ".getMethod()Ljava/lang/reflect/Method;"},

    /* calls to other servers */
    {"com/zaxxer/hikari/HikariDataSource", "getConnection", NULL, point_pool},
    {"org/apache/commons/dbcp2/BasicDataSource", "getConnection", NULL, point_pool},
    {"org/apache/tomcat/dbcp/dbcp2/BasicDataSource", "getConnection", NULL, point_pool},
    {"org/apache/tomcat/jdbc/pool/DataSourceProxy", "getConnection", NULL, point_pool},
    {"sun/net/www/protocol/http/HttpURLConnection", "getInputStream", "()", point_child_within, "child(Ljava/net/URL;I)J", NULL, CHILD_HTTP,
     "0 v:java/net/URLConnection.getURL()Ljava/net/URL; #"},
    {"sun/net/www/protocol/http/HttpURLConnection", "getInputStream", "()", point_entry, "calls" OBJECT, NULL, 0, "0 " TRACEPARENT " v:java/net/URLConnection.getRequestProperty" HEADER},
    {"jdk/internal/net/http/HttpClientImpl", "send", NULL, point_child_within, "child(Ljava/net/URI;I)J", NULL, CHILD_HTTP,
     "1 v:java/net/http/HttpRequest.uri()Ljava/net/URI; #"},
    {"jdk/internal/net/http/HttpClientImpl", "send", NULL, point_entry, "calls" OBJECT, NULL, 0,
     "1 v:java/net/http/HttpRequest.headers()Ljava/net/http/HttpHeaders; " TRACEPARENT " v:java/net/http/HttpHeaders.firstValue(Ljava/lang/String;)Ljava/util/Optional;"},
    {"jdk/internal/net/http/HttpClientImpl", "sendAsync", "(Ljava/net/http/HttpRequest;Ljava/net/http/HttpResponse$BodyHandler;Ljava/net/http/HttpResponse$PushPromiseHandler;)", point_sent, NULL, NULL, CHILD_HTTP,
     "r 1 v:java/net/http/HttpRequest.uri()Ljava/net/URI; 1 v:java/net/http/HttpRequest.headers()Ljava/net/http/HttpHeaders; " TRACEPARENT " v:java/net/http/HttpHeaders.firstValue(Ljava/lang/String;)Ljava/util/Optional; #"},
    {"org/apache/http/impl/client/InternalHttpClient", "doExecute", "(Lorg/apache/http/HttpHost;", point_child_within, "host(Ljava/lang/Object;I)J", NULL, CHILD_HTTP, "1 #"},
    {"org/apache/http/impl/client/InternalHttpClient", "doExecute", "(Lorg/apache/http/HttpHost;", point_entry, "calls" OBJECT, NULL, 0,
     "2 " TRACEPARENT " i:org/apache/http/HttpMessage.getFirstHeader(Ljava/lang/String;)Lorg/apache/http/Header;"},
    {"org/apache/hc/client5/http/impl/classic/InternalHttpClient", "doExecute", "(Lorg/apache/hc/core5/http/HttpHost;", point_child_within, "host(Ljava/lang/Object;I)J", NULL, CHILD_HTTP, "1 #"},
    {"org/apache/hc/client5/http/impl/classic/InternalHttpClient", "doExecute", "(Lorg/apache/hc/core5/http/HttpHost;", point_entry, "calls" OBJECT, NULL, 0,
     "2 " TRACEPARENT " i:org/apache/hc/core5/http/MessageHeaders.getFirstHeader(Ljava/lang/String;)Lorg/apache/hc/core5/http/Header;"},
    {"okhttp3/RealCall", "execute", "()", point_child_within, "child(Ljava/lang/String;I)J", NULL, CHILD_HTTP, "0 f:okhttp3/RealCall.originalRequest:Lokhttp3/Request; " OKHTTP},
    {"okhttp3/RealCall", "execute", "()", point_entry, "calls" OBJECT, NULL, 0,
     "0 f:okhttp3/RealCall.originalRequest:Lokhttp3/Request; " TRACEPARENT " v:okhttp3/Request.header" HEADER},
    {"okhttp3/internal/connection/RealCall", "execute", "()", point_child_within, "child(Ljava/lang/String;I)J", NULL, CHILD_HTTP,
     "0 f:okhttp3/internal/connection/RealCall.originalRequest:Lokhttp3/Request; " OKHTTP},
    {"okhttp3/internal/connection/RealCall", "execute", "()", point_entry, "calls" OBJECT, NULL, 0,
     "0 f:okhttp3/internal/connection/RealCall.originalRequest:Lokhttp3/Request; " TRACEPARENT " v:okhttp3/Request.header" HEADER},
    OKHTTP_ROWS("okhttp3/RealCall"),
    OKHTTP_ROWS("okhttp3/internal/connection/RealCall"),
    {KAFKA "producer/KafkaProducer", "doSend", "(L" KAFKA "producer/ProducerRecord;", point_child_within, "child(Ljava/lang/String;I)J", NULL, CHILD_MESSAGE,
     "1 v:" KAFKA "producer/ProducerRecord.topic" STRING " #"},
    {ACTIVEMQ "ActiveMQMessageProducer", "send", "(Ljavax/jms/Destination;Ljavax/jms/Message;IIJL", point_child_within, "sends(Ljava/lang/Object;I)J", NULL, CHILD_MESSAGE, "1 #"},
};

/* clang-format on */

/* Returns whether a name matches a pattern, in which a star at the end stands for any rest. */
static bool matches(const char *pattern, struct str name)
{
    size_t i = 0;
    while (i < name.len && pattern[i] == name.data[i])
        i++;
    return pattern[i] == '*' || (!pattern[i] && i == name.len);
}

static bool may_be_named(struct str class_name)
{
    return methods && !choice_is_core(class_name) && choice_may_match(methods, class_name);
}

/*
 * Returns whether the option names a method. A bridge only calls a method that the same pattern
 * means as well, unless the pattern names the bridge's parameters.
 */
static bool is_named(struct str class_name, struct str method, struct str descriptor, bool bridge)
{
    if (!may_be_named(class_name))
        return false;
    for (const char *p = methods; *p; p += strcspn(p, ":"), p += *p == ':')
        if ((!bridge || choice_names_parameters(p)) &&
            choice_matches_first(p, class_name, method, descriptor))
            return true;
    return false;
}

static bool wants(struct str class_name)
{
    for (size_t i = 0; i < ARRAY_SIZE(points); i++)
        if (matches(points[i].class, class_name))
            return true;
    return point_is_sql(class_name) || may_be_named(class_name);
}

static int edit(const struct instrument_class *c, struct edit *e)
{
    struct str name = class_utf8(c->file, e->method->name),
               descriptor = class_utf8(c->file, e->method->descriptor);
    int edits = 0;
    for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
        const struct point *p = &points[i];
        if (!matches(p->class, c->name) || !matches(p->method, name) ||
            (p->descriptor && !point_begins(descriptor, p->descriptor)))
            continue;
        int r = p->edit(c, e, p);
        if (r < 0)
            return r;
        edits += r;
    }
    if (edits)
        return 1;
    if (is_named(c->name, name, descriptor, class_method_is_bridge(c->file, e->method)))
        return point_named(c, e);
    return point_is_sql(c->name) ? point_sql(c, e, name, descriptor) : 0;
}

static const struct instrument_client client = {.name = "requests",
                                                .edit = edit,
                                                .prepare = follow_prepare,
                                                .wants = wants,
                                                .thread = true,
                                                .thread_last = true,
                                                .virtual_threads = true,
                                                .seldom = true,
                                                .when_linked = true};

/* Returns whether a request is in progress while a row's method runs. */
static bool is_request(const struct point *p)
{
    const struct str probe = {p->probe ? p->probe : "", p->probe ? strlen(p->probe) : 0};
    return p->edit == point_tomcat || p->edit == point_listener || point_begins(probe, "task(") ||
           (p->edit != point_entry &&
            (point_begins(probe, "enter(") || point_begins(probe, "stream(")));
}

bool points_is_request(const struct method *m)
{
    struct str class_name = {m->class_name, strlen(m->class_name)},
               name = {m->name, strlen(m->name)};
    for (size_t i = 0; i < ARRAY_SIZE(points); i++)
        if (is_request(&points[i]) && matches(points[i].class, class_name) &&
            matches(points[i].method, name))
            return true;
    return is_named(class_name, name, (struct str){m->descriptor, strlen(m->descriptor)}, false);
}

/* ---- the option ---- */

static char *methods_of(const char *patterns)
{
    struct buf list = BUF(1 << 20);
    char name[REQUEST_NAME_SIZE];
    for (const char *p = patterns; *p;) {
        size_t n = strcspn(p, ":"), m = MIN(strcspn(p, "("), n);
        bool names = n && !option_is_auto(p, n);
        if (names)
            buf_printf(&list, "%s%.*s", list.len ? ":" : "", (int)n, p);
        if (names && !memchr(p, '*', m) && m < sizeof(name)) {
            /*
             * The methods that the option names are added first, so that the limit on the number of
             * names does not affect them.
             */
            snprintf(name, sizeof(name), "%.*s", (int)m, p);
            (void)request_name_find(REQUEST_METHOD, name);
        }
        p += n + (p[n] == ':');
    }
    char *text = list.len ? strdup(buf_str(&list)) : NULL;
    buf_release(&list);
    return text;
}

int points_on(const char *patterns, JNIEnv *jni, struct buf *why)
{
    free(methods);
    methods = methods_of(patterns);
    return instrument_on(&client, jni, why);
}

void points_off(JNIEnv *jni)
{
    instrument_off(&client, jni);
}
