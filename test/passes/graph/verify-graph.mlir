// Both gates hold the same set; the last lines are the twin of all cases.
//
// RUN: weir-opt %s --weir-verify-graph -split-input-file -verify-diagnostics
// RUN: sed s/graph\ level/gradient\ level/ %s > %t.mlir
// RUN: weir-opt %t.mlir --weir-verify-gradient -split-input-file -verify-diagnostics
// RUN: weir-opt %examples/layer_norm.mlir --weir-verify-graph
// RUN: weir-opt %examples/mlp/mlp.mlir --weir-raise-norms --weir-verify-graph

// Several problems, all told.
// expected-error @below {{argument 0 is 'tensor<?xf32>', not a ranked tensor of static shape; export with fixed sizes, as one function for each size that is needed}}
// expected-error @below {{argument 1 is 'tensor<*xf32>', not a ranked tensor of static shape}}
// expected-error @below {{argument 2 is 'f32', not a ranked tensor of static shape; a scalar is a tensor of rank 0}}
// expected-error @below {{argument 3 is 'tensor<4xf8E5M2>'; elements are f32, f64, f16, bf16, i64, i32, i16, i8 or i1}}
// expected-error @below {{argument 4 is 'tensor<4xindex>'; elements are f32, f64, f16, bf16, i64, i32, i16, i8 or i1}}
// expected-error @below {{argument 5 is 'tensor<4xsi32>'; elements are f32, f64, f16, bf16, i64, i32, i16, i8 or i1}}
// expected-error @below {{result 0 is 'tensor<?xf32>', not a ranked tensor of static shape}}
func.func @types(%a: tensor<?xf32>, %b: tensor<*xf32>, %c: f32, %d: tensor<4xf8E5M2>,
                 %e: tensor<4xindex>, %f: tensor<4xsi32>) -> tensor<?xf32> {
  return %a : tensor<?xf32>
}

// -----

// expected-error @below {{argument 0 is 'tensor<4294967296x4294967296xf32>', which is larger than 2^63 bytes}}
func.func @huge(%a: tensor<4294967296x4294967296xf32>, %b: tensor<4294967296x0xf32>) {
  // expected-error @below {{result 0 is 'tensor<4611686018427387904xi64>', which is larger than 2^63 bytes}}
  %c = tensor.empty() : tensor<4611686018427387904xi64>
  return
}

// -----

// expected-error @below {{argument 0 is 'tensor<4xf32, "sparse">'; tensors have no encoding here}}
func.func @encoding(%a: tensor<4xf32, "sparse">) {
  return
}

// -----

func.func @loops(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %a) -> tensor<4xf32> {
    // expected-error @below {{'arith.addf' op is of tensors; elementwise computation of tensors is linalg's here}}
    %y = arith.addf %x, %x : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  %ok = arith.constant true
  // expected-error @below {{'scf.if' op has no results, or some of unknown size; a choice at the graph level is between tensors of static shape}}
  scf.if %ok {
    cf.assert %ok, "never"
  }
  return %r : tensor<4xf32>
}

// -----

// expected-error @below {{has no body}}
func.func private @external(tensor<4xf32>)

// expected-error @below {{has 2 blocks; a graph is one block, without branches}}
func.func @blocks() {
  cf.br ^end
^end:
  return
}

func.func @calls(%a: tensor<4xf32>) {
  // expected-error @below {{'func.call' op is not supported at the graph level; inline the callee}}
  call @external(%a) : (tensor<4xf32>) -> ()
  return
}

// expected-error @below {{does not belong at the graph level, whose module holds functions}}
memref.global "private" @global : memref<4xf32>

// -----

func.func @ops(%a: tensor<4xf32>, %b: tensor<3x3xf32>, %c: tensor<4x4xi32>, %d: tensor<4xi32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1 : index
  %computed = arith.addi %one, %one : index
  // expected-error @below {{pads by a computed number; give low padding as constants}}
  %0 = tensor.pad %a low[%computed] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  // expected-error @-3 {{result 0 is 'tensor<?xf32>', not a ranked tensor of static shape}}
  } : tensor<4xf32> to tensor<?xf32>
  // expected-error @below {{has strides that are no constants above 0}}
  %1 = tensor.insert_slice %d into %c[0, 0] [1, 4] [1, %computed] : tensor<4xi32> into tensor<4x4xi32>
  // expected-error @below {{'tensor.cast' op is not supported}}
  %3 = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
  // expected-error @below {{is of 'tensor<4x4xi32>'; a softmax is of floats}}
  %4 = linalg.softmax dimension(1) ins(%c : tensor<4x4xi32>) outs(%c : tensor<4x4xi32>) -> tensor<4x4xi32>
  // expected-error @below {{'arith.addf' op is of tensors; elementwise computation of tensors is linalg's here: wrap it in a linalg.generic, or run mlir-opt --convert-elementwise-to-linalg}}
  %5 = arith.addf %a, %a : tensor<4xf32>
  // expected-error @below {{'memref.alloc' op is not supported}}
  %6 = memref.alloc() : memref<4xf32>
  // expected-error @below {{works on buffers; the graph level has tensors only}}
  linalg.fill ins(%zero : f32) outs(%6 : memref<4xf32>)
  // expected-error @below {{works on buffers; the graph level has tensors only}}
  linalg.softmax dimension(0) ins(%6 : memref<4xf32>) outs(%6 : memref<4xf32>)
  // expected-error @below {{result 0 is 'vector<4xf32>', not a ranked tensor of static shape}}
  %7 = arith.constant dense<0.0> : vector<4xf32>
  return
}

