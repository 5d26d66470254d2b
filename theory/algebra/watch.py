"""A thread that ends, in other threads, what takes too long; see the room's description."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

STEP_S = 0.04  # how late a call may be ended
AGAIN_S = 0.5  # where an exception was lost, as in a finaliser, it is raised again
IDLE_S = 5.0  # after which no one looks any more


class Interrupted(BaseException):
    """The time of the call that a thread is inside is spent."""


class _Place:
    """Whether a thread is inside a watched call, what ends it, and when it was interrupted."""

    __slots__ = ("__weakref__", "inside", "lock", "raised", "spent", "thread")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside, self.raised = False, 0.0
        self.spent: Callable[[], bool] = lambda: False
        self.thread = threading.get_ident()


class _Watcher:
    """The places of all threads, and the thread that looks at them while one is occupied."""

    def __init__(self) -> None:
        self.places: WeakSet[_Place] = WeakSet()
        self.own = threading.local()
        self.thread: threading.Thread | None = None

    def place(self) -> _Place:
        """The watch of the thread at work."""
        found = getattr(self.own, "place", None)
        if found is None:
            found = self.own.place = _Place()
            self.places.add(found)
        return found

    def start(self) -> None:
        """Have someone look at the places."""
        self.thread = threading.Thread(target=self._look, name="farfield-watch", daemon=True)
        self.thread.start()

    def _look(self) -> None:
        """Interrupt late calls until none is left."""
        seen = time.monotonic()
        while True:
            time.sleep(STEP_S)
            now = time.monotonic()
            for place in list(self.places):
                with place.lock:
                    if not place.inside:
                        continue
                    seen = now
                    if now > place.raised + AGAIN_S and place.spent():
                        place.raised = now
                        _set_exception(place.thread, Interrupted)
            if now > seen + IDLE_S:
                self.thread = None  # before the last look: who comes after it starts another
                if not any(place.inside for place in list(self.places)):
                    return
                self.thread = threading.current_thread()


_WATCHER = _Watcher()
os.register_at_fork(after_in_child=lambda: _WATCHER.__init__())  # type: ignore[misc]


def _set_exception(thread: int, exception: type[BaseException] | None) -> None:
    """Make an exception pending in a thread, or clear it."""
    value = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)


def inside() -> bool:
    """Whether the thread at work is inside a watched call."""
    return _WATCHER.place().inside


def watched(spent: Callable[[], bool], call: Callable[[], Any]) -> Any:
    """The value of a call.

    Args:
        spent: whether the call must end; asked in another thread.
        call: what is called.

    Raises:
        Interrupted: once it must end, wherever the call may be.
    """
    place = _WATCHER.place()
    place.spent, place.raised, place.inside = spent, 0.0, True
    try:
        if _WATCHER.thread is None:
            _WATCHER.start()
        return call()
    finally:  # no call and no jump back before the note: nothing can be delivered here
        with place.lock:
            place.inside = False
            if place.raised:
                _set_exception(place.thread, None)
