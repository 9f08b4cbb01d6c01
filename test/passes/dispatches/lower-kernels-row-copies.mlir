// A workgroup owns several rows and copies the next one to workgroup memory while it computes one: it waits for its
// copies, loads what it has copied itself, and begins to copy over that.
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=TWIN
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=PART
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=SHARED
// Vulkan has no such copies.
// RUN: weir-opt %s --weir-set-profile=profile=nvidia --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=NONE

// NONE-NOT: nvgpu.device_async_copy

// The kernels of these functions, the last one first, have no copies, but for the first one and that of
// rows of 32,000.
// TWIN:       gpu.func @row_1024x4096_0(
// TWIN-NOT:   nvgpu.device_async_copy
// TWIN:       gpu.func @row_1024x48000(
// TWIN-NOT:   nvgpu.device_async_copy
// TWIN:       gpu.func @row_1024x32000(
// TWIN:       nvgpu.device_async_copy
// TWIN:       gpu.func @row_1024x4097(
// TWIN-NOT:   nvgpu.device_async_copy
// TWIN:       gpu.func @row_264x4096(
// TWIN-NOT:   nvgpu.device_async_copy
// TWIN:       gpu.func @row_1024x4096(
// TWIN:       nvgpu.device_async_copy

// Beside a column's part a workgroup owns the rows of the part, one behind the other.
// PART:       gpu.func @row_column_1024x4096(
// PART-COUNT-4: nvgpu.device_async_copy
// PART:       nvgpu.device_async_create_group
// PART:       scf.for %[[TURN:.*]] = %c0{{.*}} to %c8
// PART:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[TURN]]
// PART:         %[[NEXT:.*]] = arith.addi %[[ROW]], %c1 :
// PART:         %[[LATER:.*]] = arith.addi %[[TURN]], %c1 :
// PART:         %[[IS_THERE:.*]] = arith.cmpi ult, %[[LATER]], %c8
// PART:         nvgpu.device_async_wait
// PART:         scf.if %[[IS_THERE]] {
// PART:           nvgpu.device_async_copy

// Rows of two operands that registers do not hold stay in workgroup memory, 13 of 16 vectors of an invocation: no pass
// loads them from memory. The first pass reads them there, the second one copies the next row behind what it reads.
// SHARED-LABEL: gpu.func @row_1024x32000(
// SHARED-SAME:  workgroup({{((%[^ ]* : memref<[0-9]+xf32, #gpu.address_space<workgroup>>, ){13})}}%{{.*}} : memref<32xf32, #gpu.address_space<workgroup>>)
// SHARED-COUNT-13: nvgpu.device_async_copy
// SHARED:       scf.for
// SHARED-NOT:     nvgpu.device_async_copy
// SHARED:         nvgpu.device_async_wait
// SHARED-NEXT:    gpu.barrier
// SHARED-NOT:     device_async_copy
// SHARED-COUNT-13: vector.load %{{.*}} {alignment = 16 : i64} : memref<{{[0-9]+}}xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// SHARED-NOT:     device_async_copy
// SHARED:         vector.load %{{.*}} {alignment = 16 : i64} : memref<4096xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// SHARED:         vector.load %{{.*}} {alignment = 16 : i64} : memref<4096xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// SHARED:         memref.store %{{.*}}, %arg2
// SHARED:         scf.if
// SHARED:           nvgpu.device_async_copy
// SHARED:           nvgpu.device_async_copy
// The last vectors are loaded into registers.
// SHARED:         vector.load %arg1[%{{.*}}] {alignment = 16 : i64} : memref<32768000xf32, #gpu.address_space<global>>, vector<4xf32>
// SHARED:         nvgpu.device_async_create_group

