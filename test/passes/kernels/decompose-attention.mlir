// Attention with one tensor of scores, and in blocks, where each sum has scores of its own.
//
// RUN: mkdir -p %t
// RUN: echo '{"like": "lavapipe", "name": "nine", "attention_keys": 9}' > %t/nine.json
// RUN: echo '{"like": "lavapipe", "name": "ten", "attention_keys": 10}' > %t/ten.json
// RUN: weir-opt %s --weir-decompose-norms --cse | FileCheck %s --check-prefixes=BOTH,PLAIN --implicit-check-not=norm.
// RUN: weir-opt %s --weir-set-profile=profile=%t/ten.json --weir-decompose-norms --cse \
// RUN:   | FileCheck %s --check-prefixes=BOTH,PLAIN --implicit-check-not=norm.
// RUN: weir-opt %s --weir-set-profile=profile=%t/nine.json --weir-decompose-norms --cse \
// RUN:   | FileCheck %s --check-prefixes=BOTH,BLOCKS --implicit-check-not=norm.
//
// BOTH-DAG: [[QUERY:#.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// BOTH-DAG: [[KEY:#.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// BOTH-DAG: [[SUM:#.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// BOTH-DAG: [[FULL:#.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// BOTH-DAG: [[BIAS:#.*]] = affine_map<(d0, d1, d2) -> (d2)>
// BOTH-DAG: [[VALUE:#.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// BOTH-DAG: [[TURNED:#.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>

// BOTH-LABEL: func @attention(
// PLAIN-NOT:    weir.in_blocks
// BLOCKS:       [[P:%.*]] = linalg.generic {indexing_maps = [[[QUERY]], [[KEY]], [[SUM]]]{{.*}} ins(%arg0, %arg1 {{.*}} {weir.in_blocks = 0 : i64}
// PLAIN:        [[P:%.*]] = linalg.generic {indexing_maps = [[[QUERY]], [[KEY]], [[SUM]]]{{.*}} ins(%arg0, %arg1
// BOTH:         [[B:%.*]] = tensor.collapse_shape %arg3 {{\[\[}}0, 1, 2]] : tensor<1x1x9xf32> into tensor<9xf32>
// BOTH:         [[X:%.*]] = linalg.generic {indexing_maps = [[[FULL]], [[BIAS]], [[FULL]]]{{.*}} ins([[P]], [[B]] :
// BOTH:           math.tanh
// The lowest finite number, so that a row of -inf gives 0.
// BOTH:         [[L:%.*]] = arith.constant -3.40282347E+38
// BOTH:         [[LOWEST:%.*]] = linalg.fill ins([[L]]
// BOTH:         [[M:%.*]] = linalg.generic {{.*}} ins([[X]] {{.*}} outs([[LOWEST]]
// BOTH:           arith.maximumf
// PLAIN:        [[E:%.*]] = linalg.generic {{.*}} ins([[X]], [[M]] :
// PLAIN:          math.exp
// PLAIN:        [[S:%.*]] = linalg.generic {{.*}} ins([[E]] :
// BLOCKS:       [[S:%.*]] = linalg.generic {{.*}} ins([[X]], [[M]] :
// BLOCKS:         math.exp
// BOTH:           arith.addf
// BOTH:         [[SHARE:%.*]] = linalg.generic {{.*}} ins([[S]] :
// BOTH:           arith.divf
// BOTH:           arith.cmpf oeq
// PLAIN-NOT:    math.tanh
// PLAIN:        [[W:%.*]] = linalg.generic {{.*}} ins([[E]], [[SHARE]] :
// BLOCKS:       [[P1:%.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 {{.*}} {weir.in_blocks = 1 : i64}
// BLOCKS:       [[X1:%.*]] = linalg.generic {{.*}} ins([[P1]], [[B]] :
// BLOCKS:       [[W:%.*]] = linalg.generic {{.*}} ins([[X1]], [[M]] :
// BLOCKS:         math.exp
// BOTH:         [[Y:%.*]] = linalg.generic {indexing_maps = [[[QUERY]], [[VALUE]], [[SUM]]]{{.*}} ins([[W]], %arg2 :
// The sums are multiplied, not what is summed.
// BLOCKS:       linalg.generic {{.*}} ins([[Y]], [[SHARE]] :
// BOTH-NOT:     linalg.generic
// BOTH:         return
func.func @attention(%q: tensor<2x7x4xf32>, %k: tensor<2x9x4xf32>, %v: tensor<2x9x5xf32>,
                     %b: tensor<1x1x9xf32>) -> tensor<2x7x5xf32> {
  %y, %m, %s = norm.attention %q, %k, %v bias(%b : tensor<1x1x9xf32>)
      {scale = 0.5 : f64, softcap = 30.0 : f64} : tensor<2x7x4xf32>, tensor<2x9x4xf32>,
      tensor<2x9x5xf32> -> tensor<2x7x5xf32>, tensor<2x7xf32>
  return %y : tensor<2x7x5xf32>
}

