"""Write the pins anew: `make pins` or `make pins PINS=surface`, with torch, boosters and ONNX installed."""

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.pins import golden, surface, values

HERE = Path(__file__).resolve().parent


def write(name, value):
    """Write a pin as JSON, a line for each small value, so that a change is seen in the diff."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    if name == "values":  # a line for each list of numbers
        text = re.sub(r"\[[^\[\]{}\"]*\]", lambda numbers: " ".join(numbers[0].split()), text)
    (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def surface_pin():
    """Names, signatures, commands."""
    return {"names": surface.names(), "reference": surface.reference(), "commands": surface.commands()}


def kept_or_written(name, model, folder):
    """The model file of a model: the one that is there, if it holds an equal model."""
    old = folder / golden.file_name(name)
    with TemporaryDirectory() as other:
        new = golden.written(name, model, other)
        if not old.is_file() or golden.digest(old) != golden.digest(new):
            old.write_bytes(new.read_bytes())
    return old


def golden_pin():
    """Numbers of models, certificates, exports; the model files are written beside."""
    models = {name: golden.fitted(name) for name in golden.MODELS}
    folder = HERE / "models"
    folder.mkdir(exist_ok=True)
    paths = {name: kept_or_written(name, model, folder) for name, model in models.items()}
    return {
        "models": {name: golden.learned(name, model) for name, model in models.items()},
        "certificates": {name: golden.certificate(model) for name, model in models.items()},
        "digests": {name: golden.digest(path) for name, path in paths.items()},
        "exports": {
            name: {kind: golden.exported(name, kind, models[name]) for kind in kinds}
            for name, kinds in golden.EXPORTS.items()
        },
        "export rows": {name: golden.export_rows(name, models[name]) for name in golden.EXPORTS},
        "certified": golden.certified(),
        "matrix": golden.matrix(),
    }


if __name__ == "__main__":
    names = sys.argv[1:] or ["surface", "golden", "values"]
    for name, pin in {"surface": surface_pin, "golden": golden_pin, "values": values.all_topics}.items():
        if name in names:
            write(name, pin())
