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
    """A function of arrays."""

    name: str  # an identifier
    inputs: Mapping[str, int]  # arrays with one row per sample, and how many columns they have
    outputs: Mapping[str, Sequence[Node | None]]  # the expression of every column that is written; None leaves it as it is
    shared: Mapping[str, int] = field(default_factory=dict)  # arrays that are the same for all samples, such as parameters
    rows: frozenset[str] = frozenset()  # inputs and outputs stored with samples last: entry k is a row over time

    @property
    def arrays(self) -> tuple[str, ...]:
        """All arrays in the order in which machine code takes them."""
        return (*self.inputs, *self.shared, *self.outputs)

    @property
    def entries(self) -> list[Node]:
        """All expressions that are written."""
        return [node for nodes in self.outputs.values() for node in nodes if node is not None]
