"""Rows that are given as objects, written to a file that the engine reads."""

import hashlib
import json
import os


def _row(key, i, row):
    if not isinstance(row, dict):
        raise TypeError("%s: row %d must be a dictionary, not %s" % (key, i, type(row).__name__))
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as why:
        raise type(why)("%s: row %d: %s" % (key, i, why)) from None


def _plain(value):
    """Arrays and numbers of NumPy, dates."""
    for name in ("tolist", "isoformat"):
        if hasattr(value, name):
            return getattr(value, name)()
    raise TypeError("a value of the type %s has no form in JSON" % type(value).__name__)


def data_file(key, value, folder):
    """Returns the file of a data set. value: the file's name, or rows: a list or another iterable of
    dictionaries (datasets.Dataset), a DataFrame. Rows are written next to the run's folder, to a
    file whose name has their checksum, so that the run can be resumed with it.
    """
    if isinstance(value, (str, os.PathLike)):
        return value
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a DataFrame
        value = value.to_dict("records")
    if isinstance(value, dict):
        raise TypeError("%s: must be one data set, not a dictionary of them; choose one: %s"
                        % (key, ", ".join("data[%r]" % name for name in list(value)[:4])))
    try:
        rows = list(value)
    except TypeError:
        raise TypeError("%s: must be a file or rows, not %s" % (key, type(value).__name__)) from None
    if not rows:
        raise ValueError("%s: no rows" % key)
    if not folder:
        raise ValueError("%s: rows are written next to the run's folder; set run__dir" % key)
    text = "".join(_row(key, i, row) + "\n" for i, row in enumerate(rows)).encode("utf-8", "surrogatepass")
    folder = os.path.abspath(os.fspath(folder))
    path = "%s.%s-%s.jsonl" % (folder, key.partition(".")[2], hashlib.sha256(text).hexdigest()[:12])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "wb") as file:
        file.write(text)
    os.replace(path + ".part", path)
    return path
