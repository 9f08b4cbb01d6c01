"""Replaces complex numbers of an exported program by their real and imaginary parts."""

import functools
import math
import operator
from collections.abc import Callable, Sequence

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

from weir.torch import complex_arithmetic, complex_functions, complex_matrices
from weir.torch.complex_arithmetic import Pair, conjugate, multiply, multiply_matrices, take_part, widen
from weir.torch.decompositions import get_table
from weir.torch.operators import stop_gradient
from weir.torch.places import emit, name_call, refuse
from weir.transforms import LARGEST, factor

aten, prims = torch.ops.aten, torch.ops.prims


def split_complex(program: ExportedProgram) -> list[Node]:
    """Writes, in place, each operator on complex numbers as operators on their parts.

    Returns those without a rule, for `refuse_complex`: some are of constants alone, to be evaluated before that.
    """
    graph, pairs, left = program.graph, {}, []
    for node in list(graph.nodes):
        if node in pairs or not _has_complex(node):
            continue
        if node.target is aten._assert_tensor_metadata.default:  # which held while the program was traced
            graph.erase_node(node)
            continue
        with graph.inserting_before(node):
            is_done = node.target in _RULES and _replace(node, pairs)
        if not is_done:
            left.append(node)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return left


def refuse_complex(program: ExportedProgram, left: list[Node]) -> None:
    """Raises ExportError if any of these operators is still there."""
    there = set(program.graph.nodes)
    if found := [node for node in left if node in there]:
        refuse("operators without a form for complex numbers (write them for the parts, by z.real and z.imag)", found,
               lambda node: name_call(node) + _LIMITS.get(node.target, ""))


def _has_complex(node: Node) -> bool:
    return node.op == "call_function" and (_is_complex(node) or any(map(_is_complex, node.all_input_nodes)))


def keep_complex(table: dict[torch._ops.OpOverload, Callable]) -> dict[torch._ops.OpOverload, Callable]:
    """Returns a table of decompositions with those of transforms, and in which operators with a rule stay if an operand
    is complex."""
    names = [f"fft_{kind}{dims}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for dims in ("", "2", "n")]
    names += ["fft_fftshift", "fft_ifftshift"]
    own = torch.export.default_decompositions()
    ops = [aten.stft.default, aten.stft.center, aten.istft.default, *(getattr(aten, name).default for name in names)]
    return table | {op: own[op] for op in ops} | {op: _keep(table[op]) for op in _RULES if op in table}


def _keep(decompose: Callable) -> Callable:
    @functools.wraps(decompose)
    def keep(*operands: object, **options: object) -> object:
        leaves = torch.utils._pytree.tree_leaves((operands, options))
        is_kept = any(leaf.is_complex() if isinstance(leaf, torch.Tensor) else isinstance(leaf, complex) for leaf in leaves)
        return NotImplemented if is_kept else decompose(*operands, **options)

    return keep


def _is_complex(node: Node) -> bool:
    """Whether a node has a complex tensor, alone or among others."""
    leaves = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in leaves)


def _replace(node: Node, pairs: dict[Node, Pair]) -> bool:
    """Finds the parts of complex results, and replaces real ones; returns whether the rule takes these operands."""
    for operand in node.all_input_nodes:
        if _is_complex(operand) and operand not in pairs:  # a constant, or an operator without a rule
            pairs[operand] = Pair(*(_inline(node, part, operand) for part in (aten.real.default, aten.imag.default)))
    operands = torch.fx.node.map_arg((node.args, node.kwargs), lambda operand: pairs.get(operand, operand))
    try:
        made = _inline(node, _RULES[node.target], *operands[0], **operands[1])
    except (AttributeError, RuntimeError, TypeError, ValueError):  # of operands that the rule has no form for
        return False
    results = {node: made}
    if made is not None and isinstance(node.meta["val"], (list, tuple)):
        results = {user: made[user.args[1]] for user in node.users}
    if any(value is None or isinstance(value, Pair) != _is_complex(result) for result, value in results.items()):
        return False
    for result, value in results.items():
        if isinstance(value, Pair):
            pairs[result] = value
        else:
            result.replace_all_uses_with(value)
    return True


def _inline(node: Node, function: Callable, *operands: object, **options: object) -> object:
    """Emits a function of tensors at the place of a node. Returns the nodes of its results, as the function has them."""
    leaves, shape = torch.utils._pytree.tree_flatten((operands, options))
    nodes = [leaf for leaf in leaves if isinstance(leaf, Node)]
    made = None

    def call(*values: torch.Tensor) -> list:
        nonlocal made
        remaining = iter(values)
        given = [next(remaining) if isinstance(leaf, Node) else leaf for leaf in leaves]
        operands, options = torch.utils._pytree.tree_unflatten(given, shape)
        results, made = torch.utils._pytree.tree_flatten(function(*operands, **options))
        return results

    with nodes[0].meta["val"].fake_mode:
        traced = make_fx(call, decomposition_table=get_table())(*(operand.meta["val"] for operand in nodes))
    copied = dict(zip((each for each in traced.graph.nodes if each.op == "placeholder"), nodes, strict=True))
    for each in traced.graph.nodes:
        if each.op == "call_function":
            arguments, named = torch.fx.node.map_arg((each.args, each.kwargs), copied.__getitem__)
            copied[each] = emit(node, each.target, *arguments, **named)
    results = torch.fx.node.map_arg(traced.graph.output_node().args[0], copied.__getitem__)
    return torch.utils._pytree.tree_unflatten(results, made)


