// Sums of rows: a row a workgroup, partial sums of 4 elements an invocation.
func.func @sum(%x: tensor<64x1024xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<64x1024xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %generic = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill0 = transform.structured.match ops{["linalg.fill"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %rows = transform.structured.tile_using_forall %generic tile_sizes [1, 0] (mapping = [#gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused, %newloop = transform.structured.fuse_into_containing_op %fill0 into %rows : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill, %split, %combine, %threads = transform.structured.tile_reduction_using_forall %tiled by num_threads = [0, 256] tile_sizes = [0, 1] mapping = [#gpu.thread<x>] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %buffer, %ops = transform.structured.bufferize_to_allocation %fill {memory_space = #gpu.address_space<workgroup>, bufferize_destination_only} : !transform.any_op
    transform.yield
  }
  transform.named_sequence @map(%root: !transform.any_op) {
    %function = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %function generate_gpu_launch grid_dims = [64, 1, 1] : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [256, 1, 1] sync_after_distribute = false : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
