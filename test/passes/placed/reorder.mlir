// RUN: weir-opt %s --weir-insert-barriers | FileCheck %s --check-prefix=OFF
// RUN: weir-opt %s --weir-reorder=reorder=off --weir-insert-barriers | FileCheck %s --check-prefix=OFF
// RUN: weir-opt %s --weir-reorder --weir-insert-barriers | FileCheck %s --check-prefixes=CHECK,SAFE
// RUN: weir-opt %s --weir-reorder=reorder=safe --weir-insert-barriers | FileCheck %s --check-prefixes=CHECK,SAFE
// RUN: weir-opt %s --weir-reorder=reorder=99%% --weir-insert-barriers | FileCheck %s --check-prefixes=CHECK,SAFE
// RUN: weir-opt %s --weir-reorder=reorder=100%% --weir-insert-barriers | FileCheck %s --check-prefixes=CHECK,GROW
// RUN: weir-opt %s --weir-reorder=reorder=100%% --remarks-filter=reorder -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: weir-opt %s "--weir-reorder=reorder=100%% limit=511" --weir-insert-barriers | FileCheck %s --check-prefixes=CHECK,SAFE
// RUN: weir-opt %s "--weir-reorder=reorder=100%% limit=512 effort=0" --weir-insert-barriers | FileCheck %s --check-prefixes=CHECK,GROW
// RUN: not weir-opt %s --weir-reorder=reorder=most 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not weir-opt %s --weir-reorder=reorder=10 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not weir-opt %s --weir-reorder=reorder=-1%% 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not weir-opt %s --weir-reorder=reorder=10%%%% 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not weir-opt %s --weir-reorder=reorder=1.5%% 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not weir-opt %s --weir-reorder=reorder=1000001%% 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: error: reorder '{{.*}}' is unknown; it is off, safe, or by how much the arena may grow, such as 10%

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }

  // Two chains of two: written one after the other they need two barriers.
  // OFF-LABEL: @interleave
  // OFF-COUNT-2: schedule.barrier
  // OFF-NOT: schedule.barrier
  // CHECK-LABEL: @interleave
  // CHECK-SAME: (%[[X:[^:]*]]: {{[^,]*}}, %[[A:[^:]*]]: {{[^,]*}}, %[[B:[^:]*]]: {{[^,]*}}, %[[C:[^:]*]]: {{[^,]*}}, %[[D:[^:]*]]:
  // CHECK: dispatch {{.*}}(%[[X]], %[[A]]) wave 0
  // CHECK-NEXT: dispatch {{.*}}(%[[X]], %[[C]]) wave 0
  // CHECK-NEXT: schedule.barrier
  // CHECK-NEXT: dispatch {{.*}}(%[[A]], %[[B]]) wave 1
  // CHECK-NEXT: dispatch {{.*}}(%[[C]], %[[D]]) wave 1
  // CHECK-NEXT: }
  func.func @interleave(%x: memref<64xf32> {llvm.noalias}, %a: memref<64xf32> {llvm.noalias},
                        %b: memref<64xf32> {llvm.noalias}, %c: memref<64xf32> {llvm.noalias},
                        %d: memref<64xf32> {llvm.noalias}) {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %a) wave 0 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%a, %b) wave 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %c) wave 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%c, %d) wave 2 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // The same through one slot after the other, at the same bytes. Only with twice
  // the bytes may the two be live in one wave.
  // OFF-LABEL: @shared_bytes
  // OFF-COUNT-3: schedule.barrier
  // CHECK-LABEL: @shared_bytes
  // SAFE: memref.alloc() {alignment = 256 : i64, weir.arena} : memref<256xi8>
  // SAFE-COUNT-3: schedule.barrier
  // SAFE-NOT: schedule.barrier
  // GROW: memref.alloc() {alignment = 256 : i64, weir.arena} : memref<512xi8>
  // GROW: %[[ZERO:.*]] = arith.constant 0 : index
  // GROW: %[[BEHIND:.*]] = arith.constant 256 : index
  // GROW: memref.view {{.*}}[%[[ZERO]]]{{.*}}#schedule.slot<"t", alignment = 256, waves = 0 to 1>
  // GROW: memref.view {{.*}}[%[[BEHIND]]]{{.*}}#schedule.slot<"u", alignment = 256, waves = 0 to 1>
  // GROW: schedule.barrier
  // GROW-NOT: schedule.barrier
  // GROW: return
  // REMARK: remark: [Passed] order | Category:reorder | Remark="another order of dispatches needs 1 barriers, signals and waits in place of 2"
  // REMARK: remark: [Passed] order | Category:reorder | Remark="another order of dispatches needs 1 barriers, signals and waits in place of 3"
  // REMARK: remark: [Passed] order | Category:reorder | Remark="another order of dispatches needs 1 barriers, signals and waits in place of 2"
  func.func @shared_bytes(%x: memref<64xf32> {llvm.noalias}, %b: memref<64xf32> {llvm.noalias},
                          %d: memref<64xf32> {llvm.noalias}) attributes {weir.entry} {
    %arena = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<256xi8>
    %c0 = arith.constant 0 : index
    %t = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"t", alignment = 256, waves = 0 to 1>} : memref<256xi8> to memref<64xf32>
    %u = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"u", alignment = 256, waves = 2 to 3>} : memref<256xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) wave 0 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%t, %b) wave 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %u) wave 2 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%u, %d) wave 3 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Bytes of the arena that no slot has stay where they are, and so does the order
  // that they force.
  // CHECK-LABEL: @no_slots
  // CHECK: memref<256xi8>
  // CHECK-COUNT-3: schedule.barrier
  func.func @no_slots(%x: memref<64xf32> {llvm.noalias}, %b: memref<64xf32> {llvm.noalias},
                      %d: memref<64xf32> {llvm.noalias}) {
    %arena = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<256xi8>
    %c0 = arith.constant 0 : index
    %t = memref.view %arena[%c0][] : memref<256xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%t, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%t, %d) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Slots that leave room for both: nothing moves, the order alone changes.
  // CHECK-LABEL: @room
  // CHECK: memref.alloc() {alignment = 256 : i64, weir.arena} : memref<512xi8>
  // CHECK: schedule.barrier
  // CHECK-NOT: schedule.barrier
  // CHECK: return
  func.func @room(%x: memref<64xf32> {llvm.noalias}, %b: memref<64xf32> {llvm.noalias},
                  %d: memref<64xf32> {llvm.noalias}) attributes {weir.entry} {
    %arena = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<512xi8>
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %t = memref.view %arena[%c256][] {weir.slot = #schedule.slot<"t", alignment = 256, waves = 0 to 1>} : memref<512xi8> to memref<64xf32>
    %u = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"u", alignment = 256, waves = 1 to 2>} : memref<512xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) wave 0 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%t, %b) wave 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %u) wave 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%u, %d) wave 2 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
