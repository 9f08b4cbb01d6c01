"""Reductions of columns: right beside reductions of rows, in one kernel with them,
and with the same bits as alone."""

import json
import zipfile

import pytest
from check import BOUND, PROFILES
from safetensors.numpy import load_file

# Leading dimensions are rows; the last is a column.
SHAPES = [(64, 64), (37, 70), (9, 6), (17, 131), (3, 13, 20), (2, 50, 128), (1000, 3), (65, 1, 8)]


def tensor(shape):
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def column_sum(name, shape, value):
    """The sum of `value` over all dimensions but the last."""
    dims = [f"d{i}" for i in range(len(shape))]
    columns = tensor(shape[-1:])
    kinds = ", ".join(['"reduction"'] * (len(shape) - 1) + ['"parallel"'])
    return f"""
  %{name}_zero = arith.constant 0.0 : f32
  %{name}_empty = tensor.empty() : {columns}
  %{name}_init = linalg.fill ins(%{name}_zero : f32) outs(%{name}_empty : {columns}) -> {columns}
  %{name} = linalg.generic {{iterator_types = [{kinds}], indexing_maps = [
      affine_map<({', '.join(dims)}) -> ({', '.join(dims)})>, affine_map<({', '.join(dims)}) -> ({dims[-1]})>]}}
      ins({value} : {tensor(shape)}) outs(%{name}_init : {columns}) {{
  ^bb0(%{name}_x: f32, %{name}_o: f32):
    %{name}_s = arith.addf %{name}_o, %{name}_x : f32
    linalg.yield %{name}_s : f32
  }} -> {columns}"""


def layer_norm_vjp(shape):
    full, columns = tensor(shape), tensor(shape[-1:])
    return f"""
func.func @f(%dy: {full} {{weir.name = "dy"}}, %x: {full}, %gamma: {columns})
    -> ({full}, {columns}, {columns} {{weir.name = "dbeta"}}) {{
  %dx, %dgamma, %dbeta = norm.layer_norm_vjp %dy, %x gamma(%gamma : {columns})
      {{axes = 1 : i64, eps = 1.0e-5 : f64}} : {full}, {columns}
  return %dx, %dgamma, %dbeta : {full}, {columns}, {columns}
}}
"""


def alone(shape):
    return f"""
func.func @f(%dy: {tensor(shape)} {{weir.name = "dy"}}) -> ({tensor(shape[-1:])} {{weir.name = "dbeta"}}) {{
  {column_sum("sum", shape, "%dy")}
  return %sum : {tensor(shape[-1:])}
}}
"""


def get_plan(weir, artifact):
    [plan] = weir.inspect(artifact)["plans"]
    return plan["dispatches"], plan["barriers"]


@pytest.mark.parametrize("profile", [None, *PROFILES])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fused_columns_have_the_bits_of_columns_alone(weir, shape, profile):
    flags = [f"--target=vulkan:{weir.profile(**PROFILES[profile])}"] if profile else []
    fused = weir.compile_text(layer_norm_vjp(shape), "fused", *flags)
    # An invocation that may hold nothing cannot hold columns, unless there is but one.
    if profile != "nothing_kept":
        assert get_plan(weir, fused) == (2, 1)
    fused_output = weir.compare(fused, ["--random-inputs=1"], BOUND)
    dbeta = load_file(fused_output)["dbeta"]

    lone = weir.compile_text(alone(shape), "alone", *flags)
    lone_output = weir.folder / "alone.safetensors"
    # Random inputs go by name, so dy is the same.
    weir.run("run", lone, "--random-inputs=1", f"--output={lone_output}")
    assert dbeta.tobytes() == load_file(lone_output)["dbeta"].tobytes()


# Parts that several invocations combine: all alike, and with a rest. The twins: columns that do not fill the workgroups.
@pytest.mark.parametrize("shape", [(1024, 64), (2100, 32), (2100, 36), (1030, 13)], ids=str)
def test_teams_combine_parts(weir, shape):
    artifact = weir.compile_text(layer_norm_vjp(shape), "a", f"--target=vulkan:{weir.profile(**PROFILES['busy_units'])}")
    assert get_plan(weir, artifact) == (2, 1)
    weir.compare(artifact, ["--random-inputs=1"], 1e-4)


