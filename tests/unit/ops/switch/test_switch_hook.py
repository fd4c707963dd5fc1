"""Hooks of a switch as real processes, and as calls of a real HTTP server."""

import asyncio
import base64
import json
import shlex
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from lockstep_ops.switch.hook import INHERITED, LAST_WORDS, HookCall, HookFailed, run_hook
from tests.support.ports import free_port

CALL = HookCall("id1", "switchover", "fence", "A->B", "A", "B")
IN_TIME_S = 20.0


def python(program: str) -> str:
    """A command line that runs this program."""
    return shlex.join([sys.executable, "-c", program])


@asynccontextmanager
async def answering(
    status: int = 200, text: str = "", *, after_s: float = 0.0, headers: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[str, list[tuple[web.Request, Any]]]]:
    """The address of a server, and the calls that came with their bodies."""
    calls: list[tuple[web.Request, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        calls.append((request, await request.json()))
        await asyncio.sleep(after_s)
        return web.Response(status=status, text=text, headers=headers)

    app = web.Application()
    app.router.add_post("/switch", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/switch", calls
    finally:
        await runner.cleanup()


# -- what it is given -------------------------------------------------------------------------------------------------


def test_hook_call_as_json_has_every_field() -> None:
    assert CALL.as_json() == {
        "id": "id1",
        "verb": "switchover",
        "hook": "fence",
        "flow": "A->B",
        "source": "A",
        "target": "B",
        "result": "",
    }
    assert json.loads(json.dumps(CALL.as_json())) == CALL.as_json()


def test_hook_call_as_environment_has_the_same() -> None:
    assert CALL.as_environment() == {f"LOCKSTEP_SWITCH_{name.upper()}": text for name, text in CALL.as_json().items()}


async def test_hook_command_gets_its_call_and_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import json, os; "
        "print(json.dumps({k: v for k, v in os.environ.items() if k == 'PATH' or k.startswith('LOCKSTEP_SWITCH_')}))"
    )
    monkeypatch.setenv("PATH", "/of/ours")
    environment = json.loads(await run_hook(python(program), CALL, IN_TIME_S))
    assert environment == {"PATH": "/of/ours", **CALL.as_environment()}


# -- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("pass", "exit code 0"),
        ("print('   ')", "exit code 0"),
        ("print('one'); print('two'); print()", "two"),
        ("import sys; print('to stderr', file=sys.stderr)", "to stderr"),
        (f"print('x' * {LAST_WORDS} + 'end')", "x" * (LAST_WORDS - 3) + "end"),
        ("import sys; sys.stdout.buffer.write(b'\\xff ok')", "\ufffd ok"),
    ],
)
async def test_hook_command_that_succeeds_returns_its_last_line(program: str, words: str) -> None:
    assert await run_hook(python(program), CALL, IN_TIME_S) == words


async def test_hook_command_gets_words_as_a_shell_splits_them_and_no_standard_input() -> None:
    line = python("import sys; print(sys.argv[1:], repr(sys.stdin.read()))") + " one 'two three' \"four\""
    assert await run_hook(line, CALL, IN_TIME_S) == "['one', 'two three', 'four'] ''"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit(1)", r"^hook fence ended with exit code 1$"),
        ("raise SystemExit(2)", r"^hook fence ended with exit code 2$"),
        ("raise SystemExit(127)", r"^hook fence ended with exit code 127$"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
    ],
)
async def test_hook_command_that_does_not_end_with_zero_fails(program: str, words: str) -> None:
    with pytest.raises(HookFailed, match=words):
        await run_hook(python(program), CALL, IN_TIME_S)


async def test_hook_command_is_run_without_a_shell(tmp_path: Path) -> None:
    made = tmp_path / "made"
    assert await run_hook(f"echo a; touch {made}", CALL, IN_TIME_S) == f"a; touch {made}"
    assert not made.exists()


async def test_hook_command_that_fails_repeats_its_last_words() -> None:
    program = f"print('first' + 'x' * {2 * LAST_WORDS}); print('no right'); raise SystemExit(3)"
    with pytest.raises(HookFailed) as failed:
        await run_hook(python(program), CALL, IN_TIME_S)
    said = str(failed.value)
    assert said.startswith("hook fence ended with exit code 3: xxx")
    assert said.endswith("no right")
    assert "first" not in said


async def test_hook_command_over_its_time_is_killed_though_it_ignores_signals(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    program = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    began = time.monotonic()
    with pytest.raises(HookFailed, match=r"did not end within 0\.4 s and was killed"):
        await run_hook(python(program), CALL, 0.4)
    assert time.monotonic() - began < 30
    assert not mark.exists() or not Path(f"/proc/{mark.read_text()}").exists()


async def test_hook_command_is_killed_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    program = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    running = asyncio.create_task(run_hook(python(program), CALL, 60.0))
    while not (mark.exists() and mark.read_text()):
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not Path(f"/proc/{mark.read_text()}").exists()


@pytest.mark.parametrize("line", ["/nowhere/lockstep-hook", "/", "'unclosed", "lockstep-no-such-program --now"])
async def test_hook_command_that_cannot_be_started_fails(line: str) -> None:
    with pytest.raises(HookFailed, match=r"^hook fence cannot be started: "):
        await run_hook(line, CALL, IN_TIME_S)


# -- HTTP -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_hook_address_answered_by_2xx_succeeds(status: int) -> None:
    async with answering(status) as (address, calls):
        assert await run_hook(address, CALL, IN_TIME_S) == f"HTTP {status}"
    assert [body for _, body in calls] == [CALL.as_json()]


async def test_hook_address_gets_a_key_of_its_own_each_step() -> None:
    async with answering() as (address, calls):
        await run_hook(address, CALL, IN_TIME_S)
        await run_hook(address, CALL, IN_TIME_S)
    assert [request.headers["Idempotency-Key"] for request, _ in calls] == ["id1-fence", "id1-fence"]
    assert {request.content_type for request, _ in calls} == {"application/json"}


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 409, 429, 500, 503])
async def test_hook_address_answered_otherwise_fails(status: int) -> None:
    async with answering(status, "" if status == 304 else "not now") as (address, _):
        with pytest.raises(HookFailed, match=f"^hook fence was answered by HTTP {status}: "):
            await run_hook(address, CALL, IN_TIME_S)


