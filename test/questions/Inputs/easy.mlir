gpu.module @kernels {
  gpu.func @easy(%a: memref<4096xf32>, %x: f32) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %c64 = arith.constant 64 : index
    %row = arith.muli %b, %c64 : index
    %i = arith.addi %row, %t : index
    memref.store %x, %a[%i] : memref<4096xf32>
    %y = memref.load %a[%i] : memref<4096xf32>
    memref.store %y, %a[%i] : memref<4096xf32>
    gpu.return
  }
}
