from .drive import Chain as Chain
from .drive import CurrentSensor as CurrentSensor
from .drive import Drive as Drive
from .drive import Encoder as Encoder
from .drive import Motor as Motor
from .drive import Transmission as Transmission
from .drives_file import read_drives as read_drives
