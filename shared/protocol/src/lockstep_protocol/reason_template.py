"""Fill the template of a code with the details of a reason."""

from lockstep_protocol.reason import Reason

TO_GRANT = "; to grant it: "
"""In front of the command that ends a refusal."""


def fill_template(template: str | None, reason: Reason) -> str:
    """Return the sentence of a reason, without a full stop; "" for no reason.

    A detail `text` that the template does not name follows it after a colon, and the command in `grant` ends it. A code
    without a template, or without a value that its template names, is shown as such: another release wrote it.
    """
    if not reason:
        return ""
    if template is not None:
        try:
            sentence = template.format(**dict(reason.details))
        except (KeyError, ValueError):
            pass  # the other release wrote it with other values
        else:
            text, grant = reason.detail("text"), reason.detail("grant")
            sentence = f"{sentence}: {text}" if text and "{text}" not in template else sentence
            return f"{sentence}{TO_GRANT}{grant}" if grant else sentence
    values = ", ".join(f"{name} {value}" for name, value in reason.details)
    return f"{reason.code}, a reason that this release does not know" + (f" ({values})" if values else "")
