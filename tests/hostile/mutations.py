"""How a valid file or answer becomes a hostile one: cut, doubled, spliced, and harmful words inserted."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = (
    b"\x00", b"\r", b"\n", b"\r\n", b"\t", b" ", b"\x1b[31m", b"\x1b]0;owned\x07", b"\x9b2J", b"\x7f",
    b"\xc2\x9b2J", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xff\xfe", b"\xc3\xa9",
    b"\\ud800", b"\\u202e", b"\\u001b", b"\\x1b", b"\\N", b"\\", b"\\\n",
    b"'", b'"', b"`", b"$", b"$(id)", b"`id`", b";", b"|", b"&", b"#", b"%", b"%n", b"%999999999d", b"!", b"*", b"?",
    b"[", b"]", b"{", b"}", b"(", b")", b"<", b">", b":", b": ", b",", b"-", b"--", b"=", b"@", b"/", b"..", b"~",
    b"[" * 3000, b"{" * 3000, b'{"a":' * 3000, b"- " * 500, b"(" * 500, b"&a [*a]", b"<<: *a", b"!!python/object:os.system",
    b"null", b"true", b"false", b"~", b"yes", b"0x7f", b"0o17", b"1_000", b"190:20:30", b"NaN", b"Infinity", b"-Infinity",
    b"inf", b".inf", b".nan", b"-1", b"0", b"9" * 400, b"9" * 5000, b"1e999", b"1e-999", b"1" + b"0" * 30, b"0.1",
    b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809", b"2562048h", b"1h1h", b".s", b"\xc2\xb5s",
    b"node[1-999999999]", b"n[1-9][1-9][1-9][1-9][1-9]", b"n[0-0/0]", b"@all", b"@", b"a&b!c^d",
    b"{{", b"}}", b"{%", b"%}", b"{{ 'a' * 10**9 }}", b"{% for a in range(1000) %}", b"{% endfor %}", b"{{ ''.__class__ }}",
    b"{}", b"[]", b'""', b'{"base64":"!"}', b"1970-01-01T00:00:00Z", b"9999-99-99T99:99:99Z", b"rollout", b"sudo",
)  # fmt: skip

_NUMBERS = st.integers(min_value=0, max_value=1 << 16)


@st.composite
def mutated(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """One of the seeds, changed in up to six places; sometimes random bytes."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(min_value=0, max_value=6))):
        data = _once(draw, data, seeds)[: 1 << 18]
    return data


def _once(draw: st.DrawFn, data: bytes, seeds: tuple[bytes, ...]) -> bytes:
    kind = draw(st.integers(min_value=0, max_value=7))
    at = draw(_NUMBERS) % (len(data) + 1)
    upto = min(len(data), at + draw(st.sampled_from((1, 2, 7, 40, 400))))
    if kind <= 2:
        return data[:at] + draw(st.sampled_from(WORDS)) + data[at if kind else upto :]
    if kind == 3:
        return data[:at] + data[upto:]
    if kind == 4:
        return data[:upto] + data[at:upto] * draw(st.sampled_from((1, 3, 200))) + data[upto:]
    if kind == 5:
        return data[:at] + draw(st.binary(max_size=8)) + data[upto:]
    if kind == 6:
        other = draw(st.sampled_from(seeds))
        return data[:at] + other[draw(_NUMBERS) % (len(other) + 1) :]
    return data[:at] + data[at:].replace(data[at:upto], draw(st.sampled_from(WORDS)), 200) if upto > at else data
