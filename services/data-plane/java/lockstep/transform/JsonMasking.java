package lockstep.transform;

import java.io.Serializable;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How {@code json_mask} replaces a value: {@code remove}, {@code mask}, {@code truncate(4)}, {@code hash_salted},
 * {@code tokenise}. The last two take a secret, which is named in brackets: {@code tokenise(key)}.
 */
public final class JsonMasking implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final Pattern FORM = Pattern.compile("([a-z_]+)(?:\\(([A-Za-z0-9._-]{1,64})\\))?");

    /** The secret of a masking that names none. */
    static final String DEFAULT_SECRET = "salt";

    enum Kind { REMOVE, MASK, TRUNCATE, HASH_SALTED, TOKENISE }

    final Kind kind;

    /** The name of the secret; null: none is needed. */
    final String secret;

    final int length;

    private JsonMasking(Kind kind, String secret, int length) {
        this.kind = kind;
        this.secret = secret;
        this.length = length;
    }

    /**
     * Reads a masking.
     *
     * @throws IllegalArgumentException if it is none; the message says which there are
     */
    public static JsonMasking parse(String text) {
        Matcher form = FORM.matcher(text.strip());
        if (form.matches()) {
            String argument = form.group(2);
            switch (form.group(1)) {
                case "remove", "mask" -> {
                    if (argument == null) {
                        return new JsonMasking(Kind.valueOf(form.group(1).toUpperCase(Locale.ROOT)), null, 0);
                    }
                }
                case "truncate" -> {
                    if (argument != null && argument.matches("[0-9]{1,6}")) {
                        return new JsonMasking(Kind.TRUNCATE, null, Integer.parseInt(argument));
                    }
                }
                case "hash_salted", "tokenise" -> {
                    String secret = argument == null ? DEFAULT_SECRET : argument;
                    return new JsonMasking(Kind.valueOf(form.group(1).toUpperCase(Locale.ROOT)), secret, 0);
                }
                default -> { }
            }
        }
        throw new IllegalArgumentException(
            "a masking is remove, mask, truncate(4), hash_salted or tokenise, the last two with a secret's name if it "
            + "is not salt: hash_salted(other)");
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof JsonMasking masking && masking.toString().equals(toString());
    }

    @Override
    public int hashCode() {
        return toString().hashCode();
    }

    @Override
    public String toString() {
        String argument = secret != null ? secret : kind == Kind.TRUNCATE ? Integer.toString(length) : null;
        return kind.name().toLowerCase(Locale.ROOT) + (argument == null ? "" : "(" + argument + ")");
    }
}
