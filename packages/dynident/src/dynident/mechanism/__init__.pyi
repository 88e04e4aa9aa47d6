from .describe import description as description
from .drawing import write_svg as write_svg
from .elements import Actuator as Actuator
from .elements import Body as Body
from .elements import Coupling as Coupling
from .elements import Joint as Joint
from .elements import Limits as Limits
from .elements import Loop as Loop
from .elements import Placement as Placement
from .files import read_robot as read_robot
from .files import write_robot as write_robot
from .force import Columns as Columns
from .force import Force as Force
from .inertia import check_consistency as check_consistency
from .inertia import from_com as from_com
from .inertia import from_principal as from_principal
from .mechanism import Mechanism as Mechanism
from .mjcf_writer import write_mjcf as write_mjcf
from .parameters import Parameters as Parameters
from .sidecar import apply_sidecar as apply_sidecar
from .sidecar import write_sidecar as write_sidecar
from .urdf_writer import write_urdf as write_urdf

__all__ = [
    "Actuator",
    "Body",
    "Columns",
    "Coupling",
    "Force",
    "Joint",
    "Limits",
    "Loop",
    "Mechanism",
    "Parameters",
    "Placement",
    "apply_sidecar",
    "check_consistency",
    "description",
    "from_com",
    "from_principal",
    "read_robot",
    "write_mjcf",
    "write_robot",
    "write_sidecar",
    "write_svg",
    "write_urdf",
]
