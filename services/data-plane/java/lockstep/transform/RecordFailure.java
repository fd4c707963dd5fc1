package lockstep.transform;

/**
 * A record that a function of ours cannot evaluate. It carries no value of the record, so that it may be logged.
 */
public final class RecordFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String condition;

    /** @param condition a name as Spark's error conditions have, such as JSON_MALFORMED */
    public RecordFailure(String condition) {
        // Without a stack trace: a topic full of broken records must not cost a walk of the stack for each.
        super(condition, null, false, false);
        this.condition = condition;
    }

    public String condition() {
        return condition;
    }
}
