"""Where everything of a virtual robot lies in the two arrays K and F of the compiled simulation (see `mechanics.packed`).

n coordinates, nt tree coordinates, k actuators, m closure equations, f friction forms, c shaft masses.
"""

from __future__ import annotations

from dynident.mechanics.packed import OWN

# The mechanism: counts first, then regions.
DOF, MODE, BALLS, MISSING, ACTUATORS = range(OWN, OWN + 5)
INDEPENDENT, DEPENDENT, CUT, SWAP, DRIVEN = range(OWN + 5, OWN + 10)  # integers (n,), (m,), (m, 4), (2, m), (k,)
MAP, CONSTANT, CURVE = range(OWN + 10, OWN + 13)  # G (nt, n), g0 (nt,), b (nt,)
CUTS, LINEAR, JACOBIAN, LU, RIGHT = range(OWN + 13, OWN + 18)  # (m, 13), (m, nt), (m, nt), (m, m), (m, n + 1)
COUPLING, OFFSETS, MOTORS = range(OWN + 18, OWN + 21)  # N (k, nt), n0 (k,), inertias of the actuators (nt, nt)
WORK, GENERAL, OTHER, TRIAL = range(OWN + 21, OWN + 25)  # (nt, n), (n, n), (n, n), (2 n,)
# Friction: forms of tree coordinates, then rotors.
FORMS, MEMORY, LAW_FIRST, LAW_KIND, LAW, FORM, FORM_ROWS, RUB = range(OWN + 25, OWN + 33)
# The drives and the state.
SHAFTS, METHOD, SIZE, FEED, DRIVE, SHAFT = range(OWN + 33, OWN + 39)
STATE, STAGE, RATES, LAST = range(OWN + 39, OWN + 43)
LOSSY = OWN + 43  # 1 when a rigid drive has a gear with losses

# The controller has arrays of its own: those of its model, and from CONTROL on what follows.
CONTROL = OWN + 33
WIDE, PLAN, GAIN, SENSOR, INVERSE, ZERO = range(CONTROL, CONTROL + 6)
MAP_A, GRAM, GRAM_FACTOR, MEASURED, ASKED_A, TORQUES, PART, LOOP, POSE = range(CONTROL + 6, CONTROL + 15)
QUEUE, WISHES = range(CONTROL + 15, CONTROL + 17)  # commands and wanted speeds on their way, one row per step or velocity tick

# More of the friction, in the arrays of plant and controller alike: number of owners, whether a law looks at positions, which
# owners stick (owners + 1, 12), their forms of the coordinates and what a unit force on them does (owners, 2, n).
OWNERS, PLACED, GRIP, REPLY = range(CONTROL + 20, CONTROL + 24)

TREE, COUPLED, LOOPED = 0, 1, 2  # MODE
CUT_WIDTH = 13  # point a, point b, vector a, vector b, offset

# One friction row: nine numbers (the last is that of its wave), then deflection, mode and last speed of a law with memory.
LAW_WIDTH, WAVE_NUMBER, DEFLECTION, MEMORY_MODE, LAST_SPEED = 12, 8, 9, 10, 11
STEADY, COSINE, SINE, LOAD = 0, 1, 2, 3  # wave that multiplies it: none, cos(h q), sin(h q), |load|^p
WAVED = 8  # its direction is coded as way + WAVED wave
# An owner of friction: whether its rows jump, side of sliding (0 sticks), levels of the jumps both ways, force that holds it,
# speed now and at the start of the step, share of the step that is left after it stopped, admittance, load, whether a law asks
# for that, 1 / v_s per unit level where sgn(v) is only softened (a controller's model).
GRIP_WIDTH = 12
JUMPS, SIDE, UP, DOWN, HELD_FORCE, NOW, BEGIN, TAIL, GIVES, LOADED, ASKS_LOAD, SOFT = range(12)
STUCK, RATE = 0, 1  # after the last owner: how many stick, steps per second
OFFSET, VISCOUS, COULOMB, POWER, STRIBECK, TANH, SMOOTH, SPRING, DAHL, LUGRE, MAXWELL = range(11)

# One drive: ten constants, the held command (current or voltage), and what it did in the last evaluation.
DRIVE_WIDTH = 30
RATIO, EFFICIENCY, TORQUE, EMF, RESISTANCE, INDUCTANCE, CURRENT_LIMIT, VOLTAGE_LIMIT, PLAY, STICK, COMMAND = range(11)
S_TORQUE, S_MOTOR, S_CURRENT, S_RUB, S_RHO, S_RHO_V, S_THETA, S_OMEGA = range(11, 19)
SINGLE = 19  # rho per unit of the only coordinate that the drive turns with
# The gear: inertia in front of it, torque in front of that, torque through the gear, share that it hands on, speed that a
# unit loss takes away in one step, the loss.
BEFORE, FRONT, THROUGH, KEPT, GEAR_STICK, S_LOSS = range(20, 26)
BEYOND, AT_LIMIT, CUT_STEPS = range(26, 29)  # 1 while a command is cut, 1 in a step at a limit, steps before it spent at one
DIRECT = 29  # force on its only coordinate per command of a drive that does nothing between two commands; 0 for others
IDEAL, RESISTIVE, INDUCTIVE = 0, 1, 2  # fed with a current, or with a voltage without or with inductance
FEED_WIDTH = 5  # how it is fed, number of shaft masses, the first of them, winding, its only coordinate or -1

ONE, EXACT, ITERATED, DELAYED = 0, 1, 2, 3  # METHOD: mechanism and drives as one, or joined by an algebraic loop
RK4, MIDPOINT, EULER = 0, 1, 2
FINE, SINGULAR_MASS, LOST_CLOSURE, UNSTABLE = 0, 1, 2, 3

HELD, OPEN, CASCADE, PID, PROJECTED, COMPUTED = 0, 1, 2, 3, 4, 5  # law of the plan; the last two ask a model
LAW_OF, SENSE, OUTER, INNER, CURRENT, WINDUP, REMOVE, ON_REFERENCE, OPEN_TORQUE, LATE, LATE_WISH = range(11)  # PLAN
KP, KD, KI, SHARE, SLOW_OUT, SLOW_IN, SPEED_LIMIT, KPC, KIC, PRELOAD = range(10)  # rows of GAIN
RHO, RHO_V, WISH, INTEGRAL, ASKED, ELECTRIC, SLOPE, SENSED_CURRENT, SENT, ISSUED = range(10)  # rows of LOOP
SENSOR_WIDTH = 6
RESOLUTION, ON_MOTOR, EXACT_SPEED, BLEND, CURRENT_STEP, CURRENT_GAIN = range(6)
