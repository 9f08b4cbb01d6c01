"""Replaces complex numbers of an exported program by their real and imaginary parts."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

from weir.torch.decompositions import get_table
from weir.torch.operators import stop_gradient
from weir.torch.places import emit, refuse
from weir.transforms import LARGEST, factor

aten, prims = torch.ops.aten, torch.ops.prims


class Pair(NamedTuple):
    """The parts of a value: tensors, or their nodes."""

    real: torch.Tensor | Node
    imag: torch.Tensor | Node


def split_complex(program: ExportedProgram) -> list[Node]:
    """Writes, in place, each operator on complex numbers as operators on their parts.

    Returns those without a rule, for `refuse_complex`: some are of constants alone, to be evaluated before that.
    """
    graph, pairs, left = program.graph, {}, []
    for node in list(graph.nodes):
        if not _has_complex(node):
            continue
        if node.target is aten._assert_tensor_metadata.default:  # which held while the program was traced
            graph.erase_node(node)
            continue
        with graph.inserting_before(node):
            is_done = (node.target in _RULES or node.target in _LINEAR) and _replace(node, pairs)
        if not is_done:
            left.append(node)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return left


def refuse_complex(program: ExportedProgram, left: list[Node]) -> None:
    """Raises ExportError if any of these operators is still there."""
    there = set(program.graph.nodes)
    if found := [node for node in left if node in there]:
        refuse("operators without a form for complex numbers", found)


def _has_complex(node: Node) -> bool:
    return node.op == "call_function" and (_is_complex(node) or any(map(_is_complex, node.all_input_nodes)))


def get_composites() -> dict[torch._ops.OpOverload, Callable]:
    """Returns decompositions of transforms into those that there are rules for."""
    names = [f"fft_{kind}{dims}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for dims in ("", "2", "n")]
    names += ["fft_fftshift", "fft_ifftshift"]
    table = torch.export.default_decompositions()
    ops = [aten.stft.default, aten.stft.center, aten.istft.default, *(getattr(aten, name).default for name in names)]
    return {op: table[op] for op in ops}


def _is_complex(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()


def _replace(node: Node, pairs: dict[Node, Pair]) -> bool:
    """Finds the parts of a complex result, or replaces a real one; returns whether the rule takes these operands."""
    for operand in node.all_input_nodes:
        if _is_complex(operand) and operand not in pairs:  # a constant, or an operator without a rule
            pairs[operand] = Pair(*(_inline(node, target, operand) for target in (aten.real.default, aten.imag.default)))
    operands = torch.fx.node.map_arg((node.args, node.kwargs), lambda operand: pairs.get(operand, operand))
    if node.target in _LINEAR:
        made = Pair(*(_inline(node, node.target, *_take_part(operands[0], part), **_take_part(operands[1], part))
                      for part in range(2)))
    else:
        made = _inline(node, _RULES[node.target], *operands[0], **operands[1])
    if isinstance(made, Pair) != _is_complex(node):
        return False
    if isinstance(made, Pair):
        pairs[node] = made
    elif made is not None:
        node.replace_all_uses_with(made)
    return made is not None


def _take_part(operands: object, part: int) -> object:
    if isinstance(operands, Pair):
        return operands[part]
    if isinstance(operands, (list, tuple)):
        return type(operands)(_take_part(each, part) for each in operands)
    if isinstance(operands, torch.dtype) and operands.is_complex:
        return operands.to_real()
    if isinstance(operands, dict):
        return {key: _take_part(each, part) for key, each in operands.items()}
    return operands


def _inline(node: Node, function: Callable, *operands: object, **options: object) -> Node | Pair | None:
    """Emits a function of tensors at the place of a node."""
    leaves, shape = torch.utils._pytree.tree_flatten((operands, options))
    nodes = [leaf for leaf in leaves if isinstance(leaf, Node)]

    def call(*values: torch.Tensor) -> object:
        remaining = iter(values)
        given = [next(remaining) if isinstance(leaf, Node) else leaf for leaf in leaves]
        operands, options = torch.utils._pytree.tree_unflatten(given, shape)
        made = function(*operands, **options)
        return list(made) if isinstance(made, Pair) else made  # torch.fx would write the pair into the graph

    with nodes[0].meta["val"].fake_mode:
        traced = make_fx(call, decomposition_table=get_table())(*(operand.meta["val"] for operand in nodes))
    copied = dict(zip((each for each in traced.graph.nodes if each.op == "placeholder"), nodes, strict=True))
    for each in traced.graph.nodes:
        if each.op == "call_function":
            arguments, named = torch.fx.node.map_arg((each.args, each.kwargs), copied.__getitem__)
            copied[each] = emit(node, each.target, *arguments, **named)
        elif each.op == "output":
            made = torch.fx.node.map_arg(each.args[0], copied.__getitem__)
            return Pair(*made) if isinstance(made, list) else made


# The rules: each is given an operator's operands, complex tensors as pairs, and returns a pair or a real tensor.


def _widen(x: Pair | torch.Tensor | complex | float) -> Pair | complex | float:
    """Gives a real tensor an imaginary part."""
    return Pair(x, torch.zeros_like(x)) if isinstance(x, torch.Tensor) else x


def _add(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float, *, alpha: float = 1) -> Pair:
    a, b = _widen(a), _widen(b)
    return Pair(a.real + alpha * b.real, a.imag + alpha * b.imag)


def _subtract(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float, *, alpha: float = 1) -> Pair:
    return _add(a, b, alpha=-alpha)


def _on_parts(function: Callable[..., torch.Tensor]) -> Callable[..., Pair]:
    """Returns a function of two tensors, and of what moves no element, that does the same with both parts."""
    return lambda a, b, *more: Pair(*(function(one, other, *more) for one, other in zip(_widen(a), _widen(b))))


def _concatenate(values: Sequence[Pair | torch.Tensor], dim: int = 0) -> Pair:
    return Pair(*(torch.cat(parts, dim) for parts in zip(*map(_widen, values))))


def _choose(condition: torch.Tensor, a: Pair | torch.Tensor, b: Pair | torch.Tensor) -> Pair:
    return _on_parts(lambda one, other: torch.where(condition, one, other))(a, b)


def _multiply(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float,
              times: Callable[..., torch.Tensor] = torch.mul) -> Pair:
    if not isinstance(b, (Pair, complex)):
        return Pair(times(a.real, b), times(a.imag, b))
    if not isinstance(a, Pair):
        return Pair(times(a, b.real), times(a, b.imag))
    return Pair(times(a.real, b.real) - times(a.imag, b.imag), times(a.real, b.imag) + times(a.imag, b.real))


def _multiply_matrices(a: Pair | torch.Tensor, b: Pair | torch.Tensor) -> Pair:
    return _multiply(a, b, torch.matmul)


def _measure(z: Pair) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the larger part, or 1 where both are 0; and the square of the absolute value in units of it."""
    larger = stop_gradient(torch.maximum(z.real.abs(), z.imag.abs()))
    unit = torch.where(larger == 0, torch.ones_like(larger), larger)
    return unit, (z.real / unit) ** 2 + (z.imag / unit) ** 2


