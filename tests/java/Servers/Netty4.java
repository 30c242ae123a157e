// SPDX-License-Identifier: Apache-2.0
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import java.net.InetSocketAddress;

/**
 * Netty's HTTP codec, whose handler answers on its event loop or from another thread: a folder
 * that it does not use, rounds, paths.
 */
public class Netty4 {
    static class Truth extends SimpleChannelInboundHandler<FullHttpRequest> {
        static void answer(ChannelHandlerContext context, int status) {
            DefaultFullHttpResponse response = new DefaultFullHttpResponse(
                    HttpVersion.HTTP_1_1, HttpResponseStatus.valueOf(status),
                    Unpooled.copiedBuffer("answer".getBytes()));
            response.headers().set(HttpHeaderNames.CONTENT_LENGTH, 6);
            Asks.handlerEnd = System.nanoTime();
            context.writeAndFlush(response);
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            Asks.handlerStart = System.nanoTime();
            String way = request.uri().split("/")[1];
            if (way.startsWith("async")) {
                Asks.pool.execute(() -> {
                    Asks.serve(way, "executor");
                    answer(context, 200);
                });
                return;
            }
            Asks.serve(way, way.equals("post") ? "async" : "entry");
            answer(context, way.equals("fail") ? 500 : way.equals("missing") ? 404 : 200);
        }
    }

    public static void main(String[] args) throws Exception {
        NioEventLoopGroup loops = new NioEventLoopGroup(2);
        Channel server = new ServerBootstrap().group(loops).channel(NioServerSocketChannel.class)
            .childHandler(new ChannelInitializer<SocketChannel>() {
                @Override
                protected void initChannel(SocketChannel channel) {
                    channel.pipeline().addLast(new HttpServerCodec(),
                                               new HttpObjectAggregator(65536), new Truth());
                }
            }).bind("127.0.0.1", 0).sync().channel();
        Asks.all(((InetSocketAddress) server.localAddress()).getPort(), args[1], args[2]);
        server.close().sync();
        loops.shutdownGracefully();
    }
}
