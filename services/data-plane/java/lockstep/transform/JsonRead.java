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

    private final JsonPath path;
    private transient JsonScanner scanner;

    public JsonRead(JsonPath path) {
        this.path = path;
    }

    private JsonScanner find(byte[] value) {
        if (scanner == null) {
            scanner = new JsonScanner();
        }
        scanner.reset(value);
        return scanner.find(path) ? scanner : null;
    }

    /** The text of a string, or a number, a boolean, an object or an array as it stands; NULL for null and nothing. */
    public UTF8String text(byte[] value) {
        JsonScanner found = find(value);
        if (found == null) {
            return null;
        }
        int from = found.at;
        int kind = found.peek();
        found.skipValue(null);
        if (kind == 'n') {
            return null;
        }
        if (kind != '"') {
            return UTF8String.fromBytes(Arrays.copyOfRange(value, from, found.at));
        }
        if (!found.hasEscape()) {
            return UTF8String.fromBytes(Arrays.copyOfRange(value, from + 1, found.at - 1));
        }
        byte[] plain = new byte[found.at - from - 2];
        return UTF8String.fromBytes(Arrays.copyOf(plain, found.unescape(from + 1, found.at - 1, plain)));
    }

    /** A whole number of 64 bits; NULL for null and nothing. Fails for everything else. */
    public Long integer(byte[] value) {
        JsonScanner found = find(value);
        if (found == null) {
            return null;
        }
        int from = found.at;
        int kind = found.peek();
        found.skipValue(null);
        if (kind == 'n') {
            return null;
        }
        boolean isNegative = kind == '-';
        int at = isNegative ? from + 1 : from;
        if (found.at - at > 19) {
            throw new RecordFailure("JSON_NOT_AN_INTEGER");
        }
        long negative = 0;
        for (; at < found.at; at++) {
            int digit = value[at] - '0';
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
        return find(value) != null;
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
