"""Curricula choose the next rows and the rollouts that are kept (tare/curriculum.h)."""

import ctypes as c

from . import abi
from .columns import Batch, Views, fixed
from .errors import TareError
from .plugin import Opened


class Curriculum(Opened):
    """An instance with its state. rows: the data set, a dictionary each; sources: the file of each
    row, an index; source_weight: of each file; prompt_uid: of each row, its index without it.
    """

    kind = abi.KIND_CURRICULUM
    table_type = abi.CurriculumTable

    def __init__(self, name, rows, prompts_per_step=1, group_size=8, sources=None, source_weight=None, prompt_uid=None, run_seed=0, instance=None,
                 **parameters):
        n = len(rows)
        sources, prompt_uid = [0] * n if sources is None else list(sources), range(n) if prompt_uid is None else prompt_uid
        weights = [1.0] * (max(sources, default=0) + 1) if source_weight is None else list(source_weight)
        self.rows, self.group_size, self.prompts_per_step, self.cursor, self.steps = rows, group_size, prompts_per_step, 0, 0
        self._drawn, self._before = [], 0

        def dataset(plugin):
            self._views = Views(plugin, {"row_json": rows}, {abi.AXIS_ROW: n})
            self._keep = [fixed(abi.u64, prompt_uid), fixed(abi.i32, sources), fixed(abi.f64, weights)]
            uid, source, weight = (pointer for _, pointer, _ in self._keep)
            self._dataset = abi.sized(abi.Dataset, n_rows=n, n_sources=len(weights), prompts_per_step=prompts_per_step, group_size=group_size,
                                      prompt_uid=uid, source=source, source_weight=weight, column=self._views.array)
            return self._dataset

        super().__init__(name, run_seed=run_seed, instance=instance, dataset=dataset, **parameters)

    def next(self, n):
        """Chooses n rows: [(row, rollouts)]. The plain order is that of the rows, again and again."""
        ordered = (abi.i64 * n)(*[(self.cursor + i) % len(self.rows) for i in range(n)])
        rows, rollouts = (abi.i64 * n)(*[-1] * n), (abi.i64 * n)(*[self.group_size] * n)
        if self._table.next:
            drawn = (abi.i64 * max(len(self._drawn), 1))(*self._drawn)
            draw = abi.sized(abi.Draw, step=self.steps, n=n, cursor=self.cursor, ordered=ordered, drawn=drawn, n_drawn=len(self._drawn))
            self._call("next", self._table.next, self._self, c.byref(draw), c.byref(abi.sized(abi.Choice, row=rows, n_rollouts=rollouts)))
        else:
            rows = ordered
        if not all(0 <= row < len(self.rows) for row in rows) or min(rollouts) < 1 or sum(rollouts) > n * self.group_size:
            raise TareError("%s: next: the rows %r with %r rollouts, of %d rows and at most %d rollouts"
                            % (self.name, rows[:], rollouts[:], len(self.rows), n * self.group_size), 80)
        self.cursor += n
        self._drawn += rows[:]
        return list(zip(rows[:], rollouts[:]))

    def _batch(self, rows, rewards, columns):
        """rewards: [groups][rollouts]; columns of rollouts in the same shape. rows: of each group."""
        flat = {name: [x for group in values for x in group] for name, values in columns.items()}
        flat["prompt_uid"] = [self._dataset.prompt_uid[row] for row in rows]
        return Batch(self, self.steps, [r for group in rewards for r in group], [len(group) for group in rewards], row_index=list(rows),
                     row_json=[self.rows[row] for row in rows], absent=() if "fate" in columns else ("fate",), **flat)

    def keep(self, rows, rewards, **columns):
        """Decides about the rollouts of new groups: ([groups][rollouts] of "kept", "left_out",
        "counted", groups to sample in addition).
        """
        batch = self._batch(rows, rewards, columns)
        n = batch.raw.n_rollouts
        batch.raw.n_before = self._before
        self._before += batch.raw.n_groups
        fates = (abi.u8 * max(n, 1))()
        kept = abi.sized(abi.Kept, fate=fates)
        if self._table.keep:
            self._call("keep", self._table.keep, self._self, c.byref(batch.raw), c.byref(kept))
        if any(fate >= len(abi.FATES) for fate in fates) or not 0 <= kept.extra_groups <= self.prompts_per_step:
            raise TareError("%s: keep: the fates %r and %d groups in addition; fates are below %d, groups at most %d"
                            % (self.name, fates[:n], kept.extra_groups, len(abi.FATES), self.prompts_per_step), 80)
        names = iter([abi.FATES[fate] for fate in fates[:n]])
        return [[next(names) for _ in group] for group in rewards], kept.extra_groups

    def apply(self, rows, rewards, fate, **columns):
        """Ends the step: all its groups, in the order in which they were chosen, with their fates."""
        batch = self._batch(rows, rewards, dict(columns, fate=fate))
        if self._table.apply:
            self._call("apply", self._table.apply, self._self, c.byref(batch.raw))
        self._drawn, self._before = [], 0
        self.steps += 1
        self.metrics.clear()
