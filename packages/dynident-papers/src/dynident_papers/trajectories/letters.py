"""Letters as smooth strokes: the writing task for tests of robot models [Kostic2002, section V].

The paper's own path and profile are not printed, so these are letters of our own: each stroke is a cubic spline
through a few points, in units of the height of an x, and has a continuous tangent and curvature.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.trajectory import Quintic
from dynident_lab.tool_paths import Hop, Line, Path, ProfileMaker, Segment, Spline, Task, joined, speed_limit

# Strokes are separated by semicolons, points by blanks; a small x is from (0, 0) to (0.65, 1).
GLYPHS: dict[str, str] = {
    "a": "0.8,0.8 0.45,1 0,0.5 0.42,0 0.8,0.35; 0.8,1 0.8,0.5 0.82,0.1 0.95,0",
    "b": "0,1.6 0,0; 0,0.65 0.4,1 0.8,0.5 0.4,0 0,0.3",
    "c": "0.75,0.8 0.42,1 0,0.5 0.42,0 0.75,0.2",
    "d": "0.8,0.7 0.42,1 0,0.5 0.42,0 0.8,0.35; 0.8,1.6 0.8,0",
    "e": "0.05,0.5 0.45,0.53 0.78,0.65 0.42,1 0,0.5 0.42,0 0.78,0.2",
    "f": "0.55,1.5 0.35,1.6 0.2,1.3 0.2,0.6 0.2,0; 0,1 0.45,1",
    "g": "0.8,0.8 0.42,1 0,0.5 0.42,0.05 0.8,0.4; 0.8,1 0.8,0.2 0.75,-0.4 0.4,-0.6 0.05,-0.45",
    "h": "0,1.6 0,0; 0,0.6 0.35,1 0.65,0.75 0.68,0.4 0.68,0",
    "i": "0.1,1 0.1,0.4 0.15,0.05 0.3,0; 0.1,1.3 0.1,1.38",
    "j": "0.3,1 0.3,0.3 0.3,-0.2 0.1,-0.6 -0.1,-0.45; 0.3,1.3 0.3,1.38",
    "k": "0,1.6 0,0; 0.6,1 0.02,0.42; 0.2,0.6 0.65,0",
    "l": "0.1,1.6 0.1,1 0.1,0.4 0.15,0.05 0.3,0",
    "m": "0,1 0,0; 0,0.6 0.28,1 0.5,0.7 0.52,0.4 0.52,0; 0.52,0.6 0.8,1 1.03,0.7 1.05,0.4 1.05,0",
    "n": "0,1 0,0; 0,0.6 0.35,1 0.63,0.7 0.65,0.4 0.65,0",
    "o": "0.42,1 0,0.5 0.42,0 0.84,0.5 0.42,1",
    "p": "0,1 0,-0.6; 0,0.65 0.4,1 0.8,0.5 0.4,0 0,0.3",
    "q": "0.8,0.8 0.42,1 0,0.5 0.42,0 0.8,0.4; 0.8,1 0.8,-0.6",
    "r": "0,1 0,0; 0,0.6 0.25,0.95 0.5,0.95",
    "s": "0.6,0.85 0.3,1 0.05,0.75 0.33,0.5 0.62,0.25 0.33,0 0.02,0.15",
    "t": "0.2,1.4 0.2,0.9 0.2,0.4 0.28,0.05 0.5,0.05; 0,1 0.45,1",
    "u": "0,1 0.02,0.3 0.3,0 0.65,0.4; 0.65,1 0.65,0",
    "v": "0,1 0.35,0; 0.35,0 0.7,1",
    "w": "0,1 0.25,0; 0.25,0 0.5,1; 0.5,1 0.75,0; 0.75,0 1,1",
    "x": "0,1 0.65,0; 0.65,1 0,0",
    "y": "0,1 0.03,0.5 0.3,0.15 0.65,0.55; 0.65,1 0.65,0.4 0.65,-0.1 0.5,-0.55 0.05,-0.5",
    "z": "0,1 0.6,1; 0.6,1 0,0; 0,0 0.62,0",
}
GAP = 0.3  # between letters, in heights of an x
BLANK = 0.8
MOST = 500  # letters of one text


def glyph(letter: str) -> list[Array]:
    """Return the points of each stroke of a letter."""
    if letter not in GLYPHS:
        raise DynidentError(f"text contains {letter!r}; write small letters a to z and blanks")
    strokes = GLYPHS[letter].split(";")
    return [np.array([[float(x) for x in pair.split(",")] for pair in stroke.split()]) for stroke in strokes]


def strokes(
    text: str,
    height: float,
    origin: ArrayLike = (0.0, 0.0, 0.0),
    right: ArrayLike = (1.0, 0.0, 0.0),
    up: ArrayLike = (0.0, 0.0, 1.0),
) -> list[Path]:
    """Return the strokes of a text on a plane, in the order in which they are drawn."""
    if not (np.isfinite(height) and height > 0.0):
        raise DynidentError(f"height is {height}; give the height of an x in metres")
    if len(text) > MOST:
        raise DynidentError(f"text has {len(text)} letters; write at most {MOST} at a time")
    e, f = (np.asarray(x, dtype=np.float64) / max(float(np.linalg.norm(x)), 1e-300) for x in (right, up))
    if e.shape != (3,) or f.shape != (3,) or abs(e @ f) > 1e-9 or not np.any(e) or not np.any(f):
        raise DynidentError(f"right is {np.shape(right)} {right!r} and up is {up!r}; give two directions at right angles")
    paths: list[Path] = []
    pen = 0.0
    for letter in text:
        if letter == " ":
            pen += BLANK
            continue
        shapes = glyph(letter)
        left, far = min(s[:, 0].min() for s in shapes), max(s[:, 0].max() for s in shapes)
        for shape in shapes:
            plane = height * (shape + np.array([pen - left, 0.0]))
            points = np.asarray(origin, dtype=np.float64) + np.outer(plane[:, 0], e) + np.outer(plane[:, 1], f)
            paths.append(Line(points[0], points[1]) if len(points) == 2 else Spline(points))
        pen += far - left + GAP
    if not paths:
        raise DynidentError(f"text is {text!r}; write at least one small letter")
    return paths


def write(
    text: str,
    height: float,
    origin: ArrayLike = (0.0, 0.0, 0.0),
    right: ArrayLike = (1.0, 0.0, 0.0),
    up: ArrayLike = (0.0, 0.0, 1.0),
    speed: float = 0.5,
    acceleration: float = 2.0,
    lift: float = 0.02,
    profile: ProfileMaker = Quintic.within,
) -> Task:
    """Return the writing task: the strokes of a text with the pen down, hops with the pen up between them.

    Parameters
    ----------
    text : str
        Small letters and blanks.
    height : float
        Height of an x [m].
    origin : array_like, (3,)
        Start of the base line [m].
    right, up : array_like, (3,)
        Direction of writing and of the stems; the pen is lifted along right x up.
    speed : float
        Largest speed along a stroke [m/s].
    acceleration : float
        Largest acceleration along a stroke, and across it in bends, where the speed is reduced [m/s^2].
    lift : float
        Height by which the pen is lifted [m]; 0 draws the connections as straight lines on the plane.
    profile : callable
        Makes a profile from distance, speed and acceleration.

    Returns
    -------
    Task
        Segments with the pen down and up.
    """
    paths = strokes(text, height, origin, right, up)
    normal = np.cross(np.asarray(right, dtype=np.float64), np.asarray(up, dtype=np.float64))
    segments: list[Segment] = []
    last: Array | None = None
    for path, meets in zip(paths, joined(paths), strict=True):
        first = path(0.0)[0][0]
        if last is not None and not meets:
            way: Path = Hop(last, first, normal, lift) if lift > 0.0 else Line(last, first)
            top = speed_limit(way, speed, acceleration)
            segments.append(Segment(way, profile(way.length, top, acceleration), pen=False))
        segments.append(Segment(path, profile(path.length, speed_limit(path, speed, acceleration), acceleration)))
        last = path(path.length)[0][0]
    return Task(segments)
