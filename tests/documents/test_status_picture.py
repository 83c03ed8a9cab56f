"""The picture of `txntable status`: what was printed is in it, and it loads nothing."""

from __future__ import annotations

from xml.etree import ElementTree

from tools.documentation.status_picture import PICTURE, picture

SVG = "{http://www.w3.org/2000/svg}"


def _lines(image: str) -> list[str]:
    # rich writes its window's title first, then each line of the terminal as pieces at one height.
    heights: dict[str, str] = {}
    for piece in ElementTree.fromstring(image).iter(f"{SVG}text"):
        height = piece.attrib["y"]
        heights[height] = heights.get(height, "") + (piece.text or "").replace("\N{NO-BREAK SPACE}", " ")
    return [line.rstrip() for line in heights.values()]


def test_picture_holds_each_line_as_it_was_printed_when_made_of_hostile_text() -> None:
    image = picture('1 open transaction\n  <script>alert("x")</script> & [red]\n')

    assert _lines(image)[-2:] == ["1 open transaction", '  <script>alert("x")</script> & [red]']


def test_picture_of_the_readme_shows_the_command_and_loads_nothing() -> None:
    image = PICTURE.read_text()

    assert "$ txntable --warehouse shop status" in _lines(image)
    assert not [name for name in ("@import", "url(http", "href", "<script", "<image") if name in image]
