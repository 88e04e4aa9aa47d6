"""``python -m dynident``: the command line, with every failure reported in one sentence."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

BAD_INPUT, USAGE, INTERNAL, INTERRUPTED = 1, 2, 70, 130


def main() -> None:
    """Run the command line and exit with its code.

    0: done. 1: bad input (one sentence on standard error). 2: wrong usage. 3: done, but the verdict is not ok
    (with ``--strict``). 70: a bug in dynident. 130: interrupted.
    """
    gc.disable()  # imports leave no garbage; `_execute` enables it before the command runs
    # Our own threads share out the samples; the threads of BLAS would only wait for each other, at full load.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from dynident.cli import run  # noqa: PLC0415 - keep the import of the package fast
    from dynident.errors import DynidentError  # noqa: PLC0415 - keep the start fast

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names may hold letters that the terminal does not have
    try:
        code = run()
        if code == INTERRUPTED:
            raise KeyboardInterrupt
    except DynidentError as error:
        code = _tell(BAD_INPUT, str(error))
    except (OSError, MemoryError) as error:
        code = _tell(BAD_INPUT, f"{type(error).__name__} {error}; check the file, the free space and the memory")
    except KeyboardInterrupt:
        code = _tell(INTERRUPTED, "interrupted; no file was left incomplete")
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        code = _tell(INTERNAL, f"internal error ({type(error).__name__}: {error}); please report it with the output of --debug")
    gc.freeze()  # at exit nothing needs to be examined
    sys.exit(code)


def _tell(code: int, sentence: str) -> int:
    """Write one sentence on standard error and return the exit code."""
    from dynident.files import visible  # noqa: PLC0415 - keep the start fast

    with suppress(OSError, AttributeError):  # nobody listens: the exit code still tells
        sys.stderr.write(f"dynident: {visible(' '.join(sentence.split()))}\n")
    return code


if __name__ == "__main__":
    main()
