"""Count the partitions that a slot had yet to resume when it wrote its rows last (no I/O, no clock)."""

UNKNOWN = -1


class ResumingCount:
    """Hold the count of one run of a slot for its next status. The rows come before the status in the state topic."""

    def __init__(self) -> None:
        self._count = UNKNOWN
        self._generation = UNKNOWN

    def on_rows_written(self, generation: int, count: int) -> None:
        """Note that every row that was due is acknowledged. `count`: of the partitions of the assignment of this
        `generation`, how many had not resumed when the rows were made."""
        self._generation, self._count = generation, count

    def take_count(self, generation: int) -> int:
        """Return the count of the assignment of this `generation`, once. -1: no rows were written since it was taken
        last, or only those of an earlier assignment."""
        count, self._count = self._count, UNKNOWN
        return count if generation == self._generation else UNKNOWN
