package lockstep.transform;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What {@code json_text}, {@code json_int} and {@code json_has} call for each record. One object serves one
 * connection, so it keeps its scanner.
 */
public final class JsonRead implements Serializable {
    private static final long serialVersionUID = 1L;

    /** What stands for no value, and for null. */
    private static final int NOTHING = -1;

    private final JsonPath path;
    private transient JsonScanner scanner;

    public JsonRead(JsonPath path) {
        this.path = path;
    }

    private boolean find(byte[] value) {
        if (scanner == null) {
            scanner = new JsonScanner();
        }
        scanner.reset(value);
        return scanner.find(path);
    }

    /** Passes the value that was found. Returns its first character; NOTHING for null. */
    private int pass() {
        int kind = scanner.peek();
        scanner.skipValue(null);
        return kind == 'n' ? NOTHING : kind;
    }

    /** The text of a string, or a number, a boolean, an object or an array as it stands; NULL for null and nothing. */
    public UTF8String text(byte[] value) {
        if (!find(value)) {
            return null;
        }
        int from = scanner.at;
        int kind = pass();
        int end = scanner.at;
        if (kind == NOTHING) {
            return null;
        }
        if (kind != '"') {
            return UTF8String.fromBytes(Arrays.copyOfRange(value, from, end));
        }
        if (!scanner.hasEscape()) {
            return UTF8String.fromBytes(Arrays.copyOfRange(value, from + 1, end - 1));
        }
        byte[] plain = new byte[end - from - 2];
        return UTF8String.fromBytes(Arrays.copyOf(plain, scanner.unescape(from + 1, end - 1, plain)));
    }

    /** A whole number of 64 bits; NULL for null and nothing. Fails for everything else. */
    public Long integer(byte[] value) {
        if (!find(value)) {
            return null;
        }
        int from = scanner.at;
        int kind = pass();
        if (kind == NOTHING) {
            return null;
        }
        boolean isNegative = kind == '-';
        int digitAt = isNegative ? from + 1 : from;
        if (scanner.at - digitAt > 19) {
            throw new RecordFailure("JSON_NOT_AN_INTEGER");
        }
        long negative = 0;
        for (; digitAt < scanner.at; digitAt++) {
            int digit = value[digitAt] - '0';
            if (digit < 0 || digit > 9 || negative < (Long.MIN_VALUE + digit) / 10) {
                throw new RecordFailure("JSON_NOT_AN_INTEGER");
            }
            negative = 10 * negative - digit;
        }
        if (!isNegative && negative == Long.MIN_VALUE) {
            throw new RecordFailure("JSON_NOT_AN_INTEGER");
        }
        return isNegative ? negative : -negative;
    }

    /** Whether there is a value at the path; a null is one. */
    public boolean has(byte[] value) {
        return find(value);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof JsonRead read && read.path.equals(path);
    }

    @Override
    public int hashCode() {
        return path.hashCode();
    }

    @Override
    public String toString() {
        return path.toString();
    }
}
