"""The reader of a configuration file: mm2.properties or a Strimzi resource.

It is read, resolved and checked. The result is a `Configuration`, or one `ConfigurationError` with all its mistakes.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product
from pathlib import Path

from lockstep_config.clients.cloud_login import missing_library
from lockstep_config.clients.librdkafka import uses_sasl, uses_tls
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.tls import read_tls, ssl_context
from lockstep_config.flow.cross_checks import check_shared_topics
from lockstep_config.flow.flows import find_flows, flow_settings, read_cluster, with_shared_acls
from lockstep_config.flow.log_settings import log_settings
from lockstep_config.flow.mm1_flow import check_legacy_groups
from lockstep_config.flow.model import Configuration, FlowSettings
from lockstep_config.flow.provenance import with_provenance
from lockstep_config.flow.related_flows import note_merges, with_opposites, with_siblings
from lockstep_config.keys.client_keys import Untranslatable
from lockstep_config.keys.connector_keys import CONNECTORS
from lockstep_config.keys.lockstep_keys import UNKNOWN_KEYS
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.loader.settings_file import SETTINGS_VARIABLE, UNKNOWN_VARIABLE, with_settings
from lockstep_config.loader.standalone import without_external_files
from lockstep_config.loader.statement_files import with_statement
from lockstep_config.report.ineffective_lines import remark_on_lines
from lockstep_config.report.one_cluster import check_addresses
from lockstep_config.report.replication_cycles import check_cycles
from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import ALIAS, Cell, read_cells
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.own_classes import own_classes
from lockstep_config.resolve.precedence import SIDES, Layers, Side
from lockstep_config.resolve.validate import check_line
from lockstep_config.resolve.value_typos import find_typo
from lockstep_config.strimzi.recognised import is_connector, is_resource
from lockstep_config.text.config_errors import ConfigurationError, Problem
from lockstep_config.text.config_providers import read_providers, resolved
from lockstep_config.text.files import read_content
from lockstep_config.text.properties import Entry, PropertiesText, read_properties
from lockstep_config.text.sources import config_sources
from lockstep_config.text.templates import find_template
from lockstep_config.text.values import split_list

_ALIAS_SEPARATORS = re.compile(r"[\s;|/]+")
"""The separators that people write between aliases in place of a comma."""
MOST_CLUSTERS = 100
"""The most clusters of one file. Each two of them are a flow, at least of heartbeats."""
_UNREADABLE: Mapping[type[OSError], str] = {
    FileNotFoundError: "there is no such file: name the configuration file to use",
    IsADirectoryError: "is a folder: name the configuration file in it "
    "(connectors: cat FOLDER/*.json > connectors.json)",
    PermissionError: "may not be read by this user: change its permissions or its owner",
}


def load(path: Path, environment: Mapping[str, str]) -> Configuration:
    """Read a file: mm2.properties, or YAML with one of Strimzi's resources.

    Nothing is taken from outside but `environment` and the files that the file names.

    Args:
        path: The file.
        environment: The variables that `${env:...}` may name. LOCKSTEP_SECRETS_DIR names the folder of secrets
            (`config_providers.secrets_folder`), LOCKSTEP_SETTINGS a file of settings on top (`settings_file`).

    Raises:
        ConfigurationError: The file has mistakes. Every mistake that could be found is named, with its line and what
            to do.
    """
    return build_configuration(read(path, environment), path, environment)


def read(path: Path, environment: Mapping[str, str], document: str = "") -> PropertiesText:
    """Return the lines of a file, or those that a resource means, with the settings of the environment on top.

    Mistakes in the lines are in the result.

    Args:
        path: The file.
        environment: Names the file of settings.
        document: The name of the resource that is meant, if the file has several.

    Raises:
        ConfigurationError: A file cannot be read at all.
    """
    return with_overrides(_read(path, document), environment)


def with_overrides(text: PropertiesText, environment: Mapping[str, str]) -> PropertiesText:
    """Return the lines with those of the settings file on top, if the environment names one.

    Raises:
        ConfigurationError: The settings file cannot be read.
    """
    named = environment.get(SETTINGS_VARIABLE, "").strip()
    if not named or (text.problems and not text.entries):  # an unreadable file is the only problem reported
        return text
    file = Path(named)
    return with_settings(text, read_properties(read_config_file(file), file), file)


def _read(path: Path, document: str) -> PropertiesText:
    data = read_config_file(path)
    text = _read_form(data, path, document)
    if (template := find_template(data, path, unreadable=bool(text.problems))) is not None:
        raise ConfigurationError([template])
    return text


def _read_form(data: bytes, path: Path, document: str) -> PropertiesText:
    text = None if is_resource(data, path) else read_properties(data, path)
    if text is not None and not is_connector(text.entries):
        return text
    # Imported here because it loads PyYAML, which most files do not need.
    from lockstep_config.strimzi.resource import read_connector, read_resource

    return read_resource(data, path, document) if text is None else read_connector(text, path)


def build_configuration(
    text: PropertiesText, path: Path, environment: Mapping[str, str], *, alone: bool = False
) -> Configuration:
    """Resolve and check lines that were read already, from any form.

    Args:
        text: The lines.
        path: The place of a mistake without a line.
        environment: The variables that references may name.
        alone: Read no other file, and leave out the lines that depend on one. That is for reporting mistakes, not for
            running.

    Raises:
        ConfigurationError: As `load`.
    """
    return build_with_layers(text, path, environment, alone=alone)[0]


def build_with_layers(
    text: PropertiesText, path: Path, environment: Mapping[str, str], *, alone: bool = False
) -> tuple[Configuration, Layers]:
    """Build a configuration as `build_configuration`, and return its lines too, by where they belong."""
    text, outside = without_external_files(text, path) if alone else (text, frozenset[str]())
    findings = Diagnostics(path, [*text.problems, *_find_lacking(text)], list(text.unused), list(text.notes))
    if findings.problems and not text.entries:
        raise ConfigurationError(findings.problems)
    entries = _resolved(text.entries, environment, findings)
    aliases, stated = _aliases(entries, findings)
    cells = read_cells(entries, aliases)
    layers = precedence.sort_layers(cells)
    classes = own_classes(layers)
    findings.stated = frozenset(entry.key for entry in entries)
    findings.unknown_keys = _unknown_keys(layers, environment)
    unresolved = {problem.key for problem in findings.problems if problem.line}
    for cell in cells:
        if cell.entry.shown not in unresolved:  # else the reference itself would be judged
            check_line(cell, aliases, findings, classes)
    if stated:
        _check_bootstrap(layers, aliases, findings)

    # A line that is wrong by itself does not take part in the checks of several lines. So one call finds both kinds.
    # An option of a command has no line, but a file of its own.
    reported = {problem.key for problem in findings.problems if problem.line or problem.file != path}
    wrong = {entry.key for entry in entries if entry.shown in reported} | outside
    sound = precedence.sort_layers(cell for cell in cells if cell.entry.key not in wrong)
    flows = tuple(flow_settings(sound, flow, findings) for flow in find_flows(sound, aliases))
    flows = with_shared_acls(with_siblings(with_opposites(flows)))
    flows = with_provenance(sound, flows, tuple(aliases), findings)
    note_merges(sound, flows, findings)
    check_cycles(sound, flows, findings)
    if stated:
        check_addresses(sound, aliases, flows, findings)
    check_shared_topics(sound, flows, findings)
    check_legacy_groups(flows, findings, sound)
    if not findings.problems and not alone:
        _check_certificates(sound, flows, findings)
    problems = [problem for problem in findings.problems if problem.file != path or not _is_echo(problem, wrong)]
    if problems:
        remarks = (_in_order(findings.notes), _in_order(findings.unused))
        raise ConfigurationError(dict.fromkeys(problems), *remarks, findings.refused_keys)
    log = log_settings(sound, environment, findings)
    remark_on_lines(sound, flows, findings)
    configuration = Configuration(
        path=path,
        clusters={alias: read_cluster(sound, alias) for alias in aliases},
        flows=flows,
        unused=_in_order(findings.unused),
        notes=_in_order(findings.notes),
        log=log,
        sources=config_sources(path, entries),
    )
    return configuration, layers


def _find_lacking(text: PropertiesText) -> list[Problem]:
    keys = {entry.key for entry in text.entries}
    # A worker's keys are allowed at the top too.
    return [lack for lack in text.lacking if keys.isdisjoint((lack.key, lack.key.partition(".")[2]))]


def _unknown_keys(layers: Layers, environment: Mapping[str, str]) -> str:
    """Return `error` or `warn` for unknown keys, or an empty text if neither is stated.

    The command's option goes before the file. A word that is no level is reported with its line.
    """
    option = environment.get(UNKNOWN_VARIABLE, "").strip().lower()
    if option:
        return option if option in KEYS[UNKNOWN_KEYS].choices else ""
    cell = layers.top.get(UNKNOWN_KEYS)
    return cell.value or "" if cell else ""


def read_config_file(path: Path) -> bytes:
    """Read a file of the configuration.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    try:
        return read_content(path)
    except OSError as exc:
        message = _UNREADABLE.get(type(exc), f"cannot be read: {exc.strerror}")
        raise ConfigurationError([Problem(path, 0, "", message)]) from exc


