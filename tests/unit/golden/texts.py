"""Every public format as a text, by the name of the golden file that holds it. A line is one fact; order is that of
names, but where order itself is public."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import click

from lockstep_state.trouble_report import TROUBLES_REPORTED, TroubleReport
from tests.unit.golden import programs, sources
from tests.unit.golden.code import Called, calls, keys_in, texts_like
from tests.unit.golden.examples import STATUS_ROWS, filled

CAMEL_CASE = r"(?:[A-Z][a-z]+){2,}"


def _head(title: str) -> str:
    return f"\n== {title} =="


def _shown(body: object) -> str:
    return json.dumps(body, ensure_ascii=False)


def _as_json(sections: Iterable[tuple[str, object]]) -> Iterator[str]:
    for title, body in sections:
        yield _head(title)
        yield json.dumps(body, ensure_ascii=False, indent=1)


def _bytes(data: bytes | None) -> str:
    return "tombstone" if data is None else repr(data)[1:]


# -- control topics ----------------------------------------------------------------------------------------------------


def keys() -> Iterator[str]:
    """Of a record of each kind. Its value is what its schema says."""
    for name, schema in sources.schemas().items():
        key, _ = sources.record(name.rpartition(".v")[0], filled(schema))
        yield f"{name} {key.decode()}"


def events() -> Iterator[str]:
    """An event of each kind as it lies in the topic, with the names of its detail."""
    for kind, detail in sorted(event_details().items()):
        body = {"kind": kind, "service": "s", "flow": "A->B", "detail": dict.fromkeys(sorted(detail))}
        _, value = sources.record("event", body)
        assert value is not None
        yield value.decode()


def event_details() -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {kind: set() for kind in sources.verbs().values()}
    for call in calls(*sources.EVENT_CALLS):
        for kind in call.args[0] if call.args else ():
            found.setdefault(kind, set()).update(_detail(call))
        if "verb" in call.keywords:  # whoever answers a command
            for kind in (*sources.verbs().values(), "CommandRefused"):
                found.setdefault(kind, set()).update(_detail(call))
    for kind, names in sources.gap_details().items():
        found[kind].update(names)
    report = TroubleReport(service="", instance="", valid_ms=0)
    found[TROUBLES_REPORTED] = set(report.detail())  # written without a lead, so not by the call of the others
    return {kind: names for kind, names in found.items() if re.fullmatch(rf"{CAMEL_CASE}|[A-Z][a-z]+ed", kind)}


def _detail(call: Called) -> set[str]:
    words = {*call.keywords, *call.keys} - sources.NO_DETAIL
    return words | {"reason"} if "cause" in words else words  # `cause_detail` writes both


def commands() -> Iterator[str]:
    """Which service answers what, by which event; a command of each verb about each scope that it is for."""
    yield _head("scopes")
    for scope in sources.scopes():
        partition, owner = sources.placed(scope)
        yield f"{scope}: commands partition {partition}, wanted is {owner}'s"
    for verb, answer in sources.verbs().items():
        yield _head(f"{verb}: {answer}")
        for scope in sources.scopes():
            if services := sources.answering(verb, scope):
                key, value = sources.record("command", {"id": "7", "verb": verb, "subject": scope})
                assert value is not None
                yield f"{' '.join(services)}\n  {key.decode()} {value.decode()}"
    yield _head("details of answers")
    yield from sorted(" ".join(call.keys) for call in calls(*sources.ANSWER_CALLS) if call.keys)


# -- MirrorMaker 2 and names -------------------------------------------------------------------------------------------


def mirror_records() -> Iterator[str]:
    for name, (key, value), *_ in sources.mirror_records():
        yield f"{name}\n  {_bytes(key)}\n  {_bytes(value)}"
    headers, record = sources.quarantined()
    yield f"quarantine\n  {headers.decode()}\n  {_bytes(record)}"


def names() -> Iterator[str]:
    yield _head("topics")
    for name, about in sources.topics():
        yield f"{name} {_shown(about)}" if about else name
    yield _head("consumer groups")
    yield from sources.groups()
    yield _head("transactional ids")
    yield from sources.transactional_ids()
    yield _head("clients")
    for name, about in sources.client_settings():
        yield f"{name} {_shown(about)}"
    yield from sorted(sources.client_id(role) for role in client_roles())
    yield _head("client ids of members of groups")
    yield from (text for call in calls(*sources.MEMBER_CALLS) for text in call.keywords.get("broker_client_id", ()))
    yield _head("metadata of offsets that a legacy flow commits")
    yield sources.committed_metadata()
    yield _head("environment variables")
    yield from sorted(texts_like(r"LOCKSTEP_[A-Z_]+"))


def client_roles() -> set[str]:
    roles = set()
    for call in calls(*sources.ROLE_CALLS):
        roles |= {role for role in (call.args[1] if len(call.args) > 1 else ()) if role}
    return roles


# -- keys of clients ---------------------------------------------------------------------------------------------------


def client_keys() -> Iterator[str]:
    return (" | ".join(key) for key in sources.client_keys())


# -- programs ----------------------------------------------------------------------------------------------------------


def command_line() -> Iterator[str]:
    for name, command in programs.installed().items():
        yield from _command(name, command)


def _command(name: str, command: click.Command) -> Iterator[str]:
    yield _head(name + (" (hidden)" if command.hidden else ""))
    codes = re.findall(r"(?m)(?:^ +|[:,]\s)(\d+) +(?!ms|s\b)[A-Za-z]", f"{command.help or ''}\n{command.epilog or ''}")
    with click.Context(command) as context:
        yield from sorted(_parameter(one, context) for one in command.params if isinstance(one, click.Option))
    yield from (_parameter(one, context) for one in command.params if isinstance(one, click.Argument))
    if codes:
        yield f"exit codes in its help: {' '.join(codes)}"
    if isinstance(command, click.Group):
        for sub, one in sorted(command.commands.items()):
            yield from _command(f"{name} {sub}", one)


def _parameter(one: click.Parameter, context: click.Context) -> str:
    about = one.to_info_dict()
    default = one.get_default(context)
    of_machine = isinstance(one, click.Option) and isinstance(one.show_default, str)  # a host's name, for example
    facts: dict[str, Any] = {
        "takes": about["type"]["name"],
        "metavar": one.make_metavar(context) if isinstance(one, click.Argument) else one.metavar,
        "choices": about["type"].get("choices"),
        "from": about["type"].get("min"),
        "to": about["type"].get("max"),
        "required": about["required"],
        "default": default if isinstance(default, str | int | float) and not of_machine else None,
        "variable": about["envvar"],
        "flag": about.get("is_flag"),
        "multiple": about["multiple"],
        "hidden": about.get("hidden"),
    }
    joined = "".join(
        f" {key}={_shown(value)}" for key, value in facts.items() if value is not None and value is not False
    )
    return f"{', '.join([*one.opts, *one.secondary_opts])}{joined}"


PAUSED = {"kind": "Paused", "detail": {"scope": "flow", "wanted": "paused"}}
REFUSED = {"kind": "CommandRefused", "detail": {"reason": "r"}}
ENTRY = {"partition": {"cluster": "A", "partition": 0, "topic": "t"}, "offset": {"offset": 5}}
RUNS: list[tuple[tuple[str, ...], Mapping[str, Any] | None]] = [
    (("pause", "FILE", "--output", "json"), PAUSED),
    (("pause", "FILE", "--output", "json"), REFUSED),
    (("pause", "FILE", "topic:t", "--output", "json"), None),
    (("pause", "FILE", "--output", "json", "--dry-run"), None),
    (("offsets", "list", "FILE", "--output", "json"), {"kind": "OffsetsListed", "detail": {"offsets": [ENTRY]}}),
    (("offsets", "list", "FILE", "--output", "json"), REFUSED),
    (("offsets", "alter", "FILE", "--topic", "t", "--partition", "0", "--offset", "5", "--dry-run"), None),
    (("offsets", "reset", "FILE", "--output", "json"), {"kind": "OffsetsReset", "detail": {"entries": 1}}),
    (("config", "check", "FILE", "--output", "json"), None),
    (("config", "check", "missing.properties", "--output", "json"), None),
    (("pause", "FILE", "nothing"), None),
    (("run",), None),
]


def outputs() -> Iterator[str]:
    for arguments, answer in RUNS:
        code, text = programs.ran(*arguments, answer=answer)
        yield _head(f"lockstep {' '.join(arguments)}: exit code {code}")
        body = json.loads(text) if text else None
        shown = json.dumps(body, ensure_ascii=False, indent=1)
        for pattern, name in (
            (r'"at_ms": \d{13}', '"at_ms": NOW'),
            (r'"id": "[^"]{36}"', '"id": "ID"'),
            (r'"by": "[^"]+"', '"by": "USER"'),
        ):
            shown = re.sub(pattern, name, shown)
        yield shown
    _, text = programs.ran("config", "show", "FILE", "--output", "json")
    yield _head("lockstep config show FILE --output json: fields")
    yield from _fields(json.loads(text))
    yield from _as_json(programs.outputs(STATUS_ROWS))


def _fields(body: Any) -> Iterator[str]:
    """The paths of all fields, lists as one."""
    return iter(sorted(set(_paths(body, ""))))


def _paths(body: Any, at: str) -> Iterator[str]:
    if isinstance(body, dict):
        for key, value in body.items():
            yield f"{at}.{key}"
            yield from _paths(value, f"{at}.{key}")
    elif isinstance(body, list):
        for value in body:
            yield from _paths(value, f"{at}[]")


def exit_codes() -> Iterator[str]:
    return (f"{code}  {what}" for what, code in programs.exit_codes())


def pages() -> Iterator[str]:
    for asked, answer in programs.pages():
        yield _head(asked)
        yield answer.replace("\r", "").rstrip("\n")
    yield from _as_json((f"/status of {name}", body) for name, body in programs.statuses())
    yield _head("fields of /status, with those that only a service at work has")
    yield from sorted({f"{part} {key}" for part, key in keys_in(*sources.STATUS_FUNCTIONS)})


def logs() -> Iterator[str]:
    """Yield log lines as JSON. Their keys and the form of their time are public, their wording is not."""
    return _as_json(programs.logged())


def spans() -> Iterator[str]:
    yield from _as_json(programs.spans())
    yield _head("rounds")
    yield from sorted({f"{call.part} {name}" for call in calls(*sources.ROUND_CALLS) for name in call.args[0]})
    yield _head("spans and their attributes")
    yield from _named_calls(sources.SPAN_CALLS)
    yield _head("attributes of rounds")
    noted = {f"{call.part} {name}" for call in calls(*sources.NOTE_CALLS) if not call.owner for name in call.keywords}
    yield from sorted(noted)
    yield _head("events of spans alone")
    yield from _named_calls(sources.HAPPENED_CALLS, owned=False)
    yield _head("requests to a cluster")
    yield from sorted({text for c in calls(*sources.ADMIN_CALLS) for text in (c.args[1] if len(c.args) > 1 else ())})


def _named_calls(names: Iterable[str], *, owned: bool = True) -> Iterator[str]:
    """Yield the first text of each call with its keywords; without `owned` of plain functions only."""
    named = [call for call in calls(*names) if call.args and (owned or not call.owner)]
    lines = (f"{text}: {' '.join((*call.keys, *call.keywords))}" for call in named for text in call.args[0])
    return iter(sorted(lines))


FORMATS: Mapping[str, Callable[[], Iterator[str]]] = {
    "keys": keys,
    "events": events,
    "commands": commands,
    "mirror_records": mirror_records,
    "names": names,
    "client_keys": client_keys,
    "command_line": command_line,
    "outputs": outputs,
    "exit_codes": exit_codes,
    "pages": pages,
    "logs": logs,
    "spans": spans,
}


def _text_of(lines: Callable[[], Iterator[str]]) -> Callable[[], str]:
    return lambda: "\n".join(lines()).lstrip("\n") + "\n"


TEXTS: Mapping[str, Callable[[], str]] = {f"{name}.txt": _text_of(lines) for name, lines in FORMATS.items()}
"""By file. Each call looks anew."""
