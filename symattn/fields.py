"""The names of tensors: the letter that a program and a page use, and the field name that users, files and JSON use.

``O`` is for display, ``out`` is the name in every mapping, file and report; the gradient of ``Q`` is ``dQ`` and ``grad_query``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from symattn.errors import UnknownNameError, nearest
from symattn.evaluation import HELPERS as OF_ALGORITHMS


class Field(NamedTuple):
    """A tensor: its letter, its field name, and its axes in the layout of fields (``bhsd``)."""

    letter: str
    field: str
    axes: str
    """b batch, H heads, K key and value heads, i query, j key, other letters as in the program; ``*`` as given."""
    kind: str = "real"
    """Which numbers it may hold: ``real positive unit`` (0 to 1) ``factor`` (above 0, up to 1) ``integer boolean``."""
    below: str = ""
    """Of integers: the size that they are smaller than, where there is one."""
    about: str = ""
    """What it is, in a few words; for inputs that are bound by their axes alone."""


DECLARED: tuple[Field, ...] = (
    Field("Qr", "query_rope", "bHir", about="the part of the queries that is rotated"),
    Field("Kr", "key_rope", "bjr", about="the part of the keys that is rotated, shared by all heads"),
    Field("Lat", "latent", "bjy", about="what is kept of every token, shared by all heads"),
    Field("WUK", "w_uk", "Hyc", about="from the latent to the keys of each head"),
    Field("WUV", "w_uv", "Hye", about="from the latent to the values of each head"),
    Field("WDKV", "w_dkv", "ay", about="from X to the latent"),
    Field("WKR", "w_kr", "ar", about="from X to the part of the keys that is rotated"),
    Field("WDQ", "w_dq", "ax", about="from X to the latent of the queries"),
    Field("WUQ", "w_uq", "Hxc", about="from the latent of the queries to the queries of each head"),
    Field("WQR", "w_qr", "Hxr", about="from the latent of the queries to their part that is rotated"),
    Field("PE", "position_table", "pa", about="a learned vector for every position, added to X"),
    Field("bQ", "b_q", "Hc", about="what the projection of the queries adds"),
    Field("bK", "b_k", "Kc", about="what the projection of the keys adds"),
    Field("bV", "b_v", "Ke", about="what the projection of the values adds"),
    Field("bO", "b_o", "f", about="what the projection of the output adds"),
    Field("WQx", "cross_w_q", "Hac", about="the query weights of the cross attention"),
    Field("WKx", "cross_w_k", "Kuc", about="its key weights"),
    Field("WVx", "cross_w_v", "Kue", about="its value weights"),
    Field("WOx", "cross_w_o", "Hef", about="its output weights"),
    Field("bQx", "cross_b_q", "Hc", about="what its projection of the queries adds"),
    Field("bKx", "cross_b_k", "Kc", about="what its projection of the keys adds"),
    Field("bVx", "cross_b_v", "Ke", about="what its projection of the values adds"),
    Field("bOx", "cross_b_o", "f", about="what its projection of the output adds"),
    Field("Wff1", "w_ff1", "az", about="the first matrix of the feed-forward block"),
    Field("bff1", "b_ff1", "z", about="what is added after it"),
    Field("Wff2", "w_ff2", "zf", about="the second matrix of the feed-forward block"),
    Field("bff2", "b_ff2", "f", about="what is added after it"),
    Field("gain1", "norm1_weight", "a", about="the gain of the first layer norm"),
    Field("shift1", "norm1_bias", "a", about="the shift of the first layer norm"),
    Field("gain2", "norm2_weight", "a", about="the gain of the second layer norm"),
    Field("shift2", "norm2_bias", "a", about="the shift of the second layer norm"),
    Field("gain3", "norm3_weight", "a", about="the gain of the third layer norm"),
    Field("shift3", "norm3_bias", "a", about="the shift of the third layer norm"),
    Field("gQ", "q_norm_weight", "c", about="the weights of the norm of the queries, one per channel"),
    Field("gK", "k_norm_weight", "c", about="the weights of the norm of the keys, one per channel"),
    Field("Wgen", "w_general", "Hcy", about="the matrix between query and key"),
    Field("Wadd", "w_additive", "Hxc", about="the hidden layer's weights of the query"),
    Field("Uadd", "u_additive", "Hxc", about="the hidden layer's weights of the key"),
    Field("Wcat", "w_concat", "Hxsc", about="the hidden layer's weights of the query (s = 0) and of the key (s = 1)"),
    Field("wadd", "v_additive", "Hx", about="the weight of each hidden unit in the score"),
    Field("aK", "relative_keys", "tc", about="a vector for each distance, shared by all heads"),
    Field("rK", "relative_keys", "Htc", about="a vector for each distance and head"),
    Field("uR", "content_bias", "Hc", about="what is added to the query before it meets the keys"),
    Field("vR", "position_bias", "Hc", about="what is added to the query before it meets the distances"),
    Field("Bkt", "bucket_bias", "Hw", about="the bias of each head and bucket"),
    Field("bkt", "bucket_numbers", "ij", "integer", "buckets", about="the bucket of every query and key"),
    Field("Q2", "query2", "bHic", about="the queries of the second map"),
    Field("K2", "key2", "bKjc", about="the keys of the second map"),
    Field("WQ2", "w_q2", "Hac", about="the query weights of the second map"),
    Field("WK2", "w_k2", "Kac", about="the key weights of the second map"),
    Field("lq1", "lambda_q1", "c", about="the first of the vectors that the weight of the second map is made of"),
    Field("lk1", "lambda_k1", "c", about="what lambda_q1 meets"),
    Field("lq2", "lambda_q2", "c", about="the second of these vectors"),
    Field("lk2", "lambda_k2", "c", about="what lambda_q2 meets"),
    Field("lam0", "lambda_init", "", about="the part of the weight of the second map that is not learned"),
    Field("mixS", "mix_scores", "HH", about="from head (row) to head (column), before the normalizer"),
    Field("mixP", "mix_weights", "HH", about="from head (row) to head (column), after the normalizer"),
    Field("kern", "score_kernel", "Hrv", about="the kernel over neighbouring queries and keys, one for each head"),
    Field("fg", "forget_gates", "bHj", about="the logits of the forget gates, at the positions of the keys"),
    Field("og", "gate", "bHie", about="the logits of the output gate"),
    Field("gO", "head_norm_weight", "e", about="the weights of the norm of every head's output, one per channel"),
    Field("WG", "w_g", "Hae", about="the weights of the output gate"),
    Field("gam", "decay", "K", "factor", about="the factor by which the state of each head fades at every step"),
    Field("lgam", "decay", "K", about="the logarithm of the factor by which the state of each head fades at every step"),
    Field("Al", "decay", "bKi", "unit", about="the factor by which the state fades at each step"),
    Field("Lal", "decay", "bKi", about="the logarithm of the factor by which the state fades at each step"),
    Field("Ac", "decay", "bKic", "unit", about="the factor by which each key channel of the state fades at each step"),
    Field("Lac", "decay", "bKic", about="the logarithm of the factor by which each key channel of the state fades at each step"),
    Field("Bt", "beta", "bKi", about="how much of what the state does not yet say each step writes"),
    Field("St0", "initial_state", "bKce", about="the state before the first step"),
    Field("Kc", "key_cache", "Kvrc", about="the keys of all sequences: page, place in the page, channel"),
    Field("Vc", "value_cache", "Kvre", about="the values of all sequences: page, place in the page, channel"),
    Field("page", "block_table", "bt", "integer", "pages", about="the pages of a sequence, in the order of its keys"),
)
"""Inputs of the variants that need nothing but their axes: checked against the program's shapes, and drawn by their kind."""

