from .comparison import write_comparison as write_comparison
from .report import Identification as Identification
from .report import write_report as write_report
