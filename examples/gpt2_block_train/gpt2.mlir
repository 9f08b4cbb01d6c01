#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1) -> (d0)>
#map4 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map6 = affine_map<(d0, d1, d2) -> (d2)>
#map7 = affine_map<(d0, d1) -> (d1)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3) -> ()>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map13 = affine_map<(d0, d1) -> (d0, 0)>
#map14 = affine_map<(d0) -> (d0)>
#map15 = affine_map<(d0) -> ()>
#map16 = affine_map<() -> ()>
module {
  func.func @gpt2(%arg0: tensor<4x16xi64> {weir.kind = "input", weir.name = "tokens"}, %arg1: tensor<4x16xi64> {weir.kind = "target", weir.name = "next"}, %arg2: tensor<96x48xf32> {weir.kind = "param", weir.name = "embed.weight"}, %arg3: tensor<16x48xf32> {weir.kind = "param", weir.name = "place.weight"}, %arg4: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.attention_norm.weight"}, %arg5: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.attention_norm.bias"}, %arg6: tensor<144x48xf32> {weir.kind = "param", weir.name = "blocks.0.qkv.weight"}, %arg7: tensor<144xf32> {weir.kind = "param", weir.name = "blocks.0.qkv.bias"}, %arg8: tensor<48x48xf32> {weir.kind = "param", weir.name = "blocks.0.mix.weight"}, %arg9: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.mix.bias"}, %arg10: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.mlp_norm.weight"}, %arg11: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.mlp_norm.bias"}, %arg12: tensor<192x48xf32> {weir.kind = "param", weir.name = "blocks.0.up.weight"}, %arg13: tensor<192xf32> {weir.kind = "param", weir.name = "blocks.0.up.bias"}, %arg14: tensor<48x192xf32> {weir.kind = "param", weir.name = "blocks.0.down.weight"}, %arg15: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.down.bias"}, %arg16: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.attention_norm.weight"}, %arg17: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.attention_norm.bias"}, %arg18: tensor<144x48xf32> {weir.kind = "param", weir.name = "blocks.1.qkv.weight"}, %arg19: tensor<144xf32> {weir.kind = "param", weir.name = "blocks.1.qkv.bias"}, %arg20: tensor<48x48xf32> {weir.kind = "param", weir.name = "blocks.1.mix.weight"}, %arg21: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.mix.bias"}, %arg22: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.mlp_norm.weight"}, %arg23: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.mlp_norm.bias"}, %arg24: tensor<192x48xf32> {weir.kind = "param", weir.name = "blocks.1.up.weight"}, %arg25: tensor<192xf32> {weir.kind = "param", weir.name = "blocks.1.up.bias"}, %arg26: tensor<48x192xf32> {weir.kind = "param", weir.name = "blocks.1.down.weight"}, %arg27: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.down.bias"}, %arg28: tensor<48xf32> {weir.kind = "param", weir.name = "norm.weight"}, %arg29: tensor<48xf32> {weir.kind = "param", weir.name = "norm.bias"}) -> (tensor<f32> {weir.name = "loss"}, tensor<4x16x96xf32> {weir.name = "output"}) {
    %c16 = arith.constant 16 : index
    %c0_i8 = arith.constant 0 : i8
    %c96 = arith.constant 96 : index
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = arith.constant 0.79788456080286541 : f64
    %cst_5 = arith.constant 4.471500e-02 : f64
    %cst_6 = arith.constant 0.28867513459481287 : f64
    %cst_7 = arith.constant 1.000000e-05 : f64
    %cst_8 = arith.constant 4.800000e+01 : f64
    %cst_9 = arith.constant 4.800000e+01 : f32
    %cst_10 = arith.constant 5.000000e-01 : f32
    %cst_11 = arith.constant 1.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %c-100_i64 = arith.constant -100 : i64
    %cst_12 = arith.constant dense<0> : tensor<i64>
    %cst_13 = arith.constant dense_resource<torch_tensor_16_16_torch.uint8> : tensor<16x16xi8>
    %cst_14 = arith.constant dense_resource<torch_tensor_16_torch.int64> : tensor<16xi64>
    %0 = tensor.empty() : tensor<16x16xi1>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_13 : tensor<16x16xi8>) outs(%0 : tensor<16x16xi1>) {
    ^bb0(%in: i8, %out: i1):
      %203 = arith.cmpi ne, %in, %c0_i8 : i8
      linalg.yield %203 : i1
    } -> tensor<16x16xi1>
    %2 = tensor.empty() : tensor<4x16x48xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4x16xi64>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: i64, %out: f32):
      %203 = arith.index_cast %in : i64 to index
      %204 = linalg.index 2 : index
      %205 = arith.cmpi slt, %203, %c96 : index
      cf.assert %205, "index must be smaller than dim size"
      %206 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %206, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg2[%203, %204] : tensor<96x48xf32>
      linalg.yield %extracted : f32
    } -> tensor<4x16x48xf32>
    %4 = tensor.empty() : tensor<16x48xf32>
    %5 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_14 : tensor<16xi64>) outs(%4 : tensor<16x48xf32>) {
    ^bb0(%in: i64, %out: f32):
      %203 = arith.index_cast %in : i64 to index
      %204 = linalg.index 1 : index
      %205 = arith.cmpi slt, %203, %c16 : index
      cf.assert %205, "index must be smaller than dim size"
      %206 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %206, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg3[%203, %204] : tensor<16x48xf32>
      linalg.yield %extracted : f32
    } -> tensor<16x48xf32>
    %6 = linalg.generic {indexing_maps = [#map2, #map4, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %5 : tensor<4x16x48xf32>, tensor<16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %7 = tensor.empty() : tensor<4x16x48xf64>
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32, %out: f64):
      %203 = arith.extf %in : f32 to f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %9 = tensor.empty() : tensor<4x16x1xf64>
    %10 = linalg.fill ins(%cst : f64) outs(%9 : tensor<4x16x1xf64>) -> tensor<4x16x1xf64>
    %11 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %12 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %13 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8, %12 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.subf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %14 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %13 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.mulf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %15 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%14 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %16 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %17 = tensor.empty() : tensor<4x16x1xf32>
    %18 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %203 = arith.truncf %in : f64 to f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %19 = linalg.fill ins(%cst_0 : f32) outs(%17 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %20 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%6 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %21 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.divf %in, %cst_9 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %22 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_7 : f64 to f32
      %204 = arith.addf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x1xf32>
    %23 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.rsqrt %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %24 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %21 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %25 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24, %23 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %26 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %arg4 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %27 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26, %arg5 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %collapsed = tensor.collapse_shape %27 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32>
    %28 = tensor.empty() : tensor<48x144xf32>
    %transposed = linalg.transpose ins(%arg6 : tensor<144x48xf32>) outs(%28 : tensor<48x144xf32>) permutation = [1, 0] 
    %29 = tensor.empty() : tensor<64x144xf32>
    %30 = linalg.fill ins(%cst_0 : f32) outs(%29 : tensor<64x144xf32>) -> tensor<64x144xf32>
    %31 = linalg.matmul ins(%collapsed, %transposed : tensor<64x48xf32>, tensor<48x144xf32>) outs(%30 : tensor<64x144xf32>) -> tensor<64x144xf32>
    %32 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%31, %arg7 : tensor<64x144xf32>, tensor<144xf32>) outs(%29 : tensor<64x144xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x144xf32>
    %expanded = tensor.expand_shape %32 [[0, 1], [2]] output_shape [4, 16, 144] : tensor<64x144xf32> into tensor<4x16x144xf32>
    %extracted_slice = tensor.extract_slice %expanded[0, 0, 0] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32>
    %extracted_slice_15 = tensor.extract_slice %expanded[0, 0, 48] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32>
    %extracted_slice_16 = tensor.extract_slice %expanded[0, 0, 96] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32>
    %expanded_17 = tensor.expand_shape %extracted_slice [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32>
    %33 = tensor.empty() : tensor<4x4x16x12xf32>
    %transposed_18 = linalg.transpose ins(%expanded_17 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3] 
    %expanded_19 = tensor.expand_shape %extracted_slice_15 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32>
    %expanded_20 = tensor.expand_shape %extracted_slice_16 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32>
    %transposed_21 = linalg.transpose ins(%expanded_20 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3] 
    %34 = tensor.empty() : tensor<4x4x12x16xf32>
    %transposed_22 = linalg.transpose ins(%expanded_19 : tensor<4x16x4x12xf32>) outs(%34 : tensor<4x4x12x16xf32>) permutation = [0, 2, 3, 1] 
    %collapsed_23 = tensor.collapse_shape %transposed_18 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32>
    %collapsed_24 = tensor.collapse_shape %transposed_22 [[0, 1], [2], [3]] : tensor<4x4x12x16xf32> into tensor<16x12x16xf32>
    %35 = tensor.empty() : tensor<16x16x16xf32>
    %36 = linalg.fill ins(%cst_0 : f32) outs(%35 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32>
    %37 = linalg.batch_matmul ins(%collapsed_23, %collapsed_24 : tensor<16x16x12xf32>, tensor<16x12x16xf32>) outs(%36 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32>
    %expanded_25 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [4, 4, 16, 16] : tensor<16x16x16xf32> into tensor<4x4x16x16xf32>
    %38 = tensor.empty() : tensor<4x4x16x16xf32>
    %39 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_25 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_6 : f64 to f32
      %204 = arith.mulf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x4x16x16xf32>
    %40 = linalg.generic {indexing_maps = [#map9, #map8, #map10, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %39, %cst_3 : tensor<16x16xi1>, tensor<4x4x16x16xf32>, tensor<f32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: i1, %in_76: f32, %in_77: f32, %out: f32):
      %203 = arith.select %in, %in_76, %in_77 : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %41 = tensor.empty() : tensor<4x4x16xi64>
    %42 = linalg.fill ins(%c0_i64 : i64) outs(%41 : tensor<4x4x16xi64>) -> tensor<4x4x16xi64>
    %43 = tensor.empty() : tensor<4x4x16xf32>
    %44 = linalg.fill ins(%cst_1 : f32) outs(%43 : tensor<4x4x16xf32>) -> tensor<4x4x16xf32>
    %45:2 = linalg.generic {indexing_maps = [#map8, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<4x4x16x16xf32>) outs(%44, %42 : tensor<4x4x16xf32>, tensor<4x4x16xi64>) {
    ^bb0(%in: f32, %out: f32, %out_76: i64):
      %203 = linalg.index 3 : index
      %204 = arith.index_cast %203 : index to i64
      %205 = arith.maximumf %in, %out : f32
      %206 = arith.cmpf ogt, %in, %out : f32
      %207 = arith.select %206, %204, %out_76 : i64
      linalg.yield %205, %207 : f32, i64
    } -> (tensor<4x4x16xf32>, tensor<4x4x16xi64>)
    %expanded_26 = tensor.expand_shape %45#0 [[0], [1], [2, 3]] output_shape [4, 4, 16, 1] : tensor<4x4x16xf32> into tensor<4x4x16x1xf32>
    %46 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %expanded_26 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %47 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%46 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.exp %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %48 = tensor.empty() : tensor<4x4x16x1xf32>
    %49 = linalg.fill ins(%cst_0 : f32) outs(%48 : tensor<4x4x16x1xf32>) -> tensor<4x4x16x1xf32>
    %50 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%47 : tensor<4x4x16x16xf32>) outs(%49 : tensor<4x4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x1xf32>
    %51 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47, %50 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.divf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %collapsed_27 = tensor.collapse_shape %51 [[0, 1], [2], [3]] : tensor<4x4x16x16xf32> into tensor<16x16x16xf32>
    %collapsed_28 = tensor.collapse_shape %transposed_21 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32>
    %52 = tensor.empty() : tensor<16x16x12xf32>
    %53 = linalg.fill ins(%cst_0 : f32) outs(%52 : tensor<16x16x12xf32>) -> tensor<16x16x12xf32>
    %54 = linalg.batch_matmul ins(%collapsed_27, %collapsed_28 : tensor<16x16x16xf32>, tensor<16x16x12xf32>) outs(%53 : tensor<16x16x12xf32>) -> tensor<16x16x12xf32>
    %expanded_29 = tensor.expand_shape %54 [[0, 1], [2], [3]] output_shape [4, 4, 16, 12] : tensor<16x16x12xf32> into tensor<4x4x16x12xf32>
    %55 = tensor.empty() : tensor<4x16x4x12xf32>
    %transposed_30 = linalg.transpose ins(%expanded_29 : tensor<4x4x16x12xf32>) outs(%55 : tensor<4x16x4x12xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_31 = tensor.collapse_shape %transposed_30 [[0, 1], [2, 3]] : tensor<4x16x4x12xf32> into tensor<64x48xf32>
    %56 = tensor.empty() : tensor<48x48xf32>
    %transposed_32 = linalg.transpose ins(%arg8 : tensor<48x48xf32>) outs(%56 : tensor<48x48xf32>) permutation = [1, 0] 
    %57 = tensor.empty() : tensor<64x48xf32>
    %58 = linalg.fill ins(%cst_0 : f32) outs(%57 : tensor<64x48xf32>) -> tensor<64x48xf32>
    %59 = linalg.matmul ins(%collapsed_31, %transposed_32 : tensor<64x48xf32>, tensor<48x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32>
    %60 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%59, %arg9 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x48xf32>
    %expanded_33 = tensor.expand_shape %60 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32>
    %61 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %expanded_33 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %62 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%61 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32, %out: f64):
      %203 = arith.extf %in : f32 to f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %63 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%62 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %64 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%63 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %65 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%62, %64 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.subf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %66 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%65, %65 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.mulf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %67 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%66 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %68 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %69 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %203 = arith.truncf %in : f64 to f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %70 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%61 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %71 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.divf %in, %cst_9 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %72 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_7 : f64 to f32
      %204 = arith.addf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x1xf32>
    %73 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%72 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.rsqrt %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %74 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%61, %71 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %75 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%74, %73 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %76 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%75, %arg10 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %77 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%76, %arg11 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %collapsed_34 = tensor.collapse_shape %77 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32>
    %78 = tensor.empty() : tensor<48x192xf32>
    %transposed_35 = linalg.transpose ins(%arg12 : tensor<192x48xf32>) outs(%78 : tensor<48x192xf32>) permutation = [1, 0] 
    %79 = tensor.empty() : tensor<64x192xf32>
    %80 = linalg.fill ins(%cst_0 : f32) outs(%79 : tensor<64x192xf32>) -> tensor<64x192xf32>
    %81 = linalg.matmul ins(%collapsed_34, %transposed_35 : tensor<64x48xf32>, tensor<48x192xf32>) outs(%80 : tensor<64x192xf32>) -> tensor<64x192xf32>
    %82 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%81, %arg13 : tensor<64x192xf32>, tensor<192xf32>) outs(%79 : tensor<64x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x192xf32>
    %expanded_36 = tensor.expand_shape %82 [[0, 1], [2]] output_shape [4, 16, 192] : tensor<64x192xf32> into tensor<4x16x192xf32>
    %83 = tensor.empty() : tensor<4x16x192xf32>
    %84 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_36 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_5 : f64 to f32
      %204 = arith.mulf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x192xf32>
    %85 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%84, %expanded_36 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %86 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85, %expanded_36 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %87 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_36, %86 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %88 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%87 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_4 : f64 to f32
      %204 = arith.mulf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x192xf32>
    %89 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_36 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.mulf %in, %cst_10 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %90 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%88 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.tanh %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %91 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%90 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %cst_11 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %92 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%89, %91 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %collapsed_37 = tensor.collapse_shape %92 [[0, 1], [2]] : tensor<4x16x192xf32> into tensor<64x192xf32>
    %93 = tensor.empty() : tensor<192x48xf32>
    %transposed_38 = linalg.transpose ins(%arg14 : tensor<48x192xf32>) outs(%93 : tensor<192x48xf32>) permutation = [1, 0] 
    %94 = linalg.matmul ins(%collapsed_37, %transposed_38 : tensor<64x192xf32>, tensor<192x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32>
    %95 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%94, %arg15 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x48xf32>
    %expanded_39 = tensor.expand_shape %95 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32>
    %96 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%61, %expanded_39 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %97 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32, %out: f64):
      %203 = arith.extf %in : f32 to f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %98 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%97 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %99 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %100 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%97, %99 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.subf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %101 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100, %100 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.mulf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %102 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%101 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %103 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%102 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %104 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%103 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %203 = arith.truncf %in : f64 to f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %105 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%96 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %106 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%105 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.divf %in, %cst_9 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %107 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_7 : f64 to f32
      %204 = arith.addf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x1xf32>
    %108 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%107 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.rsqrt %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %109 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96, %106 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %110 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%109, %108 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %111 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%110, %arg16 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %112 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%111, %arg17 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %collapsed_40 = tensor.collapse_shape %112 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32>
    %transposed_41 = linalg.transpose ins(%arg18 : tensor<144x48xf32>) outs(%28 : tensor<48x144xf32>) permutation = [1, 0] 
    %113 = linalg.matmul ins(%collapsed_40, %transposed_41 : tensor<64x48xf32>, tensor<48x144xf32>) outs(%30 : tensor<64x144xf32>) -> tensor<64x144xf32>
    %114 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%113, %arg19 : tensor<64x144xf32>, tensor<144xf32>) outs(%29 : tensor<64x144xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x144xf32>
    %expanded_42 = tensor.expand_shape %114 [[0, 1], [2]] output_shape [4, 16, 144] : tensor<64x144xf32> into tensor<4x16x144xf32>
    %extracted_slice_43 = tensor.extract_slice %expanded_42[0, 0, 0] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32>
    %extracted_slice_44 = tensor.extract_slice %expanded_42[0, 0, 48] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32>
    %extracted_slice_45 = tensor.extract_slice %expanded_42[0, 0, 96] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32>
    %expanded_46 = tensor.expand_shape %extracted_slice_43 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32>
    %transposed_47 = linalg.transpose ins(%expanded_46 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3] 
    %expanded_48 = tensor.expand_shape %extracted_slice_44 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32>
    %expanded_49 = tensor.expand_shape %extracted_slice_45 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32>
    %transposed_50 = linalg.transpose ins(%expanded_49 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3] 
    %transposed_51 = linalg.transpose ins(%expanded_48 : tensor<4x16x4x12xf32>) outs(%34 : tensor<4x4x12x16xf32>) permutation = [0, 2, 3, 1] 
    %collapsed_52 = tensor.collapse_shape %transposed_47 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32>
    %collapsed_53 = tensor.collapse_shape %transposed_51 [[0, 1], [2], [3]] : tensor<4x4x12x16xf32> into tensor<16x12x16xf32>
    %115 = linalg.batch_matmul ins(%collapsed_52, %collapsed_53 : tensor<16x16x12xf32>, tensor<16x12x16xf32>) outs(%36 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32>
    %expanded_54 = tensor.expand_shape %115 [[0, 1], [2], [3]] output_shape [4, 4, 16, 16] : tensor<16x16x16xf32> into tensor<4x4x16x16xf32>
    %116 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_54 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_6 : f64 to f32
      %204 = arith.mulf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x4x16x16xf32>
    %117 = linalg.generic {indexing_maps = [#map9, #map8, #map10, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %116, %cst_3 : tensor<16x16xi1>, tensor<4x4x16x16xf32>, tensor<f32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: i1, %in_76: f32, %in_77: f32, %out: f32):
      %203 = arith.select %in, %in_76, %in_77 : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %118:2 = linalg.generic {indexing_maps = [#map8, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%117 : tensor<4x4x16x16xf32>) outs(%44, %42 : tensor<4x4x16xf32>, tensor<4x4x16xi64>) {
    ^bb0(%in: f32, %out: f32, %out_76: i64):
      %203 = linalg.index 3 : index
      %204 = arith.index_cast %203 : index to i64
      %205 = arith.maximumf %in, %out : f32
      %206 = arith.cmpf ogt, %in, %out : f32
      %207 = arith.select %206, %204, %out_76 : i64
      linalg.yield %205, %207 : f32, i64
    } -> (tensor<4x4x16xf32>, tensor<4x4x16xi64>)
    %expanded_55 = tensor.expand_shape %118#0 [[0], [1], [2, 3]] output_shape [4, 4, 16, 1] : tensor<4x4x16xf32> into tensor<4x4x16x1xf32>
    %119 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%117, %expanded_55 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %120 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%119 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.exp %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %121 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%120 : tensor<4x4x16x16xf32>) outs(%49 : tensor<4x4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x1xf32>
    %122 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%120, %121 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.divf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x4x16x16xf32>
    %collapsed_56 = tensor.collapse_shape %122 [[0, 1], [2], [3]] : tensor<4x4x16x16xf32> into tensor<16x16x16xf32>
    %collapsed_57 = tensor.collapse_shape %transposed_50 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32>
    %123 = linalg.batch_matmul ins(%collapsed_56, %collapsed_57 : tensor<16x16x16xf32>, tensor<16x16x12xf32>) outs(%53 : tensor<16x16x12xf32>) -> tensor<16x16x12xf32>
    %expanded_58 = tensor.expand_shape %123 [[0, 1], [2], [3]] output_shape [4, 4, 16, 12] : tensor<16x16x12xf32> into tensor<4x4x16x12xf32>
    %transposed_59 = linalg.transpose ins(%expanded_58 : tensor<4x4x16x12xf32>) outs(%55 : tensor<4x16x4x12xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_60 = tensor.collapse_shape %transposed_59 [[0, 1], [2, 3]] : tensor<4x16x4x12xf32> into tensor<64x48xf32>
    %transposed_61 = linalg.transpose ins(%arg20 : tensor<48x48xf32>) outs(%56 : tensor<48x48xf32>) permutation = [1, 0] 
    %124 = linalg.matmul ins(%collapsed_60, %transposed_61 : tensor<64x48xf32>, tensor<48x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32>
    %125 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%124, %arg21 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x48xf32>
    %expanded_62 = tensor.expand_shape %125 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32>
    %126 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96, %expanded_62 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %127 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32, %out: f64):
      %203 = arith.extf %in : f32 to f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %128 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%127 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %129 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%128 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %130 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%127, %129 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.subf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %131 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%130, %130 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.mulf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %132 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%131 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %133 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%132 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %134 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %203 = arith.truncf %in : f64 to f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %135 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%126 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %136 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%135 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.divf %in, %cst_9 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %137 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%134 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_7 : f64 to f32
      %204 = arith.addf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x1xf32>
    %138 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%137 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.rsqrt %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %139 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126, %136 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %140 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139, %138 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %141 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140, %arg22 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %142 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%141, %arg23 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %collapsed_63 = tensor.collapse_shape %142 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32>
    %transposed_64 = linalg.transpose ins(%arg24 : tensor<192x48xf32>) outs(%78 : tensor<48x192xf32>) permutation = [1, 0] 
    %143 = linalg.matmul ins(%collapsed_63, %transposed_64 : tensor<64x48xf32>, tensor<48x192xf32>) outs(%80 : tensor<64x192xf32>) -> tensor<64x192xf32>
    %144 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%143, %arg25 : tensor<64x192xf32>, tensor<192xf32>) outs(%79 : tensor<64x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x192xf32>
    %expanded_65 = tensor.expand_shape %144 [[0, 1], [2]] output_shape [4, 16, 192] : tensor<64x192xf32> into tensor<4x16x192xf32>
    %145 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_65 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_5 : f64 to f32
      %204 = arith.mulf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x192xf32>
    %146 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%145, %expanded_65 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %147 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%146, %expanded_65 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %148 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_65, %147 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %149 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%148 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_4 : f64 to f32
      %204 = arith.mulf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x192xf32>
    %150 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_65 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.mulf %in, %cst_10 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %151 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%149 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.tanh %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %152 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%151 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %cst_11 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %153 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%150, %152 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x192xf32>
    %collapsed_66 = tensor.collapse_shape %153 [[0, 1], [2]] : tensor<4x16x192xf32> into tensor<64x192xf32>
    %transposed_67 = linalg.transpose ins(%arg26 : tensor<48x192xf32>) outs(%93 : tensor<192x48xf32>) permutation = [1, 0] 
    %154 = linalg.matmul ins(%collapsed_66, %transposed_67 : tensor<64x192xf32>, tensor<192x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32>
    %155 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%154, %arg27 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x48xf32>
    %expanded_68 = tensor.expand_shape %155 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32>
    %156 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126, %expanded_68 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %157 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32, %out: f64):
      %203 = arith.extf %in : f32 to f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %158 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%157 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %159 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%158 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %160 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%157, %159 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.subf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %161 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%160, %160 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64, %in_76: f64, %out: f64):
      %203 = arith.mulf %in, %in_76 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x48xf64>
    %162 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%161 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.addf %in, %out : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %163 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%162 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %203 = arith.divf %in, %cst_8 : f64
      linalg.yield %203 : f64
    } -> tensor<4x16x1xf64>
    %164 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%163 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %203 = arith.truncf %in : f64 to f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %165 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%156 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %166 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%165 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.divf %in, %cst_9 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %167 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%164 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.truncf %cst_7 : f64 to f32
      %204 = arith.addf %in, %203 : f32
      linalg.yield %204 : f32
    } -> tensor<4x16x1xf32>
    %168 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%167 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.rsqrt %in : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x1xf32>
    %169 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156, %166 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %170 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%169, %168 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %171 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%170, %arg28 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.mulf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %172 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%171, %arg29 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.addf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<4x16x48xf32>
    %173 = tensor.empty() : tensor<48x96xf32>
    %transposed_69 = linalg.transpose ins(%arg2 : tensor<96x48xf32>) outs(%173 : tensor<48x96xf32>) permutation = [1, 0] 
    %collapsed_70 = tensor.collapse_shape %172 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32>
    %174 = tensor.empty() : tensor<64x96xf32>
    %175 = linalg.fill ins(%cst_0 : f32) outs(%174 : tensor<64x96xf32>) -> tensor<64x96xf32>
    %176 = linalg.matmul ins(%collapsed_70, %transposed_69 : tensor<64x48xf32>, tensor<48x96xf32>) outs(%175 : tensor<64x96xf32>) -> tensor<64x96xf32>
    %expanded_71 = tensor.expand_shape %176 [[0, 1], [2]] output_shape [4, 16, 96] : tensor<64x96xf32> into tensor<4x16x96xf32>
    %collapsed_72 = tensor.collapse_shape %arg1 [[0, 1]] : tensor<4x16xi64> into tensor<64xi64>
    %177 = tensor.empty() : tensor<64xi64>
    %178 = linalg.fill ins(%c0_i64 : i64) outs(%177 : tensor<64xi64>) -> tensor<64xi64>
    %179 = tensor.empty() : tensor<64xf32>
    %180 = linalg.fill ins(%cst_1 : f32) outs(%179 : tensor<64xf32>) -> tensor<64xf32>
    %181:2 = linalg.generic {indexing_maps = [#map, #map3, #map3], iterator_types = ["parallel", "reduction"]} ins(%176 : tensor<64x96xf32>) outs(%180, %178 : tensor<64xf32>, tensor<64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_76: i64):
      %203 = linalg.index 1 : index
      %204 = arith.index_cast %203 : index to i64
      %205 = arith.maximumf %in, %out : f32
      %206 = arith.cmpf ogt, %in, %out : f32
      %207 = arith.select %206, %204, %out_76 : i64
      linalg.yield %205, %207 : f32, i64
    } -> (tensor<64xf32>, tensor<64xi64>)
    %expanded_73 = tensor.expand_shape %181#0 [[0, 1]] output_shape [64, 1] : tensor<64xf32> into tensor<64x1xf32>
    %182 = linalg.generic {indexing_maps = [#map, #map13, #map], iterator_types = ["parallel", "parallel"]} ins(%176, %expanded_73 : tensor<64x96xf32>, tensor<64x1xf32>) outs(%174 : tensor<64x96xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x96xf32>
    %183 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%182 : tensor<64x96xf32>) outs(%174 : tensor<64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.exp %in : f32
      linalg.yield %203 : f32
    } -> tensor<64x96xf32>
    %184 = tensor.empty() : tensor<64x1xf32>
    %185 = linalg.fill ins(%cst_0 : f32) outs(%184 : tensor<64x1xf32>) -> tensor<64x1xf32>
    %186 = linalg.generic {indexing_maps = [#map, #map13], iterator_types = ["parallel", "reduction"]} ins(%183 : tensor<64x96xf32>) outs(%185 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<64x1xf32>
    %187 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%186 : tensor<64x1xf32>) outs(%184 : tensor<64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = math.log %in : f32
      linalg.yield %203 : f32
    } -> tensor<64x1xf32>
    %188 = linalg.generic {indexing_maps = [#map, #map13, #map], iterator_types = ["parallel", "parallel"]} ins(%182, %187 : tensor<64x96xf32>, tensor<64x1xf32>) outs(%174 : tensor<64x96xf32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.subf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<64x96xf32>
    %189 = tensor.empty() : tensor<64xi1>
    %190 = linalg.generic {indexing_maps = [#map14, #map14], iterator_types = ["parallel"]} ins(%collapsed_72 : tensor<64xi64>) outs(%189 : tensor<64xi1>) {
    ^bb0(%in: i64, %out: i1):
      %203 = arith.cmpi ne, %in, %c-100_i64 : i64
      linalg.yield %203 : i1
    } -> tensor<64xi1>
    %191 = linalg.generic {indexing_maps = [#map14, #map14, #map15, #map14], iterator_types = ["parallel"]} ins(%190, %collapsed_72, %cst_12 : tensor<64xi1>, tensor<64xi64>, tensor<i64>) outs(%177 : tensor<64xi64>) {
    ^bb0(%in: i1, %in_76: i64, %in_77: i64, %out: i64):
      %203 = arith.select %in, %in_76, %in_77 : i64
      linalg.yield %203 : i64
    } -> tensor<64xi64>
    %expanded_74 = tensor.expand_shape %191 [[0, 1]] output_shape [64, 1] : tensor<64xi64> into tensor<64x1xi64>
    %192 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%expanded_74 : tensor<64x1xi64>) outs(%185 : tensor<64x1xf32>) {
    ^bb0(%in: i64, %out: f32):
      %203 = linalg.index 0 : index
      %204 = arith.index_cast %in : i64 to index
      %205 = arith.cmpi slt, %204, %c96 : index
      cf.assert %205, "index must be smaller than dim size"
      %206 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %206, "index must be larger or equal to 0"
      %extracted = tensor.extract %188[%203, %204] : tensor<64x96xf32>
      linalg.yield %extracted : f32
    } -> tensor<64x1xf32>
    %collapsed_75 = tensor.collapse_shape %192 [[0, 1]] : tensor<64x1xf32> into tensor<64xf32>
    %193 = linalg.generic {indexing_maps = [#map14, #map14], iterator_types = ["parallel"]} ins(%collapsed_75 : tensor<64xf32>) outs(%179 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.negf %in : f32
      linalg.yield %203 : f32
    } -> tensor<64xf32>
    %194 = linalg.generic {indexing_maps = [#map14, #map14, #map15, #map14], iterator_types = ["parallel"]} ins(%190, %193, %cst_2 : tensor<64xi1>, tensor<64xf32>, tensor<f32>) outs(%179 : tensor<64xf32>) {
    ^bb0(%in: i1, %in_76: f32, %in_77: f32, %out: f32):
      %203 = arith.select %in, %in_76, %in_77 : f32
      linalg.yield %203 : f32
    } -> tensor<64xf32>
    %195 = tensor.empty() : tensor<i64>
    %196 = linalg.fill ins(%c0_i64 : i64) outs(%195 : tensor<i64>) -> tensor<i64>
    %197 = linalg.generic {indexing_maps = [#map14, #map15], iterator_types = ["reduction"]} ins(%190 : tensor<64xi1>) outs(%196 : tensor<i64>) {
    ^bb0(%in: i1, %out: i64):
      %203 = arith.extui %in : i1 to i64
      %204 = arith.addi %203, %out : i64
      linalg.yield %204 : i64
    } -> tensor<i64>
    %198 = tensor.empty() : tensor<f32>
    %199 = linalg.generic {indexing_maps = [#map16, #map16], iterator_types = []} ins(%197 : tensor<i64>) outs(%198 : tensor<f32>) {
    ^bb0(%in: i64, %out: f32):
      %203 = arith.sitofp %in : i64 to f32
      linalg.yield %203 : f32
    } -> tensor<f32>
    %200 = linalg.fill ins(%cst_0 : f32) outs(%198 : tensor<f32>) -> tensor<f32>
    %201 = linalg.generic {indexing_maps = [#map14, #map15], iterator_types = ["reduction"]} ins(%194 : tensor<64xf32>) outs(%200 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %203 = arith.addf %in, %out : f32
      linalg.yield %203 : f32
    } -> tensor<f32>
    %202 = linalg.generic {indexing_maps = [#map16, #map16, #map16], iterator_types = []} ins(%201, %199 : tensor<f32>, tensor<f32>) outs(%198 : tensor<f32>) {
    ^bb0(%in: f32, %in_76: f32, %out: f32):
      %203 = arith.divf %in, %in_76 : f32
      linalg.yield %203 : f32
    } -> tensor<f32>
    return %202, %expanded_71 : tensor<f32>, tensor<4x16x96xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_16_16_torch.uint8: "0x0100000001000000000000000000000000000000010100000000000000000000000000000101010000000000000000000000000001010101000000000000000000000000010101010100000000000000000000000101010101010000000000000000000001010101010101000000000000000000010101010101010100000000000000000101010101010101010000000000000001010101010101010101000000000000010101010101010101010100000000000101010101010101010101010000000001010101010101010101010101000000010101010101010101010101010100000101010101010101010101010101010001010101010101010101010101010101",
      torch_tensor_16_torch.int64: "0x0800000000000000000000000100000000000000020000000000000003000000000000000400000000000000050000000000000006000000000000000700000000000000080000000000000009000000000000000A000000000000000B000000000000000C000000000000000D000000000000000E000000000000000F00000000000000"
    }
  }
#-}