ROWS: tuple[Field, ...] = (
    Field("Q", "query", "bHic"),
    Field("K", "key", "bKjc"),
    Field("V", "value", "bKje"),
    Field("X", "x", "bia"),
    Field("C", "memory", "bju"),
    Field("Emb", "embedding", "*"),
    Field("tok", "tokens", "bp"),
    Field("WQ", "w_q", "*"),
    Field("WK", "w_k", "*"),
    Field("WV", "w_v", "*"),
    Field("WO", "w_o", "*"),
    Field("M", "attn_mask", "*"),
    Field("B", "attn_mask", "*"),
    Field("bias", "bias", "*"),
    Field("slope", "alibi_slopes", "H"),
    Field("sink", "sinks", "H"),
    Field("doc", "doc", "bi"),
    Field("doc_q", "doc_q", "bi"),
    Field("doc_k", "doc_k", "bj"),
    Field("len", "key_lengths", "b"),
    Field("drop", "dropout_mask", "bHij"),
    Field("p", "dropout_p", ""),
    Field("R", "raw_scores", "bHij"),
    Field("S", "scaled_scores", "bHij"),
    Field("A", "capped_scores", "bHij"),
    Field("Z", "scores", "bHij"),
    Field("P", "weights", "bHij"),
    Field("L", "lse", "bHi"),
    Field("O", "out", "bHie"),
    Field("Y", "out", "bif"),
    Field("logits", "logits", "biw"),
    Field("Pw", "next_word", "biw"),
    Field("Attn", "attention_out", "bif"),
    Field("Px", "cross_weights", "bHit"),
    Field("Attnx", "cross_out", "bif"),
    Field("FF", "feed_forward", "bif"),
    *DECLARED,
)

