package lockstep.transform;

import java.util.Arrays;

/**
 * Reads a JSON document once, byte by byte, without making objects of it.
 *
 * <p>What it passes over is checked against RFC 8259, except that strings may hold control characters and bytes that
 * are no UTF-8, as some producers write them: the structure is the same for every reader. Nothing recurses but the
 * steps of a path, so nesting takes bits, not stack.
 */
class JsonScanner {
    /** The deepest nesting. Jackson, which most consumers use, refuses a deeper one too. */
    static final int MAX_DEPTH = 1000;

    /** Receives each scalar of a value. It has to move {@code at} to the scalar's end. */
    interface Scalars {
        void scalar();
    }

    private final long[] objects = new long[MAX_DEPTH / 64 + 1];
    private byte[] unescaped = new byte[64];
    private boolean hasEscape;

    byte[] json;
    int at;
    private int end;

    void reset(byte[] document) {
        json = document;
        at = 0;
        end = document.length;
        skipSpace();
    }

    RecordFailure malformed() {
        return new RecordFailure("JSON_MALFORMED");
    }

    int peek() {
        if (at >= end) {
            throw malformed();
        }
        return json[at];
    }

    void skipSpace() {
        while (at < end && (json[at] == ' ' || json[at] == '\n' || json[at] == '\r' || json[at] == '\t')) {
            at++;
        }
    }

    /** Fails unless nothing is left but space: a second document behind the first would be read by some consumers. */
    void expectEnd() {
        skipSpace();
        if (at != end) {
            throw malformed();
        }
    }

    /** Moves to the first value at the path, in the order of the document; of equal names the first one counts. */
    boolean find(JsonPath path) {
        return find(path, 0);
    }

    private boolean find(JsonPath path, int step) {
        if (step == path.length()) {
            return true;
        }
        byte[] name = path.name(step);
        if (name != null) {
            if (peek() != '{' || isEmptyContainer('}')) {
                return false;
            }
            while (true) {
                if (isNextName(name)) {
                    return find(path, step + 1);
                }
                skipValue(null);
                if (!isFollowed('}')) {
                    return false;
                }
            }
        }
        if (peek() != '[' || isEmptyContainer(']')) {
            return false;
        }
        int index = path.index(step);
        for (int element = 0;; element++) {
            int start = at;
            if (index == element || index == JsonPath.EVERY) {
                boolean isFound = find(path, step + 1);
                if (isFound || index == element) {
                    return isFound;
                }
                at = start;
            }
            skipValue(null);
            if (!isFollowed(']')) {
                return false;
            }
        }
    }

    /** Enters an object or an array; returns true, behind it, if it has nothing in it. */
    boolean isEmptyContainer(int close) {
        at++;
        skipSpace();
        if (peek() != close) {
            return false;
        }
        at++;
        return true;
    }

    /** Moves behind what separates a value from the next; returns false, behind the container, if it was the last. */
    boolean isFollowed(int close) {
        skipSpace();
        int c = peek();
        at++;
        if (c == close) {
            return false;
        }
        if (c != ',') {
            throw malformed();
        }
        skipSpace();
        return true;
    }

    /** Moves behind a name and its colon; returns whether it is this one, however it is escaped. */
    boolean isNextName(byte[] name) {
        if (peek() != '"') {
            throw malformed();
        }
        int from = at + 1;
        skipString();
        int to = at - 1;
        boolean isEqual;
        if (hasEscape) {
            byte[] plain = scratch(to - from);
            isEqual = Arrays.equals(plain, 0, unescape(from, to, plain), name, 0, name.length);
        } else {
            isEqual = to - from == name.length && Arrays.equals(json, from, to, name, 0, name.length);
        }
        skipColon();
        return isEqual;
    }

    private void skipColon() {
        skipSpace();
        if (peek() != ':') {
            throw malformed();
        }
        at++;
        skipSpace();
    }

    byte[] scratch(int size) {
        if (unescaped.length < size) {
            unescaped = new byte[Math.max(size, 2 * unescaped.length)];
        }
        return unescaped;
    }

    /** Moves behind a value; each scalar in it is given to {@code scalars}, unless that is null. */
    void skipValue(Scalars scalars) {
        int depth = 0;
        while (true) {
            int c = peek();
            boolean isObject = c == '{';
            if (isObject || c == '[') {
                if (depth == MAX_DEPTH) {
                    throw new RecordFailure("JSON_TOO_DEEP");
                }
                if (!isEmptyContainer(isObject ? '}' : ']')) {
                    if (isObject) {
                        objects[depth >> 6] |= 1L << depth;
                        skipName();
                    } else {
                        objects[depth >> 6] &= ~(1L << depth);
                    }
                    depth++;
                    continue;
                }
            } else if (scalars != null) {
                scalars.scalar();
            } else {
                skipScalar();
            }
            while (true) {
                if (depth == 0) {
                    return;
                }
                boolean isIn = (objects[depth - 1 >> 6] >> depth - 1 & 1) != 0;
                if (isFollowed(isIn ? '}' : ']')) {
                    if (isIn) {
                        skipName();
                    }
                    break;
                }
                depth--;
            }
        }
    }