def _resolved(entries: Sequence[Entry], environment: Mapping[str, str], findings: Diagnostics) -> tuple[Entry, ...]:
    providers, problems = read_providers({entry.key: entry for entry in entries}, findings.file, environment)
    findings.problems += problems
    result = []
    for entry in entries:
        settled, problems = resolved(entry, providers, findings.file)
        if not problems:
            settled, problems = with_statement(settled, findings.file)
        findings.problems += problems
        result.append(settled)
    return tuple(result)


def _aliases(entries: Sequence[Entry], findings: Diagnostics) -> tuple[tuple[str, ...], bool]:
    """Return the file's clusters, and whether it states them.

    If it does not, the clusters are those that its lines suggest, so that these lines can be judged.
    """
    listed = next((entry for entry in entries if entry.key == "clusters"), None)
    suggested = tuple(
        dict.fromkeys(e.key.removesuffix(".bootstrap.servers") for e in entries if e.key.endswith(".bootstrap.servers"))
    )
    for_example = ", ".join(suggested) if len(suggested) > 1 else "A, B"
    if listed is None:
        message = f"is missing: list the clusters' aliases, for example clusters = {for_example}"
        findings.problem("clusters", message + _another_file({entry.key for entry in entries}, suggested))
        return suggested, False
    if any(problem.line and problem.key == listed.shown for problem in findings.problems):
        return suggested, False  # the reference itself would be judged
    aliases = split_list(listed.value)
    if not aliases:
        findings.problem(listed, f"is empty: list the clusters' aliases, for example clusters = {for_example}")
        return suggested, False
    if len(aliases) > MOST_CLUSTERS:
        findings.problem(listed, f"names {len(aliases)} clusters: one file takes {MOST_CLUSTERS}; use several")
        return (), False
    if len(aliases) == 1 and ALIAS.fullmatch(aliases[0]):
        findings.problem(listed, f"names only {aliases[0]!r}: a flow needs two clusters")
    for alias in aliases:
        if not ALIAS.fullmatch(alias):
            typo = find_typo(alias)
            words = _ALIAS_SEPARATORS.split(alias)
            if not typo and len(words) > 1 and set(words) <= set(suggested):
                typo = f"aliases are separated by commas: write {', '.join(words)}"
            message = f"has the alias {alias!r}: an alias may hold letters, digits, '_' and '-' only"
            findings.problem(listed, f"{message}; {typo}" if typo else message)
    return (suggested, False) if len(aliases) == 1 and not ALIAS.fullmatch(aliases[0]) else (aliases, True)


