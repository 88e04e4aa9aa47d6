"""What is wrong with a closed mechanism is said in one sentence, with the loop, the coordinate or the sample."""

from __future__ import annotations

import numpy as np
import pytest
from loop_cases import at, four_bar, link, parallelogram, robot, slider_crank

import dynident as di
from dynident.errors import DescriptionError, DynidentError, IdentificationError
from dynident.mechanics import close_motion, close_positions, coordinates_from_actuators


def _motion(q: np.ndarray) -> di.Motion:
    return di.Motion(np.arange(float(q.size)), q[:, None], np.ones((q.size, 1)), np.zeros((q.size, 1)))


def _arm(loop: di.Loop, joints: int = 2) -> di.Mechanism:
    """An open planar chain whose tip is declared to be held."""
    bodies = [di.Body("base")] + [link(f"l{i}", 0.5, i) for i in range(joints)]
    chain = [
        di.Joint(f"j{i}", "revolute", "base" if i == 0 else f"l{i - 1}", f"l{i}", at(0.0 if i == 0 else 0.5))
        for i in range(joints)
    ]
    home = {f"j{i}": 0.4 for i in range(joints)}
    return robot("arm", bodies, chain, [loop], "j0", home, independent=())


def test_lengths_that_cannot_meet() -> None:
    mechanism = four_bar(lengths=(0.3, 0.2, 0.2, 0.9))
    with pytest.raises(DescriptionError, match=r"four-bar.*no configuration near home closes loop 'tip' \(gap"):
        _ = mechanism.closure


def test_loops_that_contradict_each_other() -> None:
    plain = four_bar()
    second = di.Loop("other", "point", "coupler", "rocker", at(0.8), at(0.55))
    bodies, joints = list(plain.bodies), list(plain.joints)
    mechanism = robot("contradiction", bodies, joints, [*plain.loops, second], "a", dict(plain.home))
    with pytest.raises(DescriptionError, match=r"contradiction.*no configuration near home closes loop"):
        _ = mechanism.closure


def test_axes_that_contradict_the_plane() -> None:
    plain = four_bar()
    tilted = [di.Loop("tip", "revolute", "coupler", "rocker", at(0.8), at(0.6), axis=np.array([1.0, 0.0, 0.0]))]
    mechanism = robot("tilted", list(plain.bodies), list(plain.joints), tilted, "a", dict(plain.home), independent=())
    # x of coupler and rocker would have to stay parallel.
    with pytest.raises(DescriptionError, match="no configuration near home closes loop 'tip'"):
        _ = mechanism.closure


def test_open_chain_held_out_of_reach() -> None:
    mechanism = _arm(di.Loop("grip", "point", "l1", "base", at(0.5), at(3.0)))
    with pytest.raises(DescriptionError, match="no configuration near home closes loop 'grip'"):
        _ = mechanism.closure


def test_open_chain_held_so_that_nothing_moves() -> None:
    """A 2R arm held at its tip is a truss: zero degrees of freedom, said where it matters."""
    mechanism = _arm(di.Loop("grip", "point", "l1", "base", at(0.5), at(0.7, 0.3)))
    assert mechanism.closure.dof == 0
    with pytest.raises(IdentificationError, match="no moving joint"):
        di.base_parameters(mechanism)


def test_held_arm_with_one_joint_more_moves() -> None:
    mechanism = _arm(di.Loop("grip", "point", "l2", "base", at(0.5), at(0.9, 0.3)), joints=3)
    assert mechanism.closure.dof == 1
    assert mechanism.coordinate_names == ("j0",)


def test_wrong_independent_coordinates() -> None:
    with pytest.raises(DescriptionError, match="has 1 degrees of freedom but 2 independent coordinates are named"):
        _ = four_bar(independent=("a", "c")).closure
    with pytest.raises(DescriptionError, match="independent coordinate 'x' is not one of a, b, c"):
        _ = four_bar(independent=("x",)).closure


def test_coordinates_that_do_not_determine_the_rest() -> None:
    """Two four-bars on one base: both coordinates in the same one leave the other free."""
    plain = four_bar()
    bodies, joints, loops, home = list(plain.bodies), list(plain.joints), list(plain.loops), dict(plain.home)
    bodies += [link(f"{b}2", 0.5, 20 + i) for i, b in enumerate(("crank", "coupler", "rocker"))]
    joints += [
        di.Joint("a2", "revolute", "base", "crank2", at(5.0)),
        di.Joint("b2", "revolute", "crank2", "coupler2", at(0.3)),
        di.Joint("c2", "revolute", "base", "rocker2", at(5.9)),
    ]
    loops.append(di.Loop("tip2", "revolute", "coupler2", "rocker2", at(0.8), at(0.6)))
    home |= {f"{name}2": value for name, value in plain.home.items()}
    good = robot("pair", bodies, joints, loops, "a", home, independent=("a", "c2"))
    assert good.dof == 2
    bad = robot("pair", bodies, joints, loops, "a", home, independent=("a", "b"))
    with pytest.raises(DescriptionError, match="a, b do not determine the other joints"):
        _ = bad.closure


