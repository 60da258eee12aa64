"""Numbers in sentences."""


def grouped(value: int) -> str:
    """65 536."""
    return f"{int(value):,}".replace(",", " ")


def plural(number: int, word: str, many: str | None = None) -> str:
    """`word` as it follows `number`: node, nodes."""
    return word if number == 1 else many or f"{word}s"


def counted(number: int, word: str, many: str | None = None) -> str:
    """1 node, 2 048 nodes."""
    return f"{grouped(number)} {plural(number, word, many)}"


def sentence(text: str) -> str:
    """With a capital at its start and a full stop at its end; nothing for nothing."""
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith(".") else ".")
