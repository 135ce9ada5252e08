"""What Model and Run share: one owner at a time, and an end."""

import os
import threading
from contextlib import contextmanager

from tare_sdk import TareError


class Handle:
    """An open object of the library. A call from a second thread while one is under way, from a child of fork, or after close() is refused."""

    _what = "handle"

    def __init__(self):
        self._handle, self._pid, self._lock = None, os.getpid(), threading.Lock()

    @contextmanager
    def _use(self):
        if self._pid != os.getpid():
            raise TareError("the %s was opened in process %d, and its threads are not in this child of it; open one here" % (self._what, self._pid), 60)
        if not self._lock.acquire(blocking=False):
            raise TareError("the %s is at work, in another thread or in the call that called this function; it does one thing at a time"
                            % self._what, 60)
        try:
            if not self._handle:
                raise TareError("the %s is closed" % self._what, 60)
            yield self._handle
        finally:
            self._lock.release()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
