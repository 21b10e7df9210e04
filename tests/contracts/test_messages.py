"""Texts of errors and warnings, read from the source: whole sentences, in the form of `ParameterError`."""

import ast
from pathlib import Path

import pytest

import concordant

ROOT = Path(concordant.__file__).parent


def text_of(node, tree):
    """Text of an expression, "0" for what is filled in; None if it is not written in this module."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
    if isinstance(node, ast.BinOp):
        texts = [text_of(side, tree) for side in (node.left, node.right)]
        return texts[0] if isinstance(node.op, ast.Mult) else "".join(text or "0" for text in texts)
    if isinstance(node, ast.Name):
        assigned = [
            other.value
            for other in ast.walk(tree)
            if isinstance(other, ast.Assign)
            and other.lineno < node.lineno
            and any(isinstance(target, ast.Name) and target.id == node.id for target in other.targets)
        ]
        return text_of(max(assigned, key=lambda value: value.lineno), tree) if assigned else None
    return None


def faults(source):
    """Texts that are no sentences, and values of `allowed` that do not fit "must be ..., got ..."."""
    tree = ast.parse(source)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        if name in ("ParameterError.because", "warnings.warn"):
            sentences = call.args[:1]
        elif name == "ParameterError":
            sentences = [keyword.value for keyword in call.keywords if keyword.arg == "hint"]
            allowed = text_of(call.args[2], tree) if len(call.args) > 2 else None
            if allowed and any(part in f"{allowed} " for part in ("; ", ": ", ". ", "left out")):
                yield allowed
        else:
            continue
        for text in (text_of(sentence, tree) for sentence in sentences):
            if text is not None and (not text.endswith((".", "0")) or ";" in text or text != text.strip()):
                yield text


def test_messages_are_whole_sentences():
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    assert {name: bad for name, source in sources.items() if (bad := list(faults(source)))} == {}
    assert [name for name, source in sources.items() if " is not allowed" in source] == []


WRONG = {
    'ParameterError("C", C, "above 0; inf: a hard margin")': "above 0; inf: a hard margin",
    'ParameterError("y", y, "left out with a scan")': "left out with a scan",
    'ParameterError("C", C, f"at least {low}.")': "at least 0.",
    'ParameterError("C", C, "positive", hint="try 1e6")': "try 1e6",
    'text = "f needs g"\nParameterError.because(text)': "f needs g",
    'warnings.warn(f"{name} is 0; raise it.", UserWarning)': "0 is 0; raise it.",
}


@pytest.mark.parametrize("source", WRONG)
def test_a_bad_message_is_found(source):
    assert list(faults(source)) == [WRONG[source]]


def test_good_messages_pass():
    good = 'ParameterError("C", C, "positive", hint="Use C=inf.")\nParameterError.because("f needs g.")'
    assert list(faults(good)) == []