# Rules of operators that move elements or convert them.


def _on_parts(function: Callable[..., torch.Tensor]) -> Callable[..., Pair]:
    """Returns a function of two tensors, and of what moves no element, that does the same with both parts."""
    return lambda a, b, *more: Pair(*(function(one, other, *more) for one, other in zip(widen(a), widen(b))))


def _concatenate(values: Sequence[Pair | torch.Tensor], dim: int = 0) -> Pair:
    return Pair(*(torch.cat(parts, dim) for parts in zip(*map(widen, values))))


def _choose(condition: torch.Tensor, a: Pair | torch.Tensor, b: Pair | torch.Tensor) -> Pair:
    return _on_parts(lambda one, other: torch.where(condition, one, other))(a, b)


def _reshape(z: Pair, shape: Sequence[int]) -> Pair:
    """Copies parts whose strides differ from those of the complex tensor."""
    return Pair(*(part.reshape(shape) for part in z))


def _view_as_complex(parts: torch.Tensor) -> Pair:
    return Pair(parts[..., 0], parts[..., 1])


def _view_as_real(z: Pair) -> torch.Tensor:
    return torch.stack(z, -1)


def _pad(z: Pair, pad: Sequence[int], value: complex | float = 0) -> Pair:
    return Pair(*(aten.constant_pad_nd(part, pad, number) for part, number in zip(z, (value.real, value.imag))))


def _fill(like: Pair | torch.Tensor, number: complex | float, *, dtype: torch.dtype | None = None,
          **options: object) -> Pair | torch.Tensor:
    like = like.real if isinstance(like, Pair) else like
    if dtype is not None and not dtype.is_complex:
        return torch.full_like(like, number, dtype=dtype)
    dtype = like.dtype if dtype is None else dtype.to_real()
    return Pair(*(torch.full_like(like, part, dtype=dtype) for part in (number.real, number.imag)))


def _convert(z: Pair | torch.Tensor, *, dtype: torch.dtype | None = None, **options: object) -> Pair | torch.Tensor:
    dtype = dtype or torch.complex64
    if not dtype.is_complex:
        return z.real.to(dtype)
    return Pair(*(part.to(dtype.to_real()) for part in widen(z)))


# Transforms of Fourier, by products with small matrices.


def _transform(z: Pair, dims: Sequence[int], sign: float) -> Pair | None:
    for dim in dims:
        factors = factor(z.real.shape[dim])
        if factors[0] > LARGEST:
            return None
        z = Pair(*(part.movedim(dim, -1) for part in z))
        z = Pair(*(part.movedim(-1, dim) for part in _transform_rows(z, factors, sign)))
    return z


def _transform_rows(z: Pair, factors: Sequence[int], sign: float) -> Pair:
    """Transforms the last dimension of length a b by transforms of length a, and then of length b.

    An element j = j1 b + j2 goes into the elements k = k1 + k2 a (Cooley and Tukey, 1965).
    """
    *outer, length = z.real.shape
    a, b = factors[0], length // factors[0]
    z = Pair(*(part.reshape(*outer, a, b).transpose(-1, -2).reshape(-1, a) for part in z))
    z = multiply_matrices(z, _make_waves(a, a, a, sign, z.real.dtype))
    z = Pair(*(part.reshape(*outer, b, a) for part in z))  # ..., j2, k1
    if b > 1:
        z = multiply(z, _make_waves(b, a, length, sign, z.real.dtype))
        z = _transform_rows(Pair(*(part.transpose(-1, -2) for part in z)), factors[1:], sign)  # ..., k1, k2
        z = Pair(*(part.transpose(-1, -2) for part in z))
    return Pair(*(part.reshape(*outer, length) for part in z))


def _make_waves(rows: int, columns: int, length: int, sign: float, dtype: torch.dtype) -> Pair:
    turns = torch.arange(rows)[:, None] * torch.arange(columns) % length
    angles = turns.to(torch.float64) * (2 * math.pi / length)
    return Pair(torch.cos(angles).to(dtype), sign * torch.sin(angles).to(dtype))


def _normalize(z: Pair | None, lengths: Sequence[int], kind: int) -> Pair | None:
    """Divides by nothing, by the root of the number of elements, or by that number."""
    scale = math.prod(lengths) ** -(0, 0.5, 1)[kind]
    return None if z is None or 0 in lengths else Pair(z.real * scale, z.imag * scale) if kind else z


