package lockstep.transform;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.apache.spark.QueryContext;
import org.apache.spark.QueryContextType;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.MutableProjection;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Record batches in, one dense record batch out, with the source offsets of the records in it.
 *
 * <p>It is used by one thread. After {@code evaluate} its fields hold the answer.
 */
final class RecordBatchTransform {
    static final int HEADER_SIZE = 61;
    private static final int CRC_FROM = 21;
    private static final int LOG_APPEND_TIME = 0x08;
    private static final int CONTROL = 0x20;
    private static final int KEPT_BUFFER = 16 << 20;
    private static final int RECORDS_A_CLOCK = 16;

    /** How the slot wants its answers. */
    record Options(
        long nanosAtMost,
        int batchBytes,
        int unpackedBytes,
        int failuresAtMost,
        boolean passesTombstones,
        boolean leavesTombstones) { }

    /** Why an answer ends before the last record of its request. */
    enum End { WHOLE, BYTES, TIME, FAILURES }

    /** A record without an answer. Nothing in it is from the record but its offset. */
    record Failure(long offset, String condition, String fragment) { }

    private final Options options;
    private final Object[] steps;
    private final RecordCodecs codecs;
    private final GenericInternalRow row = new GenericInternalRow(TransformStages.COLUMNS.size());
    private final CRC32C crc = new CRC32C();
    private final boolean readsKey;
    private final boolean readsValue;
    private final boolean readsHeaders;
    private final boolean readsTimestamp;
    private final boolean readsOthers;
    private final int keyColumn;
    private final int valueColumn;
    private final int headersColumn;
    private final int timestampColumn;
    private final boolean isKeyBinary;
    private final boolean isValueBinary;

    private byte[] records;
    private int at;
    private int end;
    private byte[] out = new byte[1 << 16];
    private int size;
    private int[] ends = new int[1024];
    private long[] offsets = new long[1024];
    private long[] timestamps = new long[1024];

    /** The answer: the batch, in {@code batch()}, is this long; 0: no record is left. */
    int batchSize;
    int count;
    int recordsRead;
    long oldest;
    long covers;
    End reason;
    final List<long[]> stretches = new ArrayList<>();
    final List<Failure> failures = new ArrayList<>();

    RecordBatchTransform(TransformStages stages, Options options) {
        this.options = options;
        this.codecs = new RecordCodecs(options.unpackedBytes);
        steps = new Object[stages.stages.size()];
        DataType[] types = {};
        for (int i = 0; i < steps.length; i++) {
            TransformStages.Stage stage = stages.stages.get(i);
            if (stage.condition != null) {
                BasePredicate predicate = Predicate$.MODULE$.create(stage.condition, Scala.seq(stage.input));
                predicate.initialize(0);
                steps[i] = predicate;
            } else {
                MutableProjection projection =
                    MutableProjection.create(Scala.seq(stage.projection), Scala.seq(stage.input));
                projection.initialize(0);
                steps[i] = projection;
                types = stage.projection.stream().map(expression -> expression.dataType()).toArray(DataType[]::new);
            }
        }
        readsKey = stages.read.contains("key");
        readsValue = stages.read.contains("value");
        readsHeaders = stages.read.contains("headers");
        readsTimestamp = stages.read.contains("timestamp");
        readsOthers = stages.read.stream().anyMatch(List.of("topic", "partition", "offset", "timestampType")::contains);
        keyColumn = stages.written.indexOf("key");
        valueColumn = stages.written.indexOf("value");
        headersColumn = stages.written.indexOf("headers");
        timestampColumn = stages.written.indexOf("timestamp");
        isKeyBinary = keyColumn >= 0 && types[keyColumn] instanceof BinaryType;
        isValueBinary = valueColumn >= 0 && types[valueColumn] instanceof BinaryType;
    }

    byte[] batch() {
        return codecs.compressed;
    }

