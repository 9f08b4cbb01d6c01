// Each function that is raised has twins that differ in one place and are not.
//
// RUN: weir-opt %s --weir-raise-norms | FileCheck %s
// RUN: weir-opt %examples/mlp/mlp.mlir --weir-raise-norms | FileCheck %s --check-prefix=MLP

// What torch-mlir prints, with variance in f64 and a gather.
// MLP-LABEL: func.func @mlp_loss
// MLP-NOT:     f64
// MLP-NOT:     math.rsqrt
// MLP:         norm.layer_norm %arg0 gamma(%arg2 : tensor<256xf32>) beta(%arg3 : tensor<256xf32>) {axes = 1 : i64, eps = 1.000000e-05 : f64}
// MLP-NOT:     cf.assert
// MLP-NOT:     tensor.extract
// MLP:         [[LOGITS:%.*]] = linalg.generic {{.*}} ins(%{{.*}}, %arg7 :
// MLP-NOT:     linalg.generic
// MLP:         [[LOSS:%.*]] = norm.softmax_cross_entropy mean [[LOGITS]], %arg1 : tensor<64x10xf32>, tensor<64xi64> -> tensor<f32>
// MLP-NEXT:    return [[LOSS]], [[LOGITS]]

#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#one = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#scalar = affine_map<() -> ()>

