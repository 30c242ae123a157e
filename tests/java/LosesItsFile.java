// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/** Maps a file, cuts it short, and reads it: the VM turns its own SIGBUS into an InternalError. */
public class LosesItsFile {
    public static void main(String[] args) throws Exception {
        File name = File.createTempFile("loses", null);
        try (RandomAccessFile file = new RandomAccessFile(name, "rw")) {
            file.setLength(1 << 20);
            MappedByteBuffer bytes = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 1 << 20);
            bytes.put(0, (byte) 1);
            file.setLength(0);
            System.out.println("ready");
            int got = 0, seen = 0;
            while (System.in.read() >= 0) {
                try {
                    got += bytes.get(1 << 19);
                    Thread.sleep(1);
                } catch (InternalError e) {
                    seen++;
                }
                System.out.println("errors " + seen);
            }
            System.out.println("done " + seen + " " + got);
        } finally {
            name.delete();
        }
    }
}
