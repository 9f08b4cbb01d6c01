// RUN: weir-opt %s --weir-set-profile=profile=vulkan13 --weir-emit-spirv --weir-print-spirv | FileCheck %s --check-prefix=LONE --implicit-check-not="BuiltIn Subgroup" --implicit-check-not=OpGroup --implicit-check-not="OpCapability Group"
// RUN: weir-opt %s --weir-set-profile=profile=lavapipe --weir-emit-spirv --weir-print-spirv | FileCheck %s

// Where a subgroup is one invocation, its lane is 0, its number the invocation's, and it shuffles
// with itself: no operation of subgroups is left, so the code runs with subgroups of any size.

// LONE:     BuiltIn LocalInvocationId
// LONE:     OpIMul
// LONE:     OpIAdd
// CHECK:    OpCapability GroupNonUniformShuffle
// CHECK:    BuiltIn SubgroupId

gpu.module @lone {
  gpu.func @lone(%x: memref<64xi32, #gpu.address_space<global>>)
      kernel attributes {known_block_size = array<i32: 8, 4, 1>} {
    %c1 = arith.constant 1 : i32
    %width = arith.constant 8 : i32
    %lane = gpu.lane_id
    %number = gpu.subgroup_id : index
    %at = arith.addi %lane, %number : index
    %own = memref.load %x[%at] : memref<64xi32, #gpu.address_space<global>>
    %other, %valid = gpu.shuffle xor %own, %c1, %width : i32
    memref.store %other, %x[%at] : memref<64xi32, #gpu.address_space<global>>
    gpu.return
  }
}
