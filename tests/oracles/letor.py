"""LETOR text: definitions, typed naively."""

import math
import re

LETOR_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
LETOR_BLANKS = " \t\r"


class LetorFault(Exception):  # noqa: N818
    """`args` is the number of the line, from 1, that breaks the format."""


def letor_number(token):
    """Python's float, of plain decimal numbers only."""
    if not LETOR_NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise ValueError(token)
    return float(token)


def letor_whole(token):
    if not re.fullmatch("[0-9]+", token) or len(token.lstrip("0")) > 19 or int(token) > 2**63 - 1:
        raise ValueError(token)
    return int(token)


def letor_docid(comment):
    match = re.search(r"docid[ \t\r]*=[ \t\r]*([^ \t\r\n]*)", comment)
    return match[1] if match else comment.strip(LETOR_BLANKS)


def letor_line(body, base, n_features):
    """Grade, query id or None, and {column: value} of the text before the comment."""
    tokens = [token for token in re.split(f"[{LETOR_BLANKS}]", body) if token]
    grade, qid, features, previous = letor_number(tokens[0]), None, {}, -1
    if grade < 0:
        raise ValueError(grade)
    rest = tokens[1:]
    if rest and rest[0].startswith("qid:"):
        qid = letor_whole(rest.pop(0)[4:])
    for token in rest:
        index, _, value = token.partition(":")
        column = letor_whole(index) - base
        if column <= previous or column > 2**63 - 2 or (n_features is not None and column >= n_features):
            raise ValueError(token)
        features[column] = letor_number(value)
        previous = column
    return grade, qid, features


def letor_rows(text, *, base=1, n_features=None):
    """Rows (grade, qid, features, docid) of a file's bytes; LetorFault at the first bad line."""
    text = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    rows, unreadable = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        body, _, comment = line.partition("#")
        if not body.strip(LETOR_BLANKS):
            continue
        try:
            grade, qid, features = letor_line(body, base, n_features)
        except ValueError as error:
            raise LetorFault(number) from error
        if rows and (qid is None) != (rows[0][1] is None):
            raise LetorFault(number)
        docid = letor_docid(comment)
        if "\0" in docid or any("\ud800" <= letter <= "\udfff" for letter in docid):
            unreadable.append(LetorFault(number))
        rows.append((grade, qid, features, docid))
    if unreadable:  # ids are read last
        raise unreadable[0]
    return rows
