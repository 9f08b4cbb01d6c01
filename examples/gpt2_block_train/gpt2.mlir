#loc = loc(unknown)
#loc1 = loc("make.py":66:0)
#loc2 = loc("make.py":46:0)
#loc3 = loc("make.py":47:0)
#loc4 = loc("make.py":61:0)
#loc5 = loc("make.py":62:0)
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
#loc6 = loc("nll_loss_forward"(#loc1))
#loc7 = loc("blocks.0"(#loc2))
#loc8 = loc("blocks.0"(#loc3))
#loc9 = loc("blocks.0.attention_norm"(#loc2))
#loc10 = loc("blocks.1"(#loc2))
#loc11 = loc("place"(#loc4))
#loc12 = loc("embed"(#loc4))
#loc13 = loc("add"(#loc4))
#loc14 = loc("blocks.0.qkv"(#loc2))
#loc15 = loc("blocks.0.mix"(#loc2))
#loc16 = loc("blocks.0.mlp_norm"(#loc3))
#loc17 = loc("blocks.0.up"(#loc3))
#loc18 = loc("blocks.0.down"(#loc3))
#loc19 = loc("blocks.1.attention_norm"(#loc2))
#loc20 = loc("blocks.1.qkv"(#loc2))
#loc21 = loc("blocks.1.mix"(#loc2))
#loc22 = loc("blocks.1.mlp_norm"(#loc3))
#loc23 = loc("blocks.1.up"(#loc3))
#loc24 = loc("blocks.1"(#loc3))
#loc25 = loc("blocks.1.down"(#loc3))
#loc26 = loc("norm"(#loc5))
#loc28 = loc("view"(#loc1))
#loc29 = loc("_log_softmax"(#loc1))
module {
  func.func @gpt2(%arg0: tensor<4x16xi64> {weir.kind = "input", weir.name = "tokens"} loc(unknown), %arg1: tensor<4x16xi64> {weir.kind = "target", weir.name = "next"} loc(unknown), %arg2: tensor<96x48xf32> {weir.kind = "param", weir.name = "embed.weight"} loc(unknown), %arg3: tensor<16x48xf32> {weir.kind = "param", weir.name = "place.weight"} loc(unknown), %arg4: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.attention_norm.weight"} loc(unknown), %arg5: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.attention_norm.bias"} loc(unknown), %arg6: tensor<144x48xf32> {weir.kind = "param", weir.name = "blocks.0.qkv.weight"} loc(unknown), %arg7: tensor<144xf32> {weir.kind = "param", weir.name = "blocks.0.qkv.bias"} loc(unknown), %arg8: tensor<48x48xf32> {weir.kind = "param", weir.name = "blocks.0.mix.weight"} loc(unknown), %arg9: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.mix.bias"} loc(unknown), %arg10: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.mlp_norm.weight"} loc(unknown), %arg11: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.mlp_norm.bias"} loc(unknown), %arg12: tensor<192x48xf32> {weir.kind = "param", weir.name = "blocks.0.up.weight"} loc(unknown), %arg13: tensor<192xf32> {weir.kind = "param", weir.name = "blocks.0.up.bias"} loc(unknown), %arg14: tensor<48x192xf32> {weir.kind = "param", weir.name = "blocks.0.down.weight"} loc(unknown), %arg15: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.0.down.bias"} loc(unknown), %arg16: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.attention_norm.weight"} loc(unknown), %arg17: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.attention_norm.bias"} loc(unknown), %arg18: tensor<144x48xf32> {weir.kind = "param", weir.name = "blocks.1.qkv.weight"} loc(unknown), %arg19: tensor<144xf32> {weir.kind = "param", weir.name = "blocks.1.qkv.bias"} loc(unknown), %arg20: tensor<48x48xf32> {weir.kind = "param", weir.name = "blocks.1.mix.weight"} loc(unknown), %arg21: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.mix.bias"} loc(unknown), %arg22: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.mlp_norm.weight"} loc(unknown), %arg23: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.mlp_norm.bias"} loc(unknown), %arg24: tensor<192x48xf32> {weir.kind = "param", weir.name = "blocks.1.up.weight"} loc(unknown), %arg25: tensor<192xf32> {weir.kind = "param", weir.name = "blocks.1.up.bias"} loc(unknown), %arg26: tensor<48x192xf32> {weir.kind = "param", weir.name = "blocks.1.down.weight"} loc(unknown), %arg27: tensor<48xf32> {weir.kind = "param", weir.name = "blocks.1.down.bias"} loc(unknown), %arg28: tensor<48xf32> {weir.kind = "param", weir.name = "norm.weight"} loc(unknown), %arg29: tensor<48xf32> {weir.kind = "param", weir.name = "norm.bias"} loc(unknown)) -> (tensor<f32> {weir.name = "loss"}, tensor<4x16x96xf32> {weir.name = "output"}) {
    %c16 = arith.constant 16 : index loc(#loc)
    %c0_i8 = arith.constant 0 : i8 loc(#loc)
    %c96 = arith.constant 96 : index loc(#loc)
    %cst = arith.constant 0.000000e+00 : f64 loc(#loc)
    %cst_0 = arith.constant 0.000000e+00 : f32 loc(#loc)
    %cst_1 = arith.constant 0xFF800000 : f32 loc(#loc)
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32> loc(#loc6)
    %cst_3 = arith.constant dense<0xFF800000> : tensor<f32> loc(#loc7)
    %cst_4 = arith.constant 0.79788456080286541 : f64 loc(#loc8)
    %cst_5 = arith.constant 4.471500e-02 : f64 loc(#loc8)
    %cst_6 = arith.constant 0.28867513459481287 : f64 loc(#loc7)
    %cst_7 = arith.constant 1.000000e-05 : f64 loc(#loc9)
    %cst_8 = arith.constant 4.800000e+01 : f64 loc(#loc)
    %cst_9 = arith.constant 4.800000e+01 : f32 loc(#loc)
    %cst_10 = arith.constant 5.000000e-01 : f32 loc(#loc)
    %cst_11 = arith.constant 1.000000e+00 : f32 loc(#loc)
    %c0_i64 = arith.constant 0 : i64 loc(#loc)
    %c-100_i64 = arith.constant -100 : i64 loc(#loc6)
    %cst_12 = arith.constant dense<0> : tensor<i64> loc(#loc6)
    %cst_13 = arith.constant dense_resource<torch_tensor_16_16_torch.uint8> : tensor<16x16xi8> loc(#loc10)
    %cst_14 = arith.constant dense_resource<torch_tensor_16_torch.int64> : tensor<16xi64> loc(#loc11)
    %0 = tensor.empty() : tensor<16x16xi1> loc(#loc10)
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_13 : tensor<16x16xi8>) outs(%0 : tensor<16x16xi1>) {
    ^bb0(%in: i8 loc("blocks.1"(#loc2)), %out: i1 loc("blocks.1"(#loc2))):
      %201 = arith.cmpi ne, %in, %c0_i8 : i8 loc(#loc10)
      linalg.yield %201 : i1 loc(#loc10)
    } -> tensor<16x16xi1> loc(#loc10)
    %2 = tensor.empty() : tensor<4x16x48xf32> loc(#loc12)
    %3 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4x16xi64>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: i64 loc("embed"(#loc4)), %out: f32 loc("embed"(#loc4))):
      %201 = arith.index_cast %in : i64 to index loc(#loc12)
      %202 = linalg.index 2 : index loc(#loc12)
      %203 = arith.cmpi slt, %201, %c96 : index loc(#loc12)
      cf.assert %203, "index must be smaller than dim size" loc(#loc12)
      %204 = arith.cmpi sge, %in, %c0_i64 : i64 loc(#loc12)
      cf.assert %204, "index must be larger or equal to 0" loc(#loc12)
      %extracted = tensor.extract %arg2[%201, %202] : tensor<96x48xf32> loc(#loc12)
      linalg.yield %extracted : f32 loc(#loc12)
    } -> tensor<4x16x48xf32> loc(#loc12)
    %4 = tensor.empty() : tensor<16x48xf32> loc(#loc11)
    %5 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_14 : tensor<16xi64>) outs(%4 : tensor<16x48xf32>) {
    ^bb0(%in: i64 loc("place"(#loc4)), %out: f32 loc("place"(#loc4))):
      %201 = arith.index_cast %in : i64 to index loc(#loc11)
      %202 = linalg.index 1 : index loc(#loc11)
      %203 = arith.cmpi slt, %201, %c16 : index loc(#loc11)
      cf.assert %203, "index must be smaller than dim size" loc(#loc11)
      %204 = arith.cmpi sge, %in, %c0_i64 : i64 loc(#loc11)
      cf.assert %204, "index must be larger or equal to 0" loc(#loc11)
      %extracted = tensor.extract %arg3[%201, %202] : tensor<16x48xf32> loc(#loc11)
      linalg.yield %extracted : f32 loc(#loc11)
    } -> tensor<16x48xf32> loc(#loc11)
    %6 = linalg.generic {indexing_maps = [#map2, #map4, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %5 : tensor<4x16x48xf32>, tensor<16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("embed"(#loc4)), %in_77: f32 loc("place"(#loc4)), %out: f32 loc("add"(#loc4))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc13)
      linalg.yield %201 : f32 loc(#loc13)
    } -> tensor<4x16x48xf32> loc(#loc13)
    %7 = tensor.empty() : tensor<4x16x48xf64> loc(#loc9)
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32 loc("add"(#loc4)), %out: f64 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.extf %in : f32 to f64 loc(#loc9)
      linalg.yield %201 : f64 loc(#loc9)
    } -> tensor<4x16x48xf64> loc(#loc9)
    %9 = tensor.empty() : tensor<4x16x1xf64> loc(#loc9)
    %10 = linalg.fill ins(%cst : f64) outs(%9 : tensor<4x16x1xf64>) -> tensor<4x16x1xf64> loc(#loc9)
    %11 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.attention_norm"(#loc2)), %out: f64 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.addf %in, %out : f64 loc(#loc9)
      linalg.yield %201 : f64 loc(#loc9)
    } -> tensor<4x16x1xf64> loc(#loc9)
    %12 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.attention_norm"(#loc2)), %out: f64 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc9)
      linalg.yield %201 : f64 loc(#loc9)
    } -> tensor<4x16x1xf64> loc(#loc9)
    %13 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8, %12 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.0.attention_norm"(#loc2)), %in_77: f64 loc("blocks.0.attention_norm"(#loc2)), %out: f64 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.subf %in, %in_77 : f64 loc(#loc9)
      linalg.yield %201 : f64 loc(#loc9)
    } -> tensor<4x16x48xf64> loc(#loc9)
    %14 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %13 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.0.attention_norm"(#loc2)), %in_77: f64 loc("blocks.0.attention_norm"(#loc2)), %out: f64 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.mulf %in, %in_77 : f64 loc(#loc9)
      linalg.yield %201 : f64 loc(#loc9)
    } -> tensor<4x16x48xf64> loc(#loc9)
    %15 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%14 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.attention_norm"(#loc2)), %out: f64 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.addf %in, %out : f64 loc(#loc9)
      linalg.yield %201 : f64 loc(#loc9)
    } -> tensor<4x16x1xf64> loc(#loc9)
    %16 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.attention_norm"(#loc2)), %out: f64 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc9)
      linalg.yield %201 : f64 loc(#loc9)
    } -> tensor<4x16x1xf64> loc(#loc9)
    %17 = tensor.empty() : tensor<4x16x1xf32> loc(#loc9)
    %18 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.truncf %in : f64 to f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x1xf32> loc(#loc9)
    %19 = linalg.fill ins(%cst_0 : f32) outs(%17 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32> loc(#loc9)
    %20 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%6 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("add"(#loc4)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.addf %in, %out : f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x1xf32> loc(#loc9)
    %21 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.divf %in, %cst_9 : f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x1xf32> loc(#loc9)
    %22 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.truncf %cst_7 : f64 to f32 loc(#loc9)
      %202 = arith.addf %in, %201 : f32 loc(#loc9)
      linalg.yield %202 : f32 loc(#loc9)
    } -> tensor<4x16x1xf32> loc(#loc9)
    %23 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = math.rsqrt %in : f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x1xf32> loc(#loc9)
    %24 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %21 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("add"(#loc4)), %in_77: f32 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x48xf32> loc(#loc9)
    %25 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24, %23 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.attention_norm"(#loc2)), %in_77: f32 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x48xf32> loc(#loc9)
    %26 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %arg4 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.attention_norm"(#loc2)), %in_77: f32 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x48xf32> loc(#loc9)
    %27 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26, %arg5 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.attention_norm"(#loc2)), %in_77: f32 loc("blocks.0.attention_norm"(#loc2)), %out: f32 loc("blocks.0.attention_norm"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc9)
      linalg.yield %201 : f32 loc(#loc9)
    } -> tensor<4x16x48xf32> loc(#loc9)
    %collapsed = tensor.collapse_shape %27 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32> loc(#loc14)
    %28 = tensor.empty() : tensor<48x144xf32> loc(#loc14)
    %transposed = linalg.transpose ins(%arg6 : tensor<144x48xf32>) outs(%28 : tensor<48x144xf32>) permutation = [1, 0]  loc(#loc14)
    %29 = tensor.empty() : tensor<64x144xf32> loc(#loc14)
    %30 = linalg.fill ins(%cst_0 : f32) outs(%29 : tensor<64x144xf32>) -> tensor<64x144xf32> loc(#loc14)
    %31 = linalg.matmul ins(%collapsed, %transposed : tensor<64x48xf32>, tensor<48x144xf32>) outs(%30 : tensor<64x144xf32>) -> tensor<64x144xf32> loc(#loc14)
    %32 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%31, %arg7 : tensor<64x144xf32>, tensor<144xf32>) outs(%29 : tensor<64x144xf32>) {
    ^bb0(%in: f32 loc("blocks.0.qkv"(#loc2)), %in_77: f32 loc("blocks.0.qkv"(#loc2)), %out: f32 loc("blocks.0.qkv"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc14)
      linalg.yield %201 : f32 loc(#loc14)
    } -> tensor<64x144xf32> loc(#loc14)
    %expanded = tensor.expand_shape %32 [[0, 1], [2]] output_shape [4, 16, 144] : tensor<64x144xf32> into tensor<4x16x144xf32> loc(#loc14)
    %extracted_slice = tensor.extract_slice %expanded[0, 0, 0] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32> loc(#loc7)
    %extracted_slice_15 = tensor.extract_slice %expanded[0, 0, 48] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32> loc(#loc7)
    %extracted_slice_16 = tensor.extract_slice %expanded[0, 0, 96] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32> loc(#loc7)
    %expanded_17 = tensor.expand_shape %extracted_slice [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32> loc(#loc7)
    %33 = tensor.empty() : tensor<4x4x16x12xf32> loc(#loc7)
    %transposed_18 = linalg.transpose ins(%expanded_17 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3]  loc(#loc7)
    %expanded_19 = tensor.expand_shape %extracted_slice_15 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32> loc(#loc7)
    %expanded_20 = tensor.expand_shape %extracted_slice_16 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32> loc(#loc7)
    %transposed_21 = linalg.transpose ins(%expanded_20 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3]  loc(#loc7)
    %34 = tensor.empty() : tensor<4x4x12x16xf32> loc(#loc7)
    %transposed_22 = linalg.transpose ins(%expanded_19 : tensor<4x16x4x12xf32>) outs(%34 : tensor<4x4x12x16xf32>) permutation = [0, 2, 3, 1]  loc(#loc7)
    %collapsed_23 = tensor.collapse_shape %transposed_18 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32> loc(#loc7)
    %collapsed_24 = tensor.collapse_shape %transposed_22 [[0, 1], [2], [3]] : tensor<4x4x12x16xf32> into tensor<16x12x16xf32> loc(#loc7)
    %35 = tensor.empty() : tensor<16x16x16xf32> loc(#loc7)
    %36 = linalg.fill ins(%cst_0 : f32) outs(%35 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32> loc(#loc7)
    %37 = linalg.batch_matmul ins(%collapsed_23, %collapsed_24 : tensor<16x16x12xf32>, tensor<16x12x16xf32>) outs(%36 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32> loc(#loc7)
    %expanded_25 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [4, 4, 16, 16] : tensor<16x16x16xf32> into tensor<4x4x16x16xf32> loc(#loc7)
    %38 = tensor.empty() : tensor<4x4x16x16xf32> loc(#loc7)
    %39 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_25 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0"(#loc2))):
      %201 = arith.truncf %cst_6 : f64 to f32 loc(#loc7)
      %202 = arith.mulf %in, %201 : f32 loc(#loc7)
      linalg.yield %202 : f32 loc(#loc7)
    } -> tensor<4x4x16x16xf32> loc(#loc7)
    %40 = linalg.generic {indexing_maps = [#map9, #map8, #map10, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %39, %cst_3 : tensor<16x16xi1>, tensor<4x4x16x16xf32>, tensor<f32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: i1 loc("blocks.1"(#loc2)), %in_77: f32 loc("blocks.0"(#loc2)), %in_78: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0"(#loc2))):
      %201 = arith.select %in, %in_77, %in_78 : f32 loc(#loc7)
      linalg.yield %201 : f32 loc(#loc7)
    } -> tensor<4x4x16x16xf32> loc(#loc7)
    %41 = tensor.empty() : tensor<4x4x16xi64> loc(#loc7)
    %42 = linalg.fill ins(%c0_i64 : i64) outs(%41 : tensor<4x4x16xi64>) -> tensor<4x4x16xi64> loc(#loc7)
    %43 = tensor.empty() : tensor<4x4x16xf32> loc(#loc7)
    %44 = linalg.fill ins(%cst_1 : f32) outs(%43 : tensor<4x4x16xf32>) -> tensor<4x4x16xf32> loc(#loc7)
    %45:2 = linalg.generic {indexing_maps = [#map8, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<4x4x16x16xf32>) outs(%44, %42 : tensor<4x4x16xf32>, tensor<4x4x16xi64>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0"(#loc2)), %out_77: i64 loc("blocks.0"(#loc2))):
      %201 = linalg.index 3 : index loc(#loc7)
      %202 = arith.index_cast %201 : index to i64 loc(#loc7)
      %203 = arith.maximumf %in, %out : f32 loc(#loc7)
      %204 = arith.cmpf ogt, %in, %out : f32 loc(#loc7)
      %205 = arith.select %204, %202, %out_77 : i64 loc(#loc7)
      linalg.yield %203, %205 : f32, i64 loc(#loc7)
    } -> (tensor<4x4x16xf32>, tensor<4x4x16xi64>) loc(#loc7)
    %expanded_26 = tensor.expand_shape %45#0 [[0], [1], [2, 3]] output_shape [4, 4, 16, 1] : tensor<4x4x16xf32> into tensor<4x4x16x1xf32> loc(#loc7)
    %46 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %expanded_26 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %in_77: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0"(#loc2))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc7)
      linalg.yield %201 : f32 loc(#loc7)
    } -> tensor<4x4x16x16xf32> loc(#loc7)
    %47 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%46 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0"(#loc2))):
      %201 = math.exp %in : f32 loc(#loc7)
      linalg.yield %201 : f32 loc(#loc7)
    } -> tensor<4x4x16x16xf32> loc(#loc7)
    %48 = tensor.empty() : tensor<4x4x16x1xf32> loc(#loc7)
    %49 = linalg.fill ins(%cst_0 : f32) outs(%48 : tensor<4x4x16x1xf32>) -> tensor<4x4x16x1xf32> loc(#loc7)
    %50 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%47 : tensor<4x4x16x16xf32>) outs(%49 : tensor<4x4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0"(#loc2))):
      %201 = arith.addf %in, %out : f32 loc(#loc7)
      linalg.yield %201 : f32 loc(#loc7)
    } -> tensor<4x4x16x1xf32> loc(#loc7)
    %51 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47, %50 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %in_77: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0"(#loc2))):
      %201 = arith.divf %in, %in_77 : f32 loc(#loc7)
      linalg.yield %201 : f32 loc(#loc7)
    } -> tensor<4x4x16x16xf32> loc(#loc7)
    %collapsed_27 = tensor.collapse_shape %51 [[0, 1], [2], [3]] : tensor<4x4x16x16xf32> into tensor<16x16x16xf32> loc(#loc7)
    %collapsed_28 = tensor.collapse_shape %transposed_21 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32> loc(#loc7)
    %52 = tensor.empty() : tensor<16x16x12xf32> loc(#loc7)
    %53 = linalg.fill ins(%cst_0 : f32) outs(%52 : tensor<16x16x12xf32>) -> tensor<16x16x12xf32> loc(#loc7)
    %54 = linalg.batch_matmul ins(%collapsed_27, %collapsed_28 : tensor<16x16x16xf32>, tensor<16x16x12xf32>) outs(%53 : tensor<16x16x12xf32>) -> tensor<16x16x12xf32> loc(#loc7)
    %expanded_29 = tensor.expand_shape %54 [[0, 1], [2], [3]] output_shape [4, 4, 16, 12] : tensor<16x16x12xf32> into tensor<4x4x16x12xf32> loc(#loc7)
    %55 = tensor.empty() : tensor<4x16x4x12xf32> loc(#loc7)
    %transposed_30 = linalg.transpose ins(%expanded_29 : tensor<4x4x16x12xf32>) outs(%55 : tensor<4x16x4x12xf32>) permutation = [0, 2, 1, 3]  loc(#loc7)
    %collapsed_31 = tensor.collapse_shape %transposed_30 [[0, 1], [2, 3]] : tensor<4x16x4x12xf32> into tensor<64x48xf32> loc(#loc15)
    %56 = tensor.empty() : tensor<48x48xf32> loc(#loc15)
    %transposed_32 = linalg.transpose ins(%arg8 : tensor<48x48xf32>) outs(%56 : tensor<48x48xf32>) permutation = [1, 0]  loc(#loc15)
    %57 = tensor.empty() : tensor<64x48xf32> loc(#loc15)
    %58 = linalg.fill ins(%cst_0 : f32) outs(%57 : tensor<64x48xf32>) -> tensor<64x48xf32> loc(#loc15)
    %59 = linalg.matmul ins(%collapsed_31, %transposed_32 : tensor<64x48xf32>, tensor<48x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32> loc(#loc15)
    %60 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%59, %arg9 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.mix"(#loc2)), %in_77: f32 loc("blocks.0.mix"(#loc2)), %out: f32 loc("blocks.0.mix"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc15)
      linalg.yield %201 : f32 loc(#loc15)
    } -> tensor<64x48xf32> loc(#loc15)
    %expanded_33 = tensor.expand_shape %60 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32> loc(#loc15)
    %61 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %expanded_33 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("add"(#loc4)), %in_77: f32 loc("blocks.0.mix"(#loc2)), %out: f32 loc("blocks.0"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc7)
      linalg.yield %201 : f32 loc(#loc7)
    } -> tensor<4x16x48xf32> loc(#loc7)
    %62 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%61 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %out: f64 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.extf %in : f32 to f64 loc(#loc16)
      linalg.yield %201 : f64 loc(#loc16)
    } -> tensor<4x16x48xf64> loc(#loc16)
    %63 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%62 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.mlp_norm"(#loc3)), %out: f64 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %out : f64 loc(#loc16)
      linalg.yield %201 : f64 loc(#loc16)
    } -> tensor<4x16x1xf64> loc(#loc16)
    %64 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%63 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.mlp_norm"(#loc3)), %out: f64 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc16)
      linalg.yield %201 : f64 loc(#loc16)
    } -> tensor<4x16x1xf64> loc(#loc16)
    %65 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%62, %64 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.0.mlp_norm"(#loc3)), %in_77: f64 loc("blocks.0.mlp_norm"(#loc3)), %out: f64 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.subf %in, %in_77 : f64 loc(#loc16)
      linalg.yield %201 : f64 loc(#loc16)
    } -> tensor<4x16x48xf64> loc(#loc16)
    %66 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%65, %65 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.0.mlp_norm"(#loc3)), %in_77: f64 loc("blocks.0.mlp_norm"(#loc3)), %out: f64 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f64 loc(#loc16)
      linalg.yield %201 : f64 loc(#loc16)
    } -> tensor<4x16x48xf64> loc(#loc16)
    %67 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%66 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.mlp_norm"(#loc3)), %out: f64 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %out : f64 loc(#loc16)
      linalg.yield %201 : f64 loc(#loc16)
    } -> tensor<4x16x1xf64> loc(#loc16)
    %68 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.0.mlp_norm"(#loc3)), %out: f64 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc16)
      linalg.yield %201 : f64 loc(#loc16)
    } -> tensor<4x16x1xf64> loc(#loc16)
    %69 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.truncf %in : f64 to f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x1xf32> loc(#loc16)
    %70 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%61 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %out : f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x1xf32> loc(#loc16)
    %71 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.divf %in, %cst_9 : f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x1xf32> loc(#loc16)
    %72 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.truncf %cst_7 : f64 to f32 loc(#loc16)
      %202 = arith.addf %in, %201 : f32 loc(#loc16)
      linalg.yield %202 : f32 loc(#loc16)
    } -> tensor<4x16x1xf32> loc(#loc16)
    %73 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%72 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = math.rsqrt %in : f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x1xf32> loc(#loc16)
    %74 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%61, %71 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %in_77: f32 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x48xf32> loc(#loc16)
    %75 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%74, %73 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.mlp_norm"(#loc3)), %in_77: f32 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x48xf32> loc(#loc16)
    %76 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%75, %arg10 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.mlp_norm"(#loc3)), %in_77: f32 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x48xf32> loc(#loc16)
    %77 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%76, %arg11 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.mlp_norm"(#loc3)), %in_77: f32 loc("blocks.0.mlp_norm"(#loc3)), %out: f32 loc("blocks.0.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc16)
      linalg.yield %201 : f32 loc(#loc16)
    } -> tensor<4x16x48xf32> loc(#loc16)
    %collapsed_34 = tensor.collapse_shape %77 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32> loc(#loc17)
    %78 = tensor.empty() : tensor<48x192xf32> loc(#loc17)
    %transposed_35 = linalg.transpose ins(%arg12 : tensor<192x48xf32>) outs(%78 : tensor<48x192xf32>) permutation = [1, 0]  loc(#loc17)
    %79 = tensor.empty() : tensor<64x192xf32> loc(#loc17)
    %80 = linalg.fill ins(%cst_0 : f32) outs(%79 : tensor<64x192xf32>) -> tensor<64x192xf32> loc(#loc17)
    %81 = linalg.matmul ins(%collapsed_34, %transposed_35 : tensor<64x48xf32>, tensor<48x192xf32>) outs(%80 : tensor<64x192xf32>) -> tensor<64x192xf32> loc(#loc17)
    %82 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%81, %arg13 : tensor<64x192xf32>, tensor<192xf32>) outs(%79 : tensor<64x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0.up"(#loc3)), %in_77: f32 loc("blocks.0.up"(#loc3)), %out: f32 loc("blocks.0.up"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc17)
      linalg.yield %201 : f32 loc(#loc17)
    } -> tensor<64x192xf32> loc(#loc17)
    %expanded_36 = tensor.expand_shape %82 [[0, 1], [2]] output_shape [4, 16, 192] : tensor<64x192xf32> into tensor<4x16x192xf32> loc(#loc17)
    %83 = tensor.empty() : tensor<4x16x192xf32> loc(#loc8)
    %84 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_36 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0.up"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.truncf %cst_5 : f64 to f32 loc(#loc8)
      %202 = arith.mulf %in, %201 : f32 loc(#loc8)
      linalg.yield %202 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %85 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%84, %expanded_36 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %in_77: f32 loc("blocks.0.up"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %86 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85, %expanded_36 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %in_77: f32 loc("blocks.0.up"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %87 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_36, %86 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0.up"(#loc3)), %in_77: f32 loc("blocks.0"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %88 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%87 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.truncf %cst_4 : f64 to f32 loc(#loc8)
      %202 = arith.mulf %in, %201 : f32 loc(#loc8)
      linalg.yield %202 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %89 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_36 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0.up"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.mulf %in, %cst_10 : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %90 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%88 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = math.tanh %in : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %91 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%90 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.addf %in, %cst_11 : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %92 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%89, %91 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %in_77: f32 loc("blocks.0"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x192xf32> loc(#loc8)
    %collapsed_37 = tensor.collapse_shape %92 [[0, 1], [2]] : tensor<4x16x192xf32> into tensor<64x192xf32> loc(#loc18)
    %93 = tensor.empty() : tensor<192x48xf32> loc(#loc18)
    %transposed_38 = linalg.transpose ins(%arg14 : tensor<48x192xf32>) outs(%93 : tensor<192x48xf32>) permutation = [1, 0]  loc(#loc18)
    %94 = linalg.matmul ins(%collapsed_37, %transposed_38 : tensor<64x192xf32>, tensor<192x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32> loc(#loc18)
    %95 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%94, %arg15 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0.down"(#loc3)), %in_77: f32 loc("blocks.0.down"(#loc3)), %out: f32 loc("blocks.0.down"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc18)
      linalg.yield %201 : f32 loc(#loc18)
    } -> tensor<64x48xf32> loc(#loc18)
    %expanded_39 = tensor.expand_shape %95 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32> loc(#loc18)
    %96 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%61, %expanded_39 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc2)), %in_77: f32 loc("blocks.0.down"(#loc3)), %out: f32 loc("blocks.0"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc8)
      linalg.yield %201 : f32 loc(#loc8)
    } -> tensor<4x16x48xf32> loc(#loc8)
    %97 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %out: f64 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.extf %in : f32 to f64 loc(#loc19)
      linalg.yield %201 : f64 loc(#loc19)
    } -> tensor<4x16x48xf64> loc(#loc19)
    %98 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%97 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.attention_norm"(#loc2)), %out: f64 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.addf %in, %out : f64 loc(#loc19)
      linalg.yield %201 : f64 loc(#loc19)
    } -> tensor<4x16x1xf64> loc(#loc19)
    %99 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.attention_norm"(#loc2)), %out: f64 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc19)
      linalg.yield %201 : f64 loc(#loc19)
    } -> tensor<4x16x1xf64> loc(#loc19)
    %100 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%97, %99 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.1.attention_norm"(#loc2)), %in_77: f64 loc("blocks.1.attention_norm"(#loc2)), %out: f64 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.subf %in, %in_77 : f64 loc(#loc19)
      linalg.yield %201 : f64 loc(#loc19)
    } -> tensor<4x16x48xf64> loc(#loc19)
    %101 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100, %100 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.1.attention_norm"(#loc2)), %in_77: f64 loc("blocks.1.attention_norm"(#loc2)), %out: f64 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.mulf %in, %in_77 : f64 loc(#loc19)
      linalg.yield %201 : f64 loc(#loc19)
    } -> tensor<4x16x48xf64> loc(#loc19)
    %102 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%101 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.attention_norm"(#loc2)), %out: f64 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.addf %in, %out : f64 loc(#loc19)
      linalg.yield %201 : f64 loc(#loc19)
    } -> tensor<4x16x1xf64> loc(#loc19)
    %103 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%102 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.attention_norm"(#loc2)), %out: f64 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc19)
      linalg.yield %201 : f64 loc(#loc19)
    } -> tensor<4x16x1xf64> loc(#loc19)
    %104 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%103 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.truncf %in : f64 to f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x1xf32> loc(#loc19)
    %105 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%96 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.addf %in, %out : f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x1xf32> loc(#loc19)
    %106 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%105 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.divf %in, %cst_9 : f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x1xf32> loc(#loc19)
    %107 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.truncf %cst_7 : f64 to f32 loc(#loc19)
      %202 = arith.addf %in, %201 : f32 loc(#loc19)
      linalg.yield %202 : f32 loc(#loc19)
    } -> tensor<4x16x1xf32> loc(#loc19)
    %108 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%107 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = math.rsqrt %in : f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x1xf32> loc(#loc19)
    %109 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96, %106 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %in_77: f32 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x48xf32> loc(#loc19)
    %110 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%109, %108 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.attention_norm"(#loc2)), %in_77: f32 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x48xf32> loc(#loc19)
    %111 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%110, %arg16 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.attention_norm"(#loc2)), %in_77: f32 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x48xf32> loc(#loc19)
    %112 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%111, %arg17 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.attention_norm"(#loc2)), %in_77: f32 loc("blocks.1.attention_norm"(#loc2)), %out: f32 loc("blocks.1.attention_norm"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc19)
      linalg.yield %201 : f32 loc(#loc19)
    } -> tensor<4x16x48xf32> loc(#loc19)
    %collapsed_40 = tensor.collapse_shape %112 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32> loc(#loc20)
    %transposed_41 = linalg.transpose ins(%arg18 : tensor<144x48xf32>) outs(%28 : tensor<48x144xf32>) permutation = [1, 0]  loc(#loc20)
    %113 = linalg.matmul ins(%collapsed_40, %transposed_41 : tensor<64x48xf32>, tensor<48x144xf32>) outs(%30 : tensor<64x144xf32>) -> tensor<64x144xf32> loc(#loc20)
    %114 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%113, %arg19 : tensor<64x144xf32>, tensor<144xf32>) outs(%29 : tensor<64x144xf32>) {
    ^bb0(%in: f32 loc("blocks.1.qkv"(#loc2)), %in_77: f32 loc("blocks.1.qkv"(#loc2)), %out: f32 loc("blocks.1.qkv"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc20)
      linalg.yield %201 : f32 loc(#loc20)
    } -> tensor<64x144xf32> loc(#loc20)
    %expanded_42 = tensor.expand_shape %114 [[0, 1], [2]] output_shape [4, 16, 144] : tensor<64x144xf32> into tensor<4x16x144xf32> loc(#loc20)
    %extracted_slice_43 = tensor.extract_slice %expanded_42[0, 0, 0] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32> loc(#loc10)
    %extracted_slice_44 = tensor.extract_slice %expanded_42[0, 0, 48] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32> loc(#loc10)
    %extracted_slice_45 = tensor.extract_slice %expanded_42[0, 0, 96] [4, 16, 48] [1, 1, 1] : tensor<4x16x144xf32> to tensor<4x16x48xf32> loc(#loc10)
    %expanded_46 = tensor.expand_shape %extracted_slice_43 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32> loc(#loc10)
    %transposed_47 = linalg.transpose ins(%expanded_46 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3]  loc(#loc10)
    %expanded_48 = tensor.expand_shape %extracted_slice_44 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32> loc(#loc10)
    %expanded_49 = tensor.expand_shape %extracted_slice_45 [[0], [1], [2, 3]] output_shape [4, 16, 4, 12] : tensor<4x16x48xf32> into tensor<4x16x4x12xf32> loc(#loc10)
    %transposed_50 = linalg.transpose ins(%expanded_49 : tensor<4x16x4x12xf32>) outs(%33 : tensor<4x4x16x12xf32>) permutation = [0, 2, 1, 3]  loc(#loc10)
    %transposed_51 = linalg.transpose ins(%expanded_48 : tensor<4x16x4x12xf32>) outs(%34 : tensor<4x4x12x16xf32>) permutation = [0, 2, 3, 1]  loc(#loc10)
    %collapsed_52 = tensor.collapse_shape %transposed_47 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32> loc(#loc10)
    %collapsed_53 = tensor.collapse_shape %transposed_51 [[0, 1], [2], [3]] : tensor<4x4x12x16xf32> into tensor<16x12x16xf32> loc(#loc10)
    %115 = linalg.batch_matmul ins(%collapsed_52, %collapsed_53 : tensor<16x16x12xf32>, tensor<16x12x16xf32>) outs(%36 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32> loc(#loc10)
    %expanded_54 = tensor.expand_shape %115 [[0, 1], [2], [3]] output_shape [4, 4, 16, 16] : tensor<16x16x16xf32> into tensor<4x4x16x16xf32> loc(#loc10)
    %116 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_54 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %out: f32 loc("blocks.1"(#loc2))):
      %201 = arith.truncf %cst_6 : f64 to f32 loc(#loc10)
      %202 = arith.mulf %in, %201 : f32 loc(#loc10)
      linalg.yield %202 : f32 loc(#loc10)
    } -> tensor<4x4x16x16xf32> loc(#loc10)
    %117 = linalg.generic {indexing_maps = [#map9, #map8, #map10, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %116, %cst_3 : tensor<16x16xi1>, tensor<4x4x16x16xf32>, tensor<f32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: i1 loc("blocks.1"(#loc2)), %in_77: f32 loc("blocks.1"(#loc2)), %in_78: f32 loc("blocks.0"(#loc2)), %out: f32 loc("blocks.1"(#loc2))):
      %201 = arith.select %in, %in_77, %in_78 : f32 loc(#loc10)
      linalg.yield %201 : f32 loc(#loc10)
    } -> tensor<4x4x16x16xf32> loc(#loc10)
    %118:2 = linalg.generic {indexing_maps = [#map8, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%117 : tensor<4x4x16x16xf32>) outs(%44, %42 : tensor<4x4x16xf32>, tensor<4x4x16xi64>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %out: f32 loc("blocks.1"(#loc2)), %out_77: i64 loc("blocks.1"(#loc2))):
      %201 = linalg.index 3 : index loc(#loc10)
      %202 = arith.index_cast %201 : index to i64 loc(#loc10)
      %203 = arith.maximumf %in, %out : f32 loc(#loc10)
      %204 = arith.cmpf ogt, %in, %out : f32 loc(#loc10)
      %205 = arith.select %204, %202, %out_77 : i64 loc(#loc10)
      linalg.yield %203, %205 : f32, i64 loc(#loc10)
    } -> (tensor<4x4x16xf32>, tensor<4x4x16xi64>) loc(#loc10)
    %expanded_55 = tensor.expand_shape %118#0 [[0], [1], [2, 3]] output_shape [4, 4, 16, 1] : tensor<4x4x16xf32> into tensor<4x4x16x1xf32> loc(#loc10)
    %119 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%117, %expanded_55 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %in_77: f32 loc("blocks.1"(#loc2)), %out: f32 loc("blocks.1"(#loc2))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc10)
      linalg.yield %201 : f32 loc(#loc10)
    } -> tensor<4x4x16x16xf32> loc(#loc10)
    %120 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%119 : tensor<4x4x16x16xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %out: f32 loc("blocks.1"(#loc2))):
      %201 = math.exp %in : f32 loc(#loc10)
      linalg.yield %201 : f32 loc(#loc10)
    } -> tensor<4x4x16x16xf32> loc(#loc10)
    %121 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%120 : tensor<4x4x16x16xf32>) outs(%49 : tensor<4x4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %out: f32 loc("blocks.1"(#loc2))):
      %201 = arith.addf %in, %out : f32 loc(#loc10)
      linalg.yield %201 : f32 loc(#loc10)
    } -> tensor<4x4x16x1xf32> loc(#loc10)
    %122 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%120, %121 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%38 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %in_77: f32 loc("blocks.1"(#loc2)), %out: f32 loc("blocks.1"(#loc2))):
      %201 = arith.divf %in, %in_77 : f32 loc(#loc10)
      linalg.yield %201 : f32 loc(#loc10)
    } -> tensor<4x4x16x16xf32> loc(#loc10)
    %collapsed_56 = tensor.collapse_shape %122 [[0, 1], [2], [3]] : tensor<4x4x16x16xf32> into tensor<16x16x16xf32> loc(#loc10)
    %collapsed_57 = tensor.collapse_shape %transposed_50 [[0, 1], [2], [3]] : tensor<4x4x16x12xf32> into tensor<16x16x12xf32> loc(#loc10)
    %123 = linalg.batch_matmul ins(%collapsed_56, %collapsed_57 : tensor<16x16x16xf32>, tensor<16x16x12xf32>) outs(%53 : tensor<16x16x12xf32>) -> tensor<16x16x12xf32> loc(#loc10)
    %expanded_58 = tensor.expand_shape %123 [[0, 1], [2], [3]] output_shape [4, 4, 16, 12] : tensor<16x16x12xf32> into tensor<4x4x16x12xf32> loc(#loc10)
    %transposed_59 = linalg.transpose ins(%expanded_58 : tensor<4x4x16x12xf32>) outs(%55 : tensor<4x16x4x12xf32>) permutation = [0, 2, 1, 3]  loc(#loc10)
    %collapsed_60 = tensor.collapse_shape %transposed_59 [[0, 1], [2, 3]] : tensor<4x16x4x12xf32> into tensor<64x48xf32> loc(#loc21)
    %transposed_61 = linalg.transpose ins(%arg20 : tensor<48x48xf32>) outs(%56 : tensor<48x48xf32>) permutation = [1, 0]  loc(#loc21)
    %124 = linalg.matmul ins(%collapsed_60, %transposed_61 : tensor<64x48xf32>, tensor<48x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32> loc(#loc21)
    %125 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%124, %arg21 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.mix"(#loc2)), %in_77: f32 loc("blocks.1.mix"(#loc2)), %out: f32 loc("blocks.1.mix"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc21)
      linalg.yield %201 : f32 loc(#loc21)
    } -> tensor<64x48xf32> loc(#loc21)
    %expanded_62 = tensor.expand_shape %125 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32> loc(#loc21)
    %126 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96, %expanded_62 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.0"(#loc3)), %in_77: f32 loc("blocks.1.mix"(#loc2)), %out: f32 loc("blocks.1"(#loc2))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc10)
      linalg.yield %201 : f32 loc(#loc10)
    } -> tensor<4x16x48xf32> loc(#loc10)
    %127 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %out: f64 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.extf %in : f32 to f64 loc(#loc22)
      linalg.yield %201 : f64 loc(#loc22)
    } -> tensor<4x16x48xf64> loc(#loc22)
    %128 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%127 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.mlp_norm"(#loc3)), %out: f64 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %out : f64 loc(#loc22)
      linalg.yield %201 : f64 loc(#loc22)
    } -> tensor<4x16x1xf64> loc(#loc22)
    %129 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%128 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.mlp_norm"(#loc3)), %out: f64 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc22)
      linalg.yield %201 : f64 loc(#loc22)
    } -> tensor<4x16x1xf64> loc(#loc22)
    %130 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%127, %129 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.1.mlp_norm"(#loc3)), %in_77: f64 loc("blocks.1.mlp_norm"(#loc3)), %out: f64 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.subf %in, %in_77 : f64 loc(#loc22)
      linalg.yield %201 : f64 loc(#loc22)
    } -> tensor<4x16x48xf64> loc(#loc22)
    %131 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%130, %130 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("blocks.1.mlp_norm"(#loc3)), %in_77: f64 loc("blocks.1.mlp_norm"(#loc3)), %out: f64 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f64 loc(#loc22)
      linalg.yield %201 : f64 loc(#loc22)
    } -> tensor<4x16x48xf64> loc(#loc22)
    %132 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%131 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.mlp_norm"(#loc3)), %out: f64 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %out : f64 loc(#loc22)
      linalg.yield %201 : f64 loc(#loc22)
    } -> tensor<4x16x1xf64> loc(#loc22)
    %133 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%132 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("blocks.1.mlp_norm"(#loc3)), %out: f64 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc22)
      linalg.yield %201 : f64 loc(#loc22)
    } -> tensor<4x16x1xf64> loc(#loc22)
    %134 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.truncf %in : f64 to f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x1xf32> loc(#loc22)
    %135 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%126 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %out : f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x1xf32> loc(#loc22)
    %136 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%135 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.divf %in, %cst_9 : f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x1xf32> loc(#loc22)
    %137 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%134 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.truncf %cst_7 : f64 to f32 loc(#loc22)
      %202 = arith.addf %in, %201 : f32 loc(#loc22)
      linalg.yield %202 : f32 loc(#loc22)
    } -> tensor<4x16x1xf32> loc(#loc22)
    %138 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%137 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = math.rsqrt %in : f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x1xf32> loc(#loc22)
    %139 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126, %136 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %in_77: f32 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x48xf32> loc(#loc22)
    %140 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139, %138 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.mlp_norm"(#loc3)), %in_77: f32 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x48xf32> loc(#loc22)
    %141 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140, %arg22 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.mlp_norm"(#loc3)), %in_77: f32 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x48xf32> loc(#loc22)
    %142 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%141, %arg23 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.mlp_norm"(#loc3)), %in_77: f32 loc("blocks.1.mlp_norm"(#loc3)), %out: f32 loc("blocks.1.mlp_norm"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc22)
      linalg.yield %201 : f32 loc(#loc22)
    } -> tensor<4x16x48xf32> loc(#loc22)
    %collapsed_63 = tensor.collapse_shape %142 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32> loc(#loc23)
    %transposed_64 = linalg.transpose ins(%arg24 : tensor<192x48xf32>) outs(%78 : tensor<48x192xf32>) permutation = [1, 0]  loc(#loc23)
    %143 = linalg.matmul ins(%collapsed_63, %transposed_64 : tensor<64x48xf32>, tensor<48x192xf32>) outs(%80 : tensor<64x192xf32>) -> tensor<64x192xf32> loc(#loc23)
    %144 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%143, %arg25 : tensor<64x192xf32>, tensor<192xf32>) outs(%79 : tensor<64x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1.up"(#loc3)), %in_77: f32 loc("blocks.1.up"(#loc3)), %out: f32 loc("blocks.1.up"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc23)
      linalg.yield %201 : f32 loc(#loc23)
    } -> tensor<64x192xf32> loc(#loc23)
    %expanded_65 = tensor.expand_shape %144 [[0, 1], [2]] output_shape [4, 16, 192] : tensor<64x192xf32> into tensor<4x16x192xf32> loc(#loc23)
    %145 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_65 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1.up"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.truncf %cst_5 : f64 to f32 loc(#loc24)
      %202 = arith.mulf %in, %201 : f32 loc(#loc24)
      linalg.yield %202 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %146 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%145, %expanded_65 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %in_77: f32 loc("blocks.1.up"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %147 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%146, %expanded_65 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %in_77: f32 loc("blocks.1.up"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %148 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_65, %147 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1.up"(#loc3)), %in_77: f32 loc("blocks.1"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %149 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%148 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.truncf %cst_4 : f64 to f32 loc(#loc24)
      %202 = arith.mulf %in, %201 : f32 loc(#loc24)
      linalg.yield %202 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %150 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_65 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1.up"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.mulf %in, %cst_10 : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %151 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%149 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = math.tanh %in : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %152 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%151 : tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.addf %in, %cst_11 : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %153 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%150, %152 : tensor<4x16x192xf32>, tensor<4x16x192xf32>) outs(%83 : tensor<4x16x192xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %in_77: f32 loc("blocks.1"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x192xf32> loc(#loc24)
    %collapsed_66 = tensor.collapse_shape %153 [[0, 1], [2]] : tensor<4x16x192xf32> into tensor<64x192xf32> loc(#loc25)
    %transposed_67 = linalg.transpose ins(%arg26 : tensor<48x192xf32>) outs(%93 : tensor<192x48xf32>) permutation = [1, 0]  loc(#loc25)
    %154 = linalg.matmul ins(%collapsed_66, %transposed_67 : tensor<64x192xf32>, tensor<192x48xf32>) outs(%58 : tensor<64x48xf32>) -> tensor<64x48xf32> loc(#loc25)
    %155 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel"]} ins(%154, %arg27 : tensor<64x48xf32>, tensor<48xf32>) outs(%57 : tensor<64x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1.down"(#loc3)), %in_77: f32 loc("blocks.1.down"(#loc3)), %out: f32 loc("blocks.1.down"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc25)
      linalg.yield %201 : f32 loc(#loc25)
    } -> tensor<64x48xf32> loc(#loc25)
    %expanded_68 = tensor.expand_shape %155 [[0, 1], [2]] output_shape [4, 16, 48] : tensor<64x48xf32> into tensor<4x16x48xf32> loc(#loc25)
    %156 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126, %expanded_68 : tensor<4x16x48xf32>, tensor<4x16x48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc2)), %in_77: f32 loc("blocks.1.down"(#loc3)), %out: f32 loc("blocks.1"(#loc3))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc24)
      linalg.yield %201 : f32 loc(#loc24)
    } -> tensor<4x16x48xf32> loc(#loc24)
    %157 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156 : tensor<4x16x48xf32>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %out: f64 loc("norm"(#loc5))):
      %201 = arith.extf %in : f32 to f64 loc(#loc26)
      linalg.yield %201 : f64 loc(#loc26)
    } -> tensor<4x16x48xf64> loc(#loc26)
    %158 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%157 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("norm"(#loc5)), %out: f64 loc("norm"(#loc5))):
      %201 = arith.addf %in, %out : f64 loc(#loc26)
      linalg.yield %201 : f64 loc(#loc26)
    } -> tensor<4x16x1xf64> loc(#loc26)
    %159 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%158 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("norm"(#loc5)), %out: f64 loc("norm"(#loc5))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc26)
      linalg.yield %201 : f64 loc(#loc26)
    } -> tensor<4x16x1xf64> loc(#loc26)
    %160 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%157, %159 : tensor<4x16x48xf64>, tensor<4x16x1xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("norm"(#loc5)), %in_77: f64 loc("norm"(#loc5)), %out: f64 loc("norm"(#loc5))):
      %201 = arith.subf %in, %in_77 : f64 loc(#loc26)
      linalg.yield %201 : f64 loc(#loc26)
    } -> tensor<4x16x48xf64> loc(#loc26)
    %161 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%160, %160 : tensor<4x16x48xf64>, tensor<4x16x48xf64>) outs(%7 : tensor<4x16x48xf64>) {
    ^bb0(%in: f64 loc("norm"(#loc5)), %in_77: f64 loc("norm"(#loc5)), %out: f64 loc("norm"(#loc5))):
      %201 = arith.mulf %in, %in_77 : f64 loc(#loc26)
      linalg.yield %201 : f64 loc(#loc26)
    } -> tensor<4x16x48xf64> loc(#loc26)
    %162 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%161 : tensor<4x16x48xf64>) outs(%10 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("norm"(#loc5)), %out: f64 loc("norm"(#loc5))):
      %201 = arith.addf %in, %out : f64 loc(#loc26)
      linalg.yield %201 : f64 loc(#loc26)
    } -> tensor<4x16x1xf64> loc(#loc26)
    %163 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%162 : tensor<4x16x1xf64>) outs(%9 : tensor<4x16x1xf64>) {
    ^bb0(%in: f64 loc("norm"(#loc5)), %out: f64 loc("norm"(#loc5))):
      %201 = arith.divf %in, %cst_8 : f64 loc(#loc26)
      linalg.yield %201 : f64 loc(#loc26)
    } -> tensor<4x16x1xf64> loc(#loc26)
    %164 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%163 : tensor<4x16x1xf64>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f64 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.truncf %in : f64 to f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x1xf32> loc(#loc26)
    %165 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%156 : tensor<4x16x48xf32>) outs(%19 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.addf %in, %out : f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x1xf32> loc(#loc26)
    %166 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%165 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.divf %in, %cst_9 : f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x1xf32> loc(#loc26)
    %167 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%164 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.truncf %cst_7 : f64 to f32 loc(#loc26)
      %202 = arith.addf %in, %201 : f32 loc(#loc26)
      linalg.yield %202 : f32 loc(#loc26)
    } -> tensor<4x16x1xf32> loc(#loc26)
    %168 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%167 : tensor<4x16x1xf32>) outs(%17 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = math.rsqrt %in : f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x1xf32> loc(#loc26)
    %169 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156, %166 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("blocks.1"(#loc3)), %in_77: f32 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x48xf32> loc(#loc26)
    %170 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%169, %168 : tensor<4x16x48xf32>, tensor<4x16x1xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("norm"(#loc5)), %in_77: f32 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x48xf32> loc(#loc26)
    %171 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%170, %arg28 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("norm"(#loc5)), %in_77: f32 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.mulf %in, %in_77 : f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x48xf32> loc(#loc26)
    %172 = linalg.generic {indexing_maps = [#map2, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%171, %arg29 : tensor<4x16x48xf32>, tensor<48xf32>) outs(%2 : tensor<4x16x48xf32>) {
    ^bb0(%in: f32 loc("norm"(#loc5)), %in_77: f32 loc("norm"(#loc5)), %out: f32 loc("norm"(#loc5))):
      %201 = arith.addf %in, %in_77 : f32 loc(#loc26)
      linalg.yield %201 : f32 loc(#loc26)
    } -> tensor<4x16x48xf32> loc(#loc26)
    %173 = tensor.empty() : tensor<48x96xf32> loc(#loc27)
    %transposed_69 = linalg.transpose ins(%arg2 : tensor<96x48xf32>) outs(%173 : tensor<48x96xf32>) permutation = [1, 0]  loc(#loc27)
    %collapsed_70 = tensor.collapse_shape %172 [[0, 1], [2]] : tensor<4x16x48xf32> into tensor<64x48xf32> loc(#loc27)
    %174 = tensor.empty() : tensor<64x96xf32> loc(#loc27)
    %175 = linalg.fill ins(%cst_0 : f32) outs(%174 : tensor<64x96xf32>) -> tensor<64x96xf32> loc(#loc27)
    %176 = linalg.matmul ins(%collapsed_70, %transposed_69 : tensor<64x48xf32>, tensor<48x96xf32>) outs(%175 : tensor<64x96xf32>) -> tensor<64x96xf32> loc(#loc27)
    %expanded_71 = tensor.expand_shape %176 [[0, 1], [2]] output_shape [4, 16, 96] : tensor<64x96xf32> into tensor<4x16x96xf32> loc(#loc27)
    %collapsed_72 = tensor.collapse_shape %arg1 [[0, 1]] : tensor<4x16xi64> into tensor<64xi64> loc(#loc28)
    %cst_73 = arith.constant dense<0xFF800000> : tensor<64xf32> loc(#loc29)
    %177 = linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["parallel", "reduction"]} ins(%176 : tensor<64x96xf32>) outs(%cst_73 : tensor<64xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc(unknown)):
      %201 = arith.maximumf %in, %out : f32 loc(#loc29)
      linalg.yield %201 : f32 loc(#loc29)
    } -> tensor<64xf32> loc(#loc29)
    %expanded_74 = tensor.expand_shape %177 [[0, 1]] output_shape [64, 1] : tensor<64xf32> into tensor<64x1xf32> loc(#loc29)
    %178 = linalg.generic {indexing_maps = [#map, #map13, #map], iterator_types = ["parallel", "parallel"]} ins(%176, %expanded_74 : tensor<64x96xf32>, tensor<64x1xf32>) outs(%174 : tensor<64x96xf32>) {
    ^bb0(%in: f32 loc("view"(#loc1)), %in_77: f32 loc("_log_softmax"(#loc1)), %out: f32 loc("_log_softmax"(#loc1))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc29)
      linalg.yield %201 : f32 loc(#loc29)
    } -> tensor<64x96xf32> loc(#loc29)
    %179 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%178 : tensor<64x96xf32>) outs(%174 : tensor<64x96xf32>) {
    ^bb0(%in: f32 loc("_log_softmax"(#loc1)), %out: f32 loc("_log_softmax"(#loc1))):
      %201 = math.exp %in : f32 loc(#loc29)
      linalg.yield %201 : f32 loc(#loc29)
    } -> tensor<64x96xf32> loc(#loc29)
    %180 = tensor.empty() : tensor<64x1xf32> loc(#loc29)
    %181 = linalg.fill ins(%cst_0 : f32) outs(%180 : tensor<64x1xf32>) -> tensor<64x1xf32> loc(#loc29)
    %182 = linalg.generic {indexing_maps = [#map, #map13], iterator_types = ["parallel", "reduction"]} ins(%179 : tensor<64x96xf32>) outs(%181 : tensor<64x1xf32>) {
    ^bb0(%in: f32 loc("_log_softmax"(#loc1)), %out: f32 loc("_log_softmax"(#loc1))):
      %201 = arith.addf %in, %out : f32 loc(#loc29)
      linalg.yield %201 : f32 loc(#loc29)
    } -> tensor<64x1xf32> loc(#loc29)
    %183 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%182 : tensor<64x1xf32>) outs(%180 : tensor<64x1xf32>) {
    ^bb0(%in: f32 loc("_log_softmax"(#loc1)), %out: f32 loc("_log_softmax"(#loc1))):
      %201 = math.log %in : f32 loc(#loc29)
      linalg.yield %201 : f32 loc(#loc29)
    } -> tensor<64x1xf32> loc(#loc29)
    %184 = linalg.generic {indexing_maps = [#map, #map13, #map], iterator_types = ["parallel", "parallel"]} ins(%178, %183 : tensor<64x96xf32>, tensor<64x1xf32>) outs(%174 : tensor<64x96xf32>) {
    ^bb0(%in: f32 loc("_log_softmax"(#loc1)), %in_77: f32 loc("_log_softmax"(#loc1)), %out: f32 loc("_log_softmax"(#loc1))):
      %201 = arith.subf %in, %in_77 : f32 loc(#loc29)
      linalg.yield %201 : f32 loc(#loc29)
    } -> tensor<64x96xf32> loc(#loc29)
    %185 = tensor.empty() : tensor<64xi1> loc(#loc6)
    %186 = linalg.generic {indexing_maps = [#map14, #map14], iterator_types = ["parallel"]} ins(%collapsed_72 : tensor<64xi64>) outs(%185 : tensor<64xi1>) {
    ^bb0(%in: i64 loc("view"(#loc1)), %out: i1 loc("nll_loss_forward"(#loc1))):
      %201 = arith.cmpi ne, %in, %c-100_i64 : i64 loc(#loc6)
      linalg.yield %201 : i1 loc(#loc6)
    } -> tensor<64xi1> loc(#loc6)
    %187 = tensor.empty() : tensor<64xi64> loc(#loc6)
    %188 = linalg.generic {indexing_maps = [#map14, #map14, #map15, #map14], iterator_types = ["parallel"]} ins(%186, %collapsed_72, %cst_12 : tensor<64xi1>, tensor<64xi64>, tensor<i64>) outs(%187 : tensor<64xi64>) {
    ^bb0(%in: i1 loc("nll_loss_forward"(#loc1)), %in_77: i64 loc("view"(#loc1)), %in_78: i64 loc("nll_loss_forward"(#loc1)), %out: i64 loc("nll_loss_forward"(#loc1))):
      %201 = arith.select %in, %in_77, %in_78 : i64 loc(#loc6)
      linalg.yield %201 : i64 loc(#loc6)
    } -> tensor<64xi64> loc(#loc6)
    %expanded_75 = tensor.expand_shape %188 [[0, 1]] output_shape [64, 1] : tensor<64xi64> into tensor<64x1xi64> loc(#loc6)
    %189 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%expanded_75 : tensor<64x1xi64>) outs(%181 : tensor<64x1xf32>) {
    ^bb0(%in: i64 loc("nll_loss_forward"(#loc1)), %out: f32 loc("nll_loss_forward"(#loc1))):
      %201 = linalg.index 0 : index loc(#loc6)
      %202 = arith.index_cast %in : i64 to index loc(#loc6)
      %203 = arith.cmpi slt, %202, %c96 : index loc(#loc6)
      cf.assert %203, "index must be smaller than dim size" loc(#loc6)
      %204 = arith.cmpi sge, %in, %c0_i64 : i64 loc(#loc6)
      cf.assert %204, "index must be larger or equal to 0" loc(#loc6)
      %extracted = tensor.extract %184[%201, %202] : tensor<64x96xf32> loc(#loc6)
      linalg.yield %extracted : f32 loc(#loc6)
    } -> tensor<64x1xf32> loc(#loc6)
    %collapsed_76 = tensor.collapse_shape %189 [[0, 1]] : tensor<64x1xf32> into tensor<64xf32> loc(#loc6)
    %190 = tensor.empty() : tensor<64xf32> loc(#loc6)
    %191 = linalg.generic {indexing_maps = [#map14, #map14], iterator_types = ["parallel"]} ins(%collapsed_76 : tensor<64xf32>) outs(%190 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("nll_loss_forward"(#loc1)), %out: f32 loc("nll_loss_forward"(#loc1))):
      %201 = arith.negf %in : f32 loc(#loc6)
      linalg.yield %201 : f32 loc(#loc6)
    } -> tensor<64xf32> loc(#loc6)
    %192 = linalg.generic {indexing_maps = [#map14, #map14, #map15, #map14], iterator_types = ["parallel"]} ins(%186, %191, %cst_2 : tensor<64xi1>, tensor<64xf32>, tensor<f32>) outs(%190 : tensor<64xf32>) {
    ^bb0(%in: i1 loc("nll_loss_forward"(#loc1)), %in_77: f32 loc("nll_loss_forward"(#loc1)), %in_78: f32 loc("nll_loss_forward"(#loc1)), %out: f32 loc("nll_loss_forward"(#loc1))):
      %201 = arith.select %in, %in_77, %in_78 : f32 loc(#loc6)
      linalg.yield %201 : f32 loc(#loc6)
    } -> tensor<64xf32> loc(#loc6)
    %193 = tensor.empty() : tensor<i64> loc(#loc6)
    %194 = linalg.fill ins(%c0_i64 : i64) outs(%193 : tensor<i64>) -> tensor<i64> loc(#loc6)
    %195 = linalg.generic {indexing_maps = [#map14, #map15], iterator_types = ["reduction"]} ins(%186 : tensor<64xi1>) outs(%194 : tensor<i64>) {
    ^bb0(%in: i1 loc("nll_loss_forward"(#loc1)), %out: i64 loc("nll_loss_forward"(#loc1))):
      %201 = arith.extui %in : i1 to i64 loc(#loc6)
      %202 = arith.addi %201, %out : i64 loc(#loc6)
      linalg.yield %202 : i64 loc(#loc6)
    } -> tensor<i64> loc(#loc6)
    %196 = tensor.empty() : tensor<f32> loc(#loc6)
    %197 = linalg.generic {indexing_maps = [#map16, #map16], iterator_types = []} ins(%195 : tensor<i64>) outs(%196 : tensor<f32>) {
    ^bb0(%in: i64 loc("nll_loss_forward"(#loc1)), %out: f32 loc("nll_loss_forward"(#loc1))):
      %201 = arith.sitofp %in : i64 to f32 loc(#loc6)
      linalg.yield %201 : f32 loc(#loc6)
    } -> tensor<f32> loc(#loc6)
    %198 = linalg.fill ins(%cst_0 : f32) outs(%196 : tensor<f32>) -> tensor<f32> loc(#loc6)
    %199 = linalg.generic {indexing_maps = [#map14, #map15], iterator_types = ["reduction"]} ins(%192 : tensor<64xf32>) outs(%198 : tensor<f32>) {
    ^bb0(%in: f32 loc("nll_loss_forward"(#loc1)), %out: f32 loc("nll_loss_forward"(#loc1))):
      %201 = arith.addf %in, %out : f32 loc(#loc6)
      linalg.yield %201 : f32 loc(#loc6)
    } -> tensor<f32> loc(#loc6)
    %200 = linalg.generic {indexing_maps = [#map16, #map16, #map16], iterator_types = []} ins(%199, %197 : tensor<f32>, tensor<f32>) outs(%196 : tensor<f32>) {
    ^bb0(%in: f32 loc("nll_loss_forward"(#loc1)), %in_77: f32 loc("nll_loss_forward"(#loc1)), %out: f32 loc("nll_loss_forward"(#loc1))):
      %201 = arith.divf %in, %in_77 : f32 loc(#loc6)
      linalg.yield %201 : f32 loc(#loc6)
    } -> tensor<f32> loc(#loc6)
    return %200, %expanded_71 : tensor<f32>, tensor<4x16x96xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc27 = loc("score"(#loc5))

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_16_16_torch.uint8: "0x0100000001000000000000000000000000000000010100000000000000000000000000000101010000000000000000000000000001010101000000000000000000000000010101010100000000000000000000000101010101010000000000000000000001010101010101000000000000000000010101010101010100000000000000000101010101010101010000000000000001010101010101010101000000000000010101010101010101010100000000000101010101010101010101010000000001010101010101010101010101000000010101010101010101010101010100000101010101010101010101010101010001010101010101010101010101010101",
      torch_tensor_16_torch.int64: "0x0800000000000000000000000100000000000000020000000000000003000000000000000400000000000000050000000000000006000000000000000700000000000000080000000000000009000000000000000A000000000000000B000000000000000C000000000000000D000000000000000E000000000000000F00000000000000"
    }
  }
#-}
