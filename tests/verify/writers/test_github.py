"""Workflow commands and Markdown: what a runner and a renderer make of them."""

from __future__ import annotations

import re

import pytest

from symattn.verify.writers import document
from symattn.verify.writers.github import cell, commands, markdown
from tests.verify.writers.reports import HOSTILE, case, each, hostile, report, tensor

COMMAND = re.compile(r"::(error|warning) (?:file=(?P<file>[^,:]*),)?title=(?P<title>[^,:]*)::(?P<message>.*)")


def read(line):
    """What a runner makes of a line: the level, the title and the message."""
    found = COMMAND.fullmatch(line)
    assert found, line
    unescaped = [found[k].replace("%0A", "\n").replace("%0D", "\r") for k in ("title", "message")]
    title = unescaped[0].replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
    return found[1], title, unescaped[1].replace("%25", "%")


def test_commands_in_the_order_of_what_matters():
    said = [read(line) for line in commands(each()).splitlines()]
    assert [(level, title) for level, title, _ in said] == [
        ("error", "symattn: F1 a fault"),
        ("error", "symattn k: one bfloat16"),
        ("error", "symattn k: four bfloat16"),
        ("warning", "symattn k: two bfloat16"),
        ("warning", "symattn k: three bfloat16"),
        ("warning", "symattn: warning"),
    ]
    assert said[1][2].startswith("LSE[0,1,2,3]: kernel 0.3333") and said[2][2] == "four bfloat16 B=1 N=3: no such device"
    strict = [read(line)[:2] for line in commands(each(), strict=True).splitlines()]
    assert ("error", "symattn k: three bfloat16") in strict and ("error", "symattn k: two bfloat16") in strict


def test_a_pass_says_nothing_but_the_summary():
    assert commands(report(case(tensor()))) == ""
    assert markdown(report(case(tensor()))).startswith("### symattn verify: k: ✅ pass\n")


@pytest.mark.parametrize(
    "kernel, file",
    [("a/b.py:f", "a/b.py"), ("/abs/b.py:f", None), ("torch:sdpa", None), (None, None), ("a%,b.py:f", "a%25%2Cb.py")],
)
def test_a_kernel_in_a_file_is_annotated_there(kernel, file):
    line = commands(report(case(tensor("fail"), kernel=kernel or "k"), kernel=kernel)).splitlines()[0]
    assert COMMAND.fullmatch(line)["file"] == file


def test_hostile_text_starts_no_command_and_no_markup():
    text = document(hostile(), "github")
    known = len(commands(hostile()).splitlines())
    for number, line in enumerate(text.split("\n")):
        assert not set(line) & set("\x00\x1b\ud800\r")
        if number < known:
            read(line)
        else:
            assert not line.lstrip().startswith("::") and "##[" not in line
            assert not re.search(r"(?<!\\)[<`]|(?<!\\)\]\(|://", line)
    assert "%250A" in commands(hostile())  # an escape in the text stays text


def test_the_table_has_as_many_cells_in_each_row():
    rows = [line for line in markdown(hostile()).splitlines() if line.startswith("|")]
    assert len(rows) == 5 and {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}


def test_cells_read_as_the_text():
    text = cell(HOSTILE)
    assert "\n" not in text
    assert re.sub(r"\\([\W_])", r"\1", text).startswith("</script><script>alert(1)</script>")
