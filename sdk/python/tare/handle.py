"""The common part of Model and Run: one owner at a time, and closing."""

import os
import threading
from contextlib import contextmanager

from tare_sdk import TareError


class Pinned:
    """Holds memory of the engine by its address, so it can be neither copied nor pickled."""

    def __reduce_ex__(self, _protocol):
        raise TypeError("a %s cannot be copied or pickled: it holds the engine's memory; copy the arrays, or what you need of them" % type(self).__name__)


class Held:
    """The library's handle of an open object, or None, and the lock of its current user. The end of
    the program takes the lock too, so a thread that is still at work finishes its call first.
    """

    def __init__(self):
        self.handle, self.pid, self.lock = None, os.getpid(), threading.Lock()

    def end(self, close):
        if self.pid != os.getpid():
            return
        with self.lock:
            handle, self.handle = self.handle, None
            if handle:
                close(handle)


class Handle(Pinned):
    """An open object of the library. A call is refused from a second thread while one is in
    progress, from a forked child, and after close().
    """

    _what = "handle"

    def __init__(self):
        self._held = Held()

    @contextmanager
    def _use(self):
        held = self._held
        if held.pid != os.getpid():
            raise TareError("the %s was opened in process %d, and its threads do not exist in this child process; open one here" % (self._what, held.pid), 60)
        if not held.lock.acquire(blocking=False):
            raise TareError("the %s is at work, in another thread or in the call that called this function; it does one thing at a time"
                            % self._what, 60)
        try:
            if not held.handle:
                raise TareError("the %s is closed" % self._what, 60)
            yield held.handle
        finally:
            held.lock.release()

    def __enter__(self):
        return self

    def __exit__(self, _type, error, _trace):
        try:
            self.close()
        except TareError:
            if error is None:  # else the first error is the one to be seen
                raise
