"""The short form of a masking transform."""

import pytest

from lockstep_rules.mask_statement import MaskInvalid, mask_statement


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
     "$.a: mask') AS value --", "$.a': mask", "$.a: mask, $.a: remove"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(masks: str) -> None:
    with pytest.raises(MaskInvalid):
        mask_statement(masks)
