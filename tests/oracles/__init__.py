"""Definitions, typed naively, by chapter: every fast kernel of the package is compared with one of these.

Nothing here imports the package. All names can be read from `tests.oracles` itself.
"""

from tests.oracles.aggregation import *  # noqa: F403
from tests.oracles.bounds import *  # noqa: F403
from tests.oracles.comparisons import *  # noqa: F403
from tests.oracles.conditions import *  # noqa: F403
from tests.oracles.decoders import *  # noqa: F403
from tests.oracles.evaluation import *  # noqa: F403
from tests.oracles.impossibility import *  # noqa: F403
from tests.oracles.letor import *  # noqa: F403
from tests.oracles.lowrank import *  # noqa: F403
from tests.oracles.machines import *  # noqa: F403
from tests.oracles.maxmargin import *  # noqa: F403
from tests.oracles.metrics import *  # noqa: F403
from tests.oracles.networks import *  # noqa: F403
from tests.oracles.pairs import *  # noqa: F403
from tests.oracles.ratings import *  # noqa: F403
from tests.oracles.regret import *  # noqa: F403
from tests.oracles.solvers import *  # noqa: F403
from tests.oracles.standardization import *  # noqa: F403
from tests.oracles.surrogates import *  # noqa: F403
from tests.oracles.transfer import *  # noqa: F403