// -----

#one = affine_map<(i) -> (i)>

func.func @bodies(%a: tensor<4xf32>, %t: tensor<4xi64>) {
  %c4 = arith.constant dense<4> : tensor<4xi64>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%t : tensor<4xi64>) outs(%empty : tensor<4xf32>) {
    ^bb0(%i: i64, %o: f32):
      %index = arith.index_cast %i : i64 to index
      %low = arith.constant 0 : i64
      %ok = arith.cmpi sge, %i, %low : i64
      // expected-error @below {{'cf.assert' op is not supported inside a body; it holds arith and math ops, linalg.index, tensor.extract and linalg.yield}}
      cf.assert %ok, "no class"
      %v = tensor.extract %a[%index] : tensor<4xf32>
      // expected-error @below {{gives 'f8E5M2'; scalars are f32, f64, f16, bf16, i64, i32, i16, i8, i1 or index}}
      %n = arith.truncf %v : f32 to f8E5M2
      %half = arith.truncf %v : f32 to f16
      // expected-error @below {{'arith.scaling_extf' op is not supported; multiply by the scale}}
      %scaled = arith.scaling_extf %half, %v : f16, f32 to f32
      // expected-error @below {{'scf.if' op is not supported inside a body; it holds}}
      %r = scf.if %ok -> f32 {
        scf.yield %v : f32
      } else {
        scf.yield %o : f32
      }
      linalg.yield %r : f32
  } -> tensor<4xf32>
  return
}

// -----

// expected-error @below {{arguments 0 and 2 are both named 'x'}}
// expected-error @below {{arguments 1 and 3 are both named 'arg3'}}
// expected-error @below {{results 0 and 1 are both named 'y'}}
func.func @names(%a: tensor<4xf32> {weir.name = "x"}, %b: tensor<4xf32> {weir.name = "arg3"},
                 %c: tensor<4xf32> {weir.name = "x"}, %d: tensor<4xf32>)
    -> (tensor<4xf32> {weir.name = "y"}, tensor<4xf32> {weir.name = "y"}) {
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 has a weir.name that is no string: 1}}
// expected-error @below {{argument 1 is of kind "weight"; kinds are input, target, param and state}}
// expected-error @below {{argument 2 is of kind 1 : i64; kinds are input, target, param and state}}
func.func @attributes(%a: tensor<4xf32> {weir.name = 1}, %b: tensor<4xf32> {weir.kind = "weight"},
                      %c: tensor<4xf32> {weir.kind = 1}) {
  return
}

// -----

// State starts at a number, or as another argument of its shape.
// expected-error @below {{argument 0 has weir.initial, which only floats of kind state have}}
// expected-error @below {{argument 1 has weir.initial, which only floats of kind state have}}
// expected-error @below {{argument 2 has weir.initial = 1 : i64; it is a float, or the name of another argument}}
// expected-error @below {{argument 3 has weir.initial = "none"; that names no other argument of floats, of its shape and without one}}
// expected-error @below {{argument 4 has weir.initial = "a"; that names no other argument of floats, of its shape and without one}}
// expected-error @below {{argument 5 has weir.initial = "e"; that names no other argument of floats, of its shape and without one}}
func.func @starts(%a: tensor<4xf32> {weir.name = "a", weir.initial = 1.0 : f32}, %b: tensor<4xi32> {weir.kind = "state", weir.initial = 1.0 : f32},
                  %c: tensor<4xf32> {weir.kind = "state", weir.initial = 1}, %d: tensor<4xf32> {weir.kind = "state", weir.initial = "none"},
                  %e: tensor<5xf32> {weir.kind = "state", weir.name = "e", weir.initial = "a"}, %f: tensor<5xf32> {weir.kind = "state", weir.initial = "e"},
                  %g: tensor<4xf64> {weir.kind = "state", weir.initial = "h"}, %h: tensor<4xf32> {weir.kind = "state", weir.name = "h"})
    -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

