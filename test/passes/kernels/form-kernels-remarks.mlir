// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --remarks-filter=form-kernels -split-input-file -o /dev/null 2>&1 | FileCheck %s

// One kernel of two ops is apart from nothing.
// CHECK:     map: mulf
// CHECK-SAME: map: addf
// CHECK-NOT: apart
func.func @together(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %y = linalg.mul ins(%x, %x : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %z = linalg.add ins(%y, %x : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %z : tensor<6x8xf32>
}

// -----

// CHECK:     contract: mulf, addf
// CHECK:     contract: mulf, addf
// CHECK:     apart
// CHECK-SAME: a contraction reads the sums of another one, so all of them must be there first
func.func @contractions(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = linalg.matmul ins(%y, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// -----

// CHECK:     map: mulf
// CHECK:     map: addf
// CHECK:     apart
// CHECK-SAME: weir.no_fuse asks for a kernel of its own
func.func @asked(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %y = linalg.mul {weir.no_fuse} ins(%x, %x : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %z = linalg.add ins(%y, %x : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %z : tensor<6x8xf32>
}