def _absolute(z: Pair) -> torch.Tensor:
    """The gradient at 0 is 0, as in PyTorch."""
    unit, square = _measure(z)
    is_zero = square == 0
    size = torch.where(is_zero, square, torch.sqrt(torch.where(is_zero, torch.ones_like(square), square)) * unit)
    return torch.where(unit == math.inf, unit, size)


def _divide(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float) -> Pair:
    if isinstance(b, complex):
        return _multiply(a, 1 / b)
    if not isinstance(b, Pair):
        return Pair(a.real / b, a.imag / b)
    unit, square = _measure(b)
    quotient = _multiply(_widen(a), Pair(b.real / unit / square, -b.imag / unit / square))
    return Pair(quotient.real / unit, quotient.imag / unit)


def _invert(z: Pair) -> Pair:
    return _divide(torch.ones_like(z.real), z)


def _raise(z: Pair, exponent: complex | float) -> Pair | None:
    """Multiplies: other exponents than small integers have cuts."""
    if exponent not in (1, 2, 3, 4):
        return None
    made = z
    for _ in range(int(exponent) - 1):
        made = _multiply(made, z)
    return made


def _polar(size: torch.Tensor, angle: torch.Tensor) -> Pair:
    return Pair(size * torch.cos(angle), size * torch.sin(angle))


