// RUN: weir-opt %s --pass-pipeline='builtin.module(func.func(weir-normalize-graph))' -split-input-file | FileCheck %s

#rows = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>

// An index that data gives is clamped before it loses bits; one that a loop of as
// many trips gives is not. The assertion goes.
// CHECK-LABEL: func @gather
// CHECK:         ^bb0(%[[IN:.*]]: i64, %{{.*}}: f32):
// CHECK-NOT:       cf.assert
// CHECK:           %[[LOW:.*]] = arith.maxsi %[[IN]], %{{.*}} : i64
// CHECK:           %[[MID:.*]] = arith.minsi %[[LOW]], %c10_i64{{.*}} : i64
// CHECK:           %[[AT:.*]] = arith.index_cast %[[MID]] : i64 to index
// CHECK:           tensor.extract %{{.*}}[%[[AT]], %[[J:.*]]] : tensor<11x6xf32>
// CHECK-NOT:       arith.maxsi {{.*}} : index
func.func @gather(%x: tensor<11x6xf32>, %k: tensor<5xi64>) -> tensor<5x6xf32> {
  %e = tensor.empty() : tensor<5x6xf32>
  %c11 = arith.constant 11 : index
  %r = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%k : tensor<5xi64>) outs(%e : tensor<5x6xf32>) {
  ^bb0(%in: i64, %out: f32):
    %at = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %ok = arith.cmpi slt, %at, %c11 : index
    cf.assert %ok, "index must be smaller than dim size"
    %v = tensor.extract %x[%at, %j] : tensor<11x6xf32>
    linalg.yield %v : f32
  } -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}

// -----

// The twin: a loop of more trips than the tensor has rows, and a constant in range.
// CHECK-LABEL: func @loops
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK:         %[[LOW:.*]] = arith.maxsi %[[I]], %{{.*}} : index
// CHECK:         %[[AT:.*]] = arith.minsi %[[LOW]], %c2{{.*}} : index
// CHECK:         tensor.extract %{{.*}}[%[[AT]], %c1{{.*}}]
func.func @loops(%x: tensor<3x2xf32>) -> tensor<5xf32> {
  %c1 = arith.constant 1 : index
  %r = tensor.empty() : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%r : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i, %c1] : tensor<3x2xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

// CHECK-LABEL: func @casts
// CHECK-NOT:     tensor.cast
// CHECK:         tensor.concat dim(1) %arg0, %arg1 : (tensor<3x2xf32>, tensor<3x5xf32>) -> tensor<3x7xf32>
func.func @casts(%a: tensor<3x2xf32>, %b: tensor<3x5xf32>) -> tensor<3x7xf32> {
  %0 = tensor.cast %a : tensor<3x2xf32> to tensor<3x?xf32>
  %1 = tensor.cast %b : tensor<3x5xf32> to tensor<3x?xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
  %3 = tensor.cast %2 : tensor<3x?xf32> to tensor<3x7xf32>
  return %3 : tensor<3x7xf32>
}

// -----

