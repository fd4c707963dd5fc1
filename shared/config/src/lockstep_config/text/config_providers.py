"""Config providers, which bring values from elsewhere.

They are Kafka's `${file:PATH:KEY}`, `${env:NAME}` and `${dir:PATH:KEY}`, and Strimzi's
`${secrets:NAMESPACE/NAME:KEY}` and `${configmaps:NAMESPACE/NAME:KEY}`. The providers are known by their class names;
`config.providers` gives them the names used behind `${`. As in Kafka a value may hold several references and text
around them, and what a reference brings in is not looked through again.

Nothing here asks Kubernetes. Secrets and config maps are the files that are mounted of them, under one folder
(`_read_mounted`). So the same file works outside of Kubernetes.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import javaproperties

from lockstep_config.text.config_errors import Problem
from lockstep_config.text.files import read_content
from lockstep_config.text.properties import Entry
from lockstep_config.text.values import BadValue, split_list
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.java_regex.translate import to_python

PROVIDERS_KEY = "config.providers"
KAFKA = "org.apache.kafka.common.config.provider."
STRIMZI = "io.strimzi.kafka."
SECRETS_CLASS = f"{STRIMZI}KubernetesSecretConfigProvider"

GLOB = "*?["
_OF_A_SHELL = re.compile(r"[-=?+]")
"""The text behind the colon of a shell's `${NAME:-default}`."""

SECRETS_VARIABLE = "LOCKSTEP_SECRETS_DIR"
SECRETS_FOLDER = Path("/opt/lockstep/secrets")
"""The folder of secrets if neither `--secrets-dir` nor the environment variable names one."""


STRIMZI_SECRETS = "strimzisecrets"
"""The name under which Strimzi itself has the provider of secrets."""

_USUAL = {
    STRIMZI_SECRETS: SECRETS_CLASS,
    "secrets": SECRETS_CLASS,
    "configmaps": f"{STRIMZI}KubernetesConfigMapConfigProvider",
    "file": f"{KAFKA}FileConfigProvider",
    "dir": f"{KAFKA}DirectoryConfigProvider",
    "env": f"{KAFKA}EnvVarConfigProvider",
    "strimzifile": f"{KAFKA}FileConfigProvider",
    "strimzidir": f"{KAFKA}DirectoryConfigProvider",
    "strimzienv": f"{KAFKA}EnvVarConfigProvider",
}
"""The providers that need no `config.providers` line: in a Strimzi resource, and in a file of settings."""


class Unresolvable(LookupError):
    """A reference has no value. The text is a sentence about it that names no value."""


Read = tuple[str, tuple[Path, ...]]
"""A value, and the files that decide it."""
Provider = Callable[[str, str], Read]
"""A function that reads the value of a key at a path: `provider(path, key)`. It raises `Unresolvable`."""


def _read_properties(allowed: tuple[Path, ...], path: str, key: str) -> Read:
    """Read a value as Kafka's FileConfigProvider, from a properties file in UTF-8.

    Args:
        allowed: The folders in which files may be; empty for any.
        path: The properties file.
        key: The key in it.
    """
    file = _allowed(Path(path), allowed)
    try:
        values: dict[str, str] = javaproperties.loads(_text_in(file))
    except OSError as exc:
        raise Unresolvable(f"{file} cannot be read: {exc.strerror}") from exc
    except javaproperties.InvalidUEscapeError as exc:
        raise Unresolvable(f"{file} is no properties file: it has a malformed Unicode escape") from exc
    if key not in values:
        raise Unresolvable(f"{file} has no key {key!r}")
    return values[key], (file,)


def _read_folder(allowed: tuple[Path, ...], path: str, key: str) -> Read:
    """Read a value as Kafka's DirectoryConfigProvider: the text of a file, line ends included.

    Args:
        allowed: The folders in which files may be; empty for any.
        path: The folder.
        key: The name of the file in it.
    """
    folder = _allowed(Path(path), allowed)
    if not key or Path(key).name != key:
        raise Unresolvable(f"{key!r} is no name of a file in {folder}")
    try:
        return _text_in(folder / key), (folder / key,)
    except OSError as exc:
        raise Unresolvable(f"{folder / key} cannot be read: {exc.strerror}") from exc


def _read_environment(environment: Mapping[str, str], allowed: re.Pattern[str] | None, path: str, key: str) -> Read:
    """Read a value as Kafka's EnvVarConfigProvider: an environment variable whose whole name matches `allowed`."""
    if path:
        raise Unresolvable("an environment variable has no path: write ${NAME_OF_PROVIDER:VARIABLE}")
    if allowed is not None and not allowed.fullmatch(key):
        raise Unresolvable(f"allowlist.pattern does not allow the environment variable {key}")
    if key not in environment:
        raise Unresolvable(f"the environment variable {key} is not set")
    return environment[key], ()


