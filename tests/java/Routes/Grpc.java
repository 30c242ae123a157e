// SPDX-License-Identifier: Apache-2.0
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.util.Iterator;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A service of gRPC whose methods answer, answer from another thread, stream and fail; prints
 * "task WAY THREAD START END".
 */
public class Grpc {
    static final ExecutorService pool = Executors.newFixedThreadPool(2, task -> {
        Thread t = new Thread(task, "own");
        t.setDaemon(true);
        return t;
    });

    static class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return new byte[stream.available()];
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static MethodDescriptor<byte[], byte[]> method(String name, MethodDescriptor.MethodType type) {
        return MethodDescriptor.<byte[], byte[]>newBuilder()
                .setType(type)
                .setFullMethodName("shop.v2.Cart/" + name)
                .setRequestMarshaller(new Bytes())
                .setResponseMarshaller(new Bytes())
                .build();
    }

    static final MethodDescriptor<byte[], byte[]>
            get = method("Get", MethodDescriptor.MethodType.UNARY),
            late = method("Late", MethodDescriptor.MethodType.UNARY),
            fail = method("Fail", MethodDescriptor.MethodType.UNARY),
            wrong = method("Wrong", MethodDescriptor.MethodType.UNARY),
            missing = method("Missing", MethodDescriptor.MethodType.UNARY),
            slow = method("Slow", MethodDescriptor.MethodType.UNARY),
            list = method("List", MethodDescriptor.MethodType.SERVER_STREAMING);

    static synchronized void nap(String way) {
        long start = System.nanoTime();
        try {
            Thread.sleep(5);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        System.out.println("task " + way + " " + Thread.currentThread().getName().replace(' ', '_')
                           + " " + start + " " + System.nanoTime());
    }

    static void answer(StreamObserver<byte[]> to) {
        to.onNext(new byte[10]);
        to.onCompleted();
    }

    static void ask(Channel channel, MethodDescriptor<byte[], byte[]> method) {
        String status = "OK";
        long start = System.nanoTime();
        try {
            if (method == list) {
                Iterator<byte[]> all = ClientCalls.blockingServerStreamingCall(
                        channel, method, CallOptions.DEFAULT, new byte[3]);
                while (all.hasNext())
                    all.next();
            } else {
                CallOptions how =
                        method == slow
                                ? CallOptions.DEFAULT.withDeadlineAfter(200, TimeUnit.MILLISECONDS)
                                : CallOptions.DEFAULT;
                ClientCalls.blockingUnaryCall(channel, method, how, new byte[3]);
            }
        } catch (StatusRuntimeException e) {
            status = e.getStatus().getCode().toString();
        }
        System.out.println("request " + method.getFullMethodName() + " " + status + " " + start
                           + " " + System.nanoTime());
    }

    public static void main(String[] args) throws Exception {
        ServerServiceDefinition service = ServerServiceDefinition.builder("shop.v2.Cart")
            .addMethod(get, ServerCalls.asyncUnaryCall((byte[] in, StreamObserver<byte[]> to) -> {
                nap("executor");
                answer(to);
            }))
            .addMethod(late, ServerCalls.asyncUnaryCall((byte[] in, StreamObserver<byte[]> to) -> pool.execute(() -> {
                nap("executor");
                answer(to);
            })))
            .addMethod(fail, ServerCalls.asyncUnaryCall((byte[] in, StreamObserver<byte[]> to) -> {
                throw new IllegalStateException("asked for");
            }))
            .addMethod(wrong, ServerCalls.asyncUnaryCall((byte[] in, StreamObserver<byte[]> to) ->
                to.onError(Status.INVALID_ARGUMENT.asRuntimeException())))
            .addMethod(slow, ServerCalls.asyncUnaryCall((byte[] in, StreamObserver<byte[]> to) -> pool.execute(() -> {
                while (!((ServerCallStreamObserver<byte[]>) to).isCancelled())
                    nap("executor");
            })))
            .addMethod(list, ServerCalls.asyncServerStreamingCall((byte[] in, StreamObserver<byte[]> to) -> {
                for (int i = 0; i < 3; i++)
                    to.onNext(new byte[10]);
                answer(to);
            })).build();
        Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
                                .addService(service)
                                .build()
                                .start();
        ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", server.getPort())
                                         .usePlaintext()
                                         .build();
        Metadata headers = new Metadata();
        headers.put(Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER),
                    "00-0000000000000000000000000000ca11-00000000000005ba-01");
        Channel traced = ClientInterceptors.intercept(
                channel, MetadataUtils.newAttachHeadersInterceptor(headers));
        for (int i = 0; i < 6; i++) {
            ask(traced, get);
            ask(traced, late);
            ask(traced, fail);
            ask(traced, wrong);
            ask(traced, missing);
            ask(traced, slow);
            ask(channel, list);
        }
        channel.shutdownNow();
        server.shutdownNow().awaitTermination();
        System.out.println("done");
        System.exit(0);
    }
}
