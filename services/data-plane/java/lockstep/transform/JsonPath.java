package lockstep.transform;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A path into a JSON document: {@code $.customer.name}, {@code $.items[0].price}, {@code $.items[*].id},
 * {@code $['a name']}.
 */
public final class JsonPath implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int MAX_STEPS = 64;

    /** The index of the step {@code [*]}. */
    static final int EVERY = -1;

    private final String text;
    private final byte[][] names;
    private final int[] indexes;

    private JsonPath(String text, List<byte[]> names, List<Integer> indexes) {
        this.text = text;
        this.names = names.toArray(byte[][]::new);
        this.indexes = indexes.stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * Reads a path.
     *
     * @throws IllegalArgumentException if it is none; the message says what is wrong and at which character
     */
    public static JsonPath parse(String text) {
        if (!text.startsWith("$")) {
            throw new IllegalArgumentException("a path begins with $");
        }
        List<byte[]> names = new ArrayList<>();
        List<Integer> indexes = new ArrayList<>();
        int at = 1;
        while (at < text.length()) {
            int end;
            if (text.charAt(at) == '.') {
                end = at + 1;
                while (end < text.length() && text.charAt(end) != '.' && text.charAt(end) != '[') {
                    end++;
                }
                String name = text.substring(at + 1, end);
                if (name.isEmpty() || name.chars().anyMatch(c -> c <= ' ' || "]'\"*".indexOf(c) >= 0)) {
                    throw wrong("a name is expected behind the dot (others are written ['a name'])", at);
                }
                names.add(name.getBytes(StandardCharsets.UTF_8));
                indexes.add(0);
            } else if (text.startsWith("['", at)) {
                StringBuilder name = new StringBuilder();
                end = at + 2;
                while (end < text.length() && text.charAt(end) != '\'') {
                    if (text.charAt(end) == '\\') {
                        end++;
                    }
                    if (end < text.length()) {
                        name.append(text.charAt(end++));
                    }
                }
                if (!text.startsWith("']", end)) {
                    throw wrong("the name has no end", at);
                }
                end += 2;
                names.add(name.toString().getBytes(StandardCharsets.UTF_8));
                indexes.add(0);
            } else if (text.charAt(at) == '[') {
                end = text.indexOf(']', at);
                String index = end < 0 ? "" : text.substring(at + 1, end);
                if (!index.equals("*") && !index.matches("[0-9]{1,9}")) {
                    throw wrong("an index is a number or *", at);
                }
                end++;
                names.add(null);
                indexes.add(index.equals("*") ? EVERY : Integer.parseInt(index));
            } else {
                throw wrong("a dot or a bracket is expected", at);
            }
            at = end;
        }
        if (names.size() > MAX_STEPS) {
            throw new IllegalArgumentException("a path has at most " + MAX_STEPS + " steps");
        }
        return new JsonPath(text, names, indexes);
    }

    private static IllegalArgumentException wrong(String what, int at) {
        return new IllegalArgumentException(what + ", at character " + (at + 1));
    }

    int length() {
        return names.length;
    }

    /** Returns the name of an object's member as UTF-8; null: the step is an index. */
    byte[] name(int step) {
        return names[step];
    }

    int index(int step) {
        return indexes[step];
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof JsonPath path && path.text.equals(text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }

    @Override
    public String toString() {
        return text;
    }
}
