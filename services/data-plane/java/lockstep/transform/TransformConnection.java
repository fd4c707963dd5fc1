package lockstep.transform;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.ObjectStreamException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.unsafe.types.UTF8String;
import scala.runtime.BoxedUnit;

/**
 * One connection, with one transform. Each frame has its length (4 bytes, big-endian) in front.
 *
 * <ol>
 * <li>The server says who it is: magic, protocol version, jar version, Spark's version, Java's major version.
 * <li>The slot sends the options, the secrets and the stages, and gets OPENED or REFUSED.
 * <li>For each EVALUATE there is an ANSWER or a REFUSED, in order.
 * </ol>
 */
final class TransformConnection {
    static final int MAGIC = 0x4C535452;
    static final int PROTOCOL = 1;

    private static final byte OPEN = 1;
    private static final byte OPENED = 2;
    private static final byte REFUSED = 3;
    private static final byte EVALUATE = 4;
    private static final byte ANSWER = 5;
    private static final int OPEN_FRAME_AT_MOST = 16 << 20;
    private static final int REQUEST_AT_MOST = 256 << 20;
    private static final int KEPT_BUFFER = 16 << 20;

    private final DataInputStream in;
    private final SocketChannel channel;
    private byte[] request = new byte[1 << 16];

    TransformConnection(SocketChannel channel) {
        this.channel = channel;
        in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), 1 << 16));
    }

    void run() throws IOException {
        Frame hello = new Frame();
        hello.data.writeInt(MAGIC);
        hello.data.writeShort(PROTOCOL);
        hello.text(TransformCompiler.jarVersion());
        hello.text(org.apache.spark.package$.MODULE$.SPARK_VERSION());
        hello.data.writeInt(Runtime.version().feature());
        hello.send();
        try {
            RecordBatchTransform.Options options;
            TransformStages stages;
            try {
                ByteBuffer open = ByteBuffer.wrap(request, 0, readFrame(OPEN_FRAME_AT_MOST));
                if (open.get() != OPEN) {
                    throw new Refusal("PROTOCOL_ERROR", "the connection was not opened");
                }
                options = readOptions(open);
                Map<String, byte[]> secrets = readSecrets(open);
                byte[] serialized = new byte[open.remaining()];
                open.get(serialized);
                stages = TransformStages.deserialize(serialized);
                stages.bind(secrets);
            } catch (Refusal refusal) {
                refuse(refusal);
                return;
            } catch (ClassNotFoundException | ObjectStreamException | RuntimeException exc) {
                refuse(new Refusal("STAGES_UNREADABLE", exc.toString()));
                return;
            }
            SQLConf conf = new SQLConf();
            stages.settings.forEach(conf::setConfString);
            // Else the settings would be those of the driver's session in local mode, and the defaults elsewhere.
            SQLConf$.MODULE$.withExistingConf(conf, () -> {
                serve(stages, options);
                return BoxedUnit.UNIT;
            });
        } catch (EOFException exc) {
            // the slot has ended the connection
        } catch (Sneaked exc) {
            throw exc.cause;
        } catch (Error error) {
            // Memory or classes: it says nothing about a record.
            refuse(new Refusal("ENGINE_ERROR", error.getClass().getName()));
        }
    }

    /** An IOException through a function of Scala's, which declares none. */
    private static final class Sneaked extends RuntimeException {
        private static final long serialVersionUID = 1L;
        final transient IOException cause;

        Sneaked(IOException cause) {
            super(null, cause, false, false);
            this.cause = cause;
        }
    }

    private void serve(TransformStages stages, RecordBatchTransform.Options options) {
        try {
            RecordBatchTransform transform;
            try {
                transform = new RecordBatchTransform(stages, options);
            } catch (RuntimeException exc) {
                refuse(new Refusal("STAGES_UNREADABLE", exc.getClass().getName()));
                return;
            }
            Frame opened = new Frame();
            opened.data.writeByte(OPENED);
            opened.send();
            while (true) {
                int length = readFrame(REQUEST_AT_MOST);
                try {
                    evaluate(transform, length);
                } catch (Refusal refusal) {
                    refuse(refusal);
                } catch (RuntimeException exc) {
                    refuse(new Refusal("ENGINE_ERROR", exc.getClass().getName()));  // its message may have a value
                }
                if (request.length > KEPT_BUFFER) {
                    request = new byte[1 << 16];
                }
            }
        } catch (IOException exc) {
            throw new Sneaked(exc);
        }
    }

    private void evaluate(RecordBatchTransform transform, int length) throws IOException, Refusal {
        ByteBuffer frame = ByteBuffer.wrap(request, 0, length);
        if (frame.get() != EVALUATE) {
            throw new Refusal("PROTOCOL_ERROR", "a request is expected");
        }
        long start = frame.getLong();
        int partition = frame.getInt();
        UTF8String topic = UTF8String.fromBytes(readBytes(frame));
        // The batches begin at the front of an array, so they are moved there: they are as large as the request.
        int size = frame.remaining();
        System.arraycopy(request, frame.position(), request, 0, size);
        transform.evaluate(request, size, start, partition, topic);
        Frame answer = new Frame();
        answer.data.writeByte(ANSWER);
        answer.data.writeByte(transform.reason.ordinal());
        answer.data.writeLong(transform.covers);
        answer.data.writeInt(transform.recordsRead);
        answer.data.writeInt(transform.count);
        answer.data.writeLong(transform.oldest);
        answer.data.writeInt(transform.stretches.size());
        for (long[] stretch : transform.stretches) {
            answer.data.writeLong(stretch[0]);
            answer.data.writeInt((int) stretch[1]);
        }
        answer.data.writeInt(transform.failures.size());
        for (RecordBatchTransform.Failure failure : transform.failures) {
            answer.data.writeLong(failure.offset());
            answer.text(failure.condition());
            answer.text(failure.fragment());
        }
        answer.send(transform.batch(), transform.batchSize);
    }

    private static RecordBatchTransform.Options readOptions(ByteBuffer frame) {
        return new RecordBatchTransform.Options(frame.getLong() * 1_000_000L, frame.getInt(), frame.getInt(),
            frame.getInt(), frame.get() != 0, frame.get() != 0);
    }

    private static Map<String, byte[]> readSecrets(ByteBuffer frame) {
        Map<String, byte[]> secrets = new HashMap<>();
        for (int left = frame.getInt(); left > 0; left--) {
            String name = new String(readBytes(frame), StandardCharsets.UTF_8);
            secrets.put(name, readBytes(frame));
        }
        return secrets;
    }

    private static byte[] readBytes(ByteBuffer frame) {
        int length = frame.getInt();
        if (length < 0 || length > frame.remaining()) {
            throw new IllegalArgumentException();
        }
        byte[] bytes = new byte[length];
        frame.get(bytes);
        return bytes;
    }

    private int readFrame(int most) throws IOException {
        int length = in.readInt();
        if (length < 1 || length > most) {
            refuse(new Refusal("PROTOCOL_ERROR", "a frame has a length of " + length));
            throw new EOFException();
        }
        if (request.length < length) {
            request = new byte[length];
        }
        in.readFully(request, 0, length);
        return length;
    }

    private void refuse(Refusal refusal) throws IOException {
        Frame frame = new Frame();
        frame.data.writeByte(REFUSED);
        frame.text(refusal.code);
        frame.text(refusal.getMessage());
        frame.send();
    }

    /** A frame that is being written. */
    private final class Frame {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        final DataOutputStream data = new DataOutputStream(bytes);

        Frame() throws IOException {
            data.writeInt(0);
        }

        void text(String text) throws IOException {
            byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
            data.writeInt(encoded.length);
            data.write(encoded);
        }

        void send() throws IOException {
            send(new byte[0], 0);
        }

        void send(byte[] more, int length) throws IOException {
            byte[] front = bytes.toByteArray();
            ByteBuffer.wrap(front).putInt(front.length - 4 + length);
            ByteBuffer[] parts = {ByteBuffer.wrap(front), ByteBuffer.wrap(more, 0, length)};
            while (parts[1].hasRemaining() || parts[0].hasRemaining()) {
                channel.write(parts);
            }
        }
    }
}