// Nothing is left of the gradient of the bias, which is not used. A scale of 1 is no op.
//
// BOTH-LABEL: func @vjp(
// BLOCKS:       [[D:%.*]] = linalg.generic {{.*}} ins(%arg0, %arg4 :
// PLAIN-NOT:    weir.in_blocks
// PLAIN:        [[S:%.*]] = linalg.generic {{.*}} ins(%arg1, %arg2 :
// PLAIN:        [[E:%.*]] = linalg.generic {{.*}} ins([[S]], %arg5 :
// PLAIN:        [[P:%.*]] = linalg.generic {{.*}} ins([[E]], %arg6 :
// PLAIN:        [[DP:%.*]] = linalg.generic {indexing_maps = [[[QUERY]], [[KEY]], [[SUM]]]{{.*}} ins(%arg0, %arg3 :
// PLAIN:        [[D:%.*]] = linalg.generic {{.*}} ins([[P]], [[DP]] :
// PLAIN:        [[DS:%.*]] = linalg.generic {{.*}} ins([[P]], [[DP]], [[D]] :
// PLAIN:        linalg.generic {indexing_maps = [[[QUERY]], [[VALUE]], [[SUM]]]{{.*}} ins([[DS]], %arg2 :
// PLAIN:        linalg.generic {indexing_maps = [[[TURNED]], [[VALUE]], [[SUM]]]{{.*}} ins([[DS]], %arg1 :
// PLAIN:        linalg.generic {indexing_maps = [[[TURNED]], [[VALUE]], [[SUM]]]{{.*}} ins([[P]], %arg0 :
// BLOCKS:       [[S2:%.*]] = linalg.generic {{.*}} ins(%arg1, %arg2 {{.*}} {weir.in_blocks = 2 : i64}
// BLOCKS:       [[P2:%.*]] = linalg.generic {{.*}} ins([[S2]], %arg5, %arg6 :
// BLOCKS:       [[DP2:%.*]] = linalg.generic {indexing_maps = [[[QUERY]], [[KEY]], [[SUM]]]{{.*}} ins(%arg0, %arg3 {{.*}} {weir.in_blocks = 2 : i64}
// BLOCKS:       [[DS2:%.*]] = linalg.generic {{.*}} ins([[P2]], [[DP2]], [[D]] :
// BLOCKS:       linalg.generic {indexing_maps = [[[QUERY]], [[VALUE]], [[SUM]]]{{.*}} ins([[DS2]], %arg2 :
// BLOCKS:       [[S4:%.*]] = linalg.generic {{.*}} ins(%arg1, %arg2 {{.*}} {weir.in_blocks = 4 : i64}
// BLOCKS:       [[P4:%.*]] = linalg.generic {{.*}} ins([[S4]], %arg5, %arg6 :
// BLOCKS:       [[DP4:%.*]] = linalg.generic {{.*}} ins(%arg0, %arg3 {{.*}} {weir.in_blocks = 4 : i64}
// BLOCKS:       [[DS4:%.*]] = linalg.generic {{.*}} ins([[P4]], [[DP4]], [[D]] :
// BLOCKS:       linalg.generic {indexing_maps = [[[TURNED]], [[VALUE]], [[SUM]]]{{.*}} ins([[DS4]], %arg1 :
// BLOCKS:       [[S3:%.*]] = linalg.generic {{.*}} ins(%arg1, %arg2 {{.*}} {weir.in_blocks = 3 : i64}
// BLOCKS:       [[P3:%.*]] = linalg.generic {{.*}} ins([[S3]], %arg5, %arg6 :
// BLOCKS:       linalg.generic {indexing_maps = [[[TURNED]], [[VALUE]], [[SUM]]]{{.*}} ins([[P3]], %arg0 :
// BOTH-NOT:     linalg.generic
// BOTH:         return
func.func @vjp(%dy: tensor<2x7x5xf32>, %q: tensor<2x7x4xf32>, %k: tensor<2x9x4xf32>, %v: tensor<2x9x5xf32>,
               %y: tensor<2x7x5xf32>, %m: tensor<2x7xf32>, %s: tensor<2x7xf32>)
    -> (tensor<2x7x4xf32>, tensor<2x9x4xf32>, tensor<2x9x5xf32>) {
  %dq, %dk, %dv = norm.attention_vjp %dy, %q, %k, %v, %y, %m, %s {scale = 1.0 : f64}
      : tensor<2x7x4xf32>, tensor<2x9x4xf32>, tensor<2x9x5xf32> -> tensor<2x7x5xf32>, tensor<2x7xf32>
  return %dq, %dk, %dv : tensor<2x7x4xf32>, tensor<2x9x4xf32>, tensor<2x9x5xf32>
}

