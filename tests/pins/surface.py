"""The public surface: names, signatures and first docstring lines; parameters and help of every command."""

import functools
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import typer

import concordant as cc
from concordant.cli import app

API = Path(__file__).resolve().parents[2] / "docs" / "api.md"
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NAMESPACES = [  # public modules: what `cc` lists, and what docs/api.md documents by a name of its own
    "concordant",
    "concordant.datasets",
    "concordant.decoders",
    "concordant.evaluation",
    "concordant.metrics",
    "concordant.objectives",
    "concordant.ratings",
    "concordant.solvers",
    "concordant.surrogates",
    "concordant.synthetic",
    "concordant.theory",
    "concordant.torch",
]


def first_line(thing):
    """The first line of a docstring that is the object's own."""
    text = inspect.getdoc(thing) if inspect.isclass(thing) or callable(thing) else thing.__doc__
    return (text or "").strip().partition("\n")[0]


def signature(thing):
    """Parameters with defaults and annotations as they are written."""
    try:
        return ADDRESS.sub("", str(inspect.signature(thing)))
    except (TypeError, ValueError):
        return ""


@functools.cache
def documented():
    """Dotted names in docs/api.md and the members it lists of them: [] none, None all."""
    by_name, module, name = {}, "concordant", ""
    for line in API.read_text(encoding="utf-8").splitlines():
        directive, _, argument = line.strip().partition(":: ")
        if directive == ".. currentmodule":
            module = argument
        elif directive.startswith(".. auto"):
            name = argument if argument.startswith("concordant.") else f"{module}.{argument}"
            by_name[name] = []
        elif directive.startswith(":members:"):
            listed = [member.strip() for member in directive.removeprefix(":members:").split(",")]
            by_name[name] = listed if listed != [""] else None
    return by_name


def members(kind):
    """Documented methods and properties that the classes of the package define."""
    by_class = {name.rpartition(".")[2]: listed for name, listed in documented().items()}
    listed = by_class.get(kind.__name__, [])
    texts = {}
    for name in sorted(dir(kind) if listed is None else listed):
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        if name.startswith("_") or owner is None or not owner.__module__.startswith("concordant"):
            continue
        value = vars(owner)[name]
        if isinstance(value, property | functools.cached_property):
            texts[name] = f"property: {first_line(value)}"
        elif callable(getattr(kind, name)):
            texts[name] = f"{signature(getattr(kind, name))}: {first_line(getattr(kind, name))}"
    return texts


def described(thing):
    """What a public name is, in one line, and its members if it is a class."""
    if inspect.ismodule(thing):
        return f"module: {first_line(thing)}"
    if inspect.isclass(thing):
        return [f"class{signature(thing)}: {first_line(thing)}", members(thing)]
    if callable(thing) and hasattr(thing, "__module__") and not hasattr(thing, "__dataclass_fields__"):
        return f"function{signature(thing)}: {first_line(thing)}"
    if isinstance(thing, dict):
        return f"dict of {', '.join(map(str, thing))}"
    return f"value of {type(thing).__name__}"


def namespace(name):
    """The public names of a module."""
    parent, _, last = name.rpartition(".")
    module = getattr(cc, last) if parent == "concordant" and last in cc.__all__ else import_module(name)
    return {key: described(getattr(module, key)) for key in sorted(module.__all__) if key != "__version__"}


def imported(name):
    """The object of a dotted name."""
    module, _, last = name.rpartition(".")
    return getattr(cc if module == "concordant" else import_module(module), last)


def reference():
    """What docs/api.md documents by a module of its own, by its bare name: modules may move."""
    torch = find_spec("torch") is not None
    entries = {}
    for name in documented():
        if name.count(".") > 1 and (torch or ".torch." not in name):
            entries.setdefault(name.rpartition(".")[2], []).append(described(imported(name)))
    return {name: sorted(things, key=str) for name, things in sorted(entries.items())}


def names():
    """All namespaces that can be imported here; `concordant.torch` needs torch."""
    return {
        name: namespace(name)
        for name in NAMESPACES
        if name != "concordant.torch" or find_spec("torch") is not None
    }


def parameter(item):
    """An option or argument: its flags, what it takes, its default and help."""
    flags = " ".join([*item.opts, *item.secondary_opts])
    kind = getattr(item, "type_descriptor", None) or item.type
    value = getattr(kind, "annotation", kind)
    times = "several" if item.multiple or item.nargs != 1 else ""
    default = "required" if item.required else "" if callable(item.default) else str(item.default)
    text = getattr(item, "help", None) or ""
    shown = [getattr(item, "rich_help_panel", None) or "", item.metavar]  # a metavar of "": none is shown
    return [flags, getattr(value, "__name__", str(value)), times, default, text, *shown]


def walked(command, *names):
    """Every command with its names, groups too."""
    yield " ".join(names), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walked(inner, *names, name)


def commands(root=app):
    """Help and parameters of every command."""
    return {
        name or "concordant": {
            "panel": getattr(command, "rich_help_panel", None) or "",
            "help": " ".join((command.help or "").split()),
            "epilog": (command.epilog or "").split("\n"),
            "parameters": [parameter(item) for item in command.params],
        }
        for name, command in walked(typer.main.get_command(root))
    }
