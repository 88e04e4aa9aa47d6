# # A first fit
#
# A robot's description, two logs, one call. The example comes with dynident: a simulated 6-axis arm whose CAD model is wrong.

import dynident as di

arm = di.examples.arm6()
arm.robot.plot([0.3, 0.4, -0.5, 0.2, 0.3, 0.1])

# The log to fit: a notebook shows the range of every channel,

arm.run

# and `plot()` the signals.

arm.run.plot(["joint1", "joint2", "joint3"])

# Fit, validate on the other log, judge. Nothing is tuned: the band, the weights and how much the description counts come from
# the data.

done = di.identify(arm.robot, arm.run, validate=arm.other)
done.verdict

# Measured and predicted torque on the log that was not fitted, with the two-sigma band:

done.scores[0].plot()

# Before and after: the error of the untouched description and that of the identified model.

score = done.scores[0]
print(f"description {100 * score.description:.1f} %, identified {100 * score.metrics.relative:.2f} %")

# The parameters as a table for pandas, the best known first:

done.fit.to_frame().sort_values("relative").head(8)

# `done.report("report.html")` writes all of this as one page that can be zoomed, and `done.robot` is the identified robot.
