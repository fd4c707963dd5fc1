"""No decision reads a text: a sentence may be worded anew at any time, and other releases word it otherwise.

A reason has a code for that (`lockstep_state.reasons.reason`). This test finds code that compares, searches or cuts
what is called a reason, a sentence, a trouble or the like: of rows, of the detail of events and answers, of blockers
and of refusals. It also finds code that branches on whether there is a sentence: a cause has to say that.
"""

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.source_modules import source_modules

TEXTS = frozenset({"reason", "why", "sentence", "trouble", "message", "held_reason", "left_alone", "note"})
"""Names of variables and of fields that hold sentences."""
TEXT_FIELDS = TEXTS | {"text", "meaning", "remedy"}
MEMBERS = frozenset({"reason", "text", "sentence", "trouble", "held_reason"})
"""Members of JSON, as of an event's detail, that hold sentences."""
LISTS = frozenset({"reasons", "refusals", "sentences"})
"""Names of what holds several."""
FORMATTERS = frozenset({"format_sentence", "format_blocker", "format_refusal"})
"""Functions that make a sentence."""
ERRORS = frozenset({"exc", "error", "refused", "wrong", "missing", "failed", "yet", "unknown"})
"""Names of caught errors, whose `str` is a sentence."""
FOLLOWS_CAUSE = frozenset({"reason", "held_reason", "left_alone", "trouble", "text", "note"})
"""Fields that hold a sentence. Whether there is one is a decision too."""
CUTS = frozenset(
    {
        *("startswith", "endswith", "find", "rfind", "index", "partition", "rpartition", "split", "rsplit", "count"),
        *("removeprefix", "removesuffix", "match", "search", "fullmatch", "findall", "finditer"),
    }
)
PATTERNS = frozenset({"match", "search", "fullmatch", "findall", "finditer"})

FORMS = "it makes or cuts what is shown"
FOREIGN = "a library says it in words alone, and a sentence or a log line is made of them"
ENUM = "`reason` is an enum there"
TYPED = "it is what a person wrote in a file"
REASON = "it is a `Reason` there"
MEASURED = "the command tried it itself, and the text is what came of that: no row or answer has it"

ALLOWED = {
    "lockstep_kafka.wire.cluster:require_leader": "`trouble` is an error code of Kafka",
    "lockstep_topic_sync.config_sync:_failed": "whether it is another failure than before",
    "lockstep_data_plane.slot.certificate_watch:watch": "whether it was said before",
    "lockstep_runtime.http.server:_renew_certificate": "whether it was said before",
    "lockstep_runtime.telemetry.failure_tracker:record_failure": "whether it is another failure than before",
    "lockstep_ops.switch.switch_check:blocking": ENUM,
    "lockstep_ops.switch.switch_check:way_back_blockers": ENUM,
    "lockstep_ops.switch.switch_check:_is_about": ENUM,
    "lockstep_ops.switch.switch_check:allowance_for": ENUM,
    "lockstep_ops.switch.switch_check:with_obstacles": ENUM,
    "lockstep_rules.switch.switch_sentences:_sentence": ENUM,
    "lockstep_cli.commands.offsets:list_": "it compares events",
    "lockstep_checkpoint.group_view:left_alone": FORMS,
    "lockstep_checkpoint.target_group_sync:_sync_one": REASON,
    "lockstep_topic_sync.mirrored_topics:topic_events": "an event follows, by a rule that has no code",
    "lockstep_ops.command_request:as_lines": FORMS,
    "lockstep_console.api.connect:_ask": "no service was asked then, which has no code",
    "lockstep_ops.doctor.checks.access:_advertised": MEASURED,
    "lockstep_ops.doctor.checks.access:_port": MEASURED,
    "lockstep_ops.doctor.checks.bandwidth:judge_bandwidth": MEASURED,
    "lockstep_ops.doctor.checks.bandwidth:_rate": MEASURED,
    "lockstep_ops.doctor.checks.bandwidth:_read_back": MEASURED,
    "lockstep_ops.doctor.checks.bandwidth:_expected": MEASURED,
    "lockstep_ops.doctor.checks.cluster:judge_cluster": MEASURED,
    "lockstep_ops.doctor.checks.cluster:judge_clock": MEASURED,
    "lockstep_ops.doctor.connection_examination:_read_brokers": MEASURED,
    "lockstep_ops.doctor.connection_examination:examine": MEASURED,
    "lockstep_ops.doctor.rate_meter:_read_clock": MEASURED,
    "lockstep_ops.doctor.rate_meter:_write": MEASURED,
    "lockstep_runtime.membership.flow_runner:_watch_target": FOREIGN,
    "lockstep_cli.rendering.status:_acls": FORMS,
    "lockstep_ops.formatting:without_name": FORMS,
    "lockstep_config.flow.filters:_user_class": FORMS,
    "lockstep_config.resolve.diagnostics:problem": FORMS,
    "lockstep_config.resolve.diagnostics:unknown_key": FORMS,
    "lockstep_state.reasons.reason_code:format_sentence": FORMS,
    "lockstep_config.strimzi.fields:_wrong_form": TYPED,
    "lockstep_kafka.admin.address_probe:_handshake": "`reason` is OpenSSL's name of an error",
    "lockstep_kafka.admin.admin_requests:_trouble": FOREIGN,
    "lockstep_kafka.common.auth_errors:refused_login": FOREIGN,
    "lockstep_kafka.common.auth_errors:explain_unresolved_name": FOREIGN,
    "lockstep_kafka.librdkafka.client_factory:create_client": FOREIGN,
    "lockstep_runtime.membership.faust_membership:_sentence": FOREIGN,
}
"""By `module:function`: why it is no decision by a sentence of ours."""


