from .chain import Chain as Chain
from .drive import Drive as Drive
from .drives_file import read_drives as read_drives
from .encoder import CurrentSensor as CurrentSensor
from .encoder import Encoder as Encoder
from .motor import Motor as Motor
from .transmission import Transmission as Transmission
