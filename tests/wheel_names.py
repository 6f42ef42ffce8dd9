"""Check the top-level names of a wheel: `python tests/wheel_names.py dist/*.whl`; nothing called `cli` may be installed."""

import sys
import zipfile

ALLOWED = {"symattn", "symattn_cli", "_symattn_pytestplugin.py"}


def check(path: str) -> None:
    """Stop with a message where a name is missing or one too many."""
    names = zipfile.ZipFile(path).namelist()
    top = {n.split("/")[0] for n in names if ".dist-info" not in n.split("/")[0]}
    if top != ALLOWED:
        sys.exit(f"{path}: the top-level names are {sorted(top)}, they should be {sorted(ALLOWED)}")
    missing = [n for n in ("symattn/py.typed", "symattn_cli/py.typed") if n not in names]
    if missing:
        sys.exit(f"{path}: {missing} is missing")
    print(f"{path}: {sorted(top)}")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        check(path)
