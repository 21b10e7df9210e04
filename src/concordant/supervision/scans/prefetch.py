"""Reading ahead: the next parts are read on other threads while one is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["READERS", "ahead"]

Read = TypeVar("Read")

# One alone would keep a linear ranker waiting: to decode a part takes longer than to find its gradient.
READERS = 2


def ahead(readers: Sequence[Callable[[], Read]]) -> Iterator[Read]:
    """Call two at a time while the caller works on what an earlier one gave; results come in order.

    Three of them are alive at a time. What a reader raises is raised when its turn comes.

    >>> list(ahead([lambda: 1, lambda: 2]))
    [1, 2]
    """
    pool = ThreadPoolExecutor(READERS, thread_name_prefix="concordant-read")
    left, coming = iter(readers), deque[Future[Read]]()
    try:
        coming.extend(pool.submit(reader) for reader in islice(left, READERS))
        while coming:
            found = coming.popleft().result()
            coming.extend(pool.submit(reader) for reader in islice(left, 1))
            yield found
            del found  # before the next one is waited for: else four would be alive
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
