package lockstep.transform;

/** A request that is answered with a code, not with records. */
final class Refusal extends Exception {
    private static final long serialVersionUID = 1L;

    final String code;

    Refusal(String code, String message) {
        super(message, null, false, false);
        this.code = code;
    }
}