def is_text(node: ast.AST) -> bool:
    """Return whether an expression is a sentence by its name, also as `str(...)` or `... or ""` of one."""
    match node:
        case ast.Name(id=name):
            return name.strip("_") in TEXTS
        case ast.Attribute(attr=name):
            return name.strip("_") in TEXTS or name in TEXT_FIELDS
        case ast.Subscript(slice=ast.Constant(value=str(member))):
            return member in MEMBERS
        case ast.Subscript(value=value):
            return is_text(value) or is_list(value)
        case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant(value=member), *_]):
            return member in MEMBERS
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in FORMATTERS:
            return True
        case ast.BoolOp(values=values):
            return any(map(is_text, values))
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name in TEXTS | ERRORS
        case ast.Call(func=ast.Attribute(value=value, attr="lower" | "strip" | "upper" | "casefold")):
            return is_text(value)
        case ast.Call(func=ast.Name(id="next"), args=[ast.GeneratorExp(elt=element), *_]):
            return is_text(element)
    return False


def is_list(node: ast.AST) -> bool:
    """Return whether an expression is several sentences by its name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_") in LISTS
    return False


def is_empty(node: ast.AST) -> bool:
    """Return whether it is "" or None: that asks whether there is a text, and not what it says."""
    return isinstance(node, ast.Constant) and node.value in ("", None)


def readings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Return the function and the line of each place that reads a text."""
    for function, variables, node in _within(tree, "", _sentence_variables(tree)):
        if _reads(node) or any(_is_sentence_field(test, variables) for test in _tests(node)):
            yield function, getattr(node, "lineno", 0) or _tests(node)[0].lineno


