"""Files that are almost right: bytes flipped, cut, moved, doubled, and words put where none belong."""

WORDS = (
    b"", b" ", b"\t", b"\n", b"\r", b"\r\n", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\xe2\x80\xa8",
    b"nan", b"inf", b"-inf", b"1e400", b"-1e-400", b"0x10", b"1_000", b"1e", b"+", b"-", b".", b"-0",
    b"9" * 25, b"18446744073709551616", b"-9223372036854775809", b"2147483648", b"1" + b"0" * 400,
    b":", b"::", b"1:", b":1", b"qid:", b"qid:-1", b"qid:1.5", b"0:1", b"99:1", b"#", b"# docid =",
    b",", b",,", b'"', b'""', b"'", b"{", b"}", b"{1", b"[", b"]", b"[[", b"=", b"\\", b"\\u0000", b"()" * 9,
    "½-½".encode(), "٣".encode(), "é".encode(), "\U0001f600".encode(), b"none", b"true", b"__x__", b"../x",
)  # fmt: skip


def mutated(seed, rng, others=()):
    """A few changes, at random; `others` are files to splice with."""
    text = bytearray(seed)
    for _ in range(int(rng.integers(1, 5))):
        change = CHANGES[int(rng.integers(len(CHANGES)))]
        text = change(text, rng)
    if others and rng.random() < 0.1:
        other = others[int(rng.integers(len(others)))]
        text = text[: int(rng.integers(len(text) + 1))] + other[int(rng.integers(len(other) + 1)) :]
    return bytes(text)


def random_position(text, rng):
    return int(rng.integers(len(text) + 1))


def span(text, rng):
    """Two places, mostly near one another."""
    first = random_position(text, rng)
    return first, min(len(text), first + int(rng.integers(1, 12 if rng.random() < 0.8 else len(text) + 2)))


def flipped(text, rng):
    """One bit is another."""
    if text:
        text[int(rng.integers(len(text)))] ^= 1 << int(rng.integers(8))
    return text


def replaced(text, rng):
    """One byte is any byte."""
    if text:
        text[int(rng.integers(len(text)))] = int(rng.integers(256))
    return text


def removed(text, rng):
    first, last = span(text, rng)
    return text[:first] + text[last:]


def doubled(text, rng):
    first, last = span(text, rng)
    return text[:last] + text[first:last] * int(rng.integers(1, 4)) + text[last:]


def cut(text, rng):
    return text[: random_position(text, rng)]


def worded(text, rng):
    """A word stands where none belongs, or in the place of another."""
    first, last = span(text, rng)
    last = first if rng.random() < 0.5 else last
    return text[:first] + WORDS[int(rng.integers(len(WORDS)))] + text[last:]


CHANGES = (flipped, replaced, removed, doubled, cut, worded, worded)
