package lockstep.transform;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;

/** The lists that come with the jar: one name a line. */
final class NameList {
    static final Set<String> ALLOWED_FUNCTIONS = read("functions-allowed.txt");
    static final Set<String> REFUSED_FUNCTIONS = read("functions-refused.txt");
    static final Set<String> ALLOWED_EXPRESSIONS = read("expressions-allowed.txt");

    private NameList() { }

    static Set<String> read(String resource) {
        try (InputStream in = NameList.class.getResourceAsStream(resource);
                BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.US_ASCII))) {
            Set<String> names = new TreeSet<>();
            lines.lines().filter(line -> !line.isBlank()).forEach(names::add);
            return names;
        } catch (IOException exc) {
            throw new UncheckedIOException(exc);
        }
    }

    /** The name in a list that is most like this one; "": none is. */
    static String closest(String name, Set<String> names) {
        String closest = "";
        int least = Math.max(2, name.length() / 3) + 1;
        for (String candidate : names) {
            int distance = distance(name, candidate);
            if (distance < least) {
                least = distance;
                closest = candidate;
            }
        }
        return closest;
    }

    private static int distance(String a, String b) {
        int[] earlier = new int[b.length() + 1];
        int[] before = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            before[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int[] row = new int[b.length() + 1];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = before[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                row[j] = Math.min(replaced, Math.min(before[j], row[j - 1]) + 1);
                if (i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1)) {
                    row[j] = Math.min(row[j], earlier[j - 2] + 1);  // two letters are exchanged
                }
            }
            earlier = before;
            before = row;
        }
        return before[b.length()];
    }
}
