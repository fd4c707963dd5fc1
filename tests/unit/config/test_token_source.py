"""Tokens asked for over HTTP, kept, renewed, and missed: against a token server of the tests' own."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config.clients.oauth import RefreshRule, TokenSettings
from lockstep_config.clients.tls import TlsSettings
from lockstep_config.clients.token_source import TokenCallback, TokenSource, TokenUnavailable, shared_token_source
from tests.support.certificates import Authority
from tests.support.token_server import TokenServer

NOW = 1_000_000.0
GRANT = (("grant_type", "client_credentials"),)


class Scene:
    """A source whose clock stands still unless it is turned."""

    def __init__(self, server: TokenServer) -> None:
        self.server = server
        self.now = NOW
        self.settings = TokenSettings(
            endpoint=server.url,
            client_id="mirror",
            client_secret="hush-hush",
            form=GRANT,
            retry_for_s=None,
            retries=0,
            refresh=RefreshRule(window_jitter=0.0),
        )

    def source(self, settings: TokenSettings | None = None) -> TokenSource:
        return TokenSource(settings or self.settings, lambda: self.now, self._slept, lambda: 0.0)

    def _slept(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with TokenServer({"mirror": "hush-hush", "a b": "c:d+é"}) as server:
        yield server


@pytest.fixture
def scene(server: TokenServer) -> Scene:
    server.failing, server.lifetime_s, server.refresh = None, 3600.0, None
    server.asked.clear()
    return Scene(server)


def test_a_token_is_kept_until_it_is_time_for_another(scene: Scene) -> None:
    source = scene.source()
    token = source.token()
    assert token.until == NOW + 3600
    scene.now += 2800
    assert source.token() is token
    scene.now += 81
    assert source.token().until == scene.now + 3600
    assert [form["grant_type"] for form in scene.server.asked] == ["client_credentials"] * 2
    assert "hush" not in repr(source.token())


def test_librdkafka_comes_back_when_there_is_another(scene: Scene) -> None:
    source = scene.source()
    callback = TokenCallback(source)
    _, end, _, _ = callback("")
    assert end == NOW + 2880 / 0.8
    scene.server.failing = 503
    scene.now += 2890
    _, end, _, _ = callback("")  # the one of before, for a while
    assert end == scene.now + 0.5 / 0.8
    scene.server.failing = None
    scene.now += 1
    assert callback("")[1] == scene.now + 2880 / 0.8


def test_token_source_asks_once_for_many_threads(scene: Scene) -> None:
    source = scene.source()
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(source.token().text)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 16
    assert len(set(texts)) == len(scene.server.asked) == 1


def test_equal_settings_share_a_source(scene: Scene) -> None:
    assert shared_token_source(scene.settings) is shared_token_source(replace(scene.settings))
    assert shared_token_source(scene.settings) is not shared_token_source(replace(scene.settings, client_id="other"))


def test_valid_token_is_used_while_the_server_is_away_and_logged_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    source = scene.source()
    token = source.token()
    scene.server.failing = 503
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            scene.now += 600
            assert source.token() is token
    assert [record.getMessage() for record in caplog.records] == [
        f"access token not renewed: {scene.server.url} gave no token: HTTP 503 (temporarily_unavailable); "
        f"the present one is good until {token.until:.0f}"
    ]
    scene.now += 700
    with pytest.raises(TokenUnavailable, match="HTTP 503"):
        source.token()
    scene.server.failing = None
    scene.now += 11
    assert source.token() is not token


def test_token_source_waits_after_a_failure(scene: Scene) -> None:
    scene.server.failing = 500
    source = scene.source()
    for _ in range(10):
        with pytest.raises(TokenUnavailable):
            source.token()
    assert len(scene.server.asked) == 1
    scene.now += 0.6
    with pytest.raises(TokenUnavailable):
        source.token()
    assert len(scene.server.asked) == 2


def test_a_question_that_fails_is_asked_again_as_long_as_configured(scene: Scene) -> None:
    scene.server.failing = 500
    with pytest.raises(TokenUnavailable):
        scene.source(replace(scene.settings, retries=3, retry_first_s=1.0)).token()
    assert len(scene.server.asked) == 4
    assert scene.now == NOW + 7
    with pytest.raises(TokenUnavailable):
        scene.source(replace(scene.settings, retries=None, retry_first_s=1.0, retry_for_s=10.0)).token()
    assert len(scene.server.asked) == 4 + 4


def test_wrong_client_secret_fails_at_once_and_is_not_shown(scene: Scene) -> None:
    settings = replace(scene.settings, client_secret="wrong-secret", retries=9)
    with pytest.raises(TokenUnavailable) as raised:
        scene.source(settings).token()
    assert str(raised.value) == (
        f"{scene.server.url} gave no token: HTTP 401 (invalid_client: unknown id or secret): "
        "check the id, the secret and the scope of client mirror"
    )
    assert len(scene.server.asked) == 1


def test_a_refresh_token_buys_access_tokens(scene: Scene) -> None:
    scene.server.refresh = "r-1"
    form = (("grant_type", "refresh_token"), ("client_id", "mirror"), ("refresh_token", "r-1"))
    scene.source(replace(scene.settings, client_secret=None, form=form)).token()
    assert scene.server.asked[0]["refresh_token"] == "r-1"
    assert scene.server.asked[0]["authorization"] == ""


def test_a_token_from_a_file_is_read_at_each_login(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "token"
    source = scene.source(TokenSettings(token_file=str(file)))
    with pytest.raises(TokenUnavailable, match=r"the token file .* cannot be read: No such file"):
        source.token()
    scene.now += 1
    file.write_text("first\n")
    assert source.token().text == "first"
    file.write_text("second")
    assert source.token().text == "second"


def test_expired_static_token_and_unreachable_server_are_named(scene: Scene) -> None:
    expired = TokenSettings(token=scene.server.token("mirror", lifetime_s=-10))
    with pytest.raises(TokenUnavailable, match=r"the token in oauth.access.token expired at 20.* UTC: put a new one"):
        TokenSource(expired).token()
    assert TokenSource(TokenSettings(token="opaque")).token().text == "opaque"
    away = replace(scene.settings, endpoint="http://127.0.0.1:1/token")
    words = r"http://127\.0\.0\.1:1/token cannot be asked for a token: Connection refused"
    with pytest.raises(TokenUnavailable, match=words):
        scene.source(away).token()


def test_the_endpoints_certificate_is_checked(scene: Scene) -> None:
    authority = Authority()
    with TokenServer({"mirror": "hush-hush"}, authority.server("localhost")) as secure:
        settings = replace(scene.settings, endpoint=secure.url)
        with pytest.raises(TokenUnavailable, match="shows a certificate that we do not trust"):
            scene.source(settings).token()
        trusting = replace(settings, tls=TlsSettings(trusted_type="PEM", trusted_pem=authority.pem))
        assert scene.source(trusting).token().text
        elsewhere = replace(trusting, endpoint=secure.url.replace("localhost", "127.0.0.1"))
        with pytest.raises(TokenUnavailable, match="IP address mismatch"):
            scene.source(elsewhere).token()
