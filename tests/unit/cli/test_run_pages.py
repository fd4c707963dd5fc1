"""One address for the pages of all services, over real sockets."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lockstep_cli.processes.merged_metrics import merge_metrics
from lockstep_cli.processes.run import _open_pages
from lockstep_cli.processes.run_pages import RunPages
from lockstep_ops.exit_codes import CannotUse
from lockstep_runtime.http.access import AccessPolicy
from tests.support.pages import certificate, got, served

SERVICES = ("data-plane", "heartbeat")


@asynccontextmanager
async def opened(access: AccessPolicy, **addresses: str) -> AsyncIterator[tuple[str, RunPages]]:
    pages = RunPages(SERVICES)
    address = await pages.open(access)
    for service, place in addresses.items():
        pages.place(service.replace("_", "-"), place)
    try:
        yield address, pages
    finally:
        await pages.close()


def test_merged_metrics_have_each_family_once_and_each_service() -> None:
    head = "# HELP lockstep_lag Records\n# TYPE lockstep_lag gauge\n"
    merged = merge_metrics(
        {
            "a": head + 'lockstep_lag{topic="x"} 1.0\n# HELP up Up\n# TYPE up gauge\nup 1.0\n',
            "b": head + 'lockstep_lag{topic="x"} 2.0\nlockstep_lag{service="own",topic="{"} 3.0\n',
            "c": head + 'lockstep_lag{topic=",service=\\"no"} 4.0\nlockstep_lag{} 5.0\n',
        }
    )
    assert merged == (
        head + 'lockstep_lag{service="a",topic="x"} 1.0\nlockstep_lag{service="b",topic="x"} 2.0\n'
        'lockstep_lag{service="own",topic="{"} 3.0\nlockstep_lag{service="c",topic=",service=\\"no"} 4.0\n'
        'lockstep_lag{service="c"} 5.0\n# HELP up Up\n# TYPE up gauge\nup{service="a"} 1.0\n'
    )


async def test_run_pages_show_those_of_every_service() -> None:
    async with (
        served(AccessPolicy(), why_not=None) as data_plane,
        served(AccessPolicy()) as heartbeat,
        opened(AccessPolicy(), data_plane=data_plane, heartbeat=heartbeat) as (address, pages),
    ):
        listed = (await got(address, "/"))[1].split()
        assert listed[:5] == ["/live", "/ready", "/status", "/metrics", "/data-plane/live"]
        assert await got(address, "/live") == (200, "live\n")
        assert await got(address, "/data-plane/ready") == (200, "ready\n")
        assert await got(address, "/ready") == (503, "heartbeat: not read yet: A->B\n")
        assert json.loads((await got(address, "/status"))[1]) == {service: {"service": "x"} for service in SERVICES}
        assert 'lockstep_service_up{service="heartbeat"} 1.0' in (await got(address, "/metrics"))[1]
        for path in ("/other/status", "/data-plane/config", "/data-plane", "/data-plane/../../etc/passwd"):
            assert (await got(address, path))[0] == 404, path
        pages.forget(["heartbeat"])
        text = (await got(address, "/metrics"))[1]
        assert 'lockstep_service_up{service="data-plane"} 1.0\nlockstep_service_up{service="heartbeat"} 0.0' in text


async def test_run_pages_without_an_answer_name_the_service() -> None:
    async with served(AccessPolicy()) as gone:
        pass
    async with opened(AccessPolicy(), data_plane=gone) as (address, _):
        code, text = await got(address, "/data-plane/status")
        assert (code, "does not answer" in text) == (503, True)
        code, text = await got(address, "/live")
        assert (code, "heartbeat has no pages yet" in text) == (503, True)
        assert "does not answer" in json.loads((await got(address, "/status"))[1])["data-plane"]["error"]


async def test_run_pages_want_the_token_and_pass_it_on(tmp_path: Path) -> None:
    made, key = certificate(tmp_path, "one")
    access = AccessPolicy(token="t", certificate=made, key=key)
    trusted = ssl.create_default_context(cafile=str(made))
    async with served(access) as service, opened(access, data_plane=service, heartbeat=service) as (address, _):
        for path in ("/", "/status", "/metrics", "/data-plane/status", "/heartbeat/metrics"):
            assert (await got(address, path, tls=trusted))[0] == 401, path
            assert (await got(address, path, token="t", tls=trusted))[0] == 200, path
        assert await got(address, "/ready", tls=trusted) == (503, "not ready\n")
        assert (await got(address, "/ready", token="t", tls=trusted))[1].startswith("data-plane: not read yet")


async def test_a_taken_port_is_replaced_unless_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, str]] = []
    async with served(AccessPolicy()) as taken:
        port = int(taken.rpartition(":")[2])
        monkeypatch.setattr("lockstep_cli.processes.run.PORT", port)
        with pytest.raises(CannotUse, match="choose another with --port, or --port 0 for a free one"):
            await _open_pages(RunPages(SERVICES), AccessPolicy(), port, lambda *line: said.append(line))
        assert said == []
        pages = RunPages(SERVICES)
        address = await _open_pages(pages, AccessPolicy(), None, lambda *line: said.append(line))
        await pages.close()
        assert address != taken
        assert said == [("warning", f"port {port} is in use, so the pages get a free one: --port chooses another")]
