// Where a profile has units, several invocations combine the parts of columns, if these fill the workgroups: 16 here, of
// 8 rows each. Workgroups of 256 would leave more units idle. The twins: 1,028 columns are not so many units, and a CPU driver's profile has no units.
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=ALONE --implicit-check-not="workgroup>"

// CHECK-LABEL: gpu.func @across_1028x256(
// CHECK-NOT:     workgroup>
// CHECK:         scf.for
// Eight rows are on their way at a time.
// CHECK-COUNT-8:   memref.load
// CHECK-NOT:       memref.load
// CHECK:           scf.yield

// CHECK-LABEL: gpu.func @across_1024x256(
// CHECK-SAME:    workgroup(%[[SUMS:.*]] : memref<512xf32, {{.*}}workgroup>>)
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 32, 1, 1>
// CHECK-NOT:     gpu.barrier
// CHECK-COUNT-4: memref.store %{{.*}}, %[[SUMS]]
// CHECK:         gpu.barrier
// CHECK-COUNT-64: memref.load %[[SUMS]]
// CHECK-NOT:     memref.load %[[SUMS]]
// CHECK:         memref.store %{{.*}}, %arg1

// ALONE-LABEL: gpu.func @across_1024x64(

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>
func.func @teams(%x: tensor<4096x1024xf32>) -> tensor<1024xf32> {
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4096x1024xf32>) outs(%zero : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  return %c : tensor<1024xf32>
}

func.func @alone(%x: tensor<4096x1028xf32>) -> tensor<1028xf32> {
  %zero = arith.constant dense<0.0> : tensor<1028xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4096x1028xf32>) outs(%zero : tensor<1028xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1028xf32>
  return %c : tensor<1028xf32>
}