//===----------------------------------------------------------------------===//
// LayerNorm
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @layer_norm
// CHECK-NOT:     linalg
// CHECK:         [[Y:%.*]] = norm.layer_norm %arg0 gamma(%arg2 : tensor<4xf32>) beta(%arg3 : tensor<4xf32>) {axes = 1 : i64, eps = 2.500000e-01 : f64} : tensor<4x4xf32>
// CHECK-NEXT:    return [[Y]]
func.func @layer_norm(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_unbiased_variance
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_unbiased_variance(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %three : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_wrong_mean
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_wrong_mean(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %three : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_without_eps
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_without_eps(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %rstd = math.rsqrt %variance : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_variance_of_another
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_variance_of_another(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%z, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_scales_another
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_scales_another(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%z, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// Of columns it is a batch norm.
// CHECK-LABEL: func @layer_norm_of_columns
// CHECK-NOT:     norm.layer_norm
// CHECK:         norm.batch_norm %arg0 gamma(%arg2 : tensor<4xf32>) beta(%arg3 : tensor<4xf32>) {axis = 1
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_of_columns(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #column, #column, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_gamma_by_row
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_gamma_by_row(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #row, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_sum_from_one
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_sum_from_one(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%one : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_one_pass_moment
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_one_pass_moment(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %s = arith.mulf %a, %a : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_adds_mean
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_adds_mean(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.addf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      %scaled = arith.mulf %normal, %g : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// Weighted before it scales, as JAX libraries write it.
// CHECK-LABEL: func @layer_norm_weighted_scale
// CHECK-NOT:     linalg
// CHECK:         [[Y:%.*]] = norm.layer_norm %arg0 gamma(%arg2 : tensor<4xf32>) beta(%arg3 : tensor<4xf32>) {axes = 1 : i64, eps = 2.500000e-01 : f64} : tensor<4x4xf32>
// CHECK-NEXT:    return [[Y]]
func.func @layer_norm_weighted_scale(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %scale = arith.mulf %g, %rstd : f32
      %scaled = arith.mulf %centered, %scale : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @layer_norm_scale_by_row
// CHECK-NOT:     norm.
// CHECK:         return
func.func @layer_norm_scale_by_row(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>, %gamma: tensor<4xf32>,
    %beta: tensor<4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #row, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %eps : f32
      %rstd = math.rsqrt %shifted : f32
      %scale = arith.mulf %g, %rstd : f32
      %scaled = arith.mulf %centered, %scale : f32
      %r = arith.addf %b, %scaled : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

//===----------------------------------------------------------------------===//
// Log-softmax
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @log_softmax
// CHECK-NOT:     linalg
// CHECK:         [[Y:%.*]] = norm.log_softmax %arg0 {axis = 1 : i64} : tensor<4x4xf32>
// CHECK-NEXT:    return [[Y]]
func.func @log_softmax(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_of_columns
// CHECK-NOT:     linalg
// CHECK:         [[Y:%.*]] = norm.log_softmax %arg0 {axis = 0 : i64} : tensor<4x4xf32>
// CHECK-NEXT:    return [[Y]]
func.func @log_softmax_of_columns(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #column, #column, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_max_drops_nan
// CHECK-NOT:     norm.
// CHECK:         return
func.func @log_softmax_max_drops_nan(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maxnumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_max_from_zero
// CHECK-NOT:     norm.
// CHECK:         return
func.func @log_softmax_max_from_zero(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_sum_of_another
// CHECK-NOT:     norm.
// CHECK:         return
func.func @log_softmax_sum_of_another(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%z, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_other_base
// CHECK-NOT:     norm.
// CHECK:         return
func.func @log_softmax_other_base(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp2 %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_log1p
// CHECK-NOT:     norm.
// CHECK:         return
func.func @log_softmax_log1p(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log1p %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_sums_other_axis
// CHECK-NOT:     norm.
// CHECK:         return
func.func @log_softmax_sums_other_axis(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @cross_entropy
// CHECK-NOT:     linalg
// CHECK:         [[Y:%.*]] = norm.softmax_cross_entropy mean %arg0, %arg1 {ignore_index = 7 : i64} : tensor<4x4xf32>, tensor<4xi32> -> tensor<f32>
// CHECK-NEXT:    return [[Y]]
func.func @cross_entropy(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi ne, %t, %ignore : i32
      %class = arith.select %kept, %t, %first : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%i, %c] : tensor<4x4xf32>
      %n = arith.negf %p : f32
      %loss = arith.select %kept, %n, %zero : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %ignore : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// A sum, of which some other quotient is returned.
// CHECK-LABEL: func @cross_entropy_counts_others
// CHECK-NOT:     norm.softmax_cross_entropy mean
// CHECK:         norm.softmax_cross_entropy sum
// CHECK:         arith.divf
// CHECK:         return
func.func @cross_entropy_counts_others(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi ne, %t, %ignore : i32
      %class = arith.select %kept, %t, %first : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%i, %c] : tensor<4x4xf32>
      %n = arith.negf %p : f32
      %loss = arith.select %kept, %n, %zero : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %other : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// CHECK-LABEL: func @cross_entropy_not_negated
// CHECK-NOT:     norm.softmax_cross_entropy
// CHECK:         return
func.func @cross_entropy_not_negated(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi ne, %t, %ignore : i32
      %class = arith.select %kept, %t, %first : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%i, %c] : tensor<4x4xf32>
      %n = math.absf %p : f32
      %loss = arith.select %kept, %n, %zero : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %ignore : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// CHECK-LABEL: func @cross_entropy_of_the_transposed
// CHECK-NOT:     norm.softmax_cross_entropy
// CHECK:         return
func.func @cross_entropy_of_the_transposed(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi ne, %t, %ignore : i32
      %class = arith.select %kept, %t, %first : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%c, %i] : tensor<4x4xf32>
      %n = arith.negf %p : f32
      %loss = arith.select %kept, %n, %zero : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %ignore : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// CHECK-LABEL: func @cross_entropy_class_of_ignored_differs
// CHECK-NOT:     norm.softmax_cross_entropy
// CHECK:         return
func.func @cross_entropy_class_of_ignored_differs(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 1 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi ne, %t, %ignore : i32
      %class = arith.select %kept, %t, %first : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%i, %c] : tensor<4x4xf32>
      %n = arith.negf %p : f32
      %loss = arith.select %kept, %n, %zero : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %ignore : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// CHECK-LABEL: func @cross_entropy_class_swapped
// CHECK-NOT:     norm.softmax_cross_entropy
// CHECK:         return
func.func @cross_entropy_class_swapped(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi ne, %t, %ignore : i32
      %class = arith.select %kept, %first, %t : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%i, %c] : tensor<4x4xf32>
      %n = arith.negf %p : f32
      %loss = arith.select %kept, %n, %zero : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %ignore : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// CHECK-LABEL: func @cross_entropy_ignored_loss_kept
// CHECK-NOT:     norm.softmax_cross_entropy
// CHECK:         return
func.func @cross_entropy_ignored_loss_kept(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi ne, %t, %ignore : i32
      %class = arith.select %kept, %t, %first : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%i, %c] : tensor<4x4xf32>
      %n = arith.negf %p : f32
      %loss = arith.select %kept, %n, %n : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %ignore : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// CHECK-LABEL: func @cross_entropy_keeps_the_ignored
// CHECK-NOT:     norm.softmax_cross_entropy
// CHECK:         return
func.func @cross_entropy_keeps_the_ignored(%x: tensor<4x4xf32>, %target: tensor<4xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%lows : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<4x4xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %ignore = arith.constant 7 : i32
  %other = arith.constant 8 : i32
  %first = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %float = tensor.empty() : tensor<f32>
  %total0 = linalg.fill ins(%zero : f32) outs(%float : tensor<f32>) -> tensor<f32>
  %integer = tensor.empty() : tensor<i64>
  %count0 = linalg.fill ins(%none : i64) outs(%integer : tensor<i64>) -> tensor<i64>
  %total = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%total0 : tensor<f32>) {
    ^bb0(%t: i32, %acc: f32):
      %i = linalg.index 0 : index
      %kept = arith.cmpi eq, %t, %ignore : i32
      %class = arith.select %kept, %t, %first : i32
      %c = arith.index_cast %class : i32 to index
      %p = tensor.extract %y[%i, %c] : tensor<4x4xf32>
      %n = arith.negf %p : f32
      %loss = arith.select %kept, %n, %zero : f32
      %s = arith.addf %acc, %loss : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%target : tensor<4xi32>) outs(%count0 : tensor<i64>) {
    ^bb0(%t: i32, %acc: i64):
      %kept = arith.cmpi ne, %t, %ignore : i32
      %n = arith.extui %kept : i1 to i64
      %s = arith.addi %acc, %n : i64
      linalg.yield %s : i64
  } -> tensor<i64>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%total, %count : tensor<f32>, tensor<i64>) outs(%float : tensor<f32>) {
    ^bb0(%a: f32, %b: i64, %o: f32):
      %n = arith.sitofp %b : i64 to f32
      %q = arith.divf %a, %n : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

//===----------------------------------------------------------------------===//
// What the gate has yet to refuse
//===----------------------------------------------------------------------===//

// A scalar operand is as good as a constant in the body.
// CHECK-LABEL: func @layer_norm_without_weights_scalar_operand
// CHECK:         [[Y:%.*]] = norm.layer_norm %arg0 {axes = 1 : i64, eps = 2.500000e-01 : f64} : tensor<4x4xf32>
// CHECK-NEXT:    return [[Y]]
func.func @layer_norm_without_weights_scalar_operand(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>)
    -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %eps = arith.constant 0.25 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%rows : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %four : f32
      linalg.yield %q : f32
  } -> tensor<4xf32>
  %squares = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : tensor<4x4xf32>, tensor<4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %s = arith.mulf %d, %d : f32
      %t = arith.addf %acc, %s : f32
      linalg.yield %t : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, affine_map<(i, j) -> ()>, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %squares, %eps
          : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, f32)
      outs(%full : tensor<4x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %e: f32, %o: f32):
      %centered = arith.subf %a, %m : f32
      %variance = arith.divf %s, %four : f32
      %shifted = arith.addf %variance, %e : f32
      %rstd = math.rsqrt %shifted : f32
      %normal = arith.mulf %rstd, %centered : f32
      linalg.yield %normal : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func @log_softmax_of_unknown_size
// CHECK-NOT:     norm.
// CHECK:         return
func.func @log_softmax_of_unknown_size(%x: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty(%n) : tensor<?xf32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x4xf32>) outs(%lows : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %a, %acc : f32
      linalg.yield %m : f32
  } -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<?x4xf32>, tensor<?xf32>) outs(%zeros : tensor<?xf32>) {
    ^bb0(%a: f32, %m: f32, %acc: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = arith.addf %acc, %e : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %full = tensor.empty(%n) : tensor<?x4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %sum : tensor<?x4xf32>, tensor<?xf32>, tensor<?xf32>) outs(%full : tensor<?x4xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %l = math.log %s : f32
      %r = arith.subf %d, %l : f32
      linalg.yield %r : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