def _another_file(keys: Set[str], aliases: Sequence[str]) -> str:
    """Return what to do with a properties file that is another program's; empty if it may be MirrorMaker 2's."""
    if aliases or "bootstrap.servers" not in keys:
        return ""
    if "offset.storage.topic" in keys or "offset.storage.file.filename" in keys:
        return "; this is the file of a Kafka Connect worker: name the file of its connector"
    return "; MirrorMaker 1's files are for lockstep legacy --consumer.config FILE --producer.config FILE"


def _check_bootstrap(layers: Layers, aliases: Sequence[str], findings: Diagnostics) -> None:
    for alias in aliases:
        # A refused alias cannot have lines of its own either. One sentence about it is enough.
        if ALIAS.fullmatch(alias) and "bootstrap.servers" not in precedence.connection(layers, alias):
            message = f"is missing: say where cluster {alias} is, HOST:PORT, several between commas"
            findings.problem(f"{alias}.bootstrap.servers", message)


def _check_certificates(layers: Layers, flows: Iterable[FlowSettings], findings: Diagnostics) -> None:
    """Load every client's certificates once: a wrong path or password shows now, not when a broker is reached."""
    checked: set[frozenset[tuple[str, str]]] = set()
    for settings in flows:
        for side, client, properties in _clients(settings):
            connection = frozenset((k, v) for k, v in properties.items() if k.startswith(("ssl.", "sasl.")))
            if not (uses_tls(properties) or uses_sasl(properties)) or connection in checked:
                continue
            checked.add(connection)
            alias = settings.flow.source if side == "source" else settings.flow.target
            if uses_tls(properties):
                lines = (layers.cluster_lines(alias), layers.flow_lines(settings.flow), layers.top)
                _check_certificate(properties, alias, f"{alias} ({client})", lines, findings)
            if uses_sasl(properties):
                _check_token_endpoint(properties, alias, findings)


