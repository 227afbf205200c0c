"""Records in a notebook: small pieces of HTML, everything escaped, no scripts, no external addresses."""

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

_CELL = "padding:2px 8px;text-align:left"


def facts(title: str, values: Mapping[str, object]) -> Markup:
    """A title and a table of names and values."""
    rows = Markup("").join(
        Markup('<tr><th style="{0}">{1}</th><td style="{0}">{2}</td></tr>').format(_CELL, name, value)
        for name, value in values.items()
    )
    return Markup("<div><b>{}</b><table>{}</table></div>").format(title, rows)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table with a header row."""
    head = Markup("").join(Markup('<th style="{}">{}</th>').format(_CELL, name) for name in columns)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup('<td style="{}">{}</td>').format(_CELL, cell) for cell in row))
        for row in rows
    )
    return Markup("<table><tr>{}</tr>{}</table>").format(head, body)


def pictures(addresses: Iterable[tuple[str, str]]) -> Markup:
    """Thumbnails with captions; only embedded pictures (data: addresses) are shown."""
    one = Markup('<figure style="display:inline-block;margin:4px"><img src="{}" alt="{}"><figcaption>{}</figcaption></figure>')
    return Markup("").join(one.format(address, text, text) for address, text in addresses if address.startswith("data:image/"))


def paragraph(text: str) -> Markup:
    return Markup("<p>{}</p>").format(escape(text))


def percent(value: float | None) -> str:
    """
    >>> percent(0.123), percent(None), percent(float("nan"))
    ('12.3 %', '–', '–')
    """
    return "–" if value is None or value != value else f"{100 * value:.1f} %"
