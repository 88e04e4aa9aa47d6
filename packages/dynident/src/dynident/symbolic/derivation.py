"""`derive`: from a robot to its closed forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from dynident.errors import DescriptionError, DynidentError
from dynident.graph.expression import Graph
from dynident.mechanics.equations import Equations
from dynident.mechanism.force import Columns
from dynident.mechanism.mechanism import Mechanism
from dynident.symbolic.geometry import read_geometry
from dynident.symbolic.program import Program, Quantity
from dynident.symbolic.quantities import base_quantity, quantity
from dynident.symbolic.regroup import Regrouping, regroup

MAX_NODES = 500_000
MAX_SECONDS = 60.0

QUANTITIES: tuple[str, ...] = (
    "inverse_dynamics",
    "forward_dynamics",
    "regressor",
    "mass_matrix",
    "coriolis_matrix",
    "gravity",
    "forward_kinematics",
    "jacobian",
    "base_regressor",
    "base_inverse_dynamics",
    "base_parameters",
    "energies",
)

LATER = ("forward_dynamics", "base_inverse_dynamics", "base_parameters")  # derived when asked for
DEFAULT: tuple[str, ...] = tuple(name for name in QUANTITIES if name not in LATER)


def derive(
    mechanism: Mechanism,
    quantities: Sequence[str] = DEFAULT,
    *,
    geometry: str = "numeric",
    parameters: str = "symbolic",
    columns: Sequence[int] | None = None,
    frame: str | None = None,
    snap: float = 1e-9,
    max_nodes: int = MAX_NODES,
    max_seconds: float = MAX_SECONDS,
) -> Program:
    """Derive closed forms of a robot: recursive Newton-Euler on expressions that share everything.

    Parameters
    ----------
    mechanism : Mechanism
        Tree of any joints without loops; couplings are linear or smooth functions of NumPy that can be run on expressions.
    quantities : sequence of str
        Which of `QUANTITIES`:

        ``inverse_dynamics`` tau(q, v, a, phi) (n,), joint and motor terms included; ``forward_dynamics`` acc(q, v, tau, phi)
        (n,); ``regressor`` Y (n, p) with tau = Y phi;
        ``mass_matrix`` M (n, n); ``coriolis_matrix`` C (n, n) of the Christoffel symbols; ``gravity`` g (n,);
        ``forward_kinematics`` T (4, 4) and ``jacobian`` J (6, n) (linear rows first, link axes) of `frame`;
        ``base_regressor`` (n, b); ``base_inverse_dynamics`` tau(q, v, a, beta); ``base_parameters`` beta(phi) (b,);
        ``energies`` kinetic and potential (2,).
    geometry : {"numeric", "symbolic"}
        Lengths as numbers, or as symbols where they are not zero; directions are numbers in both cases.
    parameters : {"symbolic", "numeric"}
        Standard parameters as inputs ``phi``, or the robot's own numbers folded in.
    columns : sequence of int, optional
        Standard parameters that lead the base parameters (``base_parameters(mechanism).columns``); found here when omitted.
    frame : str, optional
        Link of the kinematics; the last one of the tree when omitted.
    snap : float
        Direction cosines closer than this to 0, 1, 1/2, sqrt(1/2) or sqrt(3/4) are taken as exact: descriptions write right
        angles with a dozen digits.
    max_nodes : int
        Number of sub-expressions at which to give up.
    max_seconds : float
        Time at which to give up.

    Returns
    -------
    Program
        The closed forms.

    Examples
    --------
    >>> import dynident as di
    >>> from dynident.symbolic import derive
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], gravity=(0, -9.81, 0)).with_terms(())
    >>> derive(arm, ["mass_matrix"]).operations().total < 60
    True
    """
    _check(mechanism, quantities, geometry, parameters)
    graph = Graph(max_nodes, max_seconds)
    values = mechanism.parameters.values
    phi = graph.symbols("phi", values.size) if parameters == "symbolic" else [graph.const(float(x)) for x in values]
    places = read_geometry(graph, mechanism, geometry == "symbolic", snap)
    equations = Equations(_closed(mechanism), graph, places, phi)
    link = frame if frame is not None else list(mechanism.tree.frames)[-1]
    mechanism.frame(link)
    wanted = tuple(dict.fromkeys(quantities))
    forms = {name: quantity(equations, name, link) for name in wanted if not name.startswith("base_")}
    regrouping = None
    if any(name.startswith("base_") for name in wanted):
        regressor = forms.get("regressor") or quantity(equations, "regressor", link)
        if columns is not None:  # what is known is a parameter of the closed form like any other
            first = len(mechanism.parameters) - len(mechanism.own_columns)
            known = [first + i for i, own in enumerate(mechanism.own_columns) if own.kind in ("known", "settled")]
            columns = [*columns, *(c for c in known if c not in columns)]
        regrouping = regroup(_program(equations, {"regressor": regressor}), mechanism, columns)
        for name in wanted:
            if name.startswith("base_"):
                forms[name] = base_quantity(equations, name, regressor, regrouping.columns, regrouping.nodes)
    return _program(equations, {name: forms[name] for name in wanted}, regrouping)


def _closed(mechanism: Mechanism) -> Mechanism:
    """Return the robot without its couplings' numeric derivatives, so that their functions are run on expressions."""
    if all(coupling.gradient is None for coupling in mechanism.couplings):
        return mechanism
    return replace(mechanism, couplings=tuple(replace(c, gradient=None, hessian=None) for c in mechanism.couplings))


def _program(equations: Equations, forms: Mapping[str, Quantity], regrouping: Regrouping | None = None) -> Program:
    """Return quantities with the inputs and numbers of the robot."""
    mechanism, lengths = equations.mechanism, equations.geometry.symbols
    inputs: dict[str, tuple[str, ...]] = dict.fromkeys(("q", "v", "a", "tau"), mechanism.coordinate_names)
    inputs["phi"] = mechanism.parameters.names
    if lengths:
        inputs["geometry"] = tuple(lengths)
    if regrouping is not None:
        inputs["beta"] = regrouping.names
    values = {"phi": mechanism.parameters.values, "geometry": np.array(list(lengths.values()))}
    return Program(mechanism.name, equations.graph, MappingProxyType(inputs), values, MappingProxyType(dict(forms)), regrouping)


def _check(mechanism: Mechanism, quantities: Sequence[str], geometry: str, parameters: str) -> None:
    if isinstance(quantities, str):
        raise DynidentError(f"quantities is the text {quantities!r}; give a list, as in [{quantities!r}]")
    for name in quantities:
        if name not in QUANTITIES:
            raise DynidentError(f"unknown quantity '{name}'; known quantities are {', '.join(QUANTITIES)}")
    for label, value in (("geometry", geometry), ("parameters", parameters)):
        if value not in ("numeric", "symbolic"):
            raise DynidentError(f"{label} is {value!r}; give 'numeric' or 'symbolic'")
    if mechanism.loops:
        names = ", ".join(loop.name for loop in mechanism.loops)
        raise DescriptionError(
            f"closed forms are derived for trees, but robot '{mechanism.name}' has loops ({names}); "
            "remove them to get the forms of its spanning tree"
        )
    opaque = [force for force in mechanism.forces if isinstance(force, Columns)]
    if opaque:
        raise DescriptionError(
            f"columns {', '.join(opaque[0].names[:3])} ... are known by their numbers only; they have no closed form"
        )
    if mechanism.dof == 0:
        raise DescriptionError(f"robot '{mechanism.name}' has no moving joint, so it has no equations of motion")