    private void skipName() {
        if (peek() != '"') {
            throw malformed();
        }
        skipString();
        skipColon();
    }

    /** Moves behind a string, a number, true, false or null. */
    void skipScalar() {
        switch (peek()) {
            case '"' -> skipString();
            case 't' -> skipWord("true");
            case 'f' -> skipWord("false");
            case 'n' -> skipWord("null");
            default -> skipNumber();
        }
    }

    private void skipWord(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (peek() != word.charAt(i)) {
                throw malformed();
            }
            at++;
        }
    }

    private void skipNumber() {
        if (json[at] == '-') {
            at++;
        }
        if (peek() == '0') {
            at++;
        } else {
            skipDigits();
        }
        if (at < end && json[at] == '.') {
            at++;
            skipDigits();
        }
        if (at < end && (json[at] == 'e' || json[at] == 'E')) {
            at++;
            if (peek() == '+' || peek() == '-') {
                at++;
            }
            skipDigits();
        }
    }

    private void skipDigits() {
        int from = at;
        while (at < end && json[at] >= '0' && json[at] <= '9') {
            at++;
        }
        if (at == from) {
            throw malformed();
        }
    }

    void skipString() {
        byte[] bytes = json;
        int i = at + 1;
        boolean escape = false;
        while (i < end) {
            byte c = bytes[i++];
            if (c == '"') {
                at = i;
                hasEscape = escape;
                return;
            }
            if (c == '\\') {
                escape = true;
                if (i == end) {
                    break;
                }
                c = bytes[i++];
                if (c == 'u') {
                    hex(i);
                    i += 4;
                } else if ("\"\\/bfnrt".indexOf(c) < 0) {
                    throw malformed();
                }
            }
        }
        throw malformed();
    }

    /** Whether the string behind which the scanner stands has an escape. */
    boolean hasEscape() {
        return hasEscape;
    }

    private int hex(int from) {
        if (from + 4 > end) {
            throw malformed();
        }
        int unit = 0;
        for (int i = from; i < from + 4; i++) {
            int digit = json[i] < 0 ? -1 : Character.digit(json[i], 16);
            if (digit < 0) {
                throw malformed();
            }
            unit = unit << 4 | digit;
        }
        return unit;
    }

    /**
     * Writes what is between the quotes of a checked string without its escapes, as UTF-8; returns how many bytes.
     * It is never longer than what was written.
     */
    int unescape(int from, int to, byte[] out) {
        int size = 0;
        for (int i = from; i < to;) {
            byte c = json[i++];
            if (c != '\\') {
                out[size++] = c;
                continue;
            }
            c = json[i++];
            switch (c) {
                case 'b' -> out[size++] = '\b';
                case 'f' -> out[size++] = '\f';
                case 'n' -> out[size++] = '\n';
                case 'r' -> out[size++] = '\r';
                case 't' -> out[size++] = '\t';
                case 'u' -> {
                    int point = hex(i);
                    i += 4;
                    boolean isPair = Character.isHighSurrogate((char) point) && i + 6 <= to && json[i] == '\\'
                        && json[i + 1] == 'u' && Character.isLowSurrogate((char) hex(i + 2));
                    if (isPair) {
                        point = Character.toCodePoint((char) point, (char) hex(i + 2));
                        i += 6;
                    } else if (point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE) {
                        point = 0xFFFD;
                    }
                    size = encode(point, out, size);
                }
                default -> out[size++] = c;
            }
        }
        return size;
    }

    private static int encode(int point, byte[] out, int at) {
        int size = at;
        if (point < 0x80) {
            out[size++] = (byte) point;
        } else if (point < 0x800) {
            out[size++] = (byte) (0xC0 | point >> 6);
            out[size++] = (byte) (0x80 | point & 0x3F);
        } else if (point < 0x10000) {
            out[size++] = (byte) (0xE0 | point >> 12);
            out[size++] = (byte) (0x80 | point >> 6 & 0x3F);
            out[size++] = (byte) (0x80 | point & 0x3F);
        } else {
            out[size++] = (byte) (0xF0 | point >> 18);
            out[size++] = (byte) (0x80 | point >> 12 & 0x3F);
            out[size++] = (byte) (0x80 | point >> 6 & 0x3F);
            out[size++] = (byte) (0x80 | point & 0x3F);
        }
        return size;
    }
}
