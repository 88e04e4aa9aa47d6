"""The helpers that build HTML: whatever comes from a file stays text."""

from __future__ import annotations

import pytest

from dynident.pages import Html, badge, details, escape, join, number, percent, table, tag

HOSTILE = """<script>alert("x")</script> & 'quoted' "attribute" onload="""


def test_text_is_escaped_everywhere() -> None:
    for built in (
        tag("p", HOSTILE),
        tag("p", "x", title=HOSTILE),
        table((HOSTILE,), [(HOSTILE,)], caption=HOSTILE, foot=(HOSTILE,)),
        details(HOSTILE, HOSTILE),
        badge(HOSTILE),
        join([HOSTILE, HOSTILE]),
    ):
        assert "<script" not in built
        assert "&lt;script&gt;" in built
        assert '"attribute"' not in built


def test_html_passes_once_and_text_is_never_trusted_by_type_alone() -> None:
    assert tag("p", Html("<b>x</b>")) == "<p><b>x</b></p>"
    assert tag("p", tag("b", "<")) == "<p><b>&lt;</b></p>"
    assert escape(escape("<")) == "&lt;"
    assert tag("td", 0) == "<td>0</td>"
    assert join(["a", None, "", 0.0], ",") == "a,0.0"


def test_characters_that_cannot_be_written_or_hide_text_are_replaced() -> None:
    shown = escape("a\x00b\x1b[31mc\ud800d\u202ee")
    shown.encode("utf-8")
    assert shown == "a\ufffdb\ufffd[31mc\ufffdd\ufffde"


def test_tables_head_rows_and_columns() -> None:
    text = table(("name", "value"), [("a", "1")], numeric=(1,))
    assert '<th scope="col">name</th>' in text
    assert '<th scope="row">a</th>' in text
    assert '<td class="num">1</td>' in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (0.0, "0"),
        (1000.0, "1000"),
        (123456.0, "123500"),
        (-0.00012346, "−0.0001235"),
        (1.5e-9, "1.5e−09"),
    ],
)
def test_numbers_read_well(value: float | None, text: str) -> None:
    assert number(value) == text


def test_percent() -> None:
    assert percent(0.0622) == "6.22 %"
    assert percent(float("inf")) == "–"
