"""`dist:NAME`: the files that an installed Python distribution brought. Imports nothing of it and judges nothing."""

from __future__ import annotations

from linkcheck.errors import NothingToCheckError, UsageProblemError
from linkcheck.inputs.wanted import ELF_MAGIC, is_library_name


def list_distribution(named: str) -> list[str]:
    """Paths of the ELF files and library-named files of the distribution that `named` ("dist:NAME") means.

    It is looked for where the running Python would import from. Raises UsageProblemError when there is none of that
    name, or its record of files is gone, and NothingToCheckError when it has no such file.
    """
    import importlib.metadata

    name = named.removeprefix("dist:")
    if not name.strip():
        raise UsageProblemError(f"{named} names no distribution; write dist:NAME")
    try:
        distribution = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise UsageProblemError(f"{named}: no distribution of that name is installed for this Python") from None
    if distribution.files is None:
        raise UsageProblemError(f"{named}: the distribution has no record of its files; name its directory instead")
    paths = {str(distribution.locate_file(file)) for file in distribution.files}
    found = sorted(path for path in paths if _is_wanted(path))
    if not found:
        raise NothingToCheckError(f"{named}: nothing to check: the distribution has no ELF file")
    return found


def _is_wanted(path: str) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:
            return is_library_name(path) or file.read(4) == ELF_MAGIC
    except OSError:
        return False  # recorded, but removed since: nothing of it can be loaded
