from .elementary import absolute as absolute
from .elementary import arctan2 as arctan2
from .elementary import both as both
from .elementary import cos as cos
from .elementary import either as either
from .elementary import equal as equal
from .elementary import exp as exp
from .elementary import floor as floor
from .elementary import log as log
from .elementary import maximum as maximum
from .elementary import minimum as minimum
from .elementary import opposite as opposite
from .elementary import power as power
from .elementary import sign as sign
from .elementary import sin as sin
from .elementary import sqrt as sqrt
from .elementary import tanh as tanh
from .elementary import where as where
from .expression import Function as Function
from .expression import Graph as Graph
from .expression import derivative as derivative
from .expression import reverse as reverse

__all__ = [
    "Function",
    "Graph",
    "absolute",
    "arctan2",
    "both",
    "cos",
    "derivative",
    "either",
    "equal",
    "exp",
    "floor",
    "log",
    "maximum",
    "minimum",
    "opposite",
    "power",
    "reverse",
    "sign",
    "sin",
    "sqrt",
    "tanh",
    "where",
]
