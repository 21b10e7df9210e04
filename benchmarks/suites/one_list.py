"""One long list: value and gradient against the peers and against comparing every pair."""

from collections.abc import Callable
from itertools import chain

import numpy as np

import concordant as cc
from benchmarks.peers import build_installed
from benchmarks.peers.losses import LOOPS, SLOW, LossPeer, allrank, rax
from benchmarks.shared.lists import asked, different, drawn, moving, renewed
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import Race, race
from concordant.surrogates import Pairwise, Preorder

NEW, BOUND, HINGE, LOGISTIC = "new loss", "bound loss", "preorder, hinge", "preorder, logistic"
OURS = {
    NEW: "`Pairwise().bind(y, offsets).value_and_grad(scores)`: checks, memory and sort included",
    BOUND: "`loss.value_and_grad(scores)`, bound before, scores moving a little as in optimisation",
    HINGE: "the same with `Preorder('unit', 'hinge')`, which is rax's loss",
    LOGISTIC: "the same with `Preorder('unit', 'logistic')`, which is allRank's: our double loop",
}
GOALS = (
    ("rax", 500.0),
    *((name, 500.0) for name in SLOW),
    ("double loop", 20.0),
    ("double loop, vectorised", 20.0),
)
SAME = 1e-4  # ours and the peer may differ by this share: rax and allRank compute in float32


def one_list(n: int, rounds: int) -> list[Table]:
    """One list of n items against the peers, and the goals."""
    _, y, offsets = drawn(1, n)
    peers, absent = _build(y)
    _check()
    near, far = moving(n, y), different(n, y)
    ours: dict[str, Callable[[], object]] = {
        NEW: renewed(Pairwise(), y, far),
        BOUND: asked(Pairwise().bind(y, offsets), near),
        HINGE: asked(Preorder("unit", "hinge").bind(y, offsets), near),
        LOGISTIC: asked(Preorder("unit", "logistic").bind(y, offsets), near),
    }
    theirs = {peer.name: lambda call=peer.call: call(next(far)) for peer in peers}
    slow = {name: call for name, call in theirs.items() if name in SLOW}
    races = [race(ours | {k: v for k, v in theirs.items() if k not in SLOW}, title="one list", rounds=rounds)]
    if slow:
        races.append(race(ours | slow, title="one list, slow peers", rounds=min(rounds, 2)))
    return [_against(n, peers, absent, races), _goals(races)]


def _build(y: np.ndarray) -> tuple[list[LossPeer], list[str]]:
    """Peers that are installed, and the names of those that are not."""
    peers, absent = build_installed((*LOOPS, rax, allrank), y)
    return list(chain.from_iterable(peers)), absent


def _check() -> None:
    """Raise if the numbers differ: speeds of different numbers are not compared."""
    scores, y, _ = drawn(1, 200)
    for peer in _build(y)[0]:
        if peer.same is None:
            continue
        surrogate, margin = peer.same
        ours = float(cc.surrogates.SURROGATES[surrogate](margin=margin)(scores, y)[0].sum())
        theirs = peer.factor * peer.call(scores)
        if not abs(ours - theirs) <= SAME * abs(ours):
            raise SystemExit(f"{peer.name} gives {theirs!r}, ours {ours!r}")


def _against(n: int, peers: list[LossPeer], absent: list[str], races: list[Race]) -> Table:
    """One row for each tool; ratios above 1: ours is faster."""
    table = Table(
        f"One list of {n:,} items: value and gradient",
        "Other scores in every call. The last three columns: how many times longer the row takes than ours: "
        "`Pairwise()` with a new loss; bound before; ours that computes the row's own loss (checked on a "
        "short list: rax and allRank compare only items of different grades, in float32). Medians over "
        "rounds of the best of several runs.",
        ("tool", "timed", "threads", "ms", f"/ {NEW}", f"/ {BOUND}", "/ same loss"),
    )
    twins = {
        ("preorder", "hinge"): HINGE,
        ("preorder", "logistic"): LOGISTIC,
        ("pairwise", "huber_hinge"): NEW,
    }
    rows = [(name, timed, "1", None) for name, timed in OURS.items()]
    rows += [(peer.name, peer.timed, peer.threads, twins.get(peer.same)) for peer in peers]
    for name, timed, used, twin in rows:
        timings = next(some for some in races if name in some.seconds)
        ratios = [timings.ratio(name, ours) for ours in (NEW, BOUND)]
        same_loss = timings.ratio(name, twin) if twin else None
        table.rows.append((name, timed, used, timings.median(name) * 1e3, *ratios, same_loss))
    table.rows.extend((name, "not installed", "", None, None, None, None) for name in absent)
    return table


TWINS = {"rax": (HINGE,), "allRank": (LOGISTIC,)}


def _goals(races: list[Race]) -> Table:
    """Goals of the project; reported, never asserted."""
    table = Table(
        "Goals for one list",
        "How many times longer the peer takes than ours: median over rounds (lowest to highest round). "
        "Reached: in every round, in the median only, or no. Never asserted. Beside our pairwise loss, ours "
        "that computes the peer's own loss, where there is one.",
        ("against", "goal", "ours", "median", "lowest", "highest", "reached"),
    )
    for name, target in GOALS:
        for timings in (some for some in races if name in some.seconds):
            for ours in (NEW, BOUND, *TWINS.get(name, ())):
                table.rows.append((name, f"at least {target:g}", ours, *timings.goal(name, ours, target)))
    return table
