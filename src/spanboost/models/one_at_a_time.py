"""Models and estimators for several threads: the calls of each are served one after the other.

A model predicts and learns in arrays that it uses again, so each object has a lock. The methods in
`served` hold it. Threads that such a call starts work on parts of the object, which have locks of
their own, and never wait for the lock of the object.
"""

import copy
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from inspect import signature
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from spanboost.compiling.rehearsal import is_recording

_LOCK, _SNAPSHOT = "_lock", "_snapshot"  # attributes that are not part of the state


class _Lock:
    """The lock of an object, which its first use creates.

    There is no `__set__`: later uses find the lock in the object, which takes less time.
    """

    def __get__(self, owner: Any, _: type) -> Any:
        if owner is None:
            return self
        _owners[id(owner)] = owner
        return vars(owner).setdefault(_LOCK, threading.RLock())  # atomic


class OneAtATime:
    """Base class of objects that serve one thread at a time.

    served: names of the methods and properties that hold the lock.
    """

    served: ClassVar[frozenset[str]] = frozenset()
    _lock = _Lock()

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        for name in cls.served & vars(cls).keys():
            value = vars(cls)[name]
            if isinstance(value, property):
                setattr(cls, name, value.getter(serve_one(value.fget)))
            else:
                setattr(cls, name, serve_one(value))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: a copy, because another thread may learn meanwhile."""
        if vars(self).get(_SNAPSHOT):  # part of such a copy
            return _state(self)
        memo: dict[Any, Any] = {_SNAPSHOT: True, id(self): self}  # it may refer to itself
        with lock_of(self):
            return copy.deepcopy(_state(self), memo)


def serve_one(method: Callable[..., Any] | None) -> Callable[..., Any]:
    """Let a method hold the lock of its object."""
    assert method is not None
    return wraps(method)(_FOR_ROWS.get((*signature(method).parameters,), _serve_any)(method))


def _serve_any(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **given: Any) -> Any:
        with self._lock:
            return method(self, *args, **given)

    return call


def _serve_row(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, x: Any) -> Any:
        with self._lock:
            return method(self, x)

    return call


def _serve_labelled_row(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, x: Any, y: Any, weight: Any = 1.0) -> Any:
        with self._lock:
            return method(self, x, y, weight)

    return call


# single rows take microseconds, and passing on any arguments a tenth of one
_FOR_ROWS = {("self", "x"): _serve_row, ("self", "x", "y", "weight"): _serve_labelled_row}


def lock_of(owner: Any) -> AbstractContextManager[Any]:
    """Return the lock of a model or an estimator, to hold it for several calls."""
    lock: AbstractContextManager[Any] = getattr(owner, _LOCK)
    return lock


def copy_deeply(owner: OneAtATime, memo: dict[Any, Any]) -> dict[str, Any]:
    """Return a deep copy of the state of an object.

    A rehearsal copies a model inside one of its calls, in any of its threads: it needs no lock.
    """
    if is_recording():
        return copy.deepcopy(_state(owner), memo)
    with lock_of(owner):
        state = copy.deepcopy(_state(owner), memo)
    return state | ({_SNAPSHOT: True} if _SNAPSHOT in memo else {})


def share_state(owner: OneAtATime, double: OneAtATime) -> dict[str, Any]:
    """Return the attributes for a shallow copy, which shares the parts and so the lock."""
    _owners[id(double)] = double
    return _state(owner) | {_LOCK: lock_of(owner)}


def _state(owner: OneAtATime) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if name not in (_LOCK, _SNAPSHOT)}


def _renew_locks() -> None:
    """Give all objects new locks: threads that hold the old ones do not exist after a fork."""
    renewed: dict[int, Any] = {}
    for owner in list(_owners.values()):
        held = id(vars(owner)[_LOCK])
        vars(owner)[_LOCK] = renewed.setdefault(held, threading.RLock())


_owners: WeakValueDictionary[int, Any] = WeakValueDictionary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
