// RUN: weir-opt %s --weir-set-profile --weir-pack --weir-verify-emitted \
// RUN:   | sed 's/\\22/"/g; s/\\0A */\n/g' | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-pack --mlir-print-debuginfo > %t.1
// RUN: weir-opt %s --weir-set-profile --weir-pack --mlir-print-debuginfo > %t.2
// RUN: cmp %t.1 %t.2

// CHECK: weir.manifest = "{
// CHECK: "name":"f"
// CHECK: {"name":"x","dtype":"F32","shape":[8,8],"kind":"input","donate":false}
// CHECK: {"name":"arg1","dtype":"BOOL","shape":[0],"kind":"","donate":true}
// CHECK: {"name":"result0","dtype":"F32","shape":[64]}
// CHECK: {"name":"cst_0","dtype":"F32","shape":[3],"offset":0}
// CHECK-NEXT: {"name":"cst_1","dtype":"F32","shape":[64],"offset":256}
// CHECK-NEXT: ]
// CHECK: func.func @f
// CHECK: weir.plan = "{
// CHECK: "entry": "f"
// CHECK: "target": "vulkan"
// CHECK: "arena_bytes": 256
// CHECK: "pinned_bytes": 512
// CHECK: {"kind":"argument","index":0,"bytes":256}
// CHECK: {"kind":"argument","index":1,"bytes":0}
// CHECK: {"kind":"result","index":0,"bytes":256}
// CHECK: {"kind":"constants","index":0,"bytes":512}
// CHECK: {"kind":"arena","index":0,"bytes":256}
// CHECK: ["x",256]
// CHECK: ["n",0]
// CHECK: ["y",256]
// CHECK: ["a",256]
// CHECK: "argument_values": [0,1]
// CHECK: "result_values": [2]
// CHECK: ["a",0,256,256,0,1]
// CHECK: "name":"copy"
// CHECK: "code":"code/vulkan/copy.spv"
// CHECK: "workgroup":[64,1,1]
// CHECK: {"access":"write","covers_all":true,"bytes":256,"alignment":16}
// CHECK: "in_place":{{\[}}[0,1]]
// The second constant lies behind the first, at byte 256 of allocation 3.
// CHECK: "operands":{{\[}}[3,256,256],[4,0,256,3,0]]
// CHECK: "location":"model.py:7"
// CHECK: "hazards":{{\[\[}}"raw",0,1,1,0]]
// CHECK: "memory":{{\[}}[4,0,256]]
// CHECK: "location":"layer"
module {
  gpu.binary @copy {
    weir.workgroup = array<i64: 64, 1, 1>,
    weir.operands = [{effect = #schedule.effect<read>, bytes = 256 : i64, alignment = 16 : i64},
                     {effect = #schedule.effect<write, covers_all = true>, bytes = 256 : i64, alignment = 16 : i64}],
    weir.in_place = [array<i64: 0, 1>]
  } [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "words">]
  memref.global "private" constant @cst_0 : memref<3xf32> = dense<1.0>
  memref.global "private" constant @unused : memref<3xf32> = dense<1.0>
  memref.global "private" constant @cst_1 : memref<64xf32> = dense<2.0>
  func.func @f(%x: memref<64xf32> {weir.name = "x", weir.kind = "input", weir.shape = tensor<8x8xf32>},
               %n: memref<0xi8> {weir.donate, weir.shape = tensor<0xi1>},
               %y: memref<64xf32> {weir.result}) attributes {weir.entry, weir.pinned_bytes = 512 : i64,
                 weir.value_names = ["x", "n", "y", "a"], weir.value_bytes = array<i64: 256, 0, 256, 256>} {
    %arena = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<256xi8>
    %c0 = arith.constant 0 : index
    %small = memref.get_global @cst_0 : memref<3xf32>
    %c = memref.get_global @cst_1 : memref<64xf32>
    %a = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"a", alignment = 256, waves = 0 to 1>} : memref<256xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%c, %a) wave 0 values [-1, 0, 3, 0] : (memref<64xf32>, memref<64xf32>) loc(fused["fusion", "model.py":7:3, "model.py":9:1])
      schedule.barrier memory(%a : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) wave 1 values [3, 0, 2, 0] : (memref<64xf32>, memref<64xf32>) loc("layer")
    }
    return
  }
}