// CHECK-LABEL: gpu.func @row_1024x4096(
// CHECK-SAME:  workgroup(%[[FIRST:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>, %[[SECOND:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<1024xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<1024xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<8xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:  known_grid_size = array<i32: 256, 1, 1>
// CHECK:       %[[GROUP:.*]] = gpu.block_id x
// CHECK-COUNT-4: nvgpu.device_async_copy
// CHECK:       %[[TOKEN:.*]] = nvgpu.device_async_create_group
// CHECK:       scf.for %[[TURN:.*]] = %c0{{.*}} to %c4
// CHECK:         %[[SCALED:.*]] = arith.muli %[[TURN]], %c256
// CHECK:         %[[ROW:.*]] = arith.addi %[[SCALED]], %[[GROUP]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[ROW]], %c256
// CHECK:         %[[IS_THERE:.*]] = arith.cmpi ult, %[[NEXT]], %c1024
// CHECK:         nvgpu.device_async_wait %[[TOKEN]] {numGroups = 0 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK-COUNT-4: vector.load %{{.*}} {alignment = 16 : i64} : memref<1024xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK-NOT:     vector.load
// CHECK:         scf.if %[[IS_THERE]] {
// CHECK:           nvgpu.device_async_copy %{{.*}}, %[[FIRST]][%{{.*}}], 4 {bypassL1}
// CHECK:           nvgpu.device_async_copy %{{.*}}, %[[SECOND]][%{{.*}}], 4 {bypassL1}
// CHECK:         }
// CHECK:         nvgpu.device_async_create_group
// CHECK-NOT:     memref.load %arg0
func.func @softmax(%x: tensor<1024x4096xf32>) -> tensor<1024x4096xf32> {
  %e = tensor.empty() : tensor<1024x4096xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<1024x4096xf32>) outs(%e : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  return %y : tensor<1024x4096xf32>
}

// Two rows a unit: all are on their way at a time.
func.func @few_rows(%x: tensor<264x4096xf32>) -> tensor<264x4096xf32> {
  %e = tensor.empty() : tensor<264x4096xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<264x4096xf32>) outs(%e : tensor<264x4096xf32>) -> tensor<264x4096xf32>
  return %y : tensor<264x4096xf32>
}

// Rows of 4,097 elements are not at multiples of 16 bytes.
func.func @odd_rows(%x: tensor<1024x4097xf32>) -> tensor<1024x4097xf32> {
  %e = tensor.empty() : tensor<1024x4097xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<1024x4097xf32>) outs(%e : tensor<1024x4097xf32>) -> tensor<1024x4097xf32>
  return %y : tensor<1024x4097xf32>
}

// Rows of 32,000 elements of two operands are larger than registers, those of 48,000 than workgroup memory, too.
func.func @two_rows(%dy: tensor<1024x32000xf32>, %y: tensor<1024x32000xf32>) -> tensor<1024x32000xf32> {
  %dx = norm.softmax_vjp %dy, %y {axis = 1 : i64} : tensor<1024x32000xf32>
  return %dx : tensor<1024x32000xf32>
}

func.func @larger_rows(%dy: tensor<1024x48000xf32>, %y: tensor<1024x48000xf32>) -> tensor<1024x48000xf32> {
  %dx = norm.softmax_vjp %dy, %y {axis = 1 : i64} : tensor<1024x48000xf32>
  return %dx : tensor<1024x48000xf32>
}

// A gather chooses the row.
func.func @gathered(%x: tensor<50x4096xf32>, %i: tensor<1024xi32>) -> tensor<1024x4096xf32> {
  %e = tensor.empty() : tensor<1024x4096xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<1024xi32>) outs(%e : tensor<1024x4096xf32>) {
  ^bb0(%n: i32, %o: f32):
    %row = arith.index_cast %n : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %x[%row, %column] : tensor<50x4096xf32>
    linalg.yield %v : f32
  } -> tensor<1024x4096xf32>
  %y = linalg.softmax dimension(1) ins(%g : tensor<1024x4096xf32>) outs(%e : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  return %y : tensor<1024x4096xf32>
}

func.func @beside_columns(%x: tensor<1024x4096xf32>) -> (tensor<1024x4096xf32>, tensor<4096xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x4096xf32>
  %c = tensor.empty() : tensor<4096xf32>
  %i = linalg.fill ins(%zero : f32) outs(%c : tensor<4096xf32>) -> tensor<4096xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<1024x4096xf32>) outs(%e : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<1024x4096xf32>) outs(%i : tensor<4096xf32>) {
  ^bb0(%v: f32, %o: f32):
    %a = arith.addf %o, %v : f32
    linalg.yield %a : f32
  } -> tensor<4096xf32>
  return %y, %s : tensor<1024x4096xf32>, tensor<4096xf32>
}
