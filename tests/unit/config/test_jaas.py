"""`sasl.jaas.config` taken apart as Kafka's JaasConfig does."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.text.jaas import NotJaas, parse_jaas


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("m required;", {}),
        ('m REQUIRED a="1" b=two c=\'3 "x"\';', {"a": "1", "b": "two", "c": '3 "x"'}),
        ('m optional a = "x;=y" ;', {"a": "x;=y"}),
        (r'm required a="\"\\\n\t\101\12z";', {"a": '"\\\n\tA\nz'}),
        ('m required // user\n a="https://x/y" /* b="2" */ c="3";', {"a": "https://x/y", "c": "3"}),
        ('m required a="1" a="2";', {"a": "2"}),
        ('m required "a"="";', {"a": ""}),
        ('m required oauth.client.id="x" extension_logicalCluster="lkc-1";', {
            "oauth.client.id": "x", "extension_logicalCluster": "lkc-1",
        }),
    ],
)  # fmt: skip  # a case a line
def test_an_entry_has_a_module_and_options(text: str, options: dict[str, str]) -> None:
    entry = parse_jaas(text)
    assert entry.module == "m"
    assert entry.options == options
    assert "options" not in repr(entry)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("m required", "does not end with a semicolon"),
        ("m;", "is no JAAS line"),
        ("m perhaps a=1;", "is no JAAS line"),
        ("m required a=1; n required b=2;", "names more than one login module"),
        ("m required a;", "has something behind option 0"),
        ('m required a="1" b=;', "has something behind option 1"),
        ('m required a="1;', "has a quote that is not closed"),
        ('m required a="1\n";', "has a quote that is not closed"),
        ("m required a=b=c;", "has something behind option 1"),
    ],
)
def test_jaas_mistake_is_named_without_its_text(text: str, sentence: str) -> None:
    with pytest.raises(NotJaas) as raised:
        parse_jaas(text)
    assert str(raised.value).startswith(sentence)


@given(st.dictionaries(st.from_regex(r"[a-zA-Z][\w.\-]{0,8}", fullmatch=True), st.text(max_size=12), max_size=4))
def test_every_text_survives_quoting(options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    text = "m required " + " ".join(f'{name}="{quoted(value)}"' for name, value in options.items()) + ";"
    assert parse_jaas(text).options == options


@given(st.text(alphabet="m required=;\"'\\/*ab\n", max_size=40))
def test_any_text_is_an_entry_or_is_refused(text: str) -> None:
    with contextlib.suppress(NotJaas):
        parse_jaas(text)
