// On a processor a reduction over the updates that name a row is written once more, as a scatter of names and updates,
// where rows are short; long rows are in segments.
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-form-segments -split-input-file | FileCheck %s

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// CHECK-DAG:   #[[J:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG:   #[[I:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @sums
// CHECK-SAME:    (%[[X:.*]]: tensor<9000xf32>, %[[TO:.*]]: tensor<9000xi32>, %[[INIT:.*]]: tensor<20000xf32>)
// CHECK-NOT:     norm.argsort
// CHECK:         linalg.generic {indexing_maps = [#[[J]], #[[J]], #[[I]]], iterator_types = ["parallel", "reduction"]}
// CHECK-SAME:      ins(%[[TO]], %[[X]] : tensor<9000xi32>, tensor<9000xf32>) outs(%[[INIT]] : tensor<20000xf32>)
// CHECK-SAME:      attrs =  {weir.no_fuse, weir.scatter}
// CHECK:           %[[ROW:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK:           %[[IS:.*]] = arith.cmpi eq, %{{.*}}, %[[ROW]] : i32
// CHECK:           arith.select %[[IS]], %{{.*}}, %cst{{.*}} : f32
func.func @sums(%x: tensor<9000xf32>, %to: tensor<9000xi32>, %init: tensor<20000xf32>) -> tensor<20000xf32> {
  %none = arith.constant -0.0 : f32
  %sum = linalg.generic {indexing_maps = [#j, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %to : tensor<9000xf32>, tensor<9000xi32>) outs(%init : tensor<20000xf32>) {
  ^bb0(%in: f32, %row: i32, %out: f32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isIt = arith.cmpi eq, %row, %place : i32
    %chosen = arith.select %isIt, %in, %none : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<20000xf32>
  return %sum : tensor<20000xf32>
}

// -----

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// Another condition, of an update that counts: names are computed, and no update is read.
// CHECK-LABEL: func @counts
// CHECK:         %[[NAMES:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]
// CHECK:           arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[NAMES]] : tensor<9000xi32>)
// CHECK-SAME:      weir.scatter
func.func @counts(%to: tensor<9000xi32>, %counts: tensor<9000xi1>) -> tensor<20000xi32> {
  %zero = arith.constant dense<0> : tensor<20000xi32>
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = linalg.generic {indexing_maps = [#j, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%to, %counts : tensor<9000xi32>, tensor<9000xi1>) outs(%zero : tensor<20000xi32>) {
  ^bb0(%row: i32, %does: i1, %out: i32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isIt = arith.cmpi eq, %row, %place : i32
    %both = arith.andi %isIt, %does : i1
    %chosen = arith.select %both, %one, %none : i32
    %next = arith.addi %out, %chosen : i32
    linalg.yield %next : i32
  } -> tensor<20000xi32>
  return %sum : tensor<20000xi32>
}

// -----

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// Few comparisons stay.
// CHECK-LABEL: func @few
// CHECK-NOT:     weir.scatter
// CHECK-NOT:     norm.argsort
func.func @few(%x: tensor<90xf32>, %to: tensor<90xi32>) -> tensor<200xf32> {
  %zero = arith.constant dense<0.0> : tensor<200xf32>
  %none = arith.constant -0.0 : f32
  %sum = linalg.generic {indexing_maps = [#j, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %to : tensor<90xf32>, tensor<90xi32>) outs(%zero : tensor<200xf32>) {
  ^bb0(%in: f32, %row: i32, %out: f32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isIt = arith.cmpi eq, %row, %place : i32
    %chosen = arith.select %isIt, %in, %none : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<200xf32>
  return %sum : tensor<200xf32>
}

// -----

#t = affine_map<(v, c, t) -> (t)>
#tc = affine_map<(v, c, t) -> (t, c)>
#vc = affine_map<(v, c, t) -> (v, c)>

// Long rows keep threads busy in segments.
// CHECK-LABEL: func @long_rows
// CHECK-NOT:     weir.scatter
// CHECK:         norm.argsort
func.func @long_rows(%x: tensor<4096x576xf32>, %to: tensor<4096xi32>) -> tensor<49152x576xf32> {
  %zero = arith.constant dense<0.0> : tensor<49152x576xf32>
  %none = arith.constant -0.0 : f32
  %sum = linalg.generic {indexing_maps = [#tc, #t, #vc], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %to : tensor<4096x576xf32>, tensor<4096xi32>) outs(%zero : tensor<49152x576xf32>) {
  ^bb0(%in: f32, %row: i32, %out: f32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isIt = arith.cmpi eq, %row, %place : i32
    %chosen = arith.select %isIt, %in, %none : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<49152x576xf32>
  return %sum : tensor<49152x576xf32>
}
