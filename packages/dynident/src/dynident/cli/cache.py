"""The command about compiled code on disk."""

from __future__ import annotations

from dynident.cli.consoles import out, print_json
from dynident.cli.options import AsJson
from dynident.graph.cache import clear as clear_cache
from dynident.graph.cache import usage as cache_usage


def cache(
    *,
    clear: bool = False,
    as_json: AsJson = False,
) -> int:
    """Show location and size of the cache of compiled code (DYNIDENT_CACHE sets another folder).

    Example: dynident cache --clear

    Parameters
    ----------
    clear
        Remove all compiled code; it is made again when needed.
    """
    removed = clear_cache() if clear else 0
    folder, count, size = cache_usage()
    if as_json:
        print_json({"folder": None if folder is None else str(folder), "objects": count, "bytes": size, "removed": removed})
        return 0
    if folder is None:
        out.print("compiled code is not kept: DYNIDENT_CACHE is empty, or there is no home folder")
        return 0
    if clear:
        out.print(f"removed: {removed} objects")
    out.print(f"folder: {folder}", soft_wrap=True)
    out.print(f"objects: {count}, {size / 2**20:.1f} MB")
    return 0
