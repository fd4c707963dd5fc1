package lockstep.transform;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * What {@code json_mask} calls for each record: the value with what is at the path replaced, and every other byte as it
 * was. All occurrences of equal names are replaced. A document that is not JSON to its end fails.
 *
 * <p>At an object or an array each scalar in it is replaced. A null stays null. One object serves one connection.
 */
public final class JsonMask implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final byte[] HEX = "0123456789abcdef".getBytes();
    private static final byte[] STARS = "\"***\"".getBytes();
    private static final byte[] FALSE = "false".getBytes();
    private static final byte[] ZERO = "0".getBytes();
    private static final int KEPT_BUFFER = 1 << 20;

    private final JsonPath path;
    private final JsonMasking masking;
    private transient Mac mac;
    private transient JsonScanner scanner;
    private transient JsonScanner.Scalars replacing;
    private transient byte[] out;
    private transient int size;
    private transient int copied;

    public JsonMask(JsonPath path, JsonMasking masking) {
        this.path = path;
        this.masking = masking;
    }

    /** Returns the name of the secret that it needs; null: none. */
    String secret() {
        return masking.secret;
    }

    /** Takes its secret from those that the slot has sent; the statement has only the name. */
    void bind(Map<String, byte[]> secrets) throws GeneralSecurityException {
        if (masking.secret != null) {
            mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secrets.get(masking.secret), "HmacSHA256"));
        }
    }

    /** Returns the masked document, which is the given array if nothing in it is at the path. */
    public byte[] apply(byte[] value) {
        if (scanner == null) {
            scanner = new JsonScanner();
            replacing = this::replace;
        }
        if (masking.secret != null && mac == null) {
            throw new RecordFailure("SECRET_MISSING");
        }
        if (out == null || out.length > KEPT_BUFFER) {
            out = new byte[4096];
        }
        size = 0;
        copied = 0;
        scanner.reset(value);
        walk(0);
        scanner.expectEnd();
        if (copied == 0) {
            return value;
        }
        copyUntil(value.length);
        return Arrays.copyOf(out, size);
    }

    private void walk(int step) {
        if (step == path.length()) {
            scanner.skipValue(replacing);
            return;
        }
        byte[] name = path.name(step);
        int open = name != null ? '{' : '[';
        int close = name != null ? '}' : ']';
        if (scanner.peek() != open) {
            scanner.skipValue(null);
            return;
        }
        if (scanner.isEmptyContainer(close)) {
            return;
        }
        boolean removes = masking.kind == JsonMasking.Kind.REMOVE && step == path.length() - 1;
        int keptEnd = -1;
        for (int element = 0;; element++) {
            int start = scanner.at;
            boolean isMeant = name != null ? scanner.isNextName(name)
                : path.index(step) == element || path.index(step) == JsonPath.EVERY;
            if (isMeant && !removes) {
                walk(step + 1);
            } else {
                scanner.skipValue(null);
            }
            int valueEnd = scanner.at;
            boolean isFollowed = scanner.isFollowed(close);
            if (isMeant && removes) {
                // With the comma before it, or, for the first ones, the comma behind it.
                copyUntil(keptEnd < 0 ? start : keptEnd);
                copied = keptEnd < 0 && isFollowed ? scanner.at : valueEnd;
            } else {
                keptEnd = valueEnd;
            }
            if (!isFollowed) {
                return;
            }
        }
    }

    private void replace() {
        int from = scanner.at;
        int kind = scanner.peek();
        scanner.skipScalar();
        int to = scanner.at;
        if (kind == 'n') {
            return;
        }
        switch (masking.kind) {
            case MASK -> {
                copyUntil(from);
                put(kind == '"' ? STARS : kind == 't' || kind == 'f' ? FALSE : ZERO);
                copied = to;
            }
            case TRUNCATE -> truncate(kind, from, to);
            case HASH_SALTED -> {
                copyUntil(from);
                byte[] hash = digest(kind, from, to);
                put('"');
                for (byte b : hash) {
                    put(HEX[b >> 4 & 15]);
                    put(HEX[b & 15]);
                }
                put('"');
                copied = to;
            }
            case TOKENISE -> tokenise(kind, from, to);
            default -> throw new IllegalStateException(masking.toString());
        }
    }

    private byte[] digest(int kind, int from, int to) {
        if (kind != '"') {
            mac.update(scanner.json, from, to - from);
        } else if (!scanner.hasEscape()) {
            mac.update(scanner.json, from + 1, to - from - 2);
        } else {
            byte[] plain = scanner.scratch(to - from);
            mac.update(plain, 0, scanner.unescape(from + 1, to - 1, plain));
        }
        return mac.doFinal();
    }

    /** Keeps the first characters, as they are written. Of a number or a boolean a string is left. */
    private void truncate(int kind, int from, int to) {
        byte[] json = scanner.json;
        boolean isString = kind == '"';
        int at = isString ? from + 1 : from;
        int last = isString ? to - 1 : to;
        int begin = at;
        for (int kept = 0; kept < masking.length && at < last; kept++) {
            at = characterEnd(json, at, last);
        }
        if (at == last) {
            return;
        }
        copyUntil(from);
        put('"');
        for (int i = begin; i < at; i++) {
            put(json[i]);
        }
        put('"');
        copied = to;
    }

    private static int characterEnd(byte[] json, int from, int last) {
        if (json[from] == '\\') {
            if (json[from + 1] != 'u') {
                return from + 2;
            }
            int end = from + 6;
            boolean isPair = isSurrogate(json, from, "89abAB") && end + 6 <= last && json[end] == '\\'
                && json[end + 1] == 'u' && isSurrogate(json, end, "cdefCDEF");
            return isPair ? end + 6 : end;
        }
        int end = from + 1;
        if (json[from] < 0) {
            while (end < last && (json[end] & 0xC0) == 0x80) {
                end++;
            }
        }
        return end;
    }

    private static boolean isSurrogate(byte[] json, int escape, String thirds) {
        return (json[escape + 2] | 0x20) == 'd' && thirds.indexOf(json[escape + 3]) >= 0;
    }

    /**
     * Replaces letters by letters, digits by digits, and every character that is not ASCII by a letter. Spaces and
     * punctuation stay, so that the result has the form of what it stands for. A number stays a number, and a boolean
     * becomes false.
     */
    private void tokenise(int kind, int from, int to) {
        copyUntil(from);
        if (kind == 't' || kind == 'f') {
            put(FALSE);
            copied = to;
            return;
        }
        byte[] source = scanner.json;
        int at = from;
        int last = to;
        if (kind == '"') {
            put('"');
            at = from + 1;
            last = to - 1;
            if (scanner.hasEscape()) {
                source = Arrays.copyOf(scanner.scratch(to - from), to - from);
                last = scanner.unescape(from + 1, to - 1, source);
                at = 0;
            }
        }
        int begin = at;
        int end = last;
        byte[] stream = mac.doFinal(concatenated(0, source, begin, end));
        int used = 0;
        int blocks = 1;
        boolean isExponent = false;
        for (; at < end; at++) {
            byte c = source[at];
            if ((c & 0xC0) == 0x80 && at > begin && source[at - 1] < 0) {
                continue;  // within a character, whose first byte has become a letter
            }
            isExponent |= kind != '"' && (c == 'e' || c == 'E');
            if (used == stream.length) {
                stream = mac.doFinal(concatenated(blocks++, source, begin, end));
                used = 0;
            }
            int random = stream[used] & 0xFF;
            if (isExponent) {
                put(c);
            } else if (c >= '0' && c <= '9') {
                // A number of several digits begins with none that is zero.
                boolean isFirst = kind != '"' && (at == begin || at == begin + 1 && source[begin] == '-');
                put('0' + (isFirst ? c == '0' ? 0 : 1 + random % 9 : random % 10));
                used++;
            } else if (c >= 'A' && c <= 'Z') {
                put('A' + random % 26);
                used++;
            } else if (c >= 'a' && c <= 'z' || c < 0) {
                put('a' + random % 26);
                used++;
            } else if (c == '"' || c == '\\') {
                put('\\');
                put(c);
            } else if (c < ' ') {
                put(' ');
            } else {
                put(c);
            }
        }
        if (kind == '"') {
            put('"');
        }
        copied = to;
    }

    private static byte[] concatenated(int block, byte[] source, int from, int to) {
        return ByteBuffer.allocate(4 + to - from).putInt(block).put(source, from, to - from).array();
    }

    private void copyUntil(int end) {
        if (end > copied) {
            room(end - copied);
            System.arraycopy(scanner.json, copied, out, size, end - copied);
            size += end - copied;
        }
    }

    private void put(int c) {
        room(1);
        out[size++] = (byte) c;
    }

    private void put(byte[] bytes) {
        room(bytes.length);
        System.arraycopy(bytes, 0, out, size, bytes.length);
        size += bytes.length;
    }

    private void room(int more) {
        if (out.length - size < more) {
            out = Arrays.copyOf(out, Math.max(Math.addExact(size, more), (int) Math.min(2L * out.length, 1 << 30)));
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof JsonMask mask && mask.path.equals(path) && mask.masking.equals(masking);
    }

    @Override
    public int hashCode() {
        return 31 * path.hashCode() + masking.hashCode();
    }

    @Override
    public String toString() {
        return path + " " + masking;
    }
}
