"""Build the image of the test nodes, once, before any test that boots them: ``make image``."""

from __future__ import annotations

import sys

from tests.bed.bed import why_not
from tests.bed.image import image
from tests.bed.shell import BedError


def main() -> int:
    """0 also where no bed is possible: the tests say what they do not test. 1 if the build fails, with one message."""
    if reason := why_not():
        sys.stderr.write(f"{reason}\n")
        return 0
    try:
        image()
    except BedError as error:
        said = str(error).strip()
        sys.stderr.write(f"The image of the test nodes was not built; `make image` tries again.\n{said}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
