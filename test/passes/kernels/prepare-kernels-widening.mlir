// What only widens elements of 16 bits is fused into its readers where such elements are loaded as
// fast as others, so that nothing of f32 is stored for them. A contraction widens its factors itself.
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-prepare-kernels -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels -split-input-file | FileCheck %s --check-prefix=KEPT

#rows = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>

// A vector has fewer loops than its reader, the other operand as many; a sum of rows reads it, too.
// CHECK-LABEL: func @readers
// CHECK-SAME:    (%[[X:.*]]: tensor<8x64xbf16>, %[[G:.*]]: tensor<64xbf16>)
// CHECK:         linalg.generic {{.*}} ins(%[[X]] : tensor<8x64xbf16>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.extf
// CHECK-NEXT:      arith.addf
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[G]] : tensor<8x64xbf16>, tensor<64xbf16>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.extf
// CHECK-NEXT:      arith.extf
// CHECK-NEXT:      arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         return

// KEPT-LABEL: func @readers
// KEPT:         linalg.generic {{.*}} ins(%arg0 : tensor<8x64xbf16>)
// KEPT-NEXT:    ^bb0
// KEPT-NEXT:      arith.extf
// KEPT-NEXT:      linalg.yield
func.func @readers(%x: tensor<8x64xbf16>, %g: tensor<64xbf16>) -> (tensor<8xf32>, tensor<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %ev = tensor.empty() : tensor<64xf32>
  %er = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %wx = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xbf16>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<8x64xf32>
  %wg = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%g : tensor<64xbf16>) outs(%ev : tensor<64xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%wx : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#rows, #column, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%wx, %wg : tensor<8x64xf32>, tensor<64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x64xf32>
  return %sum, %y : tensor<8xf32>, tensor<8x64xf32>
}
