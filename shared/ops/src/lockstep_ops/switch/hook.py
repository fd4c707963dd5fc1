"""Runs the hooks of a switch: a command, or an HTTP call, of the operator's."""

import asyncio
import os
import shlex
import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from lockstep_config.text.secrets import SecretMask, shown_credentials

LAST_WORDS = 400
"""Characters of a failed hook's output that the message repeats."""


INHERITED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "KUBECONFIG"),
        *("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)
"""The variables that a hook inherits, with `LC_*` and those of proxies. All others may hold Lockstep's secrets."""
_PROXIES = frozenset({"http_proxy", "https_proxy", "no_proxy", "all_proxy"})


class HookFailed(Exception):
    """The hook did not do its work. The message is a sentence with its last words."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """The data that a hook gets. A command gets it as environment variables, an address as JSON."""

    id: str
    verb: str
    hook: str
    flow: str
    source: str
    target: str
    result: str = ""
    """The result, for the hook `after` only: `done` | `aborted`."""

    def as_environment(self) -> dict[str, str]:
        """Return the fields as environment variables: `LOCKSTEP_SWITCH_ID`, `..._VERB`, `..._HOOK` and so on."""
        return {f"LOCKSTEP_SWITCH_{name.upper()}": value for name, value in self.as_json().items()}

    def as_json(self) -> dict[str, str]:
        """Return the fields by name."""
        names = ("id", "verb", "hook", "flow", "source", "target", "result")
        return {name: str(getattr(self, name)) for name in names}


def _hook_environment(environment: Mapping[str, str], call: HookCall) -> dict[str, str]:
    """Return the variables that a hook's command gets: the short list of `INHERITED`, and the call's own."""
    inherited = {
        name: value
        for name, value in environment.items()
        if name in INHERITED or name.startswith("LC_") or name.lower() in _PROXIES
    }
    return {**inherited, **call.as_environment()}


async def run_hook(line: str, call: HookCall, within_s: float, secrets: Iterable[str] = ()) -> str:
    """Run a command line, or POST to an address that begins with http.

    It may run twice, if the switch is killed meanwhile. What it wrote is returned and raised without the secrets of its
    own line, and without `secrets`.

    Args:
        line: The command line or address.
        call: The data for the hook.
        within_s: The seconds that it may take. After them the command and its children are killed.
        secrets: Texts that are not shown.

    Returns:
        Its last line, or the answer's status.

    Raises:
        HookFailed: It does not end in time, ends with another exit code than 0, or cannot be started. Or it is
            answered by another status than 2xx; redirects count as such.
    """
    mask = SecretMask((*shown_credentials(line), *secrets)).mask
    if line.startswith(("http://", "https://")):
        return await _post(line, call, within_s, mask)
    return await _run(line, call, within_s, mask)


async def _run(line: str, call: HookCall, within_s: float, mask: Callable[[str], str]) -> str:
    # A file, not a pipe: what the command leaves running may keep a pipe open.
    with tempfile.TemporaryFile() as output:
        try:
            program, *arguments = shlex.split(line)
            process = await asyncio.create_subprocess_exec(
                program,
                *arguments,
                env=_hook_environment(os.environ, call),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            raise HookFailed(f"hook {call.hook} cannot be started: {mask(str(exc))}") from exc
        try:
            await asyncio.wait_for(process.wait(), within_s)
        except TimeoutError:
            raise HookFailed(f"hook {call.hook} did not end within {within_s:g} s and was killed") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        output.seek(0)
        words = mask(output.read().decode(errors="replace").strip())
    if process.returncode:
        said = f": {words[-LAST_WORDS:]}" if words else ""
        raise HookFailed(f"hook {call.hook} ended with exit code {process.returncode}{said}")
    return words.splitlines()[-1][-LAST_WORDS:] if words else "exit code 0"


async def _post(address: str, call: HookCall, within_s: float, mask: Callable[[str], str]) -> str:
    from aiohttp import ClientError, ClientSession, ClientTimeout

    headers: Mapping[str, str] = {"Idempotency-Key": f"{call.id}-{call.hook}"}
    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=within_s)) as session,
            session.post(address, json=call.as_json(), headers=headers, allow_redirects=False) as answer,
        ):
            words = mask((await answer.text(errors="replace")).strip())
            if not 200 <= answer.status < 300:
                raise HookFailed(f"hook {call.hook} was answered by HTTP {answer.status}: {words[:LAST_WORDS]}")
            return f"HTTP {answer.status}"
    except TimeoutError:
        raise HookFailed(f"hook {call.hook} was not answered within {within_s:g} s") from None
    except ClientError as exc:
        raise HookFailed(f"hook {call.hook} cannot be reached: {mask(str(exc))}") from exc
