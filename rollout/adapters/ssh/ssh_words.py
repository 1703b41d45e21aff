"""One line of ssh_config as words, exactly as OpenSSH cuts it: the keyword by one rule, what follows by another."""

from __future__ import annotations

BLANK = " \t\r\n"
ENDS_OF_A_KEYWORD = frozenset(BLANK + '"=')


def keyword_of(line: str) -> tuple[str, str] | None:
    """The keyword in lower case and the rest of the line; ``None`` for a line that says nothing. Raises ``ValueError``."""
    keyword, rest = _first(line.rstrip(BLANK + "\f"))
    if not keyword:
        keyword, rest = _first(rest)
    if not keyword or keyword.startswith("#"):
        return None
    if not rest:
        raise ValueError("the line has no value")
    return keyword.lower(), rest


def words_of(rest: str) -> tuple[str, ...]:
    """What follows a keyword: quotes of both kinds, escapes, and a comment at the end. Raises ``ValueError``."""
    words: list[str] = []
    at = 0
    while (at := _past_blanks(rest, at)) < len(rest) and rest[at] != "#":
        word, at = _word(rest, at)
        words.append(word)
    return tuple(words)


def _first(text: str) -> tuple[str, str]:
    """``KEYWORD value``, ``KEYWORD=value``, ``KEYWORD = value``; the keyword may stand in double quotes."""
    at = next((at for at, char in enumerate(text) if char in ENDS_OF_A_KEYWORD), len(text))
    if text[at : at + 1] == '"':
        head, quote, rest = text[at + 1 :].partition('"')
        if not quote:
            raise ValueError("a quote does not close")
        return text[:at] + head, rest.lstrip(BLANK)
    rest = text[at + 1 :].lstrip(BLANK)
    if text[at : at + 1] != "=" and rest.startswith("="):
        rest = rest[1:].lstrip(BLANK)
    return text[:at], rest


def _word(text: str, at: int) -> tuple[str, int]:
    word, quote = "", ""
    while at < len(text):
        char, after = text[at], text[at + 1 : at + 2]
        if char == "\\" and after and (after in "'\"\\" or (after == " " and not quote)):
            word += after
            at += 1
        elif not quote and char in " \t":
            break
        elif not quote and char in "'\"":
            quote = char
        elif char == quote:
            quote = ""
        else:
            word += char
        at += 1
    if quote:
        raise ValueError("a quote does not close")
    return word, at


def _past_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at
