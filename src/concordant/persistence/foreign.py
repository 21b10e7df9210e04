"""Models of other libraries inside ours: boosted trees in their library's own format, networks as arrays."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from concordant.exceptions import MissingExtraError, ShapeError
from concordant.persistence.kinds import BYTES, FLAG, REAL, WHOLE, Kind, array, several
from concordant.persistence.tree_soundness import check_lightgbm, check_xgboost
from concordant.rankers.boosters import BOOSTERS

if TYPE_CHECKING:
    from concordant.scorers.neural import NeuralScorer

__all__ = ["FOREIGN", "Blob", "foreign_of"]


class Blob(NamedTuple):
    """Contents of a file, and how its name ends."""

    contents: bytes
    suffix: str


class LightGBMTrees:
    """Text, as LightGBM writes it: numbers have all their digits."""

    fields: ClassVar[Mapping[str, Kind]] = {"trees": BYTES}

    def packed(self, value: Any) -> dict[str, Any]:
        """All trees."""
        return {"trees": Blob(value.model_to_string(num_iteration=-1).encode(), ".txt")}

    def made(self, trees: bytes) -> Any:
        """Read them, if they are trees."""
        check_lightgbm(trees)
        return BOOSTERS["lightgbm"].library().Booster(model_str=trees.decode())


class XGBoostTrees:
    """JSON, as XGBoost writes it: numbers have all their digits."""

    fields: ClassVar[Mapping[str, Kind]] = {"trees": BYTES}

    def packed(self, value: Any) -> dict[str, Any]:
        """All trees."""
        return {"trees": Blob(bytes(value.save_raw("json")), ".json")}

    def made(self, trees: bytes) -> Any:
        """Read them, if they are trees."""
        checked = check_xgboost(trees)
        return BOOSTERS["xgboost"].library().Booster(model_file=bytearray(checked))


class CatBoostTrees:
    """CatBoost's own format, without the time and the random name that it gives to each model."""

    fields: ClassVar[Mapping[str, Kind]] = {"trees": BYTES}

    def packed(self, value: Any) -> dict[str, Any]:
        """All trees; CatBoost writes to files only."""
        model = value.copy()
        notes = model.get_metadata()
        for name in ("train_finish_time", "model_guid", "catboost_version_info"):
            if name in notes:
                notes[name] = ""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trees.cbm"
            model.save_model(str(path), format="cbm")
            return {"trees": Blob(path.read_bytes(), ".cbm")}

    def made(self, trees: bytes) -> Any:
        """Read them."""
        return BOOSTERS["catboost"].library().CatBoost().load_model(blob=trees)


class Network:
    """A `NeuralScorer` as arrays: its transforms, and weights and biases of its layers."""

    fields: ClassVar[Mapping[str, Kind]] = {
        "n_features": WHOLE,
        "context": FLAG,
        "dropout": REAL,
        "transforms": several(
            Kind("a name and arrays", lambda one: isinstance(one, tuple) and len(one) == 2 and arrays(one))
        ),
        "weights": several(array(np.float32, 2)),
        "biases": several(array(np.float32, 1)),
    }

    def packed(self, value: NeuralScorer) -> dict[str, Any]:
        """Take it apart."""
        from concordant.scorers.neural_transforms import TRANSFORMS

        names = {kind: name for name, kind in TRANSFORMS.items()}
        layers = [layer for layer in value.layers if hasattr(layer, "weight")]
        shares = [layer.share for layer in value.layers if hasattr(layer, "share")]
        return {
            "n_features": value.n_features,
            "context": value.context,
            "dropout": float(shares[0]) if shares else 0.0,
            "transforms": tuple(
                (names[type(one)], {name: taken(kept) for name, kept in one.named_buffers()})
                for one in value.transforms
            ),
            "weights": tuple(taken(layer.weight) for layer in layers),
            "biases": tuple(taken(layer.bias) for layer in layers if layer.bias is not None),
        }

    def made(self, n_features: int, transforms: Sequence[Any], weights: Any, biases: Any, **how: Any) -> Any:
        """Put it together."""
        if find_spec("torch") is None:
            raise MissingExtraError("torch", "torch", "NeuralRanker")
        import torch

        from concordant.scorers.neural import NeuralScorer
        from concordant.scorers.neural_transforms import TRANSFORMS, tensor_of

        check_network(n_features, transforms, weights, biases, context=how["context"])
        given = torch.nn.Sequential(*(TRANSFORMS[name](**kept) for name, kept in transforms))
        hidden, level = [len(weight) for weight in weights[:-1]], len(biases) == len(weights)
        rng = np.random.default_rng(0)  # weights that are replaced at once
        scorer = NeuralScorer(
            given, n_features, hidden, how["dropout"], context=how["context"], level=level, rng=rng
        )
        linear = [layer for layer in scorer.layers if hasattr(layer, "weight")]
        with torch.no_grad():
            for layer, weight, bias in itertools.zip_longest(linear, weights, biases):
                layer.weight.copy_(tensor_of(weight))
                if bias is not None:
                    layer.bias.copy_(tensor_of(bias))
        return scorer.eval()


def arrays(transform: tuple[Any, Any]) -> bool:
    """Whether this is a name, and arrays by name."""
    name, kept = transform
    known = array(np.float64, 1), array(np.float64, 2)
    return (
        isinstance(name, str)
        and isinstance(kept, dict)
        and all(any(kind.fits(one) for kind in known) for one in kept.values())
    )


def taken(tensor: Any) -> Any:
    """Give a tensor as an array of its own."""
    return tensor.detach().cpu().numpy().copy()


def check_network(
    n_features: int, transforms: Sequence[Any], weights: Any, biases: Any, *, context: bool
) -> None:
    """Refuse layers that do not follow from one another, and transforms of other features."""
    widths = [n_features * (2 if context else 1), *(len(weight) for weight in weights)]
    for number, (weight, wanted) in enumerate(zip(weights, itertools.pairwise(widths), strict=True)):
        if weight.shape != wanted[::-1]:
            raise ShapeError(f"layer {number}", weight.shape, f"{wanted[::-1]}")
    if widths[-1] != 1 or not len(weights) - 1 <= len(biases) <= len(weights):
        raise ShapeError("the last layer", (widths[-1], len(biases)), "one score, and a bias per layer")
    for bias, weight in zip(biases, weights, strict=False):
        if len(bias) != len(weight):
            raise ShapeError("a bias", bias.shape, f"({len(weight)},)")
    for name, kept in transforms:
        for one in kept.values():
            if len(one) != n_features or (one.ndim == 2) != (name == "quantile") or not one.size:
                raise ShapeError(f"the transform {name}", one.shape, f"{n_features} features")


# Each takes objects of a class that is not ours apart, into fields, and puts them together again.
FOREIGN: Mapping[str, Any] = {
    "lightgbm": LightGBMTrees(),
    "xgboost": XGBoostTrees(),
    "catboost": CatBoostTrees(),
    "network": Network(),
}
CLASSES = {
    ("lightgbm", "Booster"): "lightgbm",
    ("xgboost", "Booster"): "xgboost",
    ("catboost", "CatBoost"): "catboost",
    ("concordant", "NeuralScorer"): "network",
}


def foreign_of(value: Any) -> str | None:
    """Give the name under which such an object is kept; None where it is none of these."""
    kind = type(value)
    return CLASSES.get((kind.__module__.partition(".")[0], kind.__name__))
