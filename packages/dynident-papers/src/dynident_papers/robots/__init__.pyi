from . import cft as cft
from . import dualv as dualv
from . import er3a_c60 as er3a_c60
from . import five_bar as five_bar
from . import mast as mast
from . import prr2 as prr2
from . import prs3 as prs3
from . import replalink as replalink
from . import rrr as rrr
from .proofs import proof_case as proof_case
from .proofs import ready_machine as ready_machine

ROBOTS: tuple[str, ...]
