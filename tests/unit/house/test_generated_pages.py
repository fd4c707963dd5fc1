"""What `make docs` writes is fresh, and a page has a place for each of its blocks."""

import pytest

from tools.docs.__main__ import generated
from tools.docs.pages import filled

PAGE = "# T\n\n<!-- keys: a -->\nold\n<!-- end -->\n\nby hand <!-- c -->\n\n<!-- b -->\n\n<!-- end -->\n"


def test_generated_files_are_fresh() -> None:
    stale = [str(path) for path, text in generated() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "make docs writes them anew"


def test_blocks_are_filled_and_the_text_around_them_stays() -> None:
    text = filled(PAGE, {"keys: a": "new\nlines\n", "b": "more"})
    assert text == PAGE.replace("old\n", "\nnew\nlines\n\n").replace("<!-- b -->\n", "<!-- b -->\n\nmore\n")
    assert filled(text, {"keys: a": "new\nlines", "b": "more"}) == text


@pytest.mark.parametrize("blocks", [{"keys: a": ""}, {"keys: a": "", "b": "", "c": ""}])
def test_page_with_other_blocks_is_refused(blocks: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"has the blocks \['keys: a', 'b'\]"):
        filled(PAGE, blocks)
