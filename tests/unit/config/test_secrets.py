"""Secrets are taken out of what somebody else wrote, in every form in which they come back."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.text.secrets import MASK, SecretMask, is_secret, shown_credentials

SECRET = "s3cr3t/+& ü?=pass"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower().replace("s3cr3t", "s3cr3t"),
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
    ],
)
def test_secret_is_masked_in_its_written_forms(form: str) -> None:
    assert SecretMask([SECRET]).mask(f"a {form} b") == f"a {MASK} b"


@given(before=st.text(max_size=7), behind=st.text(max_size=7), url=st.booleans())
def test_secret_in_base64_is_masked_wherever_it_begins(before: str, behind: str, url: bool) -> None:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    shown = SecretMask([SECRET]).mask(encode(f"{before}{SECRET}{behind}".encode()).decode())
    assert MASK in shown
    remainder = shown.replace(MASK, "")
    size = len(before.encode()) + len(behind.encode())
    assert len(remainder) <= (size + 2) * 4 // 3 + 6, "no more than the neighbours and the two ends"


LINES = {
    'curl -H "Authorization: Bearer abc.def" https://x': {"abc.def"},
    "curl -H 'authorization: Basic dXNlcjpw' https://x": {"dXNlcjpw"},
    "curl -u admin:hunter2 https://x": {"hunter2"},
    "curl --user admin:hunter2 https://x": {"hunter2"},
    "https://admin:hunter2@deploy.example.org/kafka": {"hunter2"},
    "https://deploy.example.org/kafka?token=hunter2&x=1": {"hunter2"},
    "tool --password hunter2": {"hunter2"},
    "tool --api-key=hunter2": {"hunter2"},
    'curl -H "X-Api-Key: hunter2" https://x': {"hunter2"},
    "env PGPASSWORD=hunter2 psql": {"hunter2"},
    "/opt/switch/fence --source A": set(),
    "/opt/switch/fence --token-file /run/token": set(),
    "sh -c 'curl -H \"Authorization: Bearer $TOKEN\" https://x'": set(),
}


@pytest.mark.parametrize("line", LINES)
def test_shown_credentials_a_line_are_found_by_their_place(line: str) -> None:
    assert shown_credentials(line) == LINES[line]
    assert not [secret for secret in LINES[line] if secret in SecretMask(()).mask(line)]


def test_short_words_and_nothing_are_left_alone() -> None:
    assert SecretMask([None, "", "abc"]).mask("abc is no secret") == "abc is no secret"


@pytest.mark.parametrize("hook", ["before", "fence", "redirect", "after"])
def test_hook_is_a_secret_and_its_timeout_is_none(hook: str) -> None:
    assert is_secret(f"A->B.lockstep.switch.hook.{hook}")
    assert not is_secret("lockstep.switch.hook.timeout.seconds")
