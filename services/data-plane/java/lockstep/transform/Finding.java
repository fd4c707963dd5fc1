package lockstep.transform;

/**
 * What is wrong with a statement, as a value.
 *
 * @param code what it is, such as COLUMN_UNKNOWN
 * @param line the line in the statement, from 1; 0: nowhere in particular
 * @param column the character in the line, from 1
 * @param fragment the part of the statement that is meant
 * @param message a sentence
 * @param condition Spark's error condition; "": Spark accepts it
 * @param suggestion what may have been meant, or what to write instead
 */
public record Finding(String code, int line, int column, String fragment, String message, String condition,
    String suggestion) { }
