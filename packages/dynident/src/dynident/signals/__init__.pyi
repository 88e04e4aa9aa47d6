from .dependence import autocorrelation as autocorrelation
from .filters import automatic_cutoff as automatic_cutoff
from .filters import butterworth as butterworth
from .log import Log as Log
from .preparation import Prepared as Prepared
from .preparation import prepare as prepare
from .quality import Quality as Quality
from .quality import diagnose as diagnose
from .quality import split_at_gaps as split_at_gaps
from .smoothers import fourier as fourier
from .smoothers import kalman_smoother as kalman_smoother
from .smoothers import savitzky_golay as savitzky_golay
from .smoothers import smoothing_spline as smoothing_spline

__all__ = [
    "Log",
    "Prepared",
    "Quality",
    "autocorrelation",
    "automatic_cutoff",
    "butterworth",
    "diagnose",
    "fourier",
    "kalman_smoother",
    "prepare",
    "savitzky_golay",
    "smoothing_spline",
    "split_at_gaps",
]