async def test_hook_address_that_fails_repeats_its_first_words() -> None:
    async with answering(500, "why" + "x" * 2 * LAST_WORDS) as (address, _):
        with pytest.raises(HookFailed) as failed:
            await run_hook(address, CALL, IN_TIME_S)
    assert str(failed.value) == "hook fence was answered by HTTP 500: why" + "x" * (LAST_WORDS - 3)


async def test_hook_address_over_its_time_fails() -> None:
    async with answering(after_s=2.0) as (address, calls):
        began = time.monotonic()
        with pytest.raises(HookFailed, match=r"^hook fence was not answered within 0\.3 s$"):
            await run_hook(address, CALL, 0.3)
        assert time.monotonic() - began < 1.9
    assert len(calls) == 1


async def test_hook_address_that_does_not_listen_or_hangs_up_fails() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        for port in (free_port(), server.sockets[0].getsockname()[1]):
            with pytest.raises(HookFailed, match=r"^hook fence cannot be reached: "):
                await run_hook(f"http://127.0.0.1:{port}/", CALL, IN_TIME_S)


@pytest.mark.parametrize("address", ["http://", "http://:1", "https:///x"])
async def test_hook_address_without_a_host_fails(address: str) -> None:
    with pytest.raises(HookFailed):
        await run_hook(address, CALL, IN_TIME_S)


async def test_hook_address_of_tls_on_a_plain_port_fails() -> None:
    async with answering() as (address, calls):
        with pytest.raises(HookFailed, match="cannot be reached"):
            await run_hook(address.replace("http://", "https://"), CALL, IN_TIME_S)
    assert calls == []


async def test_hook_command_with_a_child_ends_in_time() -> None:
    program = "import subprocess; subprocess.run(['sleep', '5'])"
    began = time.monotonic()
    with pytest.raises(HookFailed, match="was killed"):
        await run_hook(python(program), CALL, 0.5)
    assert time.monotonic() - began < 3


async def test_hook_command_that_leaves_a_child_succeeds() -> None:
    program = "import subprocess; subprocess.Popen(['sleep', '5']); print('begun')"
    assert await run_hook(python(program), CALL, 3.0) == "begun"


async def test_hook_address_that_redirects_fails() -> None:
    async with answering(302, headers={"Location": "/login"}) as (address, calls):
        with pytest.raises(HookFailed, match="HTTP 302"):
            await run_hook(address, CALL, 5.0)
    assert len(calls) == 1


# -- what it must not show --------------------------------------------------------------------------------------------

TOKEN = "eyJhbGciOi.J9.c2lnbmF0dXJl"


async def test_hook_output_has_no_secret_of_its_line() -> None:
    program = (
        "import sys, base64; t = sys.argv[2].split()[-1]; "
        "print('sent', t, base64.b64encode(('u:' + t).encode()).decode()); sys.exit(3)"
    )
    line = shlex.join([sys.executable, "-c", program, "-H", f"Authorization: Bearer {TOKEN}"])
    with pytest.raises(HookFailed) as raised:
        await run_hook(line, CALL, IN_TIME_S)
    encoded = base64.b64encode(f"u:{TOKEN}".encode()).decode()
    assert "sent ********" in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert encoded[4:-6] not in str(raised.value)


async def test_hook_output_has_no_secret_of_the_configuration_even_at_its_cut() -> None:
    secret = "hunter2hunter2"
    shown = python(f"print({secret!r} + 'x' * {LAST_WORDS - 5}); raise SystemExit(1)")
    with pytest.raises(HookFailed) as raised:
        await run_hook(shown, CALL, IN_TIME_S, [secret])
    assert "ter2" not in str(raised.value), "half a secret is one too"
    assert "hunter2" not in await run_hook(python(f"print('ok', {secret!r})"), CALL, IN_TIME_S, [secret])


async def test_refused_address_shows_no_password() -> None:
    async with answering(500, "no access for admin:hunter2, token=hunter2") as (address, _):
        with pytest.raises(HookFailed) as raised:
            await run_hook(address.replace("http://", "http://admin:hunter2@"), CALL, IN_TIME_S)
    assert "hunter2" not in str(raised.value)
    assert "HTTP 500" in str(raised.value)


async def test_hook_inherits_a_short_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KAFKA_PASSWORD": "p",
        "LOCKSTEP_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "k",
        "LC_ALL": "C",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("https_proxy", "http://proxy:1")
    names = set((await run_hook(python("import os; print(*os.environ)"), CALL, IN_TIME_S)).split())
    own = {name for name in names if name.startswith("LOCKSTEP_SWITCH_")}
    assert len(own) == 7
    assert {"PATH", "LC_ALL", "https_proxy"} <= names
    assert {name for name in names - own - INHERITED if not name.startswith("LC_")} <= {"https_proxy", "PWD"}