def _within(tree: ast.AST, function: str, variables: frozenset[str]) -> Iterator[tuple[str, frozenset[str], ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        inner = function, variables
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = node.name, _sentence_variables(node)
        yield *inner, node
        yield from _within(node, *inner)


def _sentence_variables(function: ast.AST) -> frozenset[str]:
    """Return the local variables that get a sentence, from a field or from what makes one."""
    return frozenset(
        node.targets[0].id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and (_is_sentence_field(node.value, frozenset()) or is_text(node.value))
    )


def _tests(node: ast.AST) -> list[ast.expr]:
    """Return the expressions whose truth a node asks for. `or` is not among them: it chooses what is shown."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return [test]
        case ast.comprehension(ifs=ifs):
            return ifs
        case ast.BoolOp(op=ast.And(), values=values):
            return values
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
        case ast.Call(func=ast.Name(id="bool"), args=[value]):
            return [value]
    return []


def _is_sentence_field(node: ast.expr, variables: frozenset[str]) -> bool:
    match node:
        case ast.NamedExpr(value=value):
            return _is_sentence_field(value, variables)
        case ast.BoolOp(values=values):  # `or`: it counts where its truth is asked for
            return any(_is_sentence_field(value, variables) for value in values)
        case ast.Name(id=name):
            return name in variables
        case ast.Attribute(attr=name):
            return name.strip("_") in FOLLOWS_CAUSE
    return False


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [left, *comparators]
            return any(
                isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
                and (is_text(one) or is_text(other) or (isinstance(op, ast.In | ast.NotIn) and is_list(other)))
                and not (is_empty(one) or is_empty(other))
                and not (isinstance(op, ast.Eq | ast.NotEq) and is_text(one) and is_text(other))  # has it changed
                for op, one, other in zip(ops, sides, comparators, strict=False)
            )
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args) if name in CUTS:
            return (is_text(value) and bool(args)) or (name in PATTERNS and any(map(is_text, args)))
    return False


@cache
def places_that_read() -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for module, tree in source_modules():
        for function, line in readings(tree):
            places.setdefault(f"{module}:{function}", []).append(line)
    return places


def test_no_decision_reads_a_text() -> None:
    unexpected = {place: lines for place, lines in places_that_read().items() if place not in ALLOWED}
    assert unexpected == {}, "decide by the code of a `Reason`"


def test_each_place_that_may_read_a_text_still_does() -> None:
    assert ALLOWED.keys() <= places_that_read().keys()


@pytest.mark.parametrize(
    "line",
    [
        "self.reason == GROUP_GONE",
        "why.startswith(TARGET_RECREATED)",
        "'beyond' in row.reason",
        "one.text.endswith(ENDS)",
        "re.search('gone', trouble)",
        "PATTERN.match(str(exc))",
        "row.waiting[0].why in KNOWN",
        "format_sentence(reason) == 'x'",
        "sentence.partition(': ')[2]",
        "(row.reason or '').lower() != 'gone'",
        "event.detail['reason'].startswith('no topic')",
        "'stop it first' in event.detail.get('reason', '')",
        "blocker['text'] == 'the flow has never run'",
        "format_blocker(one).endswith(ENDS)",
        "refusals.format_refusal(refusal) == 'x'",
        "refused.reasons[0] == 'a switch is under way'",
        "'a switch is under way' in plan.refusals",
        "str(refused).split(': ')",
        "next(one.why for one in troubles) == 'gone'",
        "row.found if row.reason else ()",
        "[row for row in rows if row.reason]",
        "row.phase == 'halted' and row.reason",
        "not progress.reason",
        "bool(row.held_reason)",
        "row.phase if row.trouble else ''",
        "[line for line in lines if line.trouble or everything]",
        "not (self.trouble or self.silent)",
        "(text := refusal.text) and stop()",
        "view.synced and not view.left_alone",
        "cause = row.reason; halted = not cause",
        "shown = format_sentence(cause); stop() if shown else None",
    ],
)
def test_reading_of_a_text_is_found(line: str) -> None:
    assert list(readings(ast.parse(line))) == [("", 1)]


@pytest.mark.parametrize(
    "line",
    [
        *("reason.code == 'gone'", "row.reason == ''", "why is not None", "before.reason != after.reason", "f(why)"),
        *("row.reason or 'without a reason'", "row.cause and shown", "refused.reasons"),
        *("event.detail['cause']['code'] == 'gone'", "not row.cause", "len(plan.refusals) == len(kept)"),
    ],
)
def test_reading_of_a_code_is_not_found(line: str) -> None:
    assert list(readings(ast.parse(line))) == []
