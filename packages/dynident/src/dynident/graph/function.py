"""`Function`: outputs as expressions of inputs, for one sample or for a whole batch of them.

    out[s, k] = expression_k(inputs[s, :], shared[:])        for every sample s

The symbol ``q[3]`` is column 3 of the input array ``q``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dynident.graph.expression import Node


@dataclass(frozen=True, eq=False)
class Function:
    """A function of arrays.

    Parameters
    ----------
    name : str
        An identifier.
    inputs : mapping
        Arrays with one row per sample, and their number of columns.
    outputs : mapping
        The expression of every column that is written; None leaves a column as it is.
    shared : mapping
        Arrays that are the same for all samples, such as parameters, and their length.
    rows : frozenset of str
        Inputs and outputs stored with samples last: entry k is a row over time.
    """

    name: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, Sequence[Node | None]]
    shared: Mapping[str, int] = field(default_factory=dict)
    rows: frozenset[str] = frozenset()

    @property
    def arrays(self) -> tuple[str, ...]:
        """All arrays in the order in which machine code takes them."""
        return (*self.inputs, *self.shared, *self.outputs)

    @property
    def entries(self) -> list[Node]:
        """All expressions that are written."""
        return [node for nodes in self.outputs.values() for node in nodes if node is not None]
