// RUN: weir-opt %s --weir-set-profile --weir-emit-spirv | FileCheck %s

// What stays of a kernel beside its words: the symbol that dispatches name, the
// workgroup, and each operand's effect, bytes and alignment. Effects are the
// body's, whatever wider ones were declared.

// CHECK-NOT:   gpu.module
// CHECK:       gpu.binary @first
// CHECK-SAME:  weir.operands = [{alignment = 16 : i64, bytes = 128 : i64, effect = #schedule.effect<read>}, {alignment = 1 : i64, bytes = 8 : i64, effect = #schedule.effect<write, covers_all = true>}]
// CHECK-SAME:  weir.workgroup = array<i64: 8, 1, 1>
// CHECK-SAME:  #gpu.object<#spirv.target_env<
// CHECK-SAME:  "\03\02#\07
// CHECK:       gpu.binary @second
// CHECK-SAME:  weir.operands = [{alignment = 32 : i64, bytes = 64 : i64, effect = #schedule.effect<update>}]
// CHECK-SAME:  weir.workgroup = array<i64: 4, 2, 1>
// CHECK-NOT:   gpu.module
// CHECK:       schedule.dispatch @first::@first
// CHECK:       schedule.dispatch @second::@second

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @first(%x: memref<8xvector<4xf32>, #global> {schedule.effect = #schedule.effect<update>},
                    %m: memref<8xi8, #global> {schedule.effect = #schedule.effect<write, covers_all = true>})
        kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i8
      %v = memref.load %x[%c0] : memref<8xvector<4xf32>, #global>
      memref.store %one, %m[%c0] : memref<8xi8, #global>
      gpu.return
    }
    gpu.func @second(%x: memref<2xvector<4xf64>, #global>)
        kernel attributes {known_block_size = array<i32: 4, 2, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %v = memref.load %x[%c0] : memref<2xvector<4xf64>, #global>
      memref.store %v, %x[%c1] : memref<2xvector<4xf64>, #global>
      gpu.return
    }
  }
  func.func @f(%x: memref<32xf32>, %m: memref<8xi8>, %d: memref<8xf64>) {
    schedule.commands {
      schedule.dispatch @kernels::@first [1, 1, 1] (%x, %m) : (memref<32xf32>, memref<8xi8>)
      schedule.dispatch @kernels::@second [1, 1, 1] (%d) : (memref<8xf64>)
    }
    return
  }
}