// What isn't known stays, for the gate to name.
// CHECK-LABEL: func @unknown
// CHECK:         tensor.cast %arg0 : tensor<?xf32> to tensor<4xf32>
func.func @unknown(%a: tensor<?xf32>) -> tensor<4xf32> {
  %0 = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @conditional
// CHECK-NOT:     scf.if
// CHECK:         %[[A:.*]] = tensor.extract %arg0
// CHECK:         arith.select %{{.*}}, %[[A]], %{{.*}} : f32
func.func @conditional(%x: tensor<5xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c5 = arith.constant 5 : index
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%y : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %first = arith.cmpi ult, %i, %c5 : index
    %v = scf.if %first -> f32 {
      %a = tensor.extract %x[%i] : tensor<5xf32>
      scf.yield %a : f32
    } else {
      scf.yield %out : f32
    }
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// The twin: a division that may not be done where it isn't asked for.
// CHECK-LABEL: func @conditional_division
// CHECK:         scf.if
func.func @conditional_division(%x: tensor<8xi64>) -> tensor<8xi64> {
  %c5 = arith.constant 5 : i64
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<8xi64>) {
  ^bb0(%out: i64):
    %first = arith.cmpi ne, %out, %c5 : i64
    %v = scf.if %first -> i64 {
      %a = arith.divsi %c5, %out : i64
      scf.yield %a : i64
    } else {
      scf.yield %out : i64
    }
    linalg.yield %v : i64
  } -> tensor<8xi64>
  return %r : tensor<8xi64>
}

// -----

// A branch that has a loop is computed only if it is taken: it runs once or never. The other one is
// computed in front of it.
// CHECK-LABEL: func @branch_with_loop
// CHECK-NOT:     scf.if
// CHECK:         %[[GO:.*]] = tensor.extract %arg1[]
// CHECK:         %[[OTHER:.*]] = linalg.add
// CHECK:         scf.while (%[[FLAG:.*]] = %[[GO]], %[[INIT:.*]] = %[[OTHER]]) : (i1, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      scf.condition(%[[FLAG]]) %[[INIT]]
// CHECK:         do
// CHECK:           %[[LOOP:.*]]:2 = scf.while
// CHECK:           scf.yield %false{{.*}}, %[[LOOP]]#1
// CHECK-NOT:     arith.select
func.func @branch_with_loop(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %go = tensor.extract %p[] : tensor<i1>
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.if %go -> tensor<4xf32> {
    %w:2 = scf.while (%g = %go, %h = %x) : (i1, tensor<4xf32>) -> (i1, tensor<4xf32>) {
      scf.condition(%g) %g, %h : i1, tensor<4xf32>
    } do {
    ^bb0(%g: i1, %h: tensor<4xf32>):
      %t = linalg.tanh ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %g, %t : i1, tensor<4xf32>
    }
    scf.yield %w#1 : tensor<4xf32>
  } else {
    %s = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Both have one: two loops, of which one runs. An empty result is not carried.
// CHECK-LABEL: func @branches_with_loops
// CHECK-NOT:     scf.if
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : tensor<4xf32>
// CHECK:         %[[FIRST:.*]] = scf.while (%{{.*}} = %[[GO:.*]], %{{.*}} = %[[ZERO]]) : (i1, tensor<4xf32>)
// CHECK:           scf.for
// CHECK:         %[[NOT:.*]] = arith.xori %[[GO]], %true
// CHECK:         scf.while (%{{.*}} = %[[NOT]], %{{.*}} = %[[FIRST]]) : (i1, tensor<4xf32>)
// CHECK:           scf.for
func.func @branches_with_loops(%x: tensor<4xf32>, %p: tensor<i1>, %n: index) -> (tensor<4xf32>, tensor<0xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %go = tensor.extract %p[] : tensor<i1>
  %e = tensor.empty() : tensor<4xf32>
  %none = tensor.empty() : tensor<0xf32>
  %r:2 = scf.if %go -> (tensor<4xf32>, tensor<0xf32>) {
    %w = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<4xf32> {
      %t = linalg.tanh ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %t : tensor<4xf32>
    }
    scf.yield %w, %none : tensor<4xf32>, tensor<0xf32>
  } else {
    %w = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<4xf32> {
      %t = linalg.exp ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %t : tensor<4xf32>
    }
    scf.yield %w, %none : tensor<4xf32>, tensor<0xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<0xf32>
}

// -----

// The twin: without loops both are computed.
// CHECK-LABEL: func @branches_without_loops
// CHECK-NOT:     scf
// CHECK:         linalg.tanh
// CHECK:         linalg.exp
// CHECK:         arith.select
// CHECK-NOT:     scf
func.func @branches_without_loops(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %go = tensor.extract %p[] : tensor<i1>
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.if %go -> tensor<4xf32> {
    %t = linalg.tanh ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    %t = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @known_branch
// CHECK-NOT:     scf
// CHECK-NOT:     arith.select
// CHECK:         linalg.exp
// CHECK-NOT:     linalg.tanh
func.func @known_branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %go = arith.constant false
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.if %go -> tensor<4xf32> {
    %t = linalg.tanh ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    %t = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @negative_padding
// CHECK:         %[[CUT:.*]] = tensor.extract_slice %arg0[2] [5] [1]
// CHECK:         tensor.pad %[[CUT]] low[0] high[1]
func.func @negative_padding(%x: tensor<7xf32>) -> tensor<6xf32> {
  %c = arith.constant 0.0 : f32
  %r = tensor.pad %x low[-2] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<7xf32> to tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// CHECK-LABEL: func @elementwise
// CHECK:         linalg.generic
// CHECK:           arith.addf {{.*}} : f32
func.func @elementwise(%x: tensor<7xf32>) -> tensor<7xf32> {
  %r = arith.addf %x, %x : tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// What has no elements joins nothing.
// CHECK-LABEL: func @empty_parts
// CHECK-NOT:     tensor.concat
// CHECK:         return %arg0
func.func @empty_parts(%a: tensor<3x2xf32>, %b: tensor<3x0xf32>) -> tensor<3x2xf32> {
  %r = tensor.concat dim(1) %a, %b : (tensor<3x2xf32>, tensor<3x0xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

// What is known by the type; a shape in numbers, also of one element and of none.
// CHECK-LABEL: func @sizes
// CHECK-SAME:    %[[X:.*]]: tensor<6x2xf32>, %[[Y:.*]]: tensor<f32>, %[[Z:.*]]: tensor<0x3xf32>
// CHECK-NOT:     tensor.dim
// CHECK-NOT:     tensor.rank
// CHECK-NOT:     tensor.reshape
// CHECK-DAG:     %[[A:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [4, 3]
// CHECK-DAG:     %[[B:.*]] = tensor.expand_shape %[[Y]] [] output_shape [1, 1]
// CHECK-DAG:     %[[C:.*]] = tensor.empty() : tensor<5x0xf32>
// CHECK:         return %c6, %c2, %[[A]], %[[B]], %[[C]]
func.func @sizes(%x: tensor<6x2xf32>, %y: tensor<f32>, %z: tensor<0x3xf32>)
    -> (index, index, tensor<4x3xf32>, tensor<1x1xf32>, tensor<5x0xf32>) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<6x2xf32>
  %k = tensor.rank %x : tensor<6x2xf32>
  %s = arith.constant dense<[4, 3]> : tensor<2xi64>
  %ones = arith.constant dense<1> : tensor<2xi64>
  %none = arith.constant dense<[5, 0]> : tensor<2xi64>
  %a = tensor.reshape %x(%s) : (tensor<6x2xf32>, tensor<2xi64>) -> tensor<4x3xf32>
  %b = tensor.reshape %y(%ones) : (tensor<f32>, tensor<2xi64>) -> tensor<1x1xf32>
  %c = tensor.reshape %z(%none) : (tensor<0x3xf32>, tensor<2xi64>) -> tensor<5x0xf32>
  return %d, %k, %a, %b, %c : index, index, tensor<4x3xf32>, tensor<1x1xf32>, tensor<5x0xf32>
}
