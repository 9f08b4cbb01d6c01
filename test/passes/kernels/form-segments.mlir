// A reduction over the updates that name a row becomes a sort, a scan, a search and what reads these.
// RUN: weir-opt %s --weir-set-profile --weir-form-segments -split-input-file | FileCheck %s

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// Sums of few elements for each row are in chunks: the scan of the chunks' totals is one op more.
// CHECK-LABEL: func @sums
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]
// CHECK:         %[[ORDER:.*]] = norm.argsort %{{.*}} : tensor<9009xi32> -> tensor<9009xi32>
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]
// CHECK:           tensor.extract %[[ORDER]]
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["reduction"]
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]
// CHECK:         %[[PLACES:.*]]:2 = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]
// CHECK:         %[[RESULT:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]} ins(%[[PLACES]]#0, %[[PLACES]]#1 :
// CHECK:         return %[[RESULT]]
func.func @sums(%x: tensor<9000xf32>, %to: tensor<9000xi32>) -> tensor<20000xf32> {
  %zero = arith.constant dense<0.0> : tensor<20000xf32>
  %none = arith.constant -0.0 : f32
  %sum = linalg.generic {indexing_maps = [#j, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %to : tensor<9000xf32>, tensor<9000xi32>) outs(%zero : tensor<20000xf32>) {
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

// Few comparisons stay.
// CHECK-LABEL: func @few
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

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// What is added depends on the row, so each row has updates of its own.
// CHECK-LABEL: func @of_the_row
// CHECK-NOT:     norm.argsort
func.func @of_the_row(%x: tensor<9000xf32>, %y: tensor<20000xf32>, %to: tensor<9000xi32>) -> tensor<20000xf32> {
  %zero = arith.constant dense<0.0> : tensor<20000xf32>
  %none = arith.constant -0.0 : f32
  %sum = linalg.generic {indexing_maps = [#j, #i, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %y, %to : tensor<9000xf32>, tensor<20000xf32>, tensor<9000xi32>) outs(%zero : tensor<20000xf32>) {
  ^bb0(%in: f32, %scale: f32, %row: i32, %out: f32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isIt = arith.cmpi eq, %row, %place : i32
    %scaled = arith.mulf %in, %scale : f32
    %chosen = arith.select %isIt, %scaled, %none : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<20000xf32>
  return %sum : tensor<20000xf32>
}

// -----

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// The choice is by another comparison.
// CHECK-LABEL: func @below
// CHECK-NOT:     norm.argsort
func.func @below(%x: tensor<9000xf32>, %to: tensor<9000xi32>) -> tensor<20000xf32> {
  %zero = arith.constant dense<0.0> : tensor<20000xf32>
  %none = arith.constant -0.0 : f32
  %sum = linalg.generic {indexing_maps = [#j, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %to : tensor<9000xf32>, tensor<9000xi32>) outs(%zero : tensor<20000xf32>) {
  ^bb0(%in: f32, %row: i32, %out: f32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isBelow = arith.cmpi slt, %row, %place : i32
    %chosen = arith.select %isBelow, %in, %none : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<20000xf32>
  return %sum : tensor<20000xf32>
}
