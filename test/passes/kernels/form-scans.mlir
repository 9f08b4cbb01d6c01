// A reduction over the elements up to a place, before it, from it on, or behind it becomes a scan.
// RUN: weir-opt %s --weir-form-scans -split-input-file | FileCheck %s

#element = affine_map<(r, i, j) -> (r, j)>
#place = affine_map<(r, i, j) -> (r, i)>

// The mask is made by an op of its own, and what is summed by another one.
// CHECK-DAG:   #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @up_to
// CHECK-SAME:    (%[[X:.*]]: tensor<4x12xf32>)
// CHECK:         %[[SUM:.*]]:2 = linalg.generic
// CHECK-SAME:      indexing_maps = [#[[ALL]], #[[ALL]], #[[ROW]]], iterator_types = ["parallel", "reduction"]
// CHECK-SAME:      ins(%[[X]] : tensor<4x12xf32>)
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32, %[[BEFORE:.*]]: f32):
// CHECK-NEXT:      %[[EXP:.*]] = math.exp %[[IN]]
// CHECK-NEXT:      %[[AFTER:.*]] = arith.addf %[[BEFORE]], %[[EXP]]
// CHECK-NEXT:      linalg.yield %[[AFTER]], %[[AFTER]]
// CHECK:         return %[[SUM]]#0
func.func @up_to(%x: tensor<4x12xf32>) -> tensor<4x12xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x12xf32>
  %c0 = arith.constant 0.0 : f32
  %em = tensor.empty() : tensor<12x12xi1>
  %ex = tensor.empty() : tensor<4x12xf32>
  %mask = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%em : tensor<12x12xi1>) {
  ^bb0(%o: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a = arith.index_cast %i : index to i32
    %b = arith.index_cast %j : index to i32
    %c = arith.cmpi sge, %a, %b : i32
    linalg.yield %c : i1
  } -> tensor<12x12xi1>
  %exp = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x12xf32>) outs(%ex : tensor<4x12xf32>) {
  ^bb0(%in: f32, %o: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<4x12xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(r, i, j) -> (i, j)>, #element, #place],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%mask, %exp : tensor<12x12xi1>, tensor<4x12xf32>) outs(%zero : tensor<4x12xf32>) {
  ^bb0(%m: i1, %in: f32, %out: f32):
    %chosen = arith.select %m, %in, %c0 : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<4x12xf32>
  return %sum : tensor<4x12xf32>
}

// -----

// From the end, without the place's own element: stores what it had before the step.
// CHECK-DAG:   #[[BACK:.*]] = affine_map<(d0, d1) -> (d0, -d1 + 11)>
// CHECK-LABEL: func @behind
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[BACK]], #{{.*}}, #[[BACK]], #{{.*}}], iterator_types = ["parallel", "reduction"]
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %[[BEFORE:.*]]: f32):
// CHECK-NEXT:      %[[AFTER:.*]] = arith.maximumf %[[BEFORE]], %[[IN]]
// CHECK-NEXT:      linalg.yield %[[BEFORE]], %[[AFTER]]
func.func @behind(%x: tensor<4x12xf32>) -> tensor<4x12xf32> {
  %lowest = arith.constant dense<0xFF800000> : tensor<4x12xf32>
  %low = arith.constant 0xFF800000 : f32
  %largest = linalg.generic {
      indexing_maps = [affine_map<(r, i, j) -> (r, j)>, affine_map<(r, i, j) -> (r, i)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x12xf32>) outs(%lowest : tensor<4x12xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %isUpTo = arith.cmpi sle, %j, %i : index
    %chosen = arith.select %isUpTo, %low, %in : f32
    %next = arith.maximumf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<4x12xf32>
  return %largest : tensor<4x12xf32>
}

// -----

// Every second place before: no order of a scan.
// CHECK-LABEL: func @other_choice
// CHECK:         iterator_types = ["parallel", "reduction"]
// CHECK:         arith.select
func.func @other_choice(%x: tensor<12xi32>) -> tensor<12xi32> {
  %zero = arith.constant dense<0> : tensor<12xi32>
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : index
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<12xi32>) outs(%zero : tensor<12xi32>) {
  ^bb0(%in: i32, %out: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %double = arith.muli %j, %c2 : index
    %isBefore = arith.cmpi slt, %double, %i : index
    %chosen = arith.select %isBefore, %in, %c0 : i32
    %next = arith.addi %out, %chosen : i32
    linalg.yield %next : i32
  } -> tensor<12xi32>
  return %sum : tensor<12xi32>
}

// -----

// A sum that starts from another tensor adds that at each place.
// CHECK-LABEL: func @other_start
// CHECK:         iterator_types = ["parallel", "reduction"]
// CHECK:         arith.select
func.func @other_start(%x: tensor<12xi32>, %start: tensor<12xi32>) -> tensor<12xi32> {
  %c0 = arith.constant 0 : i32
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<12xi32>) outs(%start : tensor<12xi32>) {
  ^bb0(%in: i32, %out: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %isBefore = arith.cmpi slt, %j, %i : index
    %chosen = arith.select %isBefore, %in, %c0 : i32
    %next = arith.addi %out, %chosen : i32
    linalg.yield %next : i32
  } -> tensor<12xi32>
  return %sum : tensor<12xi32>
}
