"""Whether the temperatures of a real robot help its friction model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentWarning, IdentificationError
from dynident_lab.testbench import compare_temperature

pytestmark = pytest.mark.real

EMPS = {"time": "t", "position": "qm", "effort": "vir", "joints": ["slide"], "effort_kind": "voltage", "gain": 35.1507}


@pytest.fixture(scope="module")
def emps(shared_data):
    robot = di.Mechanism.from_dh([{"kind": "prismatic", "joint": "slide"}], gravity=(0, 0, 0), name="EMPS")
    logs = [di.Log.read(shared_data / "emps" / f"{name}.mat", schema=EMPS) for name in ("DATA_EMPS", "DATA_EMPS_PULSES")]
    return robot, *logs


FILES = {
    "RunTrajectory1": "identification_data",
    "Trajectory1": "identification_data",
    "RecordTrajectory_quadratic": "identification_data",
    "opti_traj_testing1": "validation_data",
    "opti_traj_testing2": "validation_data",
}


@pytest.fixture(scope="module")
def gen3(shared_data):
    folder = shared_data / "kinova_gen3_dynamapp"
    schema = {"effort": "TorqueCur{index}", "rate": 1000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # impossible bodies in the URDF, two seconds of record
        robot = di.Mechanism.from_urdf(folder / "gen3.urdf")
        logs = {
            name: di.Log.read(folder / place / f"{name}.csv.gz", "joint_torque", schema=schema, joints=robot.joint_names)
            for name, place in FILES.items()
        }
    return robot, logs


def test_gen3_temperature_helps_little_and_not_everywhere(gen3) -> None:
    """The honest finding: temperature explains a little of the repeated motion and spoils the other files.

    Leave one of the five files out; relative error of the held-out file without and with ``1 + alpha (T - T0)``:

    ===========================  =======  =======
    RunTrajectory1               15.63 %  15.58 %
    Trajectory1                  15.28 %  15.05 %
    RecordTrajectory_quadratic   10.64 %  12.75 %
    opti_traj_testing2           37.14 %  46.07 %
    ===========================  =======  =======

    The fit without opti_traj_testing1 extrapolates wildly at joint_1 (5085 and 45 %), so nothing follows from it. The two
    runs of the same motion differ by 1 to 2.4 K, so at the identified -1.5 to -3.8 %/K of the wrist their friction differs by
    some 4 %, far below the error that these 2 to 5 s records leave; RecordTrajectory_quadratic is 8 to 13 K cooler than all
    others, so alpha extrapolates there.
    The wrist joints alone show a slope that is clearly different from zero, and it has the sign that [Pagani2022] finds:
    friction falls with temperature.
    """
    robot, logs = gen3

    def held_out(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DynidentWarning)
            return compare_temperature(robot, [log for other, log in logs.items() if other != name], [logs[name]])

    for name in ("RunTrajectory1", "Trajectory1"):
        comparison = held_out(name)
        ((plain, warm),) = comparison.held_out.values()
        assert comparison.helps
        assert 0.0 < plain.relative - warm.relative < 0.02
        for joint in ("joint_5", "joint_6", "joint_7"):
            alpha, std = comparison.alpha[joint]
            assert alpha < -2.0 * std
    comparison = held_out("RecordTrajectory_quadratic")
    assert not comparison.helps
    assert "does not help" in comparison.summary()


def test_temperature_comparison_refuses_logs_that_cannot_tell(gen3, emps) -> None:
    robot, logs = gen3
    with pytest.raises(IdentificationError, match="record a cold and a warm run"):
        compare_temperature(robot, [logs["RunTrajectory1"]], [logs["Trajectory1"]])
    with pytest.raises(IdentificationError, match="has no temperatures"):
        compare_temperature(emps[0], [emps[1]], [emps[2]])
    assert np.nanmax(logs["RunTrajectory1"].temperature) < 60.0