// State that runs may overwrite is all that may lie in host memory.
// expected-error @below {{argument 0 has weir.memory = "disk"; memories are device and host}}
// expected-error @below {{argument 1 has weir.memory = 1 : i64; memories are device and host}}
// expected-error @below {{argument 2 has weir.memory = "host", which only donated arguments of kind state have}}
// expected-error @below {{argument 3 has weir.memory = "host", which only donated arguments of kind state have}}
func.func @memories(%a: tensor<4xf32> {weir.memory = "disk"}, %b: tensor<4xf32> {weir.memory = 1},
                    %c: tensor<4xf32> {weir.kind = "state", weir.memory = "host"},
                    %d: tensor<4xf32> {weir.kind = "param", weir.donate, weir.memory = "host"},
                    %e: tensor<4xf32> {weir.kind = "state", weir.donate, weir.memory = "host"},
                    %f: tensor<4xf32> {weir.memory = "device"}) -> tensor<4xf32> {
  return %e : tensor<4xf32>
}

// -----

// Parts of a result are ranges of its bytes.
// expected-error @below {{result 1 has weir.parts = [{begin = 0 : i64, bytes = 20 : i64, name = "a"}]; it is an array of {name, begin, bytes}, ranges of the result's bytes}}
// expected-error @below {{result 2 has weir.parts = [{begin = 8 : i64, name = "a"}]; it is an array of}}
func.func @parts(%a: tensor<4xf32>)
    -> (tensor<4xf32> {weir.parts = [{begin = 8, bytes = 8, name = "a"}]},
        tensor<4xf32> {weir.parts = [{begin = 0, bytes = 20, name = "a"}]},
        tensor<4xf32> {weir.parts = [{begin = 8, name = "a"}]}) {
  return %a, %a, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The attributes of arguments have their forms, and results have a name.
// expected-error @below {{argument 0 has weir.donate = 17 : i64; it has no value: write weir.donate alone, or leave it out}}
// expected-error @below {{argument 1 has weir.donate = false; it has no value: write weir.donate alone, or leave it out}}
// expected-error @below {{argument 2 has the unknown attribute weir.knd; arguments have weir.name, weir.kind, weir.donate, weir.frozen, weir.sharded, weir.initial and weir.memory}}
// expected-error @below {{argument 4 has weir.frozen = true; it has no value: write weir.frozen alone, or leave it out}}
// expected-error @below {{argument 5 has weir.frozen and is of kind "param", of which gradients are wanted}}
// expected-error @below {{result 0 has the attribute weir.kind; results have weir.name, weir.sharded and weir.parts}}
func.func @forms(%a: tensor<4xf32> {weir.donate = 17}, %b: tensor<4xf32> {weir.donate = false},
                 %c: tensor<4xf32> {weir.knd = "param"}, %d: tensor<4xf32> {weir.donate, other.name = 1},
                 %e: tensor<4xf32> {weir.frozen = true}, %f: tensor<4xf32> {weir.kind = "param", weir.frozen},
                 %g: tensor<4xf32> {weir.frozen})
    -> (tensor<4xf32> {weir.kind = "param"}) {
  return %a : tensor<4xf32>
}

// -----

#one = affine_map<(i) -> (i)>

func.func @supported(%a: tensor<4x0xf64> {weir.name = "x", weir.kind = "state"},
                     %b: tensor<1xi1> {weir.name = "y", weir.kind = "param"},
                     %c: tensor<4x4xf32> {weir.kind = "input"}, %t: tensor<4xi64> {weir.kind = "target"})
    -> (tensor<4x0xf64> {weir.name = "x"}, tensor<4x4xf32>, tensor<f32>, tensor<i1>, tensor<4xi32>) {
  %zero = arith.constant 0.0 : f32
  %constant = arith.constant dense<1> : tensor<4xi32>
  %splat = tensor.splat %zero : tensor<4x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %product = linalg.matmul ins(%c, %splat : tensor<4x4xf32>, tensor<4x4xf32>)
                           outs(%fill : tensor<4x4xf32>) -> tensor<4x4xf32>
  %softmax = linalg.softmax dimension(0) ins(%product : tensor<4x4xf32>)
                            outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %vjp = norm.softmax_vjp %c, %softmax {axis = 0 : i64} : tensor<4x4xf32>
  %flat = tensor.collapse_shape %b [] : tensor<1xi1> into tensor<i1>
  %ints = tensor.empty() : tensor<4xi32>
  %indices = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%constant : tensor<4xi32>) outs(%ints : tensor<4xi32>) {
    ^bb0(%in: i32, %o: i32):
      %i = linalg.index 0 : index
      %j = arith.index_cast %i : index to i32
      %k = math.absi %j : i32
      linalg.yield %k : i32
  } -> tensor<4xi32>
  %loss = norm.softmax_cross_entropy sum %product, %t : tensor<4x4xf32>, tensor<4xi64> -> tensor<f32>
  return %a, %vjp, %loss, %flat, %indices
      : tensor<4x0xf64>, tensor<4x4xf32>, tensor<f32>, tensor<i1>, tensor<4xi32>
}