    /** Evaluates the records of whole batches from offset {@code start} on. */
    void evaluate(byte[] in, int length, long start, int partition, UTF8String topic) throws Refusal, IOException {
        long deadline = System.nanoTime() + options.nanosAtMost;
        begin();
        ByteBuffer batches = ByteBuffer.wrap(in, 0, length);
        int codec = 0;
        int leaderEpoch = -1;
        for (int from = 0; from + HEADER_SIZE <= length && reason == End.WHOLE;) {
            int batchLength = 12 + batches.getInt(from + 8);
            if (batchLength < HEADER_SIZE) {
                throw new Refusal("BATCH_CORRUPT", "a batch is shorter than its header");
            }
            if (from + batchLength > length) {
                break;
            }
            long baseOffset = batches.getLong(from);
            check(batches, in, from, batchLength, baseOffset);
            int attributes = batches.getShort(from + 21);
            long last = baseOffset + batches.getInt(from + 23);
            if ((attributes & CONTROL) == 0 && last >= start) {
                if (count == 0) {
                    codec = attributes & 7;
                    leaderEpoch = batches.getInt(from + 12);
                }
                end = codecs.decompress(in, from + HEADER_SIZE, batchLength - HEADER_SIZE, attributes & 7);
                evaluateRecords(batches, from, attributes, last, start, partition, topic, deadline);
            }
            if (reason == End.WHOLE) {
                covers = last;
            }
            from += batchLength;
        }
        finish(codec, leaderEpoch);
    }

    private void begin() {
        batchSize = 0;
        count = 0;
        recordsRead = 0;
        oldest = -1;
        covers = -1;
        reason = End.WHOLE;
        stretches.clear();
        failures.clear();
        size = 0;
        if (out.length > KEPT_BUFFER) {
            out = new byte[1 << 16];
        }
    }

    private void check(ByteBuffer batches, byte[] in, int from, int batchLength, long baseOffset) throws Refusal {
        if (in[from + 16] != 2) {
            throw new Refusal("BATCH_FORMAT", "the batch at offset " + baseOffset + " has format " + in[from + 16]);
        }
        crc.reset();
        crc.update(in, from + CRC_FROM, batchLength - CRC_FROM);
        if ((int) crc.getValue() != batches.getInt(from + 17)) {
            throw new Refusal("BATCH_CORRUPT", "the checksum of the batch at offset " + baseOffset + " is wrong");
        }
    }

    private void evaluateRecords(ByteBuffer header, int from, int attributes, long lastOffset, long start,
            int partition, UTF8String topic, long deadline) throws Refusal {
        long baseOffset = header.getLong(from);
        long baseTime = header.getLong(from + 27);
        boolean isAppendTime = (attributes & LOG_APPEND_TIME) != 0;
        long appendTime = header.getLong(from + 35);
        int records = header.getInt(from + 57);
        this.records = codecs.records;
        at = 0;
        long previous = baseOffset - 1;
        for (int i = 0; i < records; i++) {
            int length = readLength(end - at);
            int stop = at + length;
            at++;
            long time = baseTime + readNumber();
            if (isAppendTime) {
                time = appendTime;
            }
            long offset = baseOffset + readNumber();
            if (offset <= previous || offset > lastOffset) {
                throw corrupt(baseOffset);
            }
            previous = offset;
            int keyLength = readLength(stop - at);
            int keyFrom = at;
            at += Math.max(keyLength, 0);
            int valueLength = readLength(stop - at);
            int valueFrom = at;
            at += Math.max(valueLength, 0);
            if (length < 0 || at >= stop) {
                throw corrupt(baseOffset);
            }
            int headersFrom = at;
            at = stop;
            if (offset < start) {
                continue;
            }
            recordsRead++;
            int sizeBefore = size;
            try {
                evaluateRecord(offset, time, isAppendTime, partition, topic, keyFrom, keyLength, valueFrom, valueLength,
                    headersFrom, stop);
            } catch (Exception exc) {
                size = sizeBefore;
                failures.add(failure(offset, exc));
                if (failures.size() >= options.failuresAtMost) {
                    reason = End.FAILURES;
                }
            }
            if (size > options.unpackedBytes) {
                reason = End.BYTES;
            } else if (recordsRead % RECORDS_A_CLOCK == 0 && System.nanoTime() > deadline) {
                reason = End.TIME;
            }
            if (reason != End.WHOLE) {
                if (offset == lastOffset && reason == End.TIME) {
                    reason = End.WHOLE;  // the next batch, if there is one, sees the clock again
                    return;
                }
                covers = offset;
                return;
            }
        }
        if (at != end) {
            throw corrupt(baseOffset);
        }
    }

