"""Errors and warnings: one clear sentence each, naming the field, the value and the remedy."""

from __future__ import annotations

import sys
import warnings

OURS = ("dynident", "dynident_lab", "dynident_papers")  # import packages of the dynident distributions


class DynidentError(ValueError):
    """An input cannot be used; the message names the input, the problem and the remedy."""


class DescriptionError(DynidentError):
    """A robot description (URDF, MJCF, DH table, sidecar, Python objects) is invalid."""


class LogError(DynidentError):
    """A log, its schema or its signals cannot be used."""


class IdentificationError(DynidentError):
    """The data do not support the requested estimate."""


class SimulationError(DynidentError):
    """A virtual robot cannot be run as requested, or the run became unstable."""


class LinkError(DynidentError):
    """A controller is not reachable or refuses, a packet is malformed, or a campaign cannot continue."""


class MissingExtraError(DynidentError, ImportError):
    """An optional dependency is needed; the message names the extra to install."""


class DynidentWarning(UserWarning):
    """Base of all dynident warnings."""


class DescriptionWarning(DynidentWarning):
    """The description was read, but a part of it was ignored or looks wrong."""


class SignalWarning(DynidentWarning):
    """The log was read, but a channel looks wrong (dead, stuck, delayed, wrong unit, resampled)."""


class ConditionWarning(DynidentWarning):
    """The regression is badly conditioned: some parameters are barely visible in the data."""


class SimulationWarning(DynidentWarning):
    """The run is complete, but needs attention (limits hit, an approximation that does not hold)."""


def missing_extra(package: str, extra: str, purpose: str) -> MissingExtraError:
    """Return the error that names the extra which provides `package`."""
    return MissingExtraError(f"{purpose} needs the package '{package}': run  pip install 'dynident[{extra}]'")


def require(value: object, kind: type, what: str) -> None:
    """Raise an error that names the required type, unless `value` has it."""
    if not isinstance(value, kind):
        raise DynidentError(f"{what} is a {type(value).__name__}; give a dynident.{kind.__name__}")


def warn(sentence: str, category: type[DynidentWarning]) -> None:
    """Issue a warning located at the user's call of dynident."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)
