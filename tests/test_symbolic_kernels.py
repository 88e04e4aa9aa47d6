"""Generated numba kernels stand in for the generic ones, and their sines are as good as the library's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynident import mechanics
from dynident.errors import DynidentError
from dynident.mechanics import use_kernel
from dynident.mechanics.generated import kernel_of
from dynident.mechanism import Body, Coupling, Mechanism
from dynident.symbolic import compile_kernel, kernel_program, to_numba
from dynident.symbolic import kernels as lanes
from random_mechanisms import BRANCHED, build, close, random_motion


def test_sines_and_cosines_in_lanes_are_exact_to_the_last_places() -> None:
    X = np.empty(3 * lanes.LANES)
    special = np.array([0.0, 1e-300, np.pi / 4, -np.pi / 4, np.pi / 2, np.pi, -np.pi, 1.5 * np.pi, 2 * np.pi, 1e5, -1e5])
    rng = np.random.default_rng(0)
    for size in (1e-3, 1.0, 10.0, 1e3, 9.9e4, 1e12):
        x = rng.uniform(-size, size, lanes.LANES)
        x[: special.size] = special if size < 1e5 else x[: special.size]
        X[: lanes.LANES] = x
        lanes.sine_cosine(X, 0, 1, 2)
        assert np.max(np.abs(X[lanes.LANES : 2 * lanes.LANES] - np.sin(x))) <= 2.3e-16
        assert np.max(np.abs(X[2 * lanes.LANES :] - np.cos(x))) <= 2.3e-16
    X[: lanes.LANES] = np.nan
    lanes.sine_cosine(X, 0, 1, 2)
    assert np.all(np.isnan(X))


def coupled_pair() -> Mechanism:
    robot = build((("prismatic", -1, True), ("revolute", 0, False)), 4, ("ia", "fv"))
    return replace(robot, couplings=(Coupling("J1", {"J0": 0.5}, 0.1),), actuators=())


# Few joints: numba compiles straight-line code slowly, and random frames have no zeros that would disappear.
@pytest.mark.parametrize(
    "robot",
    [
        build((("revolute", -1, False), ("revolute", 0, False)), 2, ("ia",)),
        coupled_pair(),
        build((("spherical", -1, True),), 1),
        build((("revolute", -1, False),), 2).with_payload(2.0, (0.1, 0.05, 0.02), name="payload", separate=True),
    ],
    ids=["arm", "coupled", "spherical", "payload"],
)
def test_a_generated_kernel_changes_nothing_but_the_speed(robot: Mechanism) -> None:
    motion = random_motion(robot, 37, 1)  # not a whole number of lanes
    phi = np.random.default_rng(3).normal(size=len(robot.parameters))

    def everything() -> list[np.ndarray]:
        return [
            mechanics.inverse_dynamics(robot, motion, phi),
            mechanics.regressor(robot, motion),
            mechanics.regressor_rows(robot, motion),
            mechanics.regressor_rows(robot, motion, [1, 4, 9]),
        ]

    generic = everything()
    assert not kernel_of(robot).columns
    use_kernel(robot, compile_kernel(robot))
    try:
        assert kernel_of(robot).columns
        for ours, theirs in zip(everything(), generic, strict=True):
            close(ours, theirs, 1e-12)
    finally:
        use_kernel(robot, None)
    assert not kernel_of(robot).columns


def test_columns_that_were_not_generated_are_left_to_the_generic_kernel(tmp_path: Path) -> None:
    robot = build((("revolute", -1, False), ("revolute", 0, False)), 5)
    motion = random_motion(robot, 8)
    expected = mechanics.regressor_rows(robot, motion, [4, 9, 14])
    kernel = compile_kernel(robot, [4, 9, 14], folder=tmp_path)
    assert kernel.columns == {4, 9, 14}
    assert (tmp_path / "random_generated_kernels.py").is_file()
    use_kernel(robot, kernel)
    try:
        assert kernel_of(robot, [4, 9]) is kernel
        assert kernel_of(robot, [4, 5]) is not kernel
        close(mechanics.regressor_rows(robot, motion, [4, 9, 14]), expected, 1e-12)
        close(mechanics.regressor_rows(robot, motion)[:, [4, 9, 14]], expected, 1e-12)
    finally:
        use_kernel(robot, None)


def test_a_kernel_goes_with_its_robot() -> None:
    first, second = (build((("revolute", -1, False),), 0) for _ in range(2))
    kernel = kernel_of(second)
    use_kernel(first, kernel)
    assert kernel_of(first) is kernel
    assert kernel_of(second) is not kernel
    use_kernel(first, None)


def test_the_source_is_readable_and_bounded() -> None:
    source = to_numba(kernel_program(build(BRANCHED, 1)))
    compile(source, "generated", "exec")
    assert source.count("@kernel") >= 5
    with pytest.raises(DynidentError, match="no moving joint"):
        kernel_program(Mechanism("stone", (Body("base"),), ()))
