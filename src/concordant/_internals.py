"""The only internal names that `studies/` in the source repository may import.

Studies use the public API; where that is not enough, they import from here. So the
stub beside this file, `_internals.pyi`, lists all that a change inside the package can break in a study.
Nothing in the package imports this module. Each name loads its own module on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("concordant", __file__)
