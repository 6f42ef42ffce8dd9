"""`symattn verify`: a kernel, recorded tensors, or all kernels that run here, judged by a definition."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symattn_cli.documents import check_format, check_target, deliver, progress
from symattn_cli.options import DefinitionFlags, with_definition

if TYPE_CHECKING:
    from symattn.verify.report import Report


@with_definition
def command(
    context: typer.Context,
    definition: DefinitionFlags,
    kernel: Annotated[
        str | None,
        typer.Argument(
            metavar="[KERNEL]", help="A built-in name, FILE.py:FUNCTION or MODULE:FUNCTION; by default all that run here."
        ),
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", metavar="B,H,HKV,N,M,D[,DV]", help="Sizes of one further input, named shape.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="KIND,..", help="These inputs of the pack alone.")] = None,
    skip: Annotated[str | None, typer.Option("--skip", metavar="KIND,..", help="Not these inputs of the pack.")] = None,
    max_len: Annotated[
        int | None, typer.Option("--max-len", metavar="N", min=1, help="The greatest number of queries and keys in the pack.")
    ] = None,
    require: Annotated[
        str | None,
        typer.Option("--require", metavar="TEXT", help="What sizes have to fulfil, such as 'd % 8 == 0, n == m'."),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option("--inputs", metavar="FILE", help="Run KERNEL on the tensors of a .npz or .safetensors file.")
    ] = None,
    golden: Annotated[
        str | None, typer.Option("--golden", metavar="DIR", help="Judge --outputs by the golden files of this folder.")
    ] = None,
    outputs: Annotated[
        str | None, typer.Option("--outputs", metavar="DIR", help="What was computed from --golden: DTYPE/INPUT/out.npy ...")
    ] = None,
    replay_file: Annotated[
        str | None, typer.Option("--replay", metavar="FILE", help="Run the cases of a JSON report again.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="FORMAT", help="float64, float32, float16, bfloat16 ...; default float32.")
    ] = None,
    backward: Annotated[bool, typer.Option("--backward", help="Judge the gradients too.")] = False,
    backward_kernel: Annotated[
        str | None, typer.Option("--backward-kernel", metavar="KERNEL", help="Where the gradients of KERNEL come from.")
    ] = None,
    recorded: Annotated[
        str | None, typer.Option("--recorded", metavar="FILE", help="Judge the tensors of a .npz or .safetensors file.")
    ] = None,
    arithmetic: Annotated[
        str | None,
        typer.Option("--arithmetic", metavar="NAME|FILE.toml", help="How the kernel computes; default: what it declares."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", min=0, help="The same seed gives the same inputs; default 0.")
    ] = None,
    layout: Annotated[str, typer.Option("--layout", metavar="bhsd|bshd", help="Of the kernel's or the file's arrays.")] = "bhsd",
    strict: Annotated[
        bool, typer.Option("--strict", help="Suspect results, known deviations and known faults that could not show fail too.")
    ] = False,
    no_guard: Annotated[
        bool, typer.Option("--no-guard", help="Leave out which known faults this run could not have shown.")
    ] = False,
    diagnose: Annotated[
        str | None,
        typer.Option("--diagnose", metavar="bounded|all", help="How far faults are searched; default bounded."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="In the text every tensor of every input, those that pass too.")
    ] = False,
    format: Annotated[
        str, typer.Option("--format", metavar="text|json|junit|github|html", help="The form of the report.")
    ] = "text",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write the report to FILE; stdout then gets the text.")
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE.npz", help="Keep inputs, outputs, exact values and bounds.")
    ] = None,
    list_kernels: Annotated[bool, typer.Option("--list", help="The built-in kernels, and which can run here.")] = False,
) -> None:
    """Judge a kernel: every element against the exact value and the largest error that its arithmetic allows.

    Exit codes: 0 pass (or suspect), 1 fail, 2 usage, 3 inconclusive, 4 a file that cannot be used.
    """
    if replay_file is not None:
        from symattn_cli.replay import replay

        replay(replay_file, context)
        return
    check_format(format, output)
    for target in (output, save):
        check_target(target)
    if layout not in ("bhsd", "bshd"):
        raise typer.BadParameter(f"bhsd or bshd, got {layout!r}", param_hint="--layout")
    if recorded is not None and (kernel or backward_kernel):
        raise typer.BadParameter("a recorded file is judged instead of a kernel; give one of the two", param_hint="--recorded")
    packed = {"--shape": shape, "--only": only, "--skip": skip, "--max-len": max_len, "--require": require, "--dtype": dtype}
    for flag, value in {**packed, "--seed": seed}.items():
        if recorded is not None and value is not None:
            raise typer.BadParameter("is about inputs that are made, and a recorded file has its own", param_hint=flag)
        if inputs is not None and value is not None and flag != "--seed":
            raise typer.BadParameter("is about inputs that are made, and --inputs brings them", param_hint=flag)
    if inputs is not None and kernel is None:
        raise typer.BadParameter("goes with a KERNEL, which is run on them", param_hint="--inputs")
    if backward_kernel is not None and kernel is None:
        raise typer.BadParameter("goes with a KERNEL of your own", param_hint="--backward-kernel")
    if layout != "bhsd" and kernel is None and recorded is None:
        raise typer.BadParameter("goes with a KERNEL of your own or a recorded file", param_hint="--layout")
    if diagnose not in (None, "bounded", "all"):
        raise typer.BadParameter(f"bounded or all, got {diagnose!r}", param_hint="--diagnose")
    if diagnose == "all" and kernel is None and recorded is None and golden is None:
        raise typer.BadParameter("goes with a KERNEL, a recorded file or golden files", param_hint="--diagnose")
    elsewhere = {"KERNEL": kernel, "--recorded": recorded, "--inputs": inputs, "--backward": backward or None, "--seed": seed}
    _check_golden(golden, outputs, {**packed, **elsewhere, "--backward-kernel": backward_kernel}, definition)
    if list_kernels:
        typer.echo(_listing(), nl=False)
        return
    given = {
        "kernel": kernel,
        "--recorded": recorded,
        "--golden": golden,
        "--outputs": outputs,
        **packed,
        "--inputs": inputs,
        "--backward": backward or backward_kernel is not None,
        "--backward-kernel": backward_kernel,
        "--arithmetic": arithmetic,
        "--seed": seed or None,
        "--layout": layout if layout != "bhsd" else None,
        "--strict": strict,
        "--no-guard": no_guard,
        "--diagnose": diagnose if diagnose != "bounded" else None,
        "keep": save is not None or format == "html",
    }
    line = Line(["symattn", "verify", *([kernel] if kernel else [])])
    try:
        report = _run(given, definition, line)
    except Exception as error:
        refused = _refusal(error, kernel or recorded or outputs, line) if format != "text" else None
        if refused is not None:
            deliver(refused, format, output, strict=strict)
        raise
    deliver(report, format, output, strict=strict, color=_colors(), verbose=verbose)
    if save is not None:
        from symattn.verify.savefile import save as save_run

        save_run(report, save)
    code = report.exit_code(strict=strict)
    if code:
        raise typer.Exit(code)


def _check_golden(golden: str | None, outputs: str | None, others: dict[str, Any], definition: DefinitionFlags) -> None:
    """Refuse half of the pair, and what the manifest says beside it."""
    if (golden is None) != (outputs is None):
        missing = "--outputs" if golden is not None else "--golden"
        raise typer.BadParameter(f"goes with {missing}", param_hint="--golden" if golden is not None else "--outputs")
    if golden is None:
        return
    for name, value in others.items():
        if value is not None:
            raise typer.BadParameter("golden files have inputs of their own, and a definition", param_hint=name)
    if definition != DefinitionFlags():
        raise typer.BadParameter("golden files have a definition of their own; give no other", param_hint="--golden")


@dataclass
class Line:
    """The command line that runs the same again, and the conventions of its definition: filled in as far as a run came."""

    words: list[str]
    conventions: dict[str, str] = field(default_factory=dict)


def _refusal(error: Exception, kernel: str | None, line: Line) -> Report | None:
    """The report of a run that ended in an error; None for errors of usage and of files, which are for the caller."""
    from symattn_cli.exits import exit_code

    ended = {1: "fail", 3: "inconclusive", 70: "error"}.get(exit_code(error) or 0)
    if ended is None:
        return None
    from symattn.verify.report import Report

    return Report(kernel, line.conventions, {}, (), shlex.join(line.words), error=str(error), ended=ended)


def _run(given: dict[str, Any], flags: DefinitionFlags, line: Line) -> Report:
    from dataclasses import replace

    from symattn_cli.options import arguments, definition_from

    d = definition_from(flags)
    line.conventions = d.conventions() if given["--golden"] is None else {}
    line.words += arguments(d)
    for name, value in given.items():
        if name.startswith("--") and value:
            line.words += [name] if value is True else [name, str(value)]
    options = {"arithmetic": given["--arithmetic"], "keep": given["keep"]}
    diagnosed: dict[str, Any] = {"diagnosis": given["--diagnose"] or "bounded"}
    chosen = {name: given["--" + name.replace("_", "-")] for name in ("shape", "only", "skip", "max_len", "require")}
    seeded = {**options, **chosen, "seed": given["--seed"] or 0}
    guarded: dict[str, Any] = {"guard": not given["--no-guard"], "progress": progress}
    whole_set = given["kernel"] is None and given["--recorded"] is None and not d.changed
    if given["--golden"]:
        from symattn.verify.golden.judging import verify_golden

        report = verify_golden(given["--golden"], given["--outputs"], progress=progress, **diagnosed, **options)
    elif given["--recorded"]:
        from symattn.verify.judge import verify_recorded

        report = verify_recorded(given["--recorded"], d, layout=given["--layout"] or "bhsd", **guarded, **diagnosed, **options)
    elif given["kernel"]:
        from symattn.verify.judge import verify

        report = verify(
            given["kernel"],
            d,
            dtype=given["--dtype"] or "float32",
            backward=given["--backward"],
            layout=given["--layout"] or "bhsd",
            backward_kernel=given["--backward-kernel"],
            inputs=given["--inputs"],
            **guarded,
            **diagnosed,
            **seeded,
        )
    else:
        from symattn.verify.suite import verify_all

        report = verify_all(None if whole_set else d, dtype=given["--dtype"], progress=progress, **seeded)
    report = replace(report, replay=shlex.join(line.words))
    _ = report.guard  # what is said while it is worked out, and how long it takes, belongs to the run
    progress("")
    return report


def _listing() -> str:
    from symattn.verify.kernels.registry import BUILT_IN

    lines = []
    for name, kernel in BUILT_IN.items():
        missing = kernel.missing()
        lines.append(f"{name:<27}{'runs here' if missing is None else 'cannot run: ' + missing}\n")
        lines.append(f"    {kernel.about}{f' ({kernel.versions()})' if kernel.packages and not missing else ''}\n")
    return "".join(lines)


def _colors() -> bool:
    import os

    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