    private void evaluateRecord(long offset, long time, boolean isAppendTime, int partition, UTF8String topic,
            int keyFrom, int keyLength, int valueFrom, int valueLength, int headersFrom, int headersEnd) {
        boolean isTombstone = valueLength < 0;
        if (readsKey) {
            row.update(0, keyLength < 0 ? null : Arrays.copyOfRange(records, keyFrom, keyFrom + keyLength));
        }
        if (readsValue) {
            row.update(1, isTombstone ? null : Arrays.copyOfRange(records, valueFrom, valueFrom + valueLength));
        }
        if (readsOthers) {
            row.update(2, topic);
            row.update(3, partition);
            row.update(4, offset);
            row.update(6, isAppendTime ? 1 : 0);
        }
        if (readsTimestamp) {
            row.update(5, Math.multiplyExact(time, 1000L));
        }
        if (readsHeaders) {
            row.update(7, readHeaders(headersFrom, headersEnd));
        }
        InternalRow made = row;
        boolean isFiltered = false;
        for (Object step : steps) {
            if (step instanceof MutableProjection projection) {
                made = projection.apply(made);
            } else if (!(isTombstone && options.passesTombstones) && !isFiltered
                    && !((BasePredicate) step).eval(made)) {
                if (!options.leavesTombstones || keyLength < 0) {
                    return;
                }
                isFiltered = true;
                if (keyColumn < 0 && headersColumn < 0 && timestampColumn < 0) {
                    break;  // what becomes of its value is not asked, so it cannot fail
                }
            }
        }
        write(made, isTombstone && options.passesTombstones || isFiltered, offset, time, keyFrom, keyLength, valueFrom,
            valueLength, headersFrom, headersEnd);
    }

    private void write(InternalRow made, boolean asTombstone, long offset, long time, int keyFrom, int keyLength,
            int valueFrom, int valueLength, int headersFrom, int headersEnd) {
        byte[] key = keyColumn < 0 ? null : bytes(made, keyColumn, isKeyBinary);
        byte[] value = valueColumn < 0 || asTombstone ? null : bytes(made, valueColumn, isValueBinary);
        int writtenKey = keyColumn < 0 ? keyLength : key == null ? -1 : key.length;
        int writtenValue = asTombstone ? -1 : valueColumn < 0 ? valueLength : value == null ? -1 : value.length;
        byte[] headers = headersColumn < 0 ? null : headerBytes(made);
        int headersSize = headers == null ? headersEnd - headersFrom : headers.length;
        long timestamp = timestampColumn < 0 ? time : timestamp(made);
        long first = count == 0 ? timestamp : timestamps[0];
        long length = 1L + sizeOf(timestamp - first) + sizeOf(count) + sizeOf(writtenKey) + Math.max(writtenKey, 0)
            + sizeOf(writtenValue) + Math.max(writtenValue, 0) + headersSize;
        room(length + 5);
        put(length);
        out[size++] = 0;
        put(timestamp - first);
        put(count);
        put(writtenKey);
        put(key == null ? records : key, key == null ? keyFrom : 0, writtenKey);
        put(writtenValue);
        put(value == null ? records : value, value == null ? valueFrom : 0, writtenValue);
        put(headers == null ? records : headers, headers == null ? headersFrom : 0, headersSize);
        if (count == ends.length) {
            ends = Arrays.copyOf(ends, 2 * count);
            offsets = Arrays.copyOf(offsets, 2 * count);
            timestamps = Arrays.copyOf(timestamps, 2 * count);
        }
        ends[count] = size;
        offsets[count] = offset;
        timestamps[count++] = timestamp;
    }

