"""The number of partitions that a slot had still to resume when it last wrote its rows (no I/O, no clock)."""

UNKNOWN = -1


class ResumingCount:
    """The count of one run of a slot for its next status row.

    The progress rows come before the status row in the state topic.
    """

    def __init__(self) -> None:
        self._count = UNKNOWN
        self._generation = UNKNOWN

    def on_rows_written(self, generation: int, count: int) -> None:
        """Note that every row that was due is acknowledged.

        Args:
            generation: The generation of the assignment.
            count: How many of its partitions had not resumed when the rows were made.
        """
        self._generation, self._count = generation, count

    def take_count(self, generation: int) -> int:
        """Return the count for the assignment of this `generation`, once.

        It is -1 if no rows were written since the last call, or only rows of an earlier assignment.
        """
        count, self._count = self._count, UNKNOWN
        return count if generation == self._generation else UNKNOWN
