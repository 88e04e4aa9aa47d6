"""The folder of a campaign: campaign.json says what is done, by whom and with which robot; plan.json is the plan itself."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from dynident import __version__
from dynident.errors import LinkError
from dynident.excitation import Plan
from dynident.files import parsed, to_json, write_atomic
from dynident.link.controller import Identity
from dynident.link.schedule import Settings

FORMAT = "dynident-campaign-1"


def check_new(folder: Path) -> None:
    """Refuse a folder that already holds something."""
    if (folder / "campaign.json").exists():
        raise LinkError(f"'{folder}' holds a campaign; go on with dynident record --resume {folder}, or give another folder")
    # A crash may leave the plan alone: campaign.json comes last.
    known = ("plan.json", ".plan.json.", ".campaign.json.")
    if folder.exists() and (not folder.is_dir() or any(not p.name.startswith(known) for p in folder.iterdir())):
        raise LinkError(f"'{folder}' is not empty; give a new folder")


def create_folder(folder: Path, plan: Plan, settings: Settings, identity: Identity, address: str) -> None:
    """Write the folder of a new campaign; campaign.json comes last and makes it one."""
    known = identity.to_dict()
    if not identity.coordinates:
        known["coordinates"] = known["channels"] = list(plan.coordinates)
    about = {
        "format": FORMAT,
        "plan": plan.identity,
        "robot": plan.robot,
        "address": address,
        "settings": settings.to_dict(),
        "schedule": plan.schedule(),
        "controller": known,
        "software": {"dynident": __version__, "python": platform.python_version(), "system": platform.system()},
        "created": time.time(),
    }
    plan.save(folder / "plan.json")
    write_atomic(folder / "campaign.json", to_json(about))


def open_folder(folder: Path) -> tuple[dict[str, Any], Settings, Plan]:
    """Return what campaign.json says, with settings and plan."""
    try:
        about = parsed(json.loads, (folder / "campaign.json").read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise LinkError(f"campaign '{folder}' has the format {about['format']}; this version knows {FORMAT}")
        settings = Settings(**about["settings"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, LinkError):
            raise
        raise LinkError(f"'{folder}' is no campaign ({error}); start one with dynident record plan/ -o campaign/") from error
    plan = Plan.load(folder / "plan.json")
    if plan.identity != about["plan"]:
        raise LinkError(f"the plan in '{folder}' is {plan.identity}, the campaign's was {about['plan']}")
    return about, settings, plan


def lock_folder(folder: Path) -> int:
    """Return a handle that keeps other processes from recording into the folder; the system frees it after a crash."""
    handle = os.open(folder / "campaign.json", os.O_RDWR)
    try:
        import fcntl  # noqa: PLC0415 - not on every system

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError:
        os.close(handle)
        raise LinkError(f"another process records into '{folder}'; end it first") from None
    return handle
