"""Encoders turn prompts into embeddings (tare/encoder.h), codebooks into clusters
(tare/codebook.h).
"""

import ctypes as c
import math

from . import abi
from .columns import fixed, fresh, plain, texts
from .errors import TareError
from .plugin import Opened


def _matrix(array, n, width):
    """[n, width] of a flat array: a NumPy array, or lists."""
    return array.reshape(n, width) if hasattr(array, "reshape") else [array[i * width: (i + 1) * width] for i in range(n)]


class Encoder(Opened):
    """dim: D."""

    kind = abi.KIND_ENCODER
    table_type = abi.EncoderTable
    required = ("sizes", "encode")

    @property
    def dim(self):
        return self._sizes().dim

    def encode(self, prompts):
        """The embeddings of texts, [n, dim]."""
        _keep, pointer, n = texts(prompts)
        out, to = fresh(abi.f32, n * self.dim, math.nan)
        self._call("encode", self._table.encode, self._self, pointer, n, to)
        return _matrix(plain(out, n * self.dim), n, self.dim)

    def fit(self, corpus):
        """Learns from texts; without effect for an encoder that learns nothing."""
        if self._table.fit:
            _keep, pointer, n = texts(corpus)
            self._call("fit", self._table.fit, self._self, pointer, n)


class Codebook(Opened):
    """dim: D, 0 for a codebook of rows; clusters: K."""

    kind = abi.KIND_CODEBOOK
    table_type = abi.CodebookTable
    required = ("sizes", "assign")

    @property
    def dim(self):
        return self._sizes().dim

    @property
    def clusters(self):
        return self._sizes().clusters

    def _prompts(self, embeddings, rows):
        """Makes a tare_prompts, and what keeps it alive. embeddings: [n][dim]; rows: dictionaries."""
        if (embeddings is None) == bool(self.dim):
            raise TareError("%s: it takes %s" % (self.name, "embeddings of %d numbers" % self.dim if self.dim else "rows"), 13)
        n = len(rows if embeddings is None else embeddings)
        vectors = fixed(abi.f32, [] if embeddings is None else [x for vector in embeddings for x in vector])
        if vectors[2] != n * self.dim or (rows is not None and len(rows) != n):
            raise TareError("%s: %d numbers and %s rows for %d prompts of %d numbers" % (self.name, vectors[2], rows and len(rows), n, self.dim), 13)
        lines = texts([] if rows is None else rows)
        raw = abi.sized(abi.Prompts, n=n, embedding=vectors[1] if self.dim else None, row=None if rows is None else lines[1])
        return raw, (vectors, lines)

    def assign(self, embeddings=None, rows=None):
        """The cluster of each prompt, and its squared distance: two arrays [n]."""
        raw, _keep = self._prompts(embeddings, rows)
        (cluster, to), (distance, far) = fresh(abi.i32, raw.n, -1), fresh(abi.f32, raw.n, math.nan)
        self._call("assign", self._table.assign, self._self, c.byref(raw), c.byref(abi.sized(abi.Assignment, cluster=to, distance=far)))
        for k in cluster[: raw.n]:
            if not -1 <= k < self.clusters:
                raise TareError("%s: assign: cluster %d of %d" % (self.name, k, self.clusters), 80)
        return plain(cluster, raw.n), plain(distance, raw.n)

    def fit(self, embeddings=None, rows=None):
        """Learns from every row of the data set; without effect for a codebook that learns nothing."""
        if self._table.fit:
            raw, _keep = self._prompts(embeddings, rows)
            self._call("fit", self._table.fit, self._self, c.byref(raw))

    def encoder_identity(self):
        """The identity of the encoder whose embeddings it takes; "": any."""
        return self._written("encoder_identity", self._table.encoder_identity, self._self).decode(errors="replace")

    def encoder_state(self):
        return self._written("encoder_state", self._table.encoder_state, self._self)

    def cluster_name(self, k):
        return self._written("cluster_name", self._table.cluster_name, self._self, k).decode(errors="replace")
