"""A page as somebody reads it who knows HTML and nothing of ours: elements, attributes and texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "img", "input", "link", "base", "source", "wbr"})


@dataclass
class Element:
    """An element."""

    name: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    def all(self, name: str = "", **attributes: str) -> Iterator[Element]:
        """Yield the elements inside that have a name and attributes; a class among others counts."""
        for child in self.children:
            if (not name or child.name == name) and all(
                value in child.attributes.get(each.rstrip("_"), "").split() for each, value in attributes.items()
            ):
                yield child
            yield from child.all(name, **attributes)

    def first(self, name: str = "", **attributes: str) -> Element:
        """The first of these."""
        return next(self.all(name, **attributes))

    @property
    def text(self) -> str:
        """All texts inside, with single blanks."""
        return " ".join("".join(self.texts).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if len(self.open) == 1 or self.open[-1].name != tag:
            self.wrong.append(f"</{tag}> ends <{self.open[-1].name}>")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].own.append(data)
        for element in self.open:
            element.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"a comment: {data}")


def read_page(page: str) -> Element:
    """Return the document; each element is ended by its own end, and nothing is a comment."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.wrong == []
    assert [element.name for element in reader.open] == [""]
    return reader.root