def _clients(settings: FlowSettings) -> Iterator[tuple[Side, str, Mapping[str, str]]]:
    """Yield the side, the name and the properties of each client of the connectors that run."""
    others = {"checkpoint": settings.checkpoint.enabled, "heartbeat": settings.heartbeat.enabled}
    every = [settings, *(settings.as_seen_by(name) for name in CONNECTORS if others.get(name))]
    for connector, side in product(every, SIDES):
        for name, properties in connector.clients.of_side(side).items():
            yield side, name.removeprefix(f"{side}_").replace("_", " "), properties


def _check_certificate(
    properties: Mapping[str, str], alias: str, client: str, lines: Iterable[Mapping[str, Cell]], findings: Diagnostics
) -> None:
    every = [(f".{key}", cell.entry) for layer in lines for key, cell in layer.items()]
    missing = False
    for key in ("ssl.truststore.location", "ssl.keystore.location"):
        value = properties.get(key, "")
        file = Path(value.strip() or ".")
        if key in properties and not os.path.isfile(file):  # pathlib raises for a name that is too long
            missing = True
            stated = (entry for name, entry in every if name.endswith(f".{key}") and entry.value == value)
            findings.problem(next(stated, f"{alias}.{key}"), f"names {file}, which is no file that can be read")
    if missing:
        return
    try:
        ssl_context(read_tls(properties))
    except (OSError, Untranslatable) as exc:
        message = f"the certificates or the private key for {client} do not serve: {exc}"
        findings.problem(f"{alias}.ssl", message)


def _check_token_endpoint(properties: Mapping[str, str], alias: str, findings: Diagnostics) -> None:
    tokens = read_login(properties).tokens
    if tokens is not None and tokens.cloud is not None and (missing := missing_library(tokens.cloud)) is not None:
        findings.problem(f"{alias}.sasl.mechanism", missing)
    if tokens is not None and tokens.endpoint is not None:
        try:
            ssl_context(tokens.tls)
        except OSError as exc:
            message = f"the certificates for the token endpoint of {alias} do not serve: {exc}"
            findings.problem(f"{alias}.sasl", message)


def _is_echo(problem: Problem, wrong: Iterable[str]) -> bool:
    """Return whether a key is missing only because its line is wrong and was left out."""
    alias, _, name = problem.key.partition(".")
    return not problem.line and any(
        key in (problem.key, name)
        or (problem.key and f"{problem.key}." in key)  # a transform whose statement is wrong
        or (key.endswith(f".{name}") and (key.startswith(f"{alias}.") or "->" in key))
        for key in wrong
    )


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems)))