    private static byte[] bytes(InternalRow made, int column, boolean isBinary) {
        if (made.isNullAt(column)) {
            return null;
        }
        return isBinary ? made.getBinary(column) : made.getUTF8String(column).getBytes();
    }

    private long timestamp(InternalRow made) {
        if (made.isNullAt(timestampColumn)) {
            return -1;
        }
        long milliseconds = Math.floorDiv(made.getLong(timestampColumn), 1000L);
        if (milliseconds < -1) {
            throw new RecordFailure("TIMESTAMP_BEFORE_1970");
        }
        return milliseconds;
    }

    /** The last batches as the slot gets them; halved until they fit, and then {@code covers} less. */
    private void finish(int codec, int leaderEpoch) throws IOException {
        if (count == 0) {
            return;
        }
        int kept = count;
        batchSize = encode(kept, codec, leaderEpoch);
        while (batchSize > options.batchBytes && kept > 1) {
            kept = Math.max(1, (int) Math.min(kept / 2, (long) kept * options.batchBytes / batchSize));
            batchSize = encode(kept, codec, leaderEpoch);
        }
        if (kept < count) {
            long left = offsets[kept];
            covers = left - 1;
            failures.removeIf(failure -> failure.offset > left);
            reason = End.BYTES;
            count = kept;
        }
        for (int i = 0; i < count; i++) {
            long[] stretch = stretches.isEmpty() ? null : stretches.get(stretches.size() - 1);
            if (stretch != null && stretch[0] + stretch[1] == offsets[i]) {
                stretch[1]++;
            } else {
                stretches.add(new long[] {offsets[i], 1});
            }
        }
    }

    private int encode(int kept, int codec, int leaderEpoch) throws IOException {
        int encoded = codecs.compress(out, ends[kept - 1], codec, HEADER_SIZE);
        long newest = Long.MIN_VALUE;
        oldest = Long.MAX_VALUE;
        for (int i = 0; i < kept; i++) {
            oldest = Math.min(oldest, timestamps[i]);
            newest = Math.max(newest, timestamps[i]);
        }
        byte[] made = codecs.compressed;
        ByteBuffer header = ByteBuffer.wrap(made);
        header.putLong(0).putInt(encoded - 12).putInt(leaderEpoch).put((byte) 2).putInt(0).putShort((short) codec);
        header.putInt(kept - 1).putLong(timestamps[0]).putLong(newest);
        header.putLong(-1).putShort((short) -1).putInt(-1).putInt(kept);
        crc.reset();
        crc.update(made, CRC_FROM, encoded - CRC_FROM);
        header.putInt(17, (int) crc.getValue());
        return encoded;
    }

    private ArrayData readHeaders(int from, int to) {
        int kept = at;
        at = from;
        int headers = (int) readNumberOrFail();
        if (headers < 0 || headers > to - at) {
            throw new RecordFailure("HEADERS_CORRUPT");
        }
        Object[] rows = new Object[headers];
        for (int i = 0; i < headers; i++) {
            UTF8String key = UTF8String.fromBytes(readBytes(to));
            rows[i] = new GenericInternalRow(new Object[] {key, readBytes(to)});
        }
        at = kept;
        // As Spark's Kafka source has it.
        return headers == 0 ? null : new GenericArrayData(rows);
    }

