"""Items of several owners, which take turns."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class TurnRing(Generic[K, T]):
    """One item of each owner in turn; those of one owner in the order in which they came.

    An owner that comes stands at the end, so that it has its turn after as many others as were there.
    """

    __slots__ = ("_items", "_size")

    def __init__(self) -> None:
        self._items: OrderedDict[K, deque[T]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        for items in self._items.values():
            yield from items

    @property
    def owners(self) -> int:
        return len(self._items)

    @property
    def heads(self) -> Iterator[T]:
        """The next item of each owner; first that whose turn it is."""
        return (items[0] for items in self._items.values())

    def put(self, owner: K, item: T) -> None:
        self._items.setdefault(owner, deque()).append(item)
        self._size += 1

    def put_back(self, owner: K, item: T) -> None:
        """It was taken, and is the next one of all again."""
        self._items.setdefault(owner, deque()).appendleft(item)
        self._items.move_to_end(owner, last=False)
        self._size += 1

    def take(self) -> T:
        """The item whose turn it is; its owner goes to the end. Raises StopIteration without any."""
        owner, items = next(iter(self._items.items()))
        item = items.popleft()
        self._size -= 1
        if items:
            self._items.move_to_end(owner)
        else:
            del self._items[owner]
        return item

    def remove(self, owner: K, item: T) -> None:
        """Raises KeyError or ValueError if it is not there."""
        items = self._items[owner]
        items.remove(item)
        self._size -= 1
        if not items:
            del self._items[owner]
