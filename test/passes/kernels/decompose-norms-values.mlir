// What the decompositions compute, on the host. The expected values are
// PyTorch's, in f64, of the same inputs.
//
// RUN: weir-opt %s --weir-decompose-norms | mlir-opt --one-shot-bufferize=bufferize-function-boundaries \
// RUN:     --convert-linalg-to-loops --math-expand-ops=ops=rsqrt --convert-math-to-libm --expand-strided-metadata --lower-affine \
// RUN:     --convert-scf-to-cf --convert-cf-to-llvm --convert-arith-to-llvm --convert-index-to-llvm \
// RUN:     --convert-math-to-llvm --finalize-memref-to-llvm --convert-func-to-llvm \
// RUN:     --reconcile-unrealized-casts \
// RUN:   | mlir-runner -e main --entry-point-result=void \
// RUN:     --shared-libs=%mlir-libs/libmlir_runner_utils.so,%mlir-libs/libmlir_c_runner_utils.so \
// RUN:   | FileCheck %s

func.func private @printMemrefF32(tensor<*xf32>) attributes {llvm.emit_c_interface}

func.func @print2(%x: tensor<2x3xf32>) {
  %u = tensor.cast %x : tensor<2x3xf32> to tensor<*xf32>
  call @printMemrefF32(%u) : (tensor<*xf32>) -> ()
  return
}

func.func @print1(%x: tensor<4xf32>) {
  %u = tensor.cast %x : tensor<4xf32> to tensor<*xf32>
  call @printMemrefF32(%u) : (tensor<*xf32>) -> ()
  return
}

