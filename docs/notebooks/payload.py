# # A payload, weighed by the robot
#
# One run without the load, the same run with it. The load is a body of its own, so that everything else is shared.

import numpy as np

import dynident as di
from dynident.identify import payload_of, payload_regression

arm = di.examples.arm6()
robot = di.identify(arm.robot, arm.run, validate=0).robot

# Torques of the identified robot along the recorded motion, without and with 2 kg at the last link, with noise:

prepared = di.prepare(arm.run)


def recorded(model, seed, name):
    tau = di.inverse_dynamics(model, prepared.motion)
    noise = np.random.default_rng(seed).normal(size=tau.shape) * [0.5, 0.5, 0.3, 0.1, 0.1, 0.05]
    return di.Log(prepared.motion.t, robot.coordinate_names, prepared.motion.q, tau + noise, "joint_torque", name=name)


empty = recorded(robot, 1, "empty")
loaded = recorded(robot.with_payload(2.0, com=(0.02, 0.0, 0.08)), 2, "loaded")

# What was found, against what is true:

found = payload_of(di.WLS().fit(payload_regression(robot, [empty], [loaded])).result_)
print(f"mass {found.mass:.3f} +- {found.mass_std:.3f} kg (true 2.000)")
print("centre of mass", np.round(found.com, 4), "m (true 0.02, 0, 0.08)")

# How good is it? The torque of the held load, predicted and measured, on a third run:

third = recorded(robot.with_payload(2.0, com=(0.02, 0.0, 0.08)), 3, "third")
di.identify(robot.with_payload(found.mass, com=tuple(found.com)), loaded, validate=third).scores[0].plot()