BY_LETTER: Mapping[str, Field] = {row.letter: row for row in ROWS}
HELPERS: Mapping[str, str] = {
    "scale": "",
    **OF_ALGORITHMS,
    **dict.fromkeys(("m", "m0", "l", "lk", "E0", "P0", "N", "cnt", "D"), "bHi"),
    **dict.fromkeys(("E", "Pd"), "bHij"),
    **dict.fromkeys(("O0", "U"), "bHie"),
    **dict.fromkeys(("slope_a", "slope_b"), "H"),
    **dict.fromkeys(("PEsin", "PEcos"), "pa"),
    "LatQ": "bix",
    "Qa": "bHiy",
    "Olat": "bHiy",
    "Rlat": "bHij",
    "Rrope": "bHij",
    **dict.fromkeys(("Qnegr", "Qposr", "Qrestr", "Qrotr"), "bHir"),
    **dict.fromkeys(("Knegr", "Kposr", "Krestr", "Krotr"), "bjr"),
    **dict.fromkeys(
        (
            "Xp",
            "T1",
            "T2",
            "T3",
            "N1",
            "N2",
            "N3",
            *(x + k for x in ("Dev", "Unit") for k in "123"),
            "Ylin",
            "Attnlin",
            "Attnlinx",
            "FFlin",
        ),
        "bia",
    ),
    **dict.fromkeys(("H1lin", "H1", "H2"), "biz"),
    **dict.fromkeys((*(x + k for x in ("mu", "var", "sd") for k in "123"), "mw", "lw"), "bi"),
    "Ew": "biw",
    "Qlin": "bHic",
    "Klin": "bKjc",
    "Vlin": "bKje",
    "Qlinx": "bHic",
    "Klinx": "bKtc",
    "Vlinx": "bKte",
    "Qx": "bHic",
    "Kx": "bKtc",
    "Vx": "bKte",
    "Ox": "bHie",
    "mx": "bHi",
    "lx": "bHi",
    "Dx": "bHi",
    **dict.fromkeys(("Rx", "Sx", "Ex"), "bHit"),
    **dict.fromkeys(("Th", "Tha", "Thb"), "c"),
    **dict.fromkeys(("CQ", "SQ"), "ic"),
    **dict.fromkeys(("CK", "SK"), "jc"),
    **dict.fromkeys(("Qneg", "Qpos", "Qturn", "Qrest", "Qrot", "Qn", "Qu", "Qv"), "bHic"),
    **dict.fromkeys(("Kneg", "Kpos", "Kturn", "Krest", "Krot", "Kn", "Ks"), "bKjc"),
    **dict.fromkeys(("Qsq", "Qnorm"), "bHi"),
    **dict.fromkeys(("Ksq", "Knorm"), "bKj"),
    **dict.fromkeys(("Ksum", "Kmean"), "bKc"),
    **dict.fromkeys(("Qf", "Qfp", "Qfn"), "bHic"),
    **dict.fromkeys(("Kf", "Kfp", "Kfn", "Kd", "Kw", "Kwp"), "bKjc"),
    **dict.fromkeys(("Oin", "Oout", "Ooutr", "Or"), "bHie"),
    **dict.fromkeys(("V0", "Vn", "Vnp", "Vp", "Vw", "Vwp"), "bKje"),
    **dict.fromkeys(("Rk", "Tk"), "bKij"),
    **dict.fromkeys(("St", "Sb", "Si"), "bKice"),
    **dict.fromkeys(("Sa", "Sp"), "bKxce"),
    "Sk": "bKxcw",
    "z": "bKic",
    "za": "bKxc",
    **dict.fromkeys(("lr", "lrk", "lr0"), "bHi"),
    "Rg": "bHij",
    "Gamma": "bKijc",
    "Lambda": "bKic",
    "Omega": "bKjc",
    "Delta": "bKxc",
    "Lsum": "bKic",
    "Lall": "bKxc",
    "Kcount": "b",
    "Qw": "bHiy",
    "Hq": "bHix",
    "Hk": "bHjx",
    "Rc": "bHij",
    "Rp": "bHit",
}
"""Tensors of a program that have no field name, and their axes."""

