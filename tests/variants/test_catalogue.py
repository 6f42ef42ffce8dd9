"""The catalogue: every row is a valid definition with a name of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from symattn import variants
from symattn.errors import UnknownNameError


@pytest.mark.parametrize("name", variants.names())
def test_a_row_is_complete_and_makes_a_program(name):
    row = variants.get(name)
    assert row.name == name
    assert row.idea and row.source
    for batch in (False, True):
        program = row.definition.program(batch)
        assert program.outputs[0] in ("O", "Y")
        assert program.live().outputs == program.outputs


def test_no_two_rows_are_the_same():
    definitions = [variants.get(name).definition for name in variants.names()]
    assert len(set(definitions)) == len(definitions)


def test_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match="'grouped-query'"):
        variants.get("group-query")


def test_listing_the_catalogue_loads_no_sympy():
    code = "import sys, symattn.variants as v; v.names(); assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