def test_unreachable_motion_names_the_first_bad_sample() -> None:
    """Not Grashof: the crank is stopped where coupler and rocker are stretched."""
    mechanism = four_bar(lengths=(0.6, 0.5, 0.5, 0.9))
    limit = np.arccos((0.6**2 + 0.9**2 - 1.0) / (2 * 0.6 * 0.9))
    q = np.linspace(1.2, 2.4, 25)
    bad = int(np.argmax(q > limit))
    assert 0 < bad < 24
    with pytest.raises(DynidentError, match=rf"cannot follow the motion at sample {bad} \(a = {q[bad]:.6g}\)"):
        close_motion(mechanism, _motion(q))
    close_motion(mechanism, _motion(q[:bad]))


def test_motion_through_a_singularity_is_refused() -> None:
    """At a = 0 a parallelogram is flat and may become an anti-parallelogram: which one cannot be known."""
    mechanism = parallelogram()
    with pytest.raises(DynidentError, match="singular"):
        close_motion(mechanism, _motion(np.linspace(1.1, 0.0, 12)))


@pytest.mark.parametrize("samples", [12, 24, 200])
def test_a_singularity_between_two_samples_is_refused(samples: int) -> None:
    """No sample is singular, but which branch the robot took between two of them cannot be known."""
    q = np.linspace(1.1, -1.1, samples)
    with pytest.raises(DynidentError, match=rf"at sample {samples // 2} .*through a singularity"):
        close_motion(parallelogram(), _motion(q))


@pytest.mark.parametrize("samples", [3550, 20000])
def test_the_sample_is_counted_from_the_start_of_the_log(samples: int) -> None:
    mechanism = four_bar(lengths=(0.6, 0.5, 0.5, 0.9))
    q = np.linspace(1.2, 2.4, 20000)
    bad = int(np.argmax(q > np.arccos((0.6**2 + 0.9**2 - 1.0) / (2 * 0.6 * 0.9))))
    assert bad == 3546
    with pytest.raises(DynidentError, match=r"cannot follow the motion at sample 3546 "):
        di.Regression.from_motion(mechanism, _motion(q[:samples]), np.zeros((samples, 1)))


def test_start_on_a_singularity() -> None:
    """Home is where crank and coupler are in line and the rocker, as coordinate, is at its limit."""
    crank, coupler, rocker, ground = 0.3, 0.8, 0.6, 0.9
    angle = np.arccos((ground**2 + (crank + coupler) ** 2 - rocker**2) / (2 * ground * (crank + coupler)))
    inner = np.arccos((ground**2 + rocker**2 - (crank + coupler) ** 2) / (2 * ground * rocker))
    home = {"a": angle, "b": 0.0, "c": np.pi - inner}
    plain = four_bar()
    settings = {"independent": ("c",), "actuators": (di.Actuator("m", {"c": 1.0}),)}
    mechanism = robot("dead point", list(plain.bodies), list(plain.joints), list(plain.loops), "c", home, **settings)
    with pytest.raises(DynidentError, match=r"'dead point' is singular at home \(dead point of c\)"):
        close_motion(mechanism, _motion(np.full(3, home["c"])))


def test_shapes_and_motors() -> None:
    mechanism = slider_crank()
    with pytest.raises(DynidentError, match="give one column for each of theta"):
        close_positions(mechanism, np.zeros((3, 2)))
    with pytest.raises(DynidentError, match="motor positions have 2 columns but robot 'slider-crank' has 1 motors"):
        coordinates_from_actuators(mechanism, np.zeros((3, 2)))


def test_unknown_kinds_and_bodies() -> None:
    with pytest.raises(DescriptionError, match="loop 'x': unknown kind 'screw'"):
        di.Loop("x", "screw", "a", "b")
    with pytest.raises(DescriptionError, match="loop 'x': axis is"):
        di.Loop("x", "revolute", "a", "b", axis=np.zeros(3))
    with pytest.raises(DescriptionError, match="loop 'x': body 'nobody' does not exist"):
        _arm(di.Loop("x", "point", "l1", "nobody"))


def test_a_body_is_not_joined_to_itself() -> None:
    with pytest.raises(DescriptionError, match="loop 'x' joins body 'l1' to itself; name two bodies"):
        _arm(di.Loop("x", "point", "l1", "l1"))


def test_home_names_joints() -> None:
    plain = four_bar()
    with pytest.raises(DescriptionError, match="home names 'crank', which is not a joint; joints are a, b, c"):
        robot("typo", list(plain.bodies), list(plain.joints), list(plain.loops), "a", {"crank": 1.0})


def test_projection_of_another_kind() -> None:
    with pytest.raises(IdentificationError, match="projection is None; use 'gls', 'independent' or a list of names"):
        di.Regression.from_motion(four_bar(), _motion(np.full(9, 1.2)), np.zeros((9, 1)), projection=None)