def _read_mounted(folder: Path, path: str, key: str) -> Read:
    """Read a value as Strimzi's providers of secrets and config maps, from mounted files.

    They are KubernetesSecretConfigProvider and KubernetesConfigMapConfigProvider. `path` is the secret's NAME or
    NAMESPACE/NAME. Its files lie in `folder/NAMESPACE/NAME` if that exists, else in `folder/NAME`.

    A key with `*`, `?` or `[` is a glob: the files that match, in the order of their names, one after the other. Line
    ends at the end of a file do not belong to the value, as editors and `kubectl create secret` add them.
    """
    namespace, slash, name = path.rpartition("/")
    for part in (*([namespace] if slash else []), name, key):
        if not part or part.startswith("..") or "\0" in part or Path(part).name != part:
            raise Unresolvable(f"{part!r} is no name of a secret, of a namespace, or of a key in one")
    of_namespace = folder / namespace / name if slash else None
    mount = of_namespace if of_namespace is not None and os.path.isdir(of_namespace) else folder / name
    try:
        if not any(character in key for character in GLOB):
            return _text_in(mount / key).rstrip("\r\n"), (mount / key,)
        # Kubernetes keeps the versions of a mounted secret in folders that begin with two dots.
        names = sorted(file.name for file in mount.iterdir() if not file.name.startswith(".."))
        if matching := [mount / file for file in names if fnmatchcase(file, key)]:
            # The folder too: another file in it would count as well.
            return "\n".join(_text_in(file).rstrip("\r\n") for file in matching), (*matching, mount)
    except OSError as exc:
        raise Unresolvable(_missing(name, key, mount, exc)) from exc
    content = f"it has {', '.join(names)}" if names else "it is empty"
    raise Unresolvable(f"the secret {name!r} has no key that matches {key!r}: looked in {mount}, {content}")


def _missing(name: str, key: str, mount: Path, exc: OSError) -> str:
    if isinstance(exc, FileNotFoundError) and not os.path.isdir(mount):
        return (
            f"there is no secret {name!r} (for its key {key!r}): {mount} is no folder; mount or copy it there, or "
            f"say with --secrets-dir where secrets are"
        )
    if isinstance(exc, FileNotFoundError):
        return f"the secret {name!r} has no key {key!r}: there is no such file in {mount}"
    return f"the key {key!r} of the secret {name!r} cannot be read: {mount / key}: {exc.strerror}"


def secrets_folder(environment: Mapping[str, str]) -> Path:
    """Return the one folder of secrets and config maps: each is a folder in it, with a file for each of its keys."""
    return Path(environment.get(SECRETS_VARIABLE, "").strip() or SECRETS_FOLDER)


def read_providers(
    top: Mapping[str, Entry], file: Path, environment: Mapping[str, str]
) -> tuple[dict[str, Provider], list[Problem]]:
    """Return the providers that `config.providers` names, by name, from the lines at the top of a file."""
    providers: dict[str, Provider] = {}
    problems: list[Problem] = []
    listed = top.get(PROVIDERS_KEY)
    if listed is None:
        return providers, problems
    for name in split_list(listed.value):
        class_key = f"{PROVIDERS_KEY}.{name}.class"
        entry = top.get(class_key)
        if entry is None:
            message = (
                f"names {name!r}, which has no class: add {class_key}={KAFKA}FileConfigProvider, or another of Kafka's"
            )
            problems.append(Problem(listed.file or file, listed.line, listed.shown, message))
            continue
        parameter = f"{PROVIDERS_KEY}.{name}.param."
        parameters = {key.removeprefix(parameter): e.value for key, e in top.items() if key.startswith(parameter)}
        try:
            providers[name] = _provider(entry.value.strip(), parameters, environment)
        except BadValue as exc:
            problems.append(Problem(entry.file or file, entry.line, entry.shown, str(exc)))
    return providers, problems