def _transform_complex(z: Pair, dims: Sequence[int], kind: int, forward: bool) -> Pair | None:
    return _normalize(_transform(z, dims, -1.0 if forward else 1.0), [z.real.shape[dim] for dim in dims], kind)


def _transform_real(x: torch.Tensor, dims: Sequence[int], kind: int, is_half: bool) -> Pair | None:
    z = _transform_complex(widen(x), dims, kind, True)
    if z is None or not is_half:
        return z
    return Pair(*(part.narrow(dims[-1], 0, x.shape[dims[-1]] // 2 + 1) for part in z))


def _transform_to_real(z: Pair, dims: Sequence[int], kind: int, length: int) -> torch.Tensor | None:
    *outer, last = dims
    lengths = [*(z.real.shape[dim] for dim in outer), length]
    if outer:
        z = _transform(z, outer, 1.0)
    if z is None or 0 in lengths:
        return None
    half = (length - 1) // 2  # of which the conjugates are not there
    if half:
        tails = (part.narrow(last, 1, half).flip(last) for part in conjugate(z))
        z = Pair(*(torch.cat([part.narrow(last, 0, length - half), tail], last) for part, tail in zip(z, tails)))
    z = _normalize(_transform(z, [last], 1.0), lengths, kind)
    return None if z is None else z.real


# Cases that operators with a rule have none for, as a refusal adds them to their names.
_LIMITS = {
    torch.ops.weir.cholesky.default: f" of more than {complex_matrices.LONGEST} columns",
    torch.ops.weir.householder.default: f" of more than {complex_matrices.LONGEST} rows and columns",
    torch.ops.weir.lu.default: f" of more than {complex_matrices.LONGEST} rows and columns",
    torch.ops.weir.eigh.default: f" of more than {complex_matrices.LONGEST} columns with vectors (eigvalsh has a form)",
    torch.ops.weir.svd.default: (f" with full_matrices=True, or of more than {complex_matrices.LONGEST} rows and columns "
                                 "with vectors (svdvals has a form)"),
    **{op: f" of a length with a prime factor above {LARGEST}"
       for op in (aten._fft_c2c.default, aten._fft_r2c.default, aten._fft_c2r.default)},
}
# Operators on tensors, and on integers that choose elements, that do the same with both parts.
_LINEAR = {
    aten.alias.default,
    aten.clone.default,
    aten.cumsum.default,
    aten.detach.default,
    aten.diagonal.default,
    aten.expand.default,
    aten.flip.default,
    aten.gather.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.mean.default,
    aten.mean.dim,
    aten.neg.default,
    aten.permute.default,
    aten.repeat.default,
    aten.resolve_conj.default,
    aten.roll.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split_with_sizes.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.transpose.int,
    aten.unfold.default,
    aten.unsqueeze.default,
    aten.zeros_like.default,
    prims.squeeze.default,
    prims.view_of.default,
    stop_gradient,
}


def _split_parts(target: torch._ops.OpOverload) -> Callable:
    def rule(x: Pair | torch.Tensor, *operands: object, **options: object) -> object:
        x = widen(x)  # a real one that is converted, as by dtype=torch.complex64
        real, imag = (target(x[part], *take_part(operands, part), **take_part(options, part)) for part in range(2))
        return Pair(real, imag) if isinstance(real, torch.Tensor) else [Pair(*parts) for parts in zip(real, imag)]

    return rule


_RULES: dict[torch._ops.OpOverload, Callable] = {
    **complex_arithmetic.RULES, **complex_functions.RULES, **complex_matrices.RULES,
    **{op: _split_parts(op) for op in _LINEAR},
    aten.complex.default: lambda real, imag: Pair(*torch.broadcast_tensors(real, imag)),
    aten.view.default: _reshape,
    aten._unsafe_view.default: _reshape,
    aten.view_as_complex.default: _view_as_complex,
    aten.view_as_real.default: _view_as_real,
    aten.real.default: lambda z: z.real,
    aten.imag.default: lambda z: z.imag,
    aten.cat.default: _concatenate,
    aten.where.self: _choose,
    aten.copy.default: _on_parts(aten.copy.default),
    aten.select_scatter.default: _on_parts(aten.select_scatter.default),
    aten.slice_scatter.default: _on_parts(aten.slice_scatter.default),
    aten.constant_pad_nd.default: _pad,
    aten.full_like.default: _fill,
    aten._to_copy.default: _convert,
    aten.logcumsumexp.default: complex_arithmetic.running(complex_functions.add_logs),
    prims.convert_element_type.default: lambda z, dtype: _convert(z, dtype=dtype),
    aten._fft_c2c.default: _transform_complex,
    aten._fft_r2c.default: _transform_real,
    aten._fft_c2r.default: _transform_to_real,
}
