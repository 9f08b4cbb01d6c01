#map = affine_map<(d0, d1) -> ()>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> ()>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map6 = affine_map<(d0, d1, d2) -> (d2)>
#map7 = affine_map<(d0, d1, d2) -> (0, 0, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map12 = affine_map<() -> ()>
#map13 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map14 = affine_map<(d0, d1) -> (d1, d0)>
#map15 = affine_map<(d0, d1, d2, d3) -> ()>
#map16 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map17 = affine_map<(d0, d1, d2, d3) -> (d3)>
#map18 = affine_map<(d0, d1, d2, d3) -> (0, 0, d2, d3)>
module @jit_loss_of attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @mixer(%arg0: tensor<48x24xf32> {weir.kind = "param", weir.name = "down"}, %arg1: tensor<32x24xf32> {weir.kind = "param", weir.name = "embed"}, %arg2: tensor<24x48xf32> {weir.kind = "param", weir.name = "gate"}, %arg3: tensor<24x24xf32> {weir.kind = "param", weir.name = "key"}, %arg4: tensor<24x24xf32> {weir.kind = "param", weir.name = "query"}, %arg5: tensor<24xf32> {weir.kind = "param", weir.name = "scale1"}, %arg6: tensor<24xf32> {weir.kind = "param", weir.name = "scale2"}, %arg7: tensor<24x48xf32> {weir.kind = "param", weir.name = "up"}, %arg8: tensor<24x24xf32> {weir.kind = "param", weir.name = "value"}, %arg9: tensor<3x12xi32> {weir.kind = "input", weir.name = "tokens"}, %arg10: tensor<3x12xi32> {weir.kind = "target", weir.name = "next"}) -> (tensor<f32> {weir.name = "loss"}) {
    %cst = arith.constant 3.600000e+01 : f32
    %true = arith.constant true
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %c31 = arith.constant 31 : index
    %c0 = arith.constant 0 : index
    %cst_2 = arith.constant dense<31> : tensor<1xi32>
    %cst_3 = arith.constant dense<0x7FC00000> : tensor<f32>
    %cst_4 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_5 = arith.constant dense<false> : tensor<i1>
    %cst_6 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_7 = arith.constant dense<true> : tensor<i1>
    %cst_8 = arith.constant dense<4.89897966> : tensor<f32>
    %cst_9 = arith.constant dense<9.99999997E-7> : tensor<f32>
    %cst_10 = arith.constant dense<2.400000e+01> : tensor<f32>
    %cst_11 = arith.constant dense<32> : tensor<i32>
    %cst_12 = arith.constant dense<0> : tensor<i32>
    %0 = tensor.empty() : tensor<3x12xi32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_12 : tensor<i32>) outs(%0 : tensor<3x12xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12xi32>
    %2 = tensor.empty() : tensor<3x12xi1>
    %3 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg9, %1 : tensor<3x12xi32>, tensor<3x12xi32>) outs(%2 : tensor<3x12xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %132 = arith.cmpi slt, %in, %in_13 : i32
      linalg.yield %132 : i1
    } -> tensor<3x12xi1>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_11 : tensor<i32>) outs(%0 : tensor<3x12xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12xi32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg9, %4 : tensor<3x12xi32>, tensor<3x12xi32>) outs(%0 : tensor<3x12xi32>) {
    ^bb0(%in: i32, %in_13: i32, %out: i32):
      %132 = arith.addi %in, %in_13 : i32
      linalg.yield %132 : i32
    } -> tensor<3x12xi32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%3, %5, %arg9 : tensor<3x12xi1>, tensor<3x12xi32>, tensor<3x12xi32>) outs(%0 : tensor<3x12xi32>) {
    ^bb0(%in: i1, %in_13: i32, %in_14: i32, %out: i32):
      %132 = arith.select %in, %in_13, %in_14 : i32
      linalg.yield %132 : i32
    } -> tensor<3x12xi32>
    %7 = tensor.empty() : tensor<3x12x1xi32>
    %8 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<3x12xi32>) outs(%7 : tensor<3x12x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12x1xi32>
    %9 = tensor.empty() : tensor<3x12x24xf32>
    %10 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel", "parallel", "parallel"]} outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%out: f32):
      %132 = linalg.index 0 : index
      %133 = linalg.index 1 : index
      %134 = linalg.index 2 : index
      %extracted = tensor.extract %8[%132, %133, %c0] : tensor<3x12x1xi32>
      %135 = arith.index_cast %extracted : i32 to index
      %136 = arith.maxsi %135, %c0 : index
      %137 = arith.minsi %136, %c31 : index
      %extracted_13 = tensor.extract %arg1[%137, %134] : tensor<32x24xf32>
      linalg.yield %extracted_13 : f32
    } -> tensor<3x12x24xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10, %10 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %12 = tensor.empty() : tensor<3x12xf32>
    %13 = linalg.fill ins(%cst_1 : f32) outs(%12 : tensor<3x12xf32>) -> tensor<3x12xf32>
    %14 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%11 : tensor<3x12x24xf32>) outs(%13 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.addf %out, %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %15 = tensor.empty() : tensor<3x12x1xf32>
    %16 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14 : tensor<3x12xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %17 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_10 : tensor<f32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %18 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16, %17 : tensor<3x12x1xf32>, tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.divf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %19 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_9 : tensor<f32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %20 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %19 : tensor<3x12x1xf32>, tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.addf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %21 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20 : tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = math.rsqrt %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %22 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21 : tensor<3x12x1xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x24xf32>
    %23 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10, %22 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %24 = tensor.empty() : tensor<1x1x24xf32>
    %25 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg5 : tensor<24xf32>) outs(%24 : tensor<1x1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x24xf32>
    %26 = linalg.generic {indexing_maps = [#map7, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25 : tensor<1x1x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x24xf32>
    %27 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23, %26 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %28 = linalg.fill ins(%cst_1 : f32) outs(%9 : tensor<3x12x24xf32>) -> tensor<3x12x24xf32>
    %29 = linalg.generic {indexing_maps = [#map8, #map9, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%27, %arg4 : tensor<3x12x24xf32>, tensor<24x24xf32>) outs(%28 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x24xf32>
    %30 = linalg.generic {indexing_maps = [#map8, #map9, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%27, %arg3 : tensor<3x12x24xf32>, tensor<24x24xf32>) outs(%28 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x24xf32>
    %31 = linalg.generic {indexing_maps = [#map8, #map9, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%27, %arg8 : tensor<3x12x24xf32>, tensor<24x24xf32>) outs(%28 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x24xf32>
    %32 = tensor.empty() : tensor<3x12x12xf32>
    %33 = linalg.fill ins(%cst_1 : f32) outs(%32 : tensor<3x12x12xf32>) -> tensor<3x12x12xf32>
    %34 = linalg.generic {indexing_maps = [#map8, #map11, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%29, %30 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%33 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x12xf32>
    %35 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_8 : tensor<f32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x12xf32>
    %36 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%34, %35 : tensor<3x12x12xf32>, tensor<3x12x12xf32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.divf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x12xf32>
    %37 = tensor.empty() : tensor<12x12xi1>
    %38 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_7 : tensor<i1>) outs(%37 : tensor<12x12xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<12x12xi1>
    %39 = tensor.empty() : tensor<12x12xi32>
    %40 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel", "parallel"]} outs(%39 : tensor<12x12xi32>) {
    ^bb0(%out: i32):
      %132 = linalg.index 0 : index
      %133 = arith.index_cast %132 : index to i32
      linalg.yield %133 : i32
    } -> tensor<12x12xi32>
    %41 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_12 : tensor<i32>) outs(%39 : tensor<12x12xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<12x12xi32>
    %42 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%40, %41 : tensor<12x12xi32>, tensor<12x12xi32>) outs(%39 : tensor<12x12xi32>) {
    ^bb0(%in: i32, %in_13: i32, %out: i32):
      %132 = arith.addi %in, %in_13 : i32
      linalg.yield %132 : i32
    } -> tensor<12x12xi32>
    %43 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel", "parallel"]} outs(%39 : tensor<12x12xi32>) {
    ^bb0(%out: i32):
      %132 = linalg.index 1 : index
      %133 = arith.index_cast %132 : index to i32
      linalg.yield %133 : i32
    } -> tensor<12x12xi32>
    %44 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%42, %43 : tensor<12x12xi32>, tensor<12x12xi32>) outs(%37 : tensor<12x12xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %132 = arith.cmpi sge, %in, %in_13 : i32
      linalg.yield %132 : i1
    } -> tensor<12x12xi1>
    %45 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<i1>) outs(%37 : tensor<12x12xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<12x12xi1>
    %46 = linalg.generic {indexing_maps = [#map1, #map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%44, %38, %45 : tensor<12x12xi1>, tensor<12x12xi1>, tensor<12x12xi1>) outs(%37 : tensor<12x12xi1>) {
    ^bb0(%in: i1, %in_13: i1, %in_14: i1, %out: i1):
      %132 = arith.select %in, %in_13, %in_14 : i1
      linalg.yield %132 : i1
    } -> tensor<12x12xi1>
    %47 = tensor.empty() : tensor<f32>
    %48 = linalg.generic {indexing_maps = [#map12], iterator_types = []} outs(%47 : tensor<f32>) {
    ^bb0(%out: f32):
      linalg.yield %cst_0 : f32
    } -> tensor<f32>
    %49 = tensor.empty() : tensor<3x12x12xi1>
    %50 = linalg.generic {indexing_maps = [#map13, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%46 : tensor<12x12xi1>) outs(%49 : tensor<3x12x12xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<3x12x12xi1>
    %51 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%48 : tensor<f32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x12xf32>
    %52 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%50, %36, %51 : tensor<3x12x12xi1>, tensor<3x12x12xf32>, tensor<3x12x12xf32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: i1, %in_13: f32, %in_14: f32, %out: f32):
      %132 = arith.select %in, %in_13, %in_14 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x12xf32>
    %53 = linalg.fill ins(%cst_0 : f32) outs(%12 : tensor<3x12xf32>) -> tensor<3x12xf32>
    %54 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%52 : tensor<3x12x12xf32>) outs(%53 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.maximumf %out, %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %55 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%12 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12xf32>
    %56 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%55, %54 : tensor<3x12xf32>, tensor<3x12xf32>) outs(%12 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.maximumf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %57 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%56 : tensor<3x12xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %58 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%57 : tensor<3x12x1xf32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x12xf32>
    %59 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%52, %58 : tensor<3x12x12xf32>, tensor<3x12x12xf32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.subf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x12xf32>
    %60 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%59 : tensor<3x12x12xf32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = math.exp %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x12xf32>
    %61 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%60 : tensor<3x12x12xf32>) outs(%13 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.addf %out, %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %62 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%61 : tensor<3x12xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %63 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%62 : tensor<3x12x1xf32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x12xf32>
    %64 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%60, %63 : tensor<3x12x12xf32>, tensor<3x12x12xf32>) outs(%32 : tensor<3x12x12xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.divf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x12xf32>
    %65 = linalg.batch_matmul ins(%64, %31 : tensor<3x12x12xf32>, tensor<3x12x24xf32>) outs(%28 : tensor<3x12x24xf32>) -> tensor<3x12x24xf32>
    %66 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10, %65 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.addf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %67 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%66, %66 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %68 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%67 : tensor<3x12x24xf32>) outs(%13 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.addf %out, %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %69 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68 : tensor<3x12xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %70 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69, %17 : tensor<3x12x1xf32>, tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.divf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %71 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %19 : tensor<3x12x1xf32>, tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.addf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %72 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%71 : tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = math.rsqrt %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %73 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%72 : tensor<3x12x1xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x24xf32>
    %74 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%66, %73 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %75 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg6 : tensor<24xf32>) outs(%24 : tensor<1x1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x24xf32>
    %76 = linalg.generic {indexing_maps = [#map7, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%75 : tensor<1x1x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x24xf32>
    %77 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%74, %76 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %78 = tensor.empty() : tensor<3x12x48xf32>
    %79 = linalg.fill ins(%cst_1 : f32) outs(%78 : tensor<3x12x48xf32>) -> tensor<3x12x48xf32>
    %80 = linalg.generic {indexing_maps = [#map8, #map9, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%77, %arg2 : tensor<3x12x24xf32>, tensor<24x48xf32>) outs(%79 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x48xf32>
    %81 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%80 : tensor<3x12x48xf32>) outs(%78 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.negf %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x48xf32>
    %82 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%81 : tensor<3x12x48xf32>) outs(%78 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = math.exp %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x48xf32>
    %83 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_4 : tensor<f32>) outs(%78 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x48xf32>
    %84 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%83, %82 : tensor<3x12x48xf32>, tensor<3x12x48xf32>) outs(%78 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.addf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x48xf32>
    %85 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%83, %84 : tensor<3x12x48xf32>, tensor<3x12x48xf32>) outs(%78 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.divf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x48xf32>
    %86 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%80, %85 : tensor<3x12x48xf32>, tensor<3x12x48xf32>) outs(%78 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x48xf32>
    %87 = linalg.generic {indexing_maps = [#map8, #map9, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%77, %arg7 : tensor<3x12x24xf32>, tensor<24x48xf32>) outs(%79 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x48xf32>
    %88 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%86, %87 : tensor<3x12x48xf32>, tensor<3x12x48xf32>) outs(%78 : tensor<3x12x48xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x48xf32>
    %89 = linalg.generic {indexing_maps = [#map8, #map9, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%88, %arg0 : tensor<3x12x48xf32>, tensor<48x24xf32>) outs(%28 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x24xf32>
    %90 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%66, %89 : tensor<3x12x24xf32>, tensor<3x12x24xf32>) outs(%9 : tensor<3x12x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.addf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x24xf32>
    %91 = tensor.empty() : tensor<24x32xf32>
    %92 = linalg.generic {indexing_maps = [#map14, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<32x24xf32>) outs(%91 : tensor<24x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<24x32xf32>
    %93 = tensor.empty() : tensor<3x12x32xf32>
    %94 = linalg.fill ins(%cst_1 : f32) outs(%93 : tensor<3x12x32xf32>) -> tensor<3x12x32xf32>
    %95 = linalg.generic {indexing_maps = [#map8, #map9, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%90, %92 : tensor<3x12x24xf32>, tensor<24x32xf32>) outs(%94 : tensor<3x12x32xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.mulf %in, %in_13 : f32
      %133 = arith.addf %out, %132 : f32
      linalg.yield %133 : f32
    } -> tensor<3x12x32xf32>
    %96 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%95 : tensor<3x12x32xf32>) outs(%53 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.maximumf %out, %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %97 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%55, %96 : tensor<3x12xf32>, tensor<3x12xf32>) outs(%12 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.maximumf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %98 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%97 : tensor<3x12xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %99 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98 : tensor<3x12x1xf32>) outs(%93 : tensor<3x12x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x32xf32>
    %100 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%95, %99 : tensor<3x12x32xf32>, tensor<3x12x32xf32>) outs(%93 : tensor<3x12x32xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.subf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x32xf32>
    %101 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100 : tensor<3x12x32xf32>) outs(%93 : tensor<3x12x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = math.exp %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x32xf32>
    %102 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%101 : tensor<3x12x32xf32>) outs(%13 : tensor<3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.addf %out, %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12xf32>
    %103 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%102 : tensor<3x12xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %104 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%103 : tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = math.log %in : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %105 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<3x12x1xf32>) outs(%93 : tensor<3x12x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x32xf32>
    %106 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100, %105 : tensor<3x12x32xf32>, tensor<3x12x32xf32>) outs(%93 : tensor<3x12x32xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %132 = arith.subf %in, %in_13 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x32xf32>
    %107 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg10 : tensor<3x12xi32>) outs(%7 : tensor<3x12x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12x1xi32>
    %108 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_12 : tensor<i32>) outs(%7 : tensor<3x12x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12x1xi32>
    %109 = tensor.empty() : tensor<3x12x1xi1>
    %110 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%107, %108 : tensor<3x12x1xi32>, tensor<3x12x1xi32>) outs(%109 : tensor<3x12x1xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %132 = arith.cmpi slt, %in, %in_13 : i32
      linalg.yield %132 : i1
    } -> tensor<3x12x1xi1>
    %111 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_11 : tensor<i32>) outs(%7 : tensor<3x12x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12x1xi32>
    %112 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%107, %111 : tensor<3x12x1xi32>, tensor<3x12x1xi32>) outs(%7 : tensor<3x12x1xi32>) {
    ^bb0(%in: i32, %in_13: i32, %out: i32):
      %132 = arith.addi %in, %in_13 : i32
      linalg.yield %132 : i32
    } -> tensor<3x12x1xi32>
    %113 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%110, %112, %107 : tensor<3x12x1xi1>, tensor<3x12x1xi32>, tensor<3x12x1xi32>) outs(%7 : tensor<3x12x1xi32>) {
    ^bb0(%in: i1, %in_13: i32, %in_14: i32, %out: i32):
      %132 = arith.select %in, %in_13, %in_14 : i32
      linalg.yield %132 : i32
    } -> tensor<3x12x1xi32>
    %expanded = tensor.expand_shape %113 [[0], [1], [2, 3]] output_shape [3, 12, 1, 1] : tensor<3x12x1xi32> into tensor<3x12x1x1xi32>
    %114 = tensor.empty() : tensor<3x12x1x1xi32>
    %115 = linalg.generic {indexing_maps = [#map15, #map16], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_12 : tensor<i32>) outs(%114 : tensor<3x12x1x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12x1x1xi32>
    %116 = tensor.empty() : tensor<3x12x1x1xi1>
    %117 = linalg.generic {indexing_maps = [#map16, #map16, #map16], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %115 : tensor<3x12x1x1xi32>, tensor<3x12x1x1xi32>) outs(%116 : tensor<3x12x1x1xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %132 = arith.cmpi sge, %in, %in_13 : i32
      linalg.yield %132 : i1
    } -> tensor<3x12x1x1xi1>
    %118 = tensor.empty() : tensor<1x1x1x1xi32>
    %119 = linalg.generic {indexing_maps = [#map17, #map16], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_2 : tensor<1xi32>) outs(%118 : tensor<1x1x1x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<1x1x1x1xi32>
    %120 = linalg.generic {indexing_maps = [#map18, #map16], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%119 : tensor<1x1x1x1xi32>) outs(%114 : tensor<3x12x1x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<3x12x1x1xi32>
    %121 = linalg.generic {indexing_maps = [#map16, #map16, #map16], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %120 : tensor<3x12x1x1xi32>, tensor<3x12x1x1xi32>) outs(%116 : tensor<3x12x1x1xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %132 = arith.cmpi sle, %in, %in_13 : i32
      linalg.yield %132 : i1
    } -> tensor<3x12x1x1xi1>
    %122 = linalg.generic {indexing_maps = [#map16, #map16, #map16], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%117, %121 : tensor<3x12x1x1xi1>, tensor<3x12x1x1xi1>) outs(%116 : tensor<3x12x1x1xi1>) {
    ^bb0(%in: i1, %in_13: i1, %out: i1):
      %132 = arith.andi %in, %in_13 : i1
      linalg.yield %132 : i1
    } -> tensor<3x12x1x1xi1>
    %123 = linalg.fill ins(%true : i1) outs(%109 : tensor<3x12x1xi1>) -> tensor<3x12x1xi1>
    %124 = linalg.generic {indexing_maps = [#map16, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%122 : tensor<3x12x1x1xi1>) outs(%123 : tensor<3x12x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %132 = arith.andi %out, %in : i1
      linalg.yield %132 : i1
    } -> tensor<3x12x1xi1>
    %125 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel", "parallel", "parallel"]} outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%out: f32):
      %132 = linalg.index 0 : index
      %133 = linalg.index 1 : index
      %extracted = tensor.extract %expanded[%132, %133, %c0, %c0] : tensor<3x12x1x1xi32>
      %134 = arith.index_cast %extracted : i32 to index
      %135 = arith.maxsi %134, %c0 : index
      %136 = arith.minsi %135, %c31 : index
      %extracted_13 = tensor.extract %106[%132, %133, %136] : tensor<3x12x32xf32>
      linalg.yield %extracted_13 : f32
    } -> tensor<3x12x1xf32>
    %126 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_3 : tensor<f32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x12x1xf32>
    %127 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%124, %125, %126 : tensor<3x12x1xi1>, tensor<3x12x1xf32>, tensor<3x12x1xf32>) outs(%15 : tensor<3x12x1xf32>) {
    ^bb0(%in: i1, %in_13: f32, %in_14: f32, %out: f32):
      %132 = arith.select %in, %in_13, %in_14 : f32
      linalg.yield %132 : f32
    } -> tensor<3x12x1xf32>
    %128 = linalg.fill ins(%cst_1 : f32) outs(%47 : tensor<f32>) -> tensor<f32>
    %129 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["reduction", "reduction", "reduction"]} ins(%127 : tensor<3x12x1xf32>) outs(%128 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.addf %out, %in : f32
      linalg.yield %132 : f32
    } -> tensor<f32>
    %130 = linalg.generic {indexing_maps = [#map12, #map12], iterator_types = []} ins(%129 : tensor<f32>) outs(%47 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.divf %in, %cst : f32
      linalg.yield %132 : f32
    } -> tensor<f32>
    %131 = linalg.generic {indexing_maps = [#map12, #map12], iterator_types = []} ins(%130 : tensor<f32>) outs(%47 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %132 = arith.negf %in : f32
      linalg.yield %132 : f32
    } -> tensor<f32>
    return %131 : tensor<f32>
  }
}