def resolved(entry: Entry, providers: Mapping[str, Provider], file: Path) -> tuple[Entry, list[Problem]]:
    """Return the entry with every reference replaced; a reference that has no value stays, and is a problem."""
    problems: list[Problem] = []
    read: dict[Path, None] = {}
    referenced = False
    in_jaas = entry.key.endswith("sasl.jaas.config")

    def replaced(reference: str) -> str:
        nonlocal referenced
        name, _, rest = reference[2:-1].partition(":")
        path, _, key = rest.rpartition(":")
        provider = providers.get(name)
        if provider is None:
            providers_text = f"known are {', '.join(providers)}" if providers else "the file has no config.providers"
            usual = f", and config.providers.{name}.class = {_USUAL[name]}" if name in _USUAL else ""
            message = (
                f"{reference} asks for the config provider {name!r}, but {providers_text}: write config.providers = "
                f"{', '.join((*providers, name))}{usual}"
            )
            if _OF_A_SHELL.match(rest):
                message = f"{reference} is a placeholder of a shell that nobody filled: Kafka knows no such default"
            problems.append(Problem(entry.file or file, entry.line, entry.shown, message))
            return reference
        try:
            value, files = provider(path.strip(), key.strip())
        except Unresolvable as exc:
            message = f"{reference} cannot be resolved by the config provider {name!r}: {exc}"
            problems.append(Problem(entry.file or file, entry.line, entry.shown, message))
            return reference
        referenced = True
        read.update(dict.fromkeys(files))
        # A quoted text of a JAAS line cannot have a line end. Certificates may have blanks instead.
        return value.replace("\r", "").replace("\n", " ") if in_jaas else value

    value = "".join(replaced(part) if is_reference else part for part, is_reference in _parts(entry.value))
    return replace(entry, value=value, referenced=referenced, read=(*entry.read, *read)), problems


def _parts(value: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts and the references of a value, in one pass, however long it is.

    A reference is `${NAME:KEY}` or `${NAME:PATH:KEY}`. A path may hold colons; nothing in a reference may hold a `}`.
    """
    text_begin = position = 0
    while (begin := value.find("${", position)) >= 0 and (end := value.find("}", begin)) >= 0:
        name, colon, _ = value[begin + 2 : end].partition(":")
        if colon and name:
            yield value[text_begin:begin], False
            yield value[begin : end + 1], True
            text_begin = position = end + 1
        else:
            position = begin + 2 if colon else end + 1
    yield value[text_begin:], False


def _provider(class_name: str, parameters: Mapping[str, str], environment: Mapping[str, str]) -> Provider:
    paths = tuple(Path(path.strip()) for path in parameters.get("allowed.paths", "").split(",") if path.strip())
    match class_name.removeprefix(KAFKA).removeprefix(STRIMZI):
        case "KubernetesSecretConfigProvider" | "KubernetesConfigMapConfigProvider":
            return partial(_read_mounted, secrets_folder(environment))
        case "FileConfigProvider":
            return partial(_read_properties, paths)
        case "DirectoryConfigProvider":
            return partial(_read_folder, paths)
        case "EnvVarConfigProvider":
            pattern = parameters.get("allowlist.pattern")
            try:
                return partial(_read_environment, environment, re.compile(to_python(pattern)) if pattern else None)
            except UntranslatablePattern as exc:
                raise BadValue(f"has an allowlist.pattern that is no regular expression: {exc}") from exc
    raise BadValue(
        f"is {class_name!r}, which cannot run here: "
        f"known are {KAFKA}FileConfigProvider, {KAFKA}DirectoryConfigProvider, {KAFKA}EnvVarConfigProvider, "
        f"{SECRETS_CLASS} and {STRIMZI}KubernetesConfigMapConfigProvider"
    )


def with_usual_providers(entries: Mapping[str, Entry], used_in: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
    """Return the lines, with declarations in front of the usual providers that they use.

    The lines' own declarations stay as they are.

    Args:
        entries: The lines.
        used_in: The lines whose values are searched for references; None for all.
    """
    listed = entries.get(PROVIDERS_KEY)
    declared = split_list(listed.value) if listed else ()
    values = [entry.value for entry in (entries if used_in is None else used_in).values()]
    used = [name for name in _USUAL if name not in declared and any(f"${{{name}:" in value for value in values)]
    if not used:
        return dict(entries)
    line, written, file = (listed.line, listed.written, listed.file) if listed else (0, "", None)
    return {
        PROVIDERS_KEY: Entry(PROVIDERS_KEY, ", ".join((*declared, *used)), line, written=written, file=file),
        **{
            f"{PROVIDERS_KEY}.{name}.class": Entry(f"{PROVIDERS_KEY}.{name}.class", _USUAL[name], line) for name in used
        },
        **{key: entry for key, entry in entries.items() if key != PROVIDERS_KEY},
    }


def _text_in(file: Path) -> str:
    try:
        return read_content(file).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise Unresolvable(f"{file} is no text in UTF-8") from exc


def _allowed(path: Path, allowed: tuple[Path, ...]) -> Path:
    # Resolved first: a path must not leave an allowed folder by `..` or by a link.
    try:
        inside = not allowed or any(path.resolve().is_relative_to(folder.resolve()) for folder in allowed)
    except (OSError, RuntimeError, ValueError) as exc:
        raise Unresolvable(f"{path} leads nowhere: {exc}") from exc
    if not inside:
        raise Unresolvable(f"{path} is outside of allowed.paths")
    return path
