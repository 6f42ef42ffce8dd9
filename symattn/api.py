"""The class that people import: a definition of attention, and everything that can be read off it.

:class:`Attention` is a thin face. What a variant says is in :mod:`symattn.definition`; each method hands over to the module
that does the work and imports it when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from symattn.definition import Definition
from symattn.errors import DefinitionError, UnknownNameError, nearest
from symattn.fields import letter_of

if TYPE_CHECKING:
    from symattn.arithmetic import Arithmetic
    from symattn.derivation import Derivation, Example
    from symattn.truth.truth import Truth
    from symattn.truth.work.run import Work
    from symattn.verify.report import Report

__all__ = ["Attention"]


@dataclass(frozen=True, repr=False, init=False)
class Attention(Definition):
    """``O = softmax(scale * Q K^T) V`` with the conventions of a variant as named fields, and its readings as methods.

    The fields are those of :class:`symattn.definition.Definition`; none is implied, and each is recorded in every report and
    derivation. ``score`` and ``mask`` take text in the small grammar or SymPy in ``symattn.s``, ``symattn.i``, ``symattn.j``.

    Raises
    ------
    DefinitionError
        On a value that a field does not allow, and on fields that contradict each other.

    >>> att = Attention(heads=8, kv_heads=2, causal="bottom-right", softcap=20)
    >>> att.conventions()["causal"]
    'bottom-right: j <= i + m - n'
    >>> from symattn import i, j, s
    >>> Attention(score=s - (i - j), mask="j <= i") == Attention(score="s - (i - j)", mask="j <= i")
    True
    """

    def derive(
        self,
        example: Example | str | Path | None = None,
        *,
        form: str = "both",
        digits: int | None = None,
        lse: bool = False,
        show_max: bool = False,
        **page: Any,
    ) -> Derivation:
        """The derivation of the outputs, a step per statement of the program; see :func:`symattn.derivation.derive`.

        The log-sum-exp and the row maximum, which a reader seldom needs, are derived on request. ``page`` says how much is shown:
        ``detail``, ``show``, ``follow``, ``values``, ``shapes`` (see :class:`symattn.derivation.page.Page`) and ``notation``,
        here and in :meth:`gradient`, :meth:`jvp` and :meth:`hvp`.

        >>> print(Attention(lse=False).derive()["O"].name)
        Context vectors
        """
        from symattn.derivation import derive

        return derive(self, example, form=form, digits=digits, lse=lse, show_max=show_max, **page)

    def gradient(
        self,
        example: Example | str | Path | None = None,
        *,
        form: str = "both",
        digits: int | None = None,
        lse: bool = False,
        show_max: bool = False,
        **page: Any,
    ) -> Derivation:
        """The derivation of the gradient; every rewriting says whether it is proved for all sizes or checked.

        >>> Attention(lse=False).gradient()["dS"].known
        'derivative rule; its rewriting is proved for all sizes'
        """
        from symattn.derivation import derive

        return derive(self, example, gradient=True, form=form, digits=digits, lse=lse, show_max=show_max, **page)

    def jvp(
        self,
        example: Example | str | Path | None = None,
        *,
        form: str = "both",
        digits: int | None = None,
        lse: bool = False,
        show_max: bool = False,
        **page: Any,
    ) -> Derivation:
        r"""The derivation of the tangent of the outputs (forward mode, the Jacobian-vector product), statement by statement.

        The inputs move along the directions of the example (``tangent_query`` ...), or each along one of its own. For numbers in
        arrays see ``tangent_out`` of :meth:`lambdify` and :meth:`truth`.

        >>> Attention(lse=False).jvp()["P_t"].matrix[0].latex
        '\\dot{P} = P \\circ (\\dot{S} - \\dot{L}\\mathbf{1}^{\\top})'
        """
        from symattn.derivation import derive

        return derive(self, example, jvp=True, form=form, digits=digits, lse=lse, show_max=show_max, **page)

    def hvp(
        self,
        example: Example | str | Path | None = None,
        *,
        form: str = "both",
        digits: int | None = None,
        lse: bool = False,
        show_max: bool = False,
        **page: Any,
    ) -> Derivation:
        """The derivation of the Hessian-vector product: the tangent of the presented gradient, statement by statement.

        The Hessian is that of the loss ``<grad_out, out>``: the incoming gradient is held fixed unless the example gives
        ``tangent_grad_out``. For numbers in arrays see ``hvp_query`` of :meth:`lambdify` and :meth:`truth`.

        >>> Attention(lse=False).hvp()["dQ_t"].name
        'Hessian-vector product of the queries'
        """
        from symattn.derivation import derive

        return derive(self, example, hvp=True, form=form, digits=digits, lse=lse, show_max=show_max, **page)

    def derive_kernel(self, kernel: str, *, form: str = "both", title: str = "") -> Derivation:
        """From this definition to the algorithm of a kernel: invariant, pseudo-code, and the proof that both are equal.

        ``kernel`` is ``"online-softmax"``, ``"flash-forward"``, ``"flash-backward"``, ``"split-k"`` or ``"ring"``; see
        :func:`symattn.derivation.kernels.derive_kernel`.

        Raises
        ------
        UnknownNameError, DefinitionError
            When there is no such kernel, or the definition has no softmax that it computes.

        >>> page = Attention(causal="top-left").derive_kernel("online-softmax")
        >>> [s.known for s in page.sections if s.title == "The algorithm"]
        ['proved for all sizes']
        """
        from symattn.derivation.kernels import derive_kernel

        return derive_kernel(kernel, self, form, title)

    def cost(self, *, gradient: bool = False, title: str = "") -> Derivation:
        """What one sequence of n positions costs, as functions of sizes: operations, bytes, steps that wait, the longest path.

        A page of tables, statement by statement, with those of the gradient where it is asked for; see
        :func:`symattn.cost.page.cost_of`, and :func:`symattn.cost.page.compared` for several side by side.

        >>> [s.title for s in Attention(causal="top-left").cost().sections]
        ['Operations', 'Bytes moved', 'Steps and paths']
        """
        from symattn.cost.page import cost_of

        return cost_of(self, gradient, title)

    def lambdify(
        self, reading: str = "numpy", outputs: str | Iterable[str] = "out", *, layout: str = "bhsd", **options: Any
    ) -> Callable[..., Any]:
        """A Python function of ``query, key, value`` and further fields by keyword, in the number type of a reading.

        Parameters
        ----------
        reading
            ``"numpy"`` (``dtype=``), ``"mpmath"`` (``digits=``), ``"balls"`` (``bits=``) or ``"exact"``.
        outputs
            A field name (the function returns one array) or several (a tuple): ``out``, ``lse``, ``grad_query``, ``tangent_out``,
            ``hvp_query`` ...; gradients need ``grad_out`` or ``grad_lse`` among the arguments, tangents a direction
            (``tangent_query`` ...), and Hessian-vector products, which are tangents of gradients, both.
        layout
            Of query, key, value and their gradients.
        options
            Those of the reading.

        Returns
        -------
        callable
            Arrays in the layout of fields. ``numpy`` keeps the dtype of its inputs; ``mpmath`` gives numbers of a context of its
            own, right to the digits asked but for cancellation; ``exact`` gives SymPy numbers.

        Raises
        ------
        UnknownNameError
            For a reading, an option or an output that does not exist.
        InputValueError
            From the function: as :func:`symattn.binding.bind`, and when a gradient is wanted and none comes in, or a tangent and
            no direction.

        >>> f = Attention().lambdify("mpmath", digits=30)
        >>> f([[1]], [[0], [0]], [[1], [4]])
        array([[mpf('2.5')]], dtype=object)
        >>> Attention().lambdify("exact", "tangent_out")([[1]], [[0], [0]], [[1], [4]], tangent_value=[[2], [0]])
        array([[1]], dtype=object)
        """
        from importlib import import_module

        from symattn.lambdify import READINGS
        from symattn.truth.fields import check_outputs, laid_back, prepared

        if reading not in READINGS:
            raise UnknownNameError(f"there is no reading {reading!r} that gives values. {nearest(reading, READINGS)}")
        for o in options:
            if o not in READINGS[reading]:
                raise UnknownNameError(f"the reading {reading!r} has no option {o!r}. {nearest(o, READINGS[reading])}")
        wanted = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        check_outputs(self, wanted)
        evaluate = import_module(f"symattn.readings.{reading}").evaluate

        def function(*args: Any, **fields: Any) -> Any:
            given = {**_positional(args, fields), **fields}
            gradient = any(f.startswith(("grad_", "hvp_")) for f in wanted)
            tangent = any(f.startswith(("tangent_", "hvp_")) for f in wanted)
            bound, program, inputs = prepared(self, given, layout=layout, gradient=gradient, tangent=tangent)
            letters = [letter_of(f, tuple(s.name for s in program), self.parameters) for f in wanted]
            lean = program.with_statements(program.statements, letters).live()
            found = evaluate(lean, {n: inputs[n] for n in lean.inputs}, sizes=bound.sizes, **options)
            values = tuple(laid_back(bound, name, found[name])[1] for name in letters)
            return values[0] if isinstance(outputs, str) else values

        return function

    def truth(
        self,
        *args: Any,
        digits: int | None = None,
        bits: int | None = None,
        until: Literal["decided"] | None = None,
        decide: str | None = None,
        max_bits: int | None = None,
        tier: str | None = None,
        assume: bool = False,
        work: Work | None = None,
        layout: str = "bhsd",
        **fields: Any,
    ) -> Truth:
        """The exact values of ``query, key, value``'s outputs, enclosed: midpoint and radius of every element.

        Parameters
        ----------
        args
            ``query, key, value`` by position.
        digits, bits
            Guaranteed significant digits of every element (50), or one evaluation at a precision.
        until, decide
            Instead: until every element is decided in the format of the inputs, or in another one.
        max_bits
            Go on to this precision for elements that may be 0; see :func:`symattn.truth.truth`.
        tier, assume
            The only tier to use; whether values may rest on the accuracy of a library's exp.
        work
            Processes, a cluster and a checkpoint for large jobs.
        layout
            ``"bhsd"`` or ``"bshd"``.
        fields
            Further fields: ``grad_out``, ``grad_lse`` (then the gradients are there too), ``tangent_query`` ... (then the
            tangents are, and with both the Hessian-vector products), ``attn_mask``, ``sinks`` ...

        Returns
        -------
        dict
            ``truth["out"]``, ``truth["grad_query"]``, ``truth["tangent_out"]`` ... with ``.mid``, ``.rad``, ``.status``,
            ``.round("bfloat16")``; ``truth.report()`` says which tier took what.

        >>> found = Attention().truth([[1.0]], [[0.0], [0.0]], [[1.0], [4.0]], grad_out=[[1.0]], digits=20)
        >>> found["grad_value"].mid.tolist()
        [[Fraction(1, 2)], [Fraction(1, 2)]]
        """
        from symattn.truth.fields import truth_of

        given = {**_positional(args, fields), **fields}
        how: dict[str, Any] = {"until": until, "decide": decide, "max_bits": max_bits}
        how |= {"tier": tier, "assume": assume, "work": work}
        return truth_of(self, given, layout=layout, digits=digits, bits=bits, **how)

    def verify(
        self,
        kernel: str | Callable[..., Any],
        *,
        dtype: str = "float32",
        backward: bool = False,
        shape: str | None = None,
        only: str | Sequence[str] | None = None,
        skip: str | Sequence[str] | None = None,
        max_len: int | None = None,
        require: str | None = None,
        inputs: str | Mapping[str, Any] | None = None,
        arithmetic: Arithmetic | str | None = None,
        seed: int = 0,
        layout: str = "bhsd",
        backward_kernel: str | Callable[..., Any] | None = None,
        guard: bool = True,
        diagnosis: str = "bounded",
    ) -> Report:
        """Judge a kernel against this definition, every element by the bound of the kernel's declared arithmetic.

        Parameters
        ----------
        kernel
            A function ``kernel(query, key, value, **options)``, a built-in name (``"torch:sdpa"``), ``"FILE.py:FUNCTION"`` or
            ``"MODULE:FUNCTION"``.
        dtype, seed, layout
            Of the inputs that it is given, by default a small pack.
        shape, only, skip, max_len, require
            Which inputs: one more of the sizes ``"B,H,HKV,N,M,D[,DV]"``, named ``shape``; names of those that are taken or not;
            the greatest length; what sizes have to fulfil, ``"d % 8 == 0"``.
        inputs
            A file, or arrays by field name, in place of the pack.
        backward
            Judge the gradients too: ``kernel.backward``, ``backward_kernel``, or autograd for torch and jax.
        arithmetic
            The declared arithmetic or the name of a preset; by default what the kernel says, or what fits the dtype.
        guard
            Whether the report can say which known faults the run could not have shown; worked out when that is asked for.
        diagnosis
            Of a kernel that fails: ``"bounded"`` stops the search for its fault after so much work, ``"all"`` does not.

        Returns
        -------
        Report
            ``report.verdict``, ``report.cases``, ``report.to_text()``, ``report.to_json()``.

        Raises
        ------
        KernelError
            When the kernel raises, or returns a wrong shape or dtype, on every input; on some of them they fail.
        UnknownNameError, MissingDependencyError
            When there is no such kernel, or its framework is not installed.
        """
        from symattn.verify import judge

        return judge.verify(
            kernel,
            self,
            dtype=dtype,
            backward=backward,
            shape=shape,
            only=only,
            skip=skip,
            max_len=max_len,
            require=require,
            inputs=inputs,
            arithmetic=arithmetic,
            seed=seed,
            layout=layout,
            backward_kernel=backward_kernel,
            guard=guard,
            diagnosis=diagnosis,
        )


def _positional(args: tuple[Any, ...], fields: Mapping[str, Any]) -> dict[str, Any]:
    names = ("query", "key", "value")
    if len(args) > len(names):
        raise DefinitionError(f"at most query, key and value go by position, got {len(args)} arguments")
    given = dict(zip(names, args, strict=False))
    twice = sorted(given.keys() & fields.keys())
    if twice:
        raise DefinitionError(f"{', '.join(twice)} is given by position and by name")
    return given
