"""The list of commands: group and first sentence of the help of each, so that ``--help`` imports none of them."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import Group

from dynident.cli.groups import CONTROL, EXPERIMENTS, FILES, MODEL, START

#: Commands of this package, each a function in the module of its name.
OWN: dict[str, tuple[Group, str]] = {
    "demo": (
        START,
        "Identify a simulated 6-axis arm that comes with dynident: compare with the truth, validate, write the report.",
    ),
    "describe": (
        START,
        "Describe a robot: bodies, joints, physical consistency of its inertias, and the identifiable parameters.",
    ),
    "inspect": (
        START,
        "Check a log before it is fitted: clock, gaps, units, channels; with a robot also delay, signs and gains.",
    ),
    "identify": (
        START,
        "Identify a robot from its logs: writes fit.json, the identified description, report.html and verdict.json.",
    ),
    "validate": (START, "Compare an identified model with logs it was not fitted to."),
    "report": (START, "Write the HTML report of a fit."),
    "compare": (
        START,
        "Fit every estimator to the same logs: errors, coverage, time, and whether least squares is biased.",
    ),
    "excite": (
        EXPERIMENTS,
        "Design an excitation within the limits: writes the plan, its expected precision and a page that shows it.",
    ),
    "simulate": (
        EXPERIMENTS,
        "Run a plan on a virtual robot: writes the log as a recorder would, prints tracking errors and reached limits.",
    ),
    "export": (
        MODEL,
        "Write a robot in another format, or files for another program (--for), optionally with identified parameters.",
    ),
    "derive": (
        MODEL,
        "Write a robot's model as code: with the identified numbers for a controller, or in closed form with symbols.",
    ),
    "ik": (MODEL, "Solve inverse kinematics: all branches in closed form, or one solution numerically."),
    "partitions": (
        MODEL,
        "Rank the sets of motors onto which the torques of an over-actuated robot can be projected, along a motion.",
    ),
    "monitor": (
        MODEL,
        "Monitor logs with an identified model: external torques, thresholds and contact events.",
    ),
    "payload": (
        MODEL,
        "Identify a load: from runs without and with it, on a known arm, or from a wrist sensor; for UR, Franka and KUKA too.",
    ),
    "gains": (MODEL, "Estimate drive gains together with the robot, from runs without and with a load of known mass."),
    "convert": (
        FILES,
        "Convert a log from any supported format to CSV, npz, Parquet, MATLAB or MCAP in SI units.",
    ),
    "cache": (
        FILES,
        "Show location and size of the cache of compiled code (DYNIDENT_CACHE sets another folder).",
    ),
}
#: Commands of the other dynident packages, which register them like any package.
OTHERS: dict[str, tuple[Group, str]] = {
    "bandwidth": (
        CONTROL,
        "Measure the bandwidth of a machine by stepped sines, with its mechanism and for the actuators alone.",
    ),
    "check": (
        MODEL,
        "Check properties that every robot's dynamics have: M > 0, skew-symmetry, energy, Jacobians; bounds of M, C, g and F.",
    ),
    "compare-fits": (
        EXPERIMENTS,
        "Write a page that compares two fits of a robot: errors, parameters that changed, predictions on the same logs.",
    ),
    "controller": (
        EXPERIMENTS,
        "Serve a virtual robot as a controller: motion task, feedback, limits, alarms and a persistent thermal state.",
    ),
    "cycles": (
        EXPERIMENTS,
        "Identify a robot from each cycle of a campaign, with the stages of its plan and the cubic friction law.",
    ),
    "fleet": (START, "Many robots and logs: identify, report.\n\nExample: dynident fleet identify fleet.toml -o out/"),
    "friction": (
        EXPERIMENTS,
        "Study friction: against speed per temperature, over time with warm-up models, time constants, robots compared.",
    ),
    "live": (
        EXPERIMENTS,
        "Identify a robot while it moves: short excitations, each designed for the most uncertain parameters.",
    ),
    "maintenance": (
        EXPERIMENTS,
        "Check the joints of a robot against healthy tests at the same temperature; --strict exits with 3 on an alarm.",
    ),
    "record": (
        EXPERIMENTS,
        "Run a plan on a controller and record it; a crash loses nothing, and --resume continues.",
    ),
    "reduction": (MODEL, "Show which parameters the torque of each joint depends on, by QR and SVD of its regressor."),
    "repeatability": (
        EXPERIMENTS,
        "Compare campaigns of several days and robots: drift over the warm-up, spread of cycles, tests and robots.",
    ),
    "reproduce": (
        FILES,
        "Compute published tables and figures again: ours, the published numbers, the difference and the reason.",
    ),
    "schedule": (EXPERIMENTS, "Plan the heating or cooling test of one joint; simulate-campaign or record runs it."),
    "simulate-campaign": (
        EXPERIMENTS,
        "Run the cycles of a plan on a virtual robot; writes the same folder as record.",
    ),
    "track": (
        CONTROL,
        "Test an identified model in closed loop: feedback alone, with a catalogue model, with the identified model.",
    ),
    "workbench": (
        START,
        "Open a page in the browser that leads from a robot description to a verdict, in six stages.",
    ),
    "workspace": (
        MODEL,
        "Map the workspace over two coordinates, with singularities of type 1 (serial) and 2 (parallel).",
    ),
    "acceleration": (
        MODEL,
        "Find the largest acceleration of a known machine's tool from rest at home, within the torques of its motors.",
    ),
    "write": (CONTROL, "Write a text with the tool of a robot in a vertical plane: a demanding motion for simulate."),
}
_CAMPAIGN = "did you mean 'dynident simulate-campaign'?"
_XACRO = "xacro files are evaluated without running code; omit it, or expand the file with ROS's xacro first"
#: Options of version 0.2 by command, each with the replacement to type.
FORMER = {
    "describe": {"--reduction": "did you mean 'dynident reduction ROBOT'?", "--svg": "did you mean '--plot FILE'?"},
    "identify": {"--cycle": "did you mean 'dynident cycles ROBOT CAMPAIGN'?"},
    "excite": {
        "--cartesian": "did you mean the robot 'cft_cartesian'?",
        "--method": "there is only one optimiser; omit the option",
    },
    "simulate": {
        **dict.fromkeys(("--cycles", "--duty", "--fault"), _CAMPAIGN),
        "--added-inertia": "did you mean the robot 'cft_published'?",
    },
    "export": {
        f"--{name}": f"did you mean '--option {name}={value}'?"
        for name, value in (("controller", "LAW"), ("bandwidth", "HZ"), ("drives", "FILE"))
    },
}


def former_option(command: str, words: Sequence[str]) -> str | None:
    """Return the replacement of an option that a command had in version 0.2; None if `words` contain none."""
    known = {"--trust": _XACRO, **FORMER.get(command, {})} if command in OWN or command in OTHERS else {}
    found = next((option for word in words if (option := word.partition("=")[0]) in known), None)
    return None if found is None else f"{command} has no option {found}: {known[found]}"
