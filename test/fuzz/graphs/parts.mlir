// A concatenation whose parts are made in place, an insertion into an argument, a slice that is read.
func.func @parts(%x: tensor<3x8xf32> {weir.name = "x"}, %y: tensor<2x8xf32> {weir.name = "y"},
                 %cache: tensor<6x8xf32> {weir.name = "cache", weir.donate})
    -> (tensor<5x8xf32> {weir.name = "all"}, tensor<6x8xf32> {weir.name = "kept"}, tensor<2x8xf32> {weir.name = "slice"}) {
  %empty3 = tensor.empty() : tensor<3x8xf32>
  %empty2 = tensor.empty() : tensor<2x8xf32>
  %a = linalg.exp {weir.no_fuse} ins(%x : tensor<3x8xf32>) outs(%empty3 : tensor<3x8xf32>) -> tensor<3x8xf32>
  %b = linalg.tanh {weir.no_fuse} ins(%y : tensor<2x8xf32>) outs(%empty2 : tensor<2x8xf32>) -> tensor<2x8xf32>
  %all = tensor.concat dim(0) %a, %b : (tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<5x8xf32>
  %kept = tensor.insert_slice %b into %cache[3, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<6x8xf32>
  %part = tensor.extract_slice %all[2, 0] [2, 8] [1, 1] : tensor<5x8xf32> to tensor<2x8xf32>
  %slice = linalg.mul {weir.no_fuse} ins(%part, %b : tensor<2x8xf32>, tensor<2x8xf32>) outs(%empty2 : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %all, %kept, %slice : tensor<5x8xf32>, tensor<6x8xf32>, tensor<2x8xf32>
}
