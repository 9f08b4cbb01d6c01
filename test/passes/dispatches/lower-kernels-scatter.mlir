// A scatter changes what it starts from in place: its kernel updates those bytes, which are an argument that is given
// away, or else a copy.
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels --weir-verify-dispatches -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels --weir-verify-dispatches --weir-schedule -split-input-file | FileCheck %s --check-prefix=VALUES

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// CHECK-LABEL: gpu.func @scatter_20000x9000
// CHECK-SAME:    (%[[TO:[a-z0-9]+]]: memref<9000xi32, #gpu.address_space<global>> {schedule.effect = #schedule.effect<read>},
// CHECK-SAME:     %[[X:[a-z0-9]+]]: memref<9000xf32, #gpu.address_space<global>> {schedule.effect = #schedule.effect<read>},
// CHECK-SAME:     %[[SUM:[a-z0-9]+]]: memref<20000xf32, #gpu.address_space<global>> {schedule.effect = #schedule.effect<update>})
// CHECK:         scf.for
// CHECK:           %[[NAME:.*]] = memref.load %[[TO]]
// CHECK:           %[[IS:.*]] = arith.cmpi ult, %[[NAME]], %c20000
// CHECK:           scf.if %[[IS]]
// CHECK:             %[[ROW:.*]] = arith.index_cast %[[NAME]]
// CHECK:             %[[BEFORE:.*]] = memref.load %[[SUM]][%[[ROW]]]
// CHECK:             %[[AFTER:.*]] = arith.addf %[[BEFORE]], %{{.*}} : f32
// CHECK:             memref.store %[[AFTER]], %[[SUM]][%[[ROW]]]
// CHECK-LABEL: func.func @donated
// CHECK-SAME:    %[[INIT:[a-z0-9]+]]: memref<20000xf32> {weir.donate{{[^,]*}}, {{.*}}weir.donated = 2
// CHECK:         dispatch @{{.*}}(%{{.*}}, %{{.*}}, %[[INIT]])
// CHECK-NOT:     dispatch
// VALUES-LABEL: func.func @donated
// VALUES:         dispatch {{.*}} values [0, 0, 1, 0, 3, 0] before [-1, -1, 2]
func.func @donated(%to: tensor<9000xi32>, %x: tensor<9000xf32>, %init: tensor<20000xf32> {weir.donate}) -> tensor<20000xf32> {
  %none = arith.constant 0.0 : f32
  %sum = linalg.generic {indexing_maps = [#j, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%to, %x : tensor<9000xi32>, tensor<9000xf32>) outs(%init : tensor<20000xf32>) attrs = {weir.no_fuse, weir.scatter} {
  ^bb0(%row: i32, %in: f32, %out: f32):
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

// The twin's argument stays: a kernel copies it to the result, which is another value then.
// CHECK-LABEL: func.func @kept
// CHECK-SAME:    %[[INIT:[a-z0-9]+]]: memref<20000xf32> {weir.shape{{[^,]*}}, %[[RESULT:[a-z0-9]+]]: memref<20000xf32>
// CHECK:         dispatch @{{.*}}(%[[INIT]], %[[RESULT]])
// CHECK:         dispatch @{{.*}}(%{{.*}}, %{{.*}}, %[[RESULT]])
// VALUES-LABEL: func.func @kept
// VALUES:         dispatch {{.*}} values [2, 0, 4, 0]
// VALUES:         dispatch {{.*}} values [0, 0, 1, 0, 3, 0] before [-1, -1, 4]
func.func @kept(%to: tensor<9000xi32>, %x: tensor<9000xf32>, %init: tensor<20000xf32>) -> tensor<20000xf32> {
  %none = arith.constant 0.0 : f32
  %sum = linalg.generic {indexing_maps = [#j, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%to, %x : tensor<9000xi32>, tensor<9000xf32>) outs(%init : tensor<20000xf32>) attrs = {weir.no_fuse, weir.scatter} {
  ^bb0(%row: i32, %in: f32, %out: f32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isIt = arith.cmpi eq, %row, %place : i32
    %chosen = arith.select %isIt, %in, %none : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<20000xf32>
  return %sum : tensor<20000xf32>
}
