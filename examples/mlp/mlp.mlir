#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
#map4 = affine_map<(d0) -> (d0)>
#map5 = affine_map<(d0) -> ()>
#map6 = affine_map<() -> ()>
module {
  func.func @mlp_loss(%arg0: tensor<64x256xf32> {weir.kind = "input", weir.name = "x"}, %arg1: tensor<64xi64> {weir.kind = "target", weir.name = "target"}, %arg2: tensor<256xf32> {weir.kind = "param", weir.name = "norm.weight"}, %arg3: tensor<256xf32> {weir.kind = "param", weir.name = "norm.bias"}, %arg4: tensor<1024x256xf32> {weir.kind = "param", weir.name = "up.weight"}, %arg5: tensor<1024xf32> {weir.kind = "param", weir.name = "up.bias"}, %arg6: tensor<10x1024xf32> {weir.kind = "param", weir.name = "down.weight"}, %arg7: tensor<10xf32> {weir.kind = "param", weir.name = "down.bias"}) -> (tensor<f32> {weir.name = "loss"}, tensor<64x10xf32> {weir.name = "logits"}) {
    %c-100_i64 = arith.constant -100 : i64
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 5.000000e-01 : f32
    %c10 = arith.constant 10 : index
    %c0_i64 = arith.constant 0 : i64
    %cst_3 = arith.constant 0xFF800000 : f32
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_5 = arith.constant 1.000000e-05 : f64
    %cst_6 = arith.constant 2.560000e+02 : f64
    %cst_7 = arith.constant 2.560000e+02 : f32
    %cst_8 = arith.constant 1.41421354 : f32
    %cst_9 = arith.constant dense<0> : tensor<i64>
    %0 = tensor.empty() : tensor<64x256xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<64x256xf32>) outs(%0 : tensor<64x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %57 = arith.extf %in : f32 to f64
      linalg.yield %57 : f64
    } -> tensor<64x256xf64>
    %2 = tensor.empty() : tensor<64x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<64x1xf64>) -> tensor<64x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<64x256xf64>) outs(%3 : tensor<64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %57 = arith.addf %in, %out : f64
      linalg.yield %57 : f64
    } -> tensor<64x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<64x1xf64>) outs(%2 : tensor<64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %57 = arith.divf %in, %cst_6 : f64
      linalg.yield %57 : f64
    } -> tensor<64x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %5 : tensor<64x256xf64>, tensor<64x1xf64>) outs(%0 : tensor<64x256xf64>) {
    ^bb0(%in: f64, %in_12: f64, %out: f64):
      %57 = arith.subf %in, %in_12 : f64
      linalg.yield %57 : f64
    } -> tensor<64x256xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %6 : tensor<64x256xf64>, tensor<64x256xf64>) outs(%0 : tensor<64x256xf64>) {
    ^bb0(%in: f64, %in_12: f64, %out: f64):
      %57 = arith.mulf %in, %in_12 : f64
      linalg.yield %57 : f64
    } -> tensor<64x256xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<64x256xf64>) outs(%3 : tensor<64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %57 = arith.addf %in, %out : f64
      linalg.yield %57 : f64
    } -> tensor<64x1xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<64x1xf64>) outs(%2 : tensor<64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %57 = arith.divf %in, %cst_6 : f64
      linalg.yield %57 : f64
    } -> tensor<64x1xf64>
    %10 = tensor.empty() : tensor<64x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<64x1xf64>) outs(%10 : tensor<64x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %57 = arith.truncf %in : f64 to f32
      linalg.yield %57 : f32
    } -> tensor<64x1xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<64x1xf32>) -> tensor<64x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<64x256xf32>) outs(%12 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = arith.addf %in, %out : f32
      linalg.yield %57 : f32
    } -> tensor<64x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<64x1xf32>) outs(%10 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = arith.divf %in, %cst_7 : f32
      linalg.yield %57 : f32
    } -> tensor<64x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<64x1xf32>) outs(%10 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = arith.truncf %cst_5 : f64 to f32
      %58 = arith.addf %in, %57 : f32
      linalg.yield %58 : f32
    } -> tensor<64x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<64x1xf32>) outs(%10 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = math.rsqrt %in : f32
      linalg.yield %57 : f32
    } -> tensor<64x1xf32>
    %17 = tensor.empty() : tensor<64x256xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %14 : tensor<64x256xf32>, tensor<64x1xf32>) outs(%17 : tensor<64x256xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.subf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x256xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%18, %16 : tensor<64x256xf32>, tensor<64x1xf32>) outs(%17 : tensor<64x256xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.mulf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x256xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%19, %arg2 : tensor<64x256xf32>, tensor<256xf32>) outs(%17 : tensor<64x256xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.mulf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x256xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%20, %arg3 : tensor<64x256xf32>, tensor<256xf32>) outs(%17 : tensor<64x256xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.addf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x256xf32>
    %22 = tensor.empty() : tensor<256x1024xf32>
    %transposed = linalg.transpose ins(%arg4 : tensor<1024x256xf32>) outs(%22 : tensor<256x1024xf32>) permutation = [1, 0] 
    %23 = tensor.empty() : tensor<64x1024xf32>
    %24 = linalg.fill ins(%cst_0 : f32) outs(%23 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
    %25 = linalg.matmul ins(%21, %transposed : tensor<64x256xf32>, tensor<256x1024xf32>) outs(%24 : tensor<64x1024xf32>) -> tensor<64x1024xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%25, %arg5 : tensor<64x1024xf32>, tensor<1024xf32>) outs(%23 : tensor<64x1024xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.addf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x1024xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%26 : tensor<64x1024xf32>) outs(%23 : tensor<64x1024xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = arith.divf %in, %cst_8 : f32
      %58 = math.erf %57 : f32
      %59 = arith.addf %58, %cst_1 : f32
      %60 = arith.mulf %59, %cst_2 : f32
      %61 = arith.mulf %in, %60 : f32
      linalg.yield %61 : f32
    } -> tensor<64x1024xf32>
    %28 = tensor.empty() : tensor<1024x10xf32>
    %transposed_10 = linalg.transpose ins(%arg6 : tensor<10x1024xf32>) outs(%28 : tensor<1024x10xf32>) permutation = [1, 0] 
    %29 = tensor.empty() : tensor<64x10xf32>
    %30 = linalg.fill ins(%cst_0 : f32) outs(%29 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %31 = linalg.matmul ins(%27, %transposed_10 : tensor<64x1024xf32>, tensor<1024x10xf32>) outs(%30 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %32 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%31, %arg7 : tensor<64x10xf32>, tensor<10xf32>) outs(%29 : tensor<64x10xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.addf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x10xf32>
    %33 = tensor.empty() : tensor<64xi64>
    %34 = linalg.fill ins(%c0_i64 : i64) outs(%33 : tensor<64xi64>) -> tensor<64xi64>
    %35 = tensor.empty() : tensor<64xf32>
    %36 = linalg.fill ins(%cst_3 : f32) outs(%35 : tensor<64xf32>) -> tensor<64xf32>
    %37:2 = linalg.generic {indexing_maps = [#map, #map3, #map3], iterator_types = ["parallel", "reduction"]} ins(%32 : tensor<64x10xf32>) outs(%36, %34 : tensor<64xf32>, tensor<64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_12: i64):
      %57 = linalg.index 1 : index
      %58 = arith.index_cast %57 : index to i64
      %59 = arith.maximumf %in, %out : f32
      %60 = arith.cmpf ogt, %in, %out : f32
      %61 = arith.select %60, %58, %out_12 : i64
      linalg.yield %59, %61 : f32, i64
    } -> (tensor<64xf32>, tensor<64xi64>)
    %expanded = tensor.expand_shape %37#0 [[0, 1]] output_shape [64, 1] : tensor<64xf32> into tensor<64x1xf32>
    %38 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%32, %expanded : tensor<64x10xf32>, tensor<64x1xf32>) outs(%29 : tensor<64x10xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.subf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x10xf32>
    %39 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%38 : tensor<64x10xf32>) outs(%29 : tensor<64x10xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = math.exp %in : f32
      linalg.yield %57 : f32
    } -> tensor<64x10xf32>
    %40 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%39 : tensor<64x10xf32>) outs(%12 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = arith.addf %in, %out : f32
      linalg.yield %57 : f32
    } -> tensor<64x1xf32>
    %41 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%40 : tensor<64x1xf32>) outs(%10 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = math.log %in : f32
      linalg.yield %57 : f32
    } -> tensor<64x1xf32>
    %42 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%38, %41 : tensor<64x10xf32>, tensor<64x1xf32>) outs(%29 : tensor<64x10xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.subf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<64x10xf32>
    %43 = tensor.empty() : tensor<64xi1>
    %44 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel"]} ins(%arg1 : tensor<64xi64>) outs(%43 : tensor<64xi1>) {
    ^bb0(%in: i64, %out: i1):
      %57 = arith.cmpi ne, %in, %c-100_i64 : i64
      linalg.yield %57 : i1
    } -> tensor<64xi1>
    %45 = linalg.generic {indexing_maps = [#map4, #map4, #map5, #map4], iterator_types = ["parallel"]} ins(%44, %arg1, %cst_9 : tensor<64xi1>, tensor<64xi64>, tensor<i64>) outs(%33 : tensor<64xi64>) {
    ^bb0(%in: i1, %in_12: i64, %in_13: i64, %out: i64):
      %57 = arith.select %in, %in_12, %in_13 : i64
      linalg.yield %57 : i64
    } -> tensor<64xi64>
    %expanded_11 = tensor.expand_shape %45 [[0, 1]] output_shape [64, 1] : tensor<64xi64> into tensor<64x1xi64>
    %46 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%expanded_11 : tensor<64x1xi64>) outs(%12 : tensor<64x1xf32>) {
    ^bb0(%in: i64, %out: f32):
      %57 = linalg.index 0 : index
      %58 = arith.index_cast %in : i64 to index
      %59 = arith.cmpi slt, %58, %c10 : index
      cf.assert %59, "index must be smaller than dim size"
      %60 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %60, "index must be larger or equal to 0"
      %extracted = tensor.extract %42[%57, %58] : tensor<64x10xf32>
      linalg.yield %extracted : f32
    } -> tensor<64x1xf32>
    %collapsed = tensor.collapse_shape %46 [[0, 1]] : tensor<64x1xf32> into tensor<64xf32>
    %47 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel"]} ins(%collapsed : tensor<64xf32>) outs(%35 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = arith.negf %in : f32
      linalg.yield %57 : f32
    } -> tensor<64xf32>
    %48 = linalg.generic {indexing_maps = [#map4, #map4, #map5, #map4], iterator_types = ["parallel"]} ins(%44, %47, %cst_4 : tensor<64xi1>, tensor<64xf32>, tensor<f32>) outs(%35 : tensor<64xf32>) {
    ^bb0(%in: i1, %in_12: f32, %in_13: f32, %out: f32):
      %57 = arith.select %in, %in_12, %in_13 : f32
      linalg.yield %57 : f32
    } -> tensor<64xf32>
    %49 = tensor.empty() : tensor<i64>
    %50 = linalg.fill ins(%c0_i64 : i64) outs(%49 : tensor<i64>) -> tensor<i64>
    %51 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["reduction"]} ins(%44 : tensor<64xi1>) outs(%50 : tensor<i64>) {
    ^bb0(%in: i1, %out: i64):
      %57 = arith.extui %in : i1 to i64
      %58 = arith.addi %57, %out : i64
      linalg.yield %58 : i64
    } -> tensor<i64>
    %52 = tensor.empty() : tensor<f32>
    %53 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = []} ins(%51 : tensor<i64>) outs(%52 : tensor<f32>) {
    ^bb0(%in: i64, %out: f32):
      %57 = arith.sitofp %in : i64 to f32
      linalg.yield %57 : f32
    } -> tensor<f32>
    %54 = linalg.fill ins(%cst_0 : f32) outs(%52 : tensor<f32>) -> tensor<f32>
    %55 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["reduction"]} ins(%48 : tensor<64xf32>) outs(%54 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %57 = arith.addf %in, %out : f32
      linalg.yield %57 : f32
    } -> tensor<f32>
    %56 = linalg.generic {indexing_maps = [#map6, #map6, #map6], iterator_types = []} ins(%55, %53 : tensor<f32>, tensor<f32>) outs(%52 : tensor<f32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %57 = arith.divf %in, %in_12 : f32
      linalg.yield %57 : f32
    } -> tensor<f32>
    return %56, %32 : tensor<f32>, tensor<64x10xf32>
  }
}
