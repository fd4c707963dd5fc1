"""What of HTTP the pages understand, and what they answer to the rest."""

import contextlib
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_runtime.http.parser import BadRequest, Request, parse, rendered, same_token


def test_a_request_as_prometheus_sends_it() -> None:
    head = b"GET /metrics?a=b HTTP/1.1\r\nHost: x:9404\r\nAuthorization: Bearer  s3 cret \r\nAccept: */*"
    request = parse(head)
    assert request == Request(
        "GET", "/metrics", {"host": "x:9404", "authorization": "Bearer  s3 cret", "accept": "*/*"}
    )
    assert request.token == "s3 cret"


@pytest.mark.parametrize("value", ["", "Basic czM=", "bearer", "Bearer", "s3cret"])
def test_only_a_bearer_token_is_one(value: str) -> None:
    assert Request("GET", "/", {"authorization": value}).token == ""


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", HTTPStatus.BAD_REQUEST),
        (b"GET /live", HTTPStatus.BAD_REQUEST),
        (b"GET /live HTTP/2.0", HTTPStatus.BAD_REQUEST),
        (b"GET  /live HTTP/1.1", HTTPStatus.BAD_REQUEST),
        (b"GET http://elsewhere/live HTTP/1.1", HTTPStatus.BAD_REQUEST),
        (b"GET /live HTTP/1.1\r\nno colon", HTTPStatus.BAD_REQUEST),
        (b"GET /live HTTP/1.1\r\nHost : x", HTTPStatus.BAD_REQUEST),
        (b"GET /live HTTP/1.1\r\nA: 1\r\n folded: 2", HTTPStatus.BAD_REQUEST),
        (b"GET /live HTTP/1.1\r\nA: 1\r\na: 2", HTTPStatus.BAD_REQUEST),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", HTTPStatus.BAD_REQUEST),
        (b"POST /live HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"OPTIONS /live HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"get /live HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
    ],
)
def test_what_is_no_request_is_refused_with_its_reason(head: bytes, status: HTTPStatus) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(head)
    assert refused.value.status is status


@given(st.binary(max_size=300))
def test_whatever_comes_is_read_or_refused(head: bytes) -> None:
    with contextlib.suppress(BadRequest):
        assert parse(head).method in ("GET", "HEAD")


def test_an_answer_names_no_server_and_head_has_the_length_but_no_body() -> None:
    answer = rendered(HTTPStatus.OK, b"live\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"live\n"
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 200 OK"
    assert b"Server:" not in head
    assert rendered(HTTPStatus.OK, b"live\n", head_only=True) == head + b"\r\n\r\n"


def test_no_token_is_never_the_right_one() -> None:
    assert same_token("s3cret", "s3cret")
    assert not same_token("s3cre", "s3cret")
    assert not same_token("", "")
    assert not same_token("schlüssel", "schluessel")
