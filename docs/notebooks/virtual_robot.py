# # The virtual robot
#
# A machine with motors, gears, friction and encoders: it makes logs with the truth attached, so that every claim of an
# identification can be checked.

import numpy as np

import dynident as di
from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.mechanism import from_com
from dynident.trajectory import random_motion

rows = [{"a": 0.0, "alpha": 0.0, "d": 0.0, "joint": "shoulder"}, {"a": 0.3, "alpha": 0.0, "d": 0.0, "joint": "elbow"}]
bare = di.Mechanism.from_dh(rows, "modified", "two links", (0.0, -9.81, 0.0)).with_terms(())
links = [from_com(2.0, (0.15, 0, 0), np.eye(3) * 0.02), from_com(1.2, (0.12, 0, 0), np.eye(3) * 0.01)]
arm = bare.with_parameters(bare.parameters.replace(np.concatenate(links)))
motor = Motor(torque_constant=0.05, inertia=2e-5, current_limit=8.0)
rubbing = (Coulomb() + Viscous()).using(fc=0.004, fv=2e-5)
drives = tuple(Drive(name, motor, Transmission.gear(80.0), rubbing, Encoder.lines(2048)) for name in ("shoulder", "elbow"))
loops = Cascade(25.0, 0.15, 6.0, position_cycle=1e-3, velocity_cycle=2.5e-4, velocity_feedforward=1.0)
machine = di.VirtualRobot(arm, drives, loops, step=2.5e-4)

# Two runs of six seconds:

train, test = (random_motion([0.3, -0.8], [0.8, 0.7], seed=s, duration=6.0) for s in (1, 2))
run, other = machine.simulate(train, seed=1), machine.simulate(test, seed=2)
run.plot()

# Identified from nothing but the log, and judged on the other one. Least squares alone, because here the description is the
# truth, which the default would believe:

done = di.identify(machine.model, run.log, validate=other.log, estimator=di.WLS(), standstill=0.1)
print(repr(done))
done.scores[0].plot()

# The truth is known here. How far is each parameter from it, in standard deviations?

truth = done.fit.base.values(machine.model.parameters.values)
for name, value, std, true in zip(done.fit.base.names, done.fit.values, done.fit.std, truth, strict=True):
    print(f"{name:>14}: {value:9.4f} +- {std:.4f}, true {true:9.4f}")