# Rows of one subgroup, of several, and of the largest workgroup, which has no room for columns.
@pytest.mark.parametrize("shape", [(20, 96), (20, 1003), (20, 1004), (9, 20000), (9, 20001)], ids=str)
def test_teams_grow_with_rows(weir, shape):
    artifact = weir.compile_text(layer_norm_vjp(shape), "a", f"--target=vulkan:{weir.profile(**PROFILES['busy_units'])}")
    assert get_plan(weir, artifact)[0] == (3 if shape[1] > 16384 else 2)
    weir.compare(artifact, ["--random-inputs=1"], 1e-4)


@pytest.mark.parametrize("shape", [(0, 4), (40, 0), (1, 5), (5, 6), (9, 1)], ids=str)
def test_few_rows_or_columns(weir, shape):
    """Too few to be cut, or none: right all the same."""
    weir.compare(weir.compile_text(layer_norm_vjp(shape)), ["--random-inputs=1"], BOUND)


def test_columns_are_validated(weir):
    artifact = weir.compile_text(layer_norm_vjp((37, 70)))
    weir.compare(artifact, ["--random-inputs=1"], BOUND, validated=True)


def test_rms_norm_vjp_is_two_dispatches(weir):
    full, columns = tensor((96, 40)), tensor((40,))
    artifact = weir.compile_text(f"""
func.func @f(%dy: {full}, %x: {full}, %gamma: {columns}) -> ({full}, {columns}) {{
  %dx, %dgamma = norm.rms_norm_vjp %dy, %x gamma(%gamma : {columns})
      {{axes = 1 : i64, eps = 1.0e-5 : f64}} : {full}, {columns}
  return %dx, %dgamma : {full}, {columns}
}}
""")
    assert get_plan(weir, artifact) == (2, 1)
    weir.compare(artifact, ["--random-inputs=1"], BOUND)


def test_reader_of_a_column_waits_for_it(weir):
    """A reader of a column runs in a kernel after it, never in its own."""
    shape = (40, 12)
    full = tensor(shape)
    artifact = weir.compile_text(f"""
func.func @f(%x: {full}) -> {full} {{
  {column_sum("sum", shape, "%x")}
  %e = tensor.empty() : {full}
  %y = linalg.generic {{iterator_types = ["parallel", "parallel"], indexing_maps = [
      affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (r, c)>]}}
      ins(%x, %sum : {full}, {tensor(shape[-1:])}) outs(%e : {full}) {{
  ^bb0(%a: f32, %s: f32, %o: f32):
    %d = arith.subf %a, %s : f32
    linalg.yield %d : f32
  }} -> {full}
  return %y : {full}
}}
""")
    assert get_plan(weir, artifact) == (3, 2)
    weir.compare(artifact, ["--random-inputs=1"], BOUND, validated=True)


def test_columns_of_long_rows_have_few_parts(weir):
    """Of a profile whose teams keep fewer columns than a row has: as few parts as keep its unit busy, on the simulator."""
    profile = weir.folder / "narrow.json"
    profile.write_text(json.dumps({"like": "sm_80", "name": "narrow", "units": 1, "max_workgroup_size": 64,
                                   "workgroup_size": 64}))
    text = (weir.examples / "layer_norm_vjp.mlir").read_text()
    text = text.replace("512x1024x", "100x1104x").replace("<1024x", "<1104x")
    artifact = weir.compile_text(text, "a", f"--target=cuda:{profile}")
    with zipfile.ZipFile(artifact) as archive:
        assert "code/cuda/across_1104x5.ptx" in archive.namelist()
    weir.run("run", artifact, "--device=reference", "--f64", "--random-inputs=3", "--output=expected.safetensors")
    weir.run("run", artifact, "--device=sim", "--target=cuda", "--random-inputs=3", "--compare=expected.safetensors",
             "--tolerance=1e-5")
    assert "0 taken from the compiler" in weir.run("verify", artifact)
