from .plan_page import write_plan_page as write_plan_page
from .report import Identification as Identification
from .report import write_report as write_report
