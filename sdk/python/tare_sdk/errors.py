"""The error of this package."""


class TareError(Exception):
    """An error of a plugin or of loading it; code is the ABI's status."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code