RESERVED = (
    frozenset(BY_LETTER) | frozenset(HELPERS) | frozenset("d" + x for x in (*BY_LETTER, *HELPERS)) | {"dv", "H", "Hkv", "G"}
)
"""Names that a parameter of a score cannot have (``slope`` and ``bias`` only where the definition has them)."""

INPUT_FIELDS = frozenset(
    {"query", "key", "value", "x", "memory", "embedding", "tokens", "w_q", "w_k", "w_v", "w_o", "attn_mask", "bias"}
    | {"alibi_slopes", "sinks", "doc", "doc_q", "doc_k", "key_lengths", "dropout_mask", "dropout_p", "grad_out", "grad_lse"}
    | {"grad_logits", "grad_next_word"}
    | {row.field for row in DECLARED}
)


def kind_of(letter: str, parameters: Iterable[str] = ()) -> tuple[str, str]:
    """What a name in a program says: the prefix of its field name, and the tensor that it is derived from.

    ``dX`` is the gradient of ``X``, ``X_t`` its tangent, and ``dX_t`` the tangent of its gradient: a Hessian-vector product.

    >>> kind_of("Q"), kind_of("dQ"), kind_of("O_t"), kind_of("dQ_t")
    (('', 'Q'), ('grad_', 'Q'), ('tangent_', 'O'), ('hvp_', 'Q'))
    """
    own = {*parameters, *BY_LETTER}
    if letter in own:
        return "", letter
    bare = letter.removesuffix("_t")
    moving = bare != letter and bool(bare)
    if bare in own or not bare.startswith("d"):
        return ("tangent_" if moving else ""), bare if moving else letter
    return ("hvp_" if moving else "grad_"), bare[1:]


def field_of(letter: str, parameters: Iterable[str] = ()) -> str:
    """The field name of a tensor, its gradient or its tangent. A parameter's tensor has its own name, whatever else is called so.

    >>> field_of("Q"), field_of("dQ"), field_of("L"), field_of("dB"), field_of("dO"), field_of("O_t"), field_of("dQ_t")
    ('query', 'grad_query', 'lse', 'grad_attn_mask', 'grad_out', 'tangent_out', 'hvp_query')
    >>> field_of("dslope"), field_of("dslope", ["slope"])
    ('grad_alibi_slopes', 'grad_slope')
    """
    own = set(parameters)
    prefix, base = kind_of(letter, own)
    return prefix + (base if base in own or base not in BY_LETTER else BY_LETTER[base].field)


def letter_of(field: str, letters: Collection[str], parameters: Iterable[str] = ()) -> str:
    """The tensor among ``letters`` (a program's) that a field name stands for.

    Raises
    ------
    UnknownNameError
        When none of them has this field name.

    >>> letter_of("attn_mask", ("Q", "B")), letter_of("grad_out", ("dY",))
    ('B', 'dY')
    """
    for letter in sorted(letters):
        output = kind_of(letter, parameters)[1] == "O"
        if field_of(letter, parameters) == field and not (output and letter.replace("O", "Y") in letters):
            return letter
    raise UnknownNameError(f"no tensor here has the name {field!r}. {nearest(field, public_fields(letters, parameters))}")


def public_fields(letters: Iterable[str], parameters: Iterable[str] = ()) -> frozenset[str]:
    """The names of those tensors (gradients, tangents) that have a field name; helpers such as ``l`` have none.

    >>> sorted(public_fields(["O", "l", "dQ", "dl", "dt"], ["t"]))
    ['grad_query', 'grad_t', 'out']
    """
    own = {*BY_LETTER, *parameters}
    return frozenset(field_of(x, parameters) for x in letters if kind_of(x, parameters)[1] in own)
