// What ../upstream.test makes of row-sums.mlir, stored.
#map = affine_map<()[s0] -> (s0 * 4)>
module attributes {gpu.container_module} {
  func.func @sum(%arg0: memref<64x1024xf32>) -> memref<64xf32> {
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %c1 = arith.constant 1 : index
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
    gpu.launch_func  @sum_kernel::@sum_kernel blocks in (%c64, %c1, %c1) threads in (%c256, %c1, %c1)  args(%arg0 : memref<64x1024xf32>, %alloc : memref<64xf32>)
    return %alloc : memref<64xf32>
  }
  gpu.module @sum_kernel {
    gpu.func @sum_kernel(%arg0: memref<64x1024xf32>, %arg1: memref<64xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 64, 1, 1>} {
      %c4 = arith.constant 4 : index
      %c1 = arith.constant 1 : index
      %c256 = arith.constant 256 : index
      %c0 = arith.constant 0 : index
      %cst = arith.constant 0.000000e+00 : f32
      %block_id_x = gpu.block_id  x
      %subview = memref.subview %arg0[%block_id_x, 0] [1, 1024] [1, 1] : memref<64x1024xf32> to memref<1x1024xf32, strided<[1024, 1], offset: ?>>
      %subview_0 = memref.subview %arg1[%block_id_x] [1] [1] : memref<64xf32> to memref<1xf32, strided<[1], offset: ?>>
      memref.store %cst, %subview_0[%c0] : memref<1xf32, strided<[1], offset: ?>>
      %alloc = memref.alloc() : memref<1x256xf32, #gpu.address_space<workgroup>>
      scf.for %arg2 = %c0 to %c256 step %c1 {
        memref.store %cst, %alloc[%c0, %arg2] : memref<1x256xf32, #gpu.address_space<workgroup>>
      }
      %thread_id_x = gpu.thread_id  x
      %0 = affine.apply #map()[%thread_id_x]
      %subview_1 = memref.subview %subview[0, %0] [1, 4] [1, 1] : memref<1x1024xf32, strided<[1024, 1], offset: ?>> to memref<1x4xf32, strided<[1024, 1], offset: ?>>
      %subview_2 = memref.subview %alloc[0, %thread_id_x] [1, 1] [1, 1] : memref<1x256xf32, #gpu.address_space<workgroup>> to memref<1xf32, strided<[256], offset: ?>, #gpu.address_space<workgroup>>
      scf.for %arg2 = %c0 to %c4 step %c1 {
        %1 = memref.load %subview_1[%c0, %arg2] : memref<1x4xf32, strided<[1024, 1], offset: ?>>
        %2 = memref.load %subview_2[%c0] : memref<1xf32, strided<[256], offset: ?>, #gpu.address_space<workgroup>>
        %3 = arith.addf %1, %2 : f32
        memref.store %3, %subview_2[%c0] : memref<1xf32, strided<[256], offset: ?>, #gpu.address_space<workgroup>>
      }
      scf.for %arg2 = %c0 to %c256 step %c1 {
        %1 = memref.load %alloc[%c0, %arg2] : memref<1x256xf32, #gpu.address_space<workgroup>>
        %2 = memref.load %subview_0[%c0] : memref<1xf32, strided<[1], offset: ?>>
        %3 = arith.addf %1, %2 : f32
        memref.store %3, %subview_0[%c0] : memref<1xf32, strided<[1], offset: ?>>
      }
      gpu.return
    }
  }
}
