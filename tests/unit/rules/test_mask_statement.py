"""The short form of a masking transform."""

import pytest

from lockstep_rules.mask_statement import MaskInvalid, mask_secrets, mask_statement


def test_each_entry_is_one_call_in_their_order() -> None:
    statement = mask_statement("$.customer.name: hash_salted,\n  $.iban : truncate( 4 ), $['a, b'][*].c: remove")
    assert statement == (
        "SELECT json_mask(json_mask(json_mask(value, '$.customer.name', 'hash_salted'), '$.iban', 'truncate(4)'), "
        "'$[\\'a, b\\'][*].c', 'remove') AS value FROM records"
    )


def test_a_quote_in_a_name_stays_in_the_text() -> None:
    assert "'$[\\'it\\\\\\'s\\']'" in mask_statement(r"$['it\'s']: mask")


@pytest.mark.parametrize(
    "masks",
    ["", " ", ",", "$.a", "$.a:", ": mask", "$.a: mask,", "a: mask", "$.a mask", "$.a: mask $.b: mask", "$: mask",
     "$.a: mask') AS value --", "$.a': mask", "$.a: mask, $.a: remove", "$.a*: mask", "$.a[\u0663]: mask",
     "$.a[1234567890]: mask", f"${65 * '.a'}: mask"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(masks: str) -> None:
    with pytest.raises(MaskInvalid):
        mask_statement(masks)


@pytest.mark.parametrize(
    "how", ["hash", "md5", "truncate", "truncate(x)", "truncate(1234567)", "remove(1)", "mask(salt)", "tokenize",
            f"tokenise({65 * 'k'})", "hash_salted(sälz)"]
)  # fmt: skip
def test_masking_that_does_not_exist_is_refused_with_those_that_do(how: str) -> None:
    for read in (mask_statement, mask_secrets):
        with pytest.raises(MaskInvalid) as refused:
            read(f"$.b: mask, $.a: {how}")
        assert str(refused.value).startswith(f"$.a cannot be masked by {how}. The maskings are remove, mask,")


def test_secrets_are_named_once() -> None:
    masks = "$.a: tokenise, $.b: hash_salted( key ), $.c: hash_salted, $.d: remove, $.e: truncate(0), $.f: mask"
    assert mask_secrets(masks) == ("salt", "key")