// The gradient of a bias is as large as the scores. Its sum over the repeated dimensions has its place.
//
// BOTH-LABEL: func @vjp_of_bias(
// BOTH-NOT:     weir.in_blocks
// BOTH:         math.tanh
// BOTH:         [[DP:%.*]] = linalg.generic {indexing_maps = [[[QUERY]], [[KEY]], [[SUM]]]{{.*}} ins(%arg0, %arg3 :
// BOTH:         [[DS:%.*]] = linalg.generic {{.*}} ins({{.*}}, [[DP]], {{.*}} :
// BOTH:         linalg.generic {indexing_maps = [[[FULL]], [[BIAS]]], iterator_types = ["reduction", "reduction", "parallel"]} ins([[DS]] :
// BOTH:         tensor.expand_shape {{.*}} {{\[\[}}0, 1, 2]] output_shape [1, 1, 9]
// BOTH-NOT:     linalg.generic
// BOTH:         return
func.func @vjp_of_bias(%dy: tensor<2x7x5xf32>, %q: tensor<2x7x4xf32>, %k: tensor<2x9x4xf32>, %v: tensor<2x9x5xf32>,
                       %b: tensor<1x1x9xf32>, %y: tensor<2x7x5xf32>, %m: tensor<2x7xf32>, %s: tensor<2x7xf32>)
    -> tensor<1x1x9xf32> {
  %dq, %dk, %dv, %db = norm.attention_vjp %dy, %q, %k, %v, %y, %m, %s bias(%b : tensor<1x1x9xf32>)
      {scale = 0.5 : f64, softcap = 30.0 : f64} : tensor<2x7x4xf32>, tensor<2x9x4xf32>, tensor<2x9x5xf32>
      -> tensor<2x7x5xf32>, tensor<2x7xf32>, tensor<1x1x9xf32>
  return %db : tensor<1x1x9xf32>
}

// Factors of 16 bits are widened where they are read, sums are rounded once.
//
// BOTH-LABEL: func @narrow(
// BOTH-COUNT-2: arith.extf {{.*}} : bf16 to f32
// BOTH:         math.exp
// BOTH-NOT:     truncf
// BOTH:         arith.extf {{.*}} : bf16 to f32
// BOTH:         arith.truncf {{.*}} : f32 to bf16
// BOTH-NOT:     truncf
// BOTH:         return
func.func @narrow(%q: tensor<7x4xbf16>, %k: tensor<9x4xbf16>, %v: tensor<9x5xbf16>) -> tensor<7x5xbf16> {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.5 : f64}
      : tensor<7x4xbf16>, tensor<9x4xbf16>, tensor<9x5xbf16> -> tensor<7x5xbf16>, tensor<7xf32>
  return %y : tensor<7x5xbf16>
}
