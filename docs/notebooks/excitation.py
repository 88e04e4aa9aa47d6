# # A motion that shows the parameters
#
# Two links in a vertical plane. The design maximises the information of the torques inside all limits, with exact gradients.

import numpy as np

import dynident as di
from dynident.mechanism import from_com
from dynident.trajectory import Fourier

rows = [{"a": 0.0, "alpha": 0.0, "d": 0.0, "joint": "shoulder"}, {"a": 0.3, "alpha": 0.0, "d": 0.0, "joint": "elbow"}]
bare = di.Mechanism.from_dh(rows, "modified", "two links", (0.0, -9.81, 0.0)).with_terms(("ia", "fv", "fc"))
links = np.concatenate([from_com(2.0, (0.15, 0, 0), np.eye(3) * 0.02), from_com(1.2, (0.12, 0, 0), np.eye(3) * 0.01)])
robot = bare.with_parameters(bare.parameters.replace(np.concatenate([links, [0.1, 0.8, 1.0, 0.1, 0.5, 0.6]])))
limits = {"margin": 0.02, "default": {"lower": -1.5, "upper": 1.5, "velocity": 3.0, "acceleration": 15.0}}
found = di.design(robot, limits, criterion="d", family=Fourier(0.25, 4), noise=[0.1, 0.1], starts=2, iterations=40, workers=1)
print(f"criterion {found.values(found.start)['d']:.2f} -> {found.values()['d']:.2f}")
print(f"least margin to a limit {min(found.margins().values()):.3f}")

# The plan: the motion, its repetitions and its limits in one file.

plan = found.plan(repetitions=2)
plan.plot()

# What the design promises are standard deviations. Does it keep them? A fit of noisy torques along the designed motion answers.

motion = found.motion()
rng = np.random.default_rng(0)
errors = []
for _ in range(20):
    tau = di.inverse_dynamics(robot, motion) + rng.normal(scale=0.1, size=motion.q.shape)
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, tau)).result_
    errors.append(fit.values - fit.base.values(robot.parameters.values))
for name, promised, seen in zip(fit.base.names, found.deviations(), np.std(errors, axis=0), strict=True):
    print(f"{name:>16}: promised {promised:.4f}, seen {seen:.4f}")