func.func @print0(%x: tensor<f32>) {
  %u = tensor.cast %x : tensor<f32> to tensor<*xf32>
  call @printMemrefF32(%u) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  // Far from 0, where E[x^2] - E[x]^2 has no digits left in f32.
  %x = arith.constant dense<[[10001.0, 10002.0, 10003.0], [-1.0, 0.0, 4.0]]> : tensor<2x3xf32>
  %gamma = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %beta = arith.constant dense<[0.5, 0.0, -0.5]> : tensor<3xf32>
  // CHECK:      {{\[\[}}-0.72473{{.*}}, 0, 3.1742
  // CHECK-NEXT: [-0.42581{{.*}}, -0.92581{{.*}}, 3.66619]
  %layer = norm.layer_norm %x gamma(%gamma : tensor<3xf32>) beta(%beta : tensor<3xf32>)
           {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x3xf32>
  call @print2(%layer) : (tensor<2x3xf32>) -> ()

  // Over both dimensions.
  // CHECK:      {{\[\[}}0.9998, 1, 1.0002]
  // CHECK-NEXT: [-1.0004, -1.0002, -0.9994]
  %both = norm.layer_norm %x {axes = 2 : i64, eps = 1.0e-5 : f64} : tensor<2x3xf32>
  call @print2(%both) : (tensor<2x3xf32>) -> ()

  // CHECK:      {{\[\[}}0.9999{{.*}}, 2, 3.0003
  // CHECK-NEXT: [-0.42008{{.*}}, 0, 5.0410
  %rms = norm.rms_norm %x gamma(%gamma : tensor<3xf32>) {axes = 1 : i64, eps = 1.0e-6 : f64}
      : tensor<2x3xf32>
  call @print2(%rms) : (tensor<2x3xf32>) -> ()

  // CHECK:      {{\[\[}}-2.4076{{.*}}, -1.4076{{.*}}, -0.40760
  // CHECK-NEXT: [-5.0247{{.*}}, -4.0247{{.*}}, -0.02474
  %log = norm.log_softmax %x {axis = 1 : i64} : tensor<2x3xf32>
  call @print2(%log) : (tensor<2x3xf32>) -> ()

  // CHECK:      {{\[\[}}0, 0, 0
  // CHECK-NEXT: [-10002, -10002, -9999]
  %down = norm.log_softmax %x {axis = 0 : i64} : tensor<2x3xf32>
  call @print2(%down) : (tensor<2x3xf32>) -> ()

  // A NaN stays in its row.
  // CHECK:      {{\[\[}}{{-?}}nan, {{-?}}nan, {{-?}}nan
  // CHECK-NEXT: [-1.0986{{.*}}, -1.0986{{.*}}, -1.0986
  %holes = arith.constant dense<[[0.0, 0x7FC00000, 1.0], [2.0, 2.0, 2.0]]> : tensor<2x3xf32>
  %logHoles = norm.log_softmax %holes {axis = 1 : i64} : tensor<2x3xf32>
  call @print2(%logHoles) : (tensor<2x3xf32>) -> ()

  // Rows of one +inf, of -inf alone, of values that exp does not hold, with a NaN.
  // CHECK: [inf, -inf, 10001.3{{[0-9]*}}, {{-?}}nan]
  %ends = arith.constant dense<[[0.0, 0x7F800000, 1.0], [0xFF800000, 0xFF800000, 0xFF800000],
                                [10000.0, 10001.0, 9000.0], [0.0, 0x7FC00000, 0x7F800000]]> : tensor<4x3xf32>
  %logSums = norm.logsumexp %ends {axis = 1 : i64} : tensor<4x3xf32> -> tensor<4xf32>
  call @print1(%logSums) : (tensor<4xf32>) -> ()

  // Classes, one ignored, then one that is no class and one below all.
  %logits = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 2.0, 0.0], [0.0, 1.0, 0.0],
                                  [10000.0, 10001.0, 10002.0]]> : tensor<4x3xf32>
  %t = arith.constant dense<[2, 1, -100, 0]> : tensor<4xi64>
  // CHECK: [0.40760{{.*}}, 2.1429{{.*}}, 0, 2.4076
  %none = norm.softmax_cross_entropy none %logits, %t : tensor<4x3xf32>, tensor<4xi64> -> tensor<4xf32>
  call @print1(%none) : (tensor<4xf32>) -> ()
  // CHECK: [1.6527
  %mean = norm.softmax_cross_entropy mean %logits, %t : tensor<4x3xf32>, tensor<4xi64> -> tensor<f32>
  call @print0(%mean) : (tensor<f32>) -> ()
  // CHECK: [4.9581
  %sum = norm.softmax_cross_entropy sum %logits, %t : tensor<4x3xf32>, tensor<4xi64> -> tensor<f32>
  call @print0(%sum) : (tensor<f32>) -> ()
  // CHECK: [0.50760{{.*}}, 2.1429{{.*}}, 0, 2.3076
  %smooth = norm.softmax_cross_entropy none %logits, %t {label_smoothing = 0.1 : f64}
      : tensor<4x3xf32>, tensor<4xi64> -> tensor<4xf32>
  call @print1(%smooth) : (tensor<4xf32>) -> ()
  // CHECK: [0.40760{{.*}}, {{-?}}nan, {{-?}}nan, 0]
  %wrong = arith.constant dense<[2, 3, -1, 7]> : tensor<4xi32>
  %invalid = norm.softmax_cross_entropy none %logits, %wrong {ignore_index = 7 : i64}
      : tensor<4x3xf32>, tensor<4xi32> -> tensor<4xf32>
  call @print1(%invalid) : (tensor<4xf32>) -> ()
  // CHECK: [{{-?}}nan]
  %loud = norm.softmax_cross_entropy mean %logits, %wrong : tensor<4x3xf32>, tensor<4xi32> -> tensor<f32>
  call @print0(%loud) : (tensor<f32>) -> ()

  // Nothing counts: 0 / 0, and a sum of 0.
  // CHECK: [{{-?}}nan]
  // CHECK: [0]
  %skipped = arith.constant dense<-100> : tensor<4xi64>
  %nothing = norm.softmax_cross_entropy mean %logits, %skipped : tensor<4x3xf32>, tensor<4xi64> -> tensor<f32>
  call @print0(%nothing) : (tensor<f32>) -> ()
  %empty = arith.constant dense<> : tensor<0x3xf32>
  %noTargets = arith.constant dense<> : tensor<0xi64>
  %zero = norm.softmax_cross_entropy sum %empty, %noTargets : tensor<0x3xf32>, tensor<0xi64> -> tensor<f32>
  call @print0(%zero) : (tensor<f32>) -> ()

  // One class, one row.
  // CHECK: [0]
  %one = arith.constant dense<[[5.0]]> : tensor<1x1xf32>
  %first = arith.constant dense<[0]> : tensor<1xi64>
  %certain = norm.softmax_cross_entropy mean %one, %first : tensor<1x1xf32>, tensor<1xi64> -> tensor<f32>
  call @print0(%certain) : (tensor<f32>) -> ()
  return
}