def _exponential(z: Pair) -> Pair:
    return _polar(torch.exp(z.real), z.imag)


def _log(z: Pair) -> Pair:
    return Pair(torch.log(_absolute(z)), _angle(z))


def _angle(z: Pair) -> torch.Tensor:
    return torch.atan2(z.imag, z.real)


def _conjugate(z: Pair) -> Pair:
    return Pair(z.real, -z.imag)


def _view_as_complex(parts: torch.Tensor) -> Pair:
    return Pair(parts[..., 0], parts[..., 1])


def _view_as_real(z: Pair) -> torch.Tensor:
    return torch.stack(z, -1)


def _pad(z: Pair, pad: Sequence[int], value: complex | float = 0) -> Pair:
    return Pair(*(aten.constant_pad_nd(part, pad, number) for part, number in zip(z, (value.real, value.imag))))


def _convert(z: Pair | torch.Tensor, *, dtype: torch.dtype | None = None, **options: object) -> Pair | torch.Tensor:
    dtype = dtype or torch.complex64
    if not dtype.is_complex:
        return z.real.to(dtype)
    return Pair(*(part.to(dtype.to_real()) for part in _widen(z)))


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
    z = _multiply_matrices(z, _make_waves(a, a, a, sign, z.real.dtype))
    z = Pair(*(part.reshape(*outer, b, a) for part in z))  # ..., j2, k1
    if b > 1:
        z = _multiply(z, _make_waves(b, a, length, sign, z.real.dtype))
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
    z = _transform_complex(_widen(x), dims, kind, True)
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
        tails = (part.narrow(last, 1, half).flip(last) for part in _conjugate(z))
        z = Pair(*(torch.cat([part.narrow(last, 0, length - half), tail], last) for part, tail in zip(z, tails)))
    z = _normalize(_transform(z, [last], 1.0), lengths, kind)
    return None if z is None else z.real


_RULES: dict[torch._ops.OpOverload, Callable] = {
    aten.add.Tensor: _add,
    aten.sub.Tensor: _subtract,
    aten.mul.Tensor: _multiply,
    aten.mul.Scalar: _multiply,
    aten.div.Tensor: _divide,
    aten.reciprocal.default: _invert,
    aten.pow.Tensor_Scalar: _raise,
    aten.mm.default: _multiply_matrices,
    aten.bmm.default: _multiply_matrices,
    aten.abs.default: _absolute,
    aten.angle.default: _angle,
    aten.exp.default: _exponential,
    aten.log.default: _log,
    aten.polar.default: _polar,
    aten.complex.default: lambda real, imag: Pair(*torch.broadcast_tensors(real, imag)),
    aten._conj.default: _conjugate,
    aten._conj_physical.default: _conjugate,
    aten.conj_physical.default: _conjugate,
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
    aten._to_copy.default: _convert,
    prims.convert_element_type.default: lambda z, dtype: _convert(z, dtype=dtype),
    aten._fft_c2c.default: _transform_complex,
    aten._fft_r2c.default: _transform_real,
    aten._fft_c2r.default: _transform_to_real,
}
# Operators on one tensor, and on integers that choose elements, that do the same with both parts.
_LINEAR = {
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.diagonal.default,
    aten.expand.default,
    aten.flip.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.mean.dim,
    aten.neg.default,
    aten.permute.default,
    aten.repeat.default,
    aten.resolve_conj.default,
    aten.roll.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
    aten.zeros_like.default,
    aten._unsafe_view.default,
    prims.squeeze.default,
    stop_gradient,
}
