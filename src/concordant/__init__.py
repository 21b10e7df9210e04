"""Learning to rank with guarantees: name the metric, get the loss that provably optimises it.

The public names stand in `__init__.pyi`, in the order of the data's way through the library; they load on
first use, so that `import concordant` stays cheap and parts with missing dependencies do not get in the way.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
