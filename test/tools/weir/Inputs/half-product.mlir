func.func @f(%a: tensor<1x512x520xbf16>, %b: tensor<1x1024x520xbf16>) -> (tensor<1x512x1024xf32>, tensor<1x512x1024xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x512x1024xf32>
  %en = tensor.empty() : tensor<1x512x1024xbf16>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1x512x1024xf32>) -> tensor<1x512x1024xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>, affine_map<(b, i, j, k) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x512x520xbf16>, tensor<1x1024x520xbf16>) outs(%zeros : tensor<1x512x1024xf32>) {
  ^bb0(%x: bf16, %y: bf16, %o: f32):
    %v = arith.extf %x : bf16 to f32
    %w = arith.extf %y : bf16 to f32
    %p = arith.mulf %v, %w : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<1x512x1024xf32>
  %rounded = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums : tensor<1x512x1024xf32>) outs(%en : tensor<1x512x1024xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %n = arith.truncf %x : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<1x512x1024xbf16>
  return %sums, %rounded : tensor<1x512x1024xf32>, tensor<1x512x1024xbf16>
}
