package lockstep.transform;

import com.github.luben.zstd.RecyclingBufferPool;
import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdInputStreamNoFinalizer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;
import org.xerial.snappy.Snappy;

/**
 * Kafka's codecs, into and out of buffers that are kept. The streams of the libraries allocate as much for each batch
 * of some records as for megabytes.
 */
final class RecordCodecs {
    static final int NONE = 0;
    static final int GZIP = 1;
    static final int SNAPPY = 2;
    static final int LZ4 = 3;
    static final int ZSTD = 4;

    private static final int KEPT_BUFFER = 16 << 20;
    private static final byte[] XERIAL = {(byte) 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
    private static final int XERIAL_HEADER = 16;
    private static final int SNAPPY_BLOCK = 32 << 10;
    private static final int LZ4_MAGIC = 0x184D2204;
    private static final int LZ4_BLOCK = 64 << 10;
    private static final int LZ4_RAW_BLOCK = 0x80000000;

    private final LZ4SafeDecompressor lz4Decompressor = LZ4Factory.fastestInstance().safeDecompressor();
    private final LZ4Compressor lz4Compressor = LZ4Factory.fastestInstance().fastCompressor();
    private final XXHash32 xxHash = XXHashFactory.fastestInstance().hash32();
    private final int largest;

    /** What the last batch held; valid up to what {@code decompress} returned. */
    byte[] records = new byte[1 << 16];

    /** The last compressed bytes, behind as many bytes as were asked for. */
    byte[] compressed = new byte[1 << 16];

    /** @param largest how many bytes the records of one batch may take, uncompressed */
    RecordCodecs(int largest) {
        this.largest = largest;
    }

    /** Fills {@code records} and returns how many bytes they are. */
    int decompress(byte[] in, int from, int length, int codec) throws Refusal {
        if (records.length > KEPT_BUFFER) {
            records = new byte[1 << 16];
        }
        try {
            return switch (codec) {
                case NONE -> {
                    room(length);
                    System.arraycopy(in, from, records, 0, length);
                    yield length;
                }
                case GZIP -> read(new GZIPInputStream(new ByteArrayInputStream(in, from, length), 1 << 13));
                case SNAPPY -> readSnappy(in, from, length);
                case LZ4 -> readLz4(in, from, length);
                case ZSTD -> read(new ZstdInputStreamNoFinalizer(
                    new ByteArrayInputStream(in, from, length), RecyclingBufferPool.INSTANCE));
                default -> throw new Refusal("BATCH_CORRUPT", "no codec has the number " + codec);
            };
        } catch (IOException | RuntimeException exc) {
            throw new Refusal("BATCH_CORRUPT", "the records cannot be decompressed");
        }
    }

    private void room(int size) throws Refusal {
        if (size > largest || size < 0) {
            throw new Refusal("BATCH_TOO_LARGE", "the records of a batch take more than " + largest + " bytes");
        }
        if (records.length < size) {
            records = Arrays.copyOf(records, (int) Math.min(Math.max(size, 2L * records.length), largest));
        }
    }

    private int read(InputStream stream) throws IOException, Refusal {
        try (stream) {
            int size = 0;
            while (true) {
                room(size + 1);
                int more = stream.read(records, size, records.length - size);
                if (more < 0) {
                    return size;
                }
                size += more;
            }
        }
    }

    private int readSnappy(byte[] in, int from, int length) throws IOException, Refusal {
        boolean isXerial = length >= XERIAL_HEADER
            && Arrays.equals(in, from, from + XERIAL.length, XERIAL, 0, XERIAL.length);
        if (!isXerial) {
            room(Snappy.uncompressedLength(in, from, length));
            return Snappy.uncompress(in, from, length, records, 0);
        }
        ByteBuffer blocks = ByteBuffer.wrap(in, from + XERIAL_HEADER, length - XERIAL_HEADER);
        int size = 0;
        while (blocks.hasRemaining()) {
            int block = blocks.getInt();
            if (block < 0 || block > blocks.remaining()) {
                throw new IOException();
            }
            room(Math.addExact(size, Snappy.uncompressedLength(in, blocks.position(), block)));
            size += Snappy.uncompress(in, blocks.position(), block, records, size);
            blocks.position(blocks.position() + block);
        }
        return size;
    }

    private int readLz4(byte[] in, int from, int length) throws IOException, Refusal {
        ByteBuffer frame = ByteBuffer.wrap(in, from, length).order(ByteOrder.LITTLE_ENDIAN);
        int magic = frame.getInt();
        int flags = frame.get();
        int descriptor = frame.get();
        boolean isIndependent = (flags & 0x20) != 0;
        boolean hasBlockChecksum = (flags & 0x10) != 0;
        boolean hasSize = (flags & 0x08) != 0;
        boolean hasDictionary = (flags & 0x01) != 0;
        if (magic != LZ4_MAGIC || (flags & 0xC0) != 0x40 || !isIndependent || hasDictionary) {
            throw new IOException();  // brokers refuse linked blocks too (KIP-57)
        }
        int blockSize = 1 << 8 + 2 * (descriptor >> 4 & 7);
        frame.position(frame.position() + (hasSize ? 9 : 1));
        int size = 0;
        while (frame.remaining() >= 4) {
            int block = frame.getInt();
            if (block == 0) {
                return size;
            }
            boolean isRaw = (block & LZ4_RAW_BLOCK) != 0;
            int blockLength = block & ~LZ4_RAW_BLOCK;
            if (blockLength > frame.remaining()) {
                throw new IOException();
            }
            if (isRaw) {
                room(Math.addExact(size, blockLength));
                System.arraycopy(in, frame.position(), records, size, blockLength);
                size += blockLength;
            } else {
                room((int) Math.min(Math.addExact(size, blockSize), Math.max(largest, size + 1L)));
                int most = Math.min(blockSize, records.length - size);
                size += lz4Decompressor.decompress(in, frame.position(), blockLength, records, size, most);
            }
            frame.position(frame.position() + blockLength + (hasBlockChecksum ? 4 : 0));
        }
        throw new IOException();
    }

    /** Fills {@code compressed} behind its first {@code front} bytes and returns its end. */
    int compress(byte[] in, int length, int codec, int front) throws IOException {
        if (compressed.length > KEPT_BUFFER) {
            compressed = new byte[1 << 16];
        }
        switch (codec) {
            case GZIP -> {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream(length / 2 + 64);
                try (GZIPOutputStream stream = new GZIPOutputStream(bytes, 1 << 13)) {
                    stream.write(in, 0, length);
                }
                byte[] made = bytes.toByteArray();
                grow(front + made.length);
                System.arraycopy(made, 0, compressed, front, made.length);
                return front + made.length;
            }
            case SNAPPY -> {
                return writeSnappy(in, length, front);
            }
            case LZ4 -> {
                return writeLz4(in, length, front);
            }
            case ZSTD -> {
                int most = (int) Zstd.compressBound(length);
                grow(front + most);
                int level = Zstd.defaultCompressionLevel();
                long size = Zstd.compressByteArray(compressed, front, most, in, 0, length, level);
                if (Zstd.isError(size)) {
                    throw new IOException(Zstd.getErrorName(size));
                }
                return front + (int) size;
            }
            default -> {
                grow(front + length);
                System.arraycopy(in, 0, compressed, front, length);
                return front + length;
            }
        }
    }

    private void grow(int size) {
        if (compressed.length < size) {
            compressed = new byte[(int) Math.max(size, Math.min(2L * compressed.length, 1 << 30))];
        }
    }

    /** As Java's producer writes it, in blocks. */
    private int writeSnappy(byte[] in, int length, int front) throws IOException {
        int blocks = length / SNAPPY_BLOCK + 1;
        grow(front + XERIAL_HEADER + blocks * (4 + Snappy.maxCompressedLength(SNAPPY_BLOCK)));
        ByteBuffer out = ByteBuffer.wrap(compressed);
        out.position(front);
        out.put(XERIAL).putInt(1).putInt(1);
        for (int from = 0; from < length; from += SNAPPY_BLOCK) {
            int size = out.position();
            int block = Snappy.compress(in, from, Math.min(SNAPPY_BLOCK, length - from), compressed, size + 4);
            out.putInt(block);
            out.position(size + 4 + block);
        }
        return out.position();
    }

    /** One frame of independent blocks of 64 KB without checksums, as Java's producer writes it. */
    private int writeLz4(byte[] in, int length, int front) {
        int blocks = length / LZ4_BLOCK + 1;
        grow(front + 11 + blocks * (4 + lz4Compressor.maxCompressedLength(LZ4_BLOCK)));
        ByteBuffer out = ByteBuffer.wrap(compressed).order(ByteOrder.LITTLE_ENDIAN);
        out.position(front);
        out.putInt(LZ4_MAGIC).put((byte) 0x60).put((byte) 0x40);
        out.put((byte) (xxHash.hash(compressed, front + 4, 2, 0) >> 8));
        for (int from = 0; from < length; from += LZ4_BLOCK) {
            int size = Math.min(LZ4_BLOCK, length - from);
            int at = out.position() + 4;
            int block = lz4Compressor.compress(in, from, size, compressed, at, compressed.length - at);
            if (block < size) {
                out.putInt(block);
            } else {
                System.arraycopy(in, from, compressed, at, size);
                block = size;
                out.putInt(block | LZ4_RAW_BLOCK);
            }
            out.position(at + block);
        }
        out.putInt(0);
        return out.position();
    }
}