    private byte[] readBytes(int to) {
        long length = readNumberOrFail();
        if (length < 0) {
            return null;
        }
        if (length > to - at) {
            throw new RecordFailure("HEADERS_CORRUPT");
        }
        at += (int) length;
        return Arrays.copyOfRange(records, at - (int) length, at);
    }

    private byte[] headerBytes(InternalRow made) {
        if (made.isNullAt(headersColumn)) {
            return new byte[] {0};
        }
        ArrayData headers = made.getArray(headersColumn);
        byte[][][] pairs = new byte[headers.numElements()][2][];
        long length = sizeOf(pairs.length);
        for (int i = 0; i < pairs.length; i++) {
            InternalRow header = headers.isNullAt(i) ? null : headers.getStruct(i, 2);
            if (header == null || header.isNullAt(0)) {
                throw new RecordFailure("HEADER_WITHOUT_KEY");
            }
            pairs[i][0] = header.getUTF8String(0).getBytes();
            pairs[i][1] = header.isNullAt(1) ? null : header.getBinary(1);
            for (byte[] part : pairs[i]) {
                length += part == null ? 1 : sizeOf(part.length) + part.length;
            }
        }
        // Written behind the records and taken off again: the same code counts and writes.
        int before = size;
        room(length);
        put(pairs.length);
        for (byte[][] pair : pairs) {
            for (byte[] part : pair) {
                put(part == null ? -1 : part.length);
                put(part, 0, part == null ? -1 : part.length);
            }
        }
        byte[] encoded = Arrays.copyOfRange(out, before, size);
        size = before;
        return encoded;
    }

    static Failure failure(long offset, Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof RecordFailure failure) {
                return new Failure(offset, failure.condition(), "");
            }
            if (cause instanceof SparkThrowable spark && spark.getCondition() != null) {
                for (QueryContext context : spark.getQueryContext()) {
                    if (context.contextType() == QueryContextType.SQL) {
                        return new Failure(offset, spark.getCondition(), context.fragment());
                    }
                }
                return new Failure(offset, spark.getCondition(), "");
            }
        }
        // Its message may have the value in it.
        return new Failure(offset, thrown.getClass().getName(), "");
    }

    private Refusal corrupt(long baseOffset) {
        return new Refusal("BATCH_CORRUPT", "the records of the batch at offset " + baseOffset + " are damaged");
    }

    private int readLength(int most) throws Refusal {
        long length = readNumber();
        if (length < -1 || length > most) {
            throw new Refusal("BATCH_CORRUPT", "a record has a wrong length");
        }
        return (int) length;
    }

    private long readNumber() throws Refusal {
        long raw = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at >= end) {
                break;
            }
            byte b = records[at++];
            raw |= (long) (b & 0x7F) << shift;
            if (b >= 0) {
                return raw >>> 1 ^ -(raw & 1);
            }
        }
        throw new Refusal("BATCH_CORRUPT", "a record ends early");
    }

    private long readNumberOrFail() {
        try {
            return readNumber();
        } catch (Refusal exc) {
            throw new RecordFailure("HEADERS_CORRUPT");
        }
    }

    private void put(long number) {
        long raw = number << 1 ^ number >> 63;
        while ((raw & ~0x7FL) != 0) {
            out[size++] = (byte) (raw | 0x80);
            raw >>>= 7;
        }
        out[size++] = (byte) raw;
    }

    private void put(byte[] bytes, int from, int length) {
        if (length > 0) {
            System.arraycopy(bytes, from, out, size, length);
            size += length;
        }
    }

    private static int sizeOf(long number) {
        long raw = number << 1 ^ number >> 63;
        return raw == 0 ? 1 : (70 - Long.numberOfLeadingZeros(raw)) / 7;
    }

    private void room(long more) {
        if (out.length - size < more) {
            if (size + more > 1 << 30) {
                throw new RecordFailure("RECORD_TOO_LARGE");
            }
            out = Arrays.copyOf(out, (int) Math.max(size + more, Math.min(2L * out.length, 1 << 30)));
        }
    }
}
