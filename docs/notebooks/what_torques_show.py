# # What torques can show
#
# No experiment can show all ten inertial parameters of every link: torques depend on combinations, the base parameters. They
# follow from the kinematics alone, before any data.

import numpy as np

import dynident as di

robot = di.examples.arm6().robot
base = di.base_parameters(robot)
print(base)
for text in base.expressions[:4]:
    print(text)

# What no motion ever shows:

print(", ".join(base.unidentifiable))

# A change inside the null space of the regrouping changes no torque, however large it is. Here the mass of link 3 is doubled,
# and the others are changed so that the base parameters stay:

phi = robot.parameters.values.copy()
step = np.zeros_like(phi)
step[robot.parameters.index("m_link3")] = phi[robot.parameters.index("m_link3")]
hidden = step - np.linalg.pinv(base.regrouping) @ (base.regrouping @ step)
t = np.linspace(0.0, 2.0, 400)
q = np.sin(np.outer(t, [1.0, 1.3, 1.7, 2.1, 2.6, 3.1]))
motion = di.Motion(t, q, np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0))
one = di.inverse_dynamics(robot, motion)
two = di.inverse_dynamics(robot, motion, robot.parameters.replace(phi + hidden))
print(f"parameters changed by up to {np.abs(hidden).max():.2f}, torques by up to {np.abs(one - two).max():.1e} N m")

# How sharply a log shows each of them is another question: the standard deviations of a fit answer it.

arm = di.examples.arm6()
fit = di.identify(arm.robot, arm.run, validate=0).fit
fit.plot()

# What the data leave open rests on the description, and is listed as such:

for row in fit.undetermined()[:5]:
    print(f"{row.name}: {row.value:.4g} {row.unit} (description {row.description:.4g})")
