// RUN: weir-opt %s --weir-plan-memory=effort=0 | FileCheck %s
// RUN: weir-opt %s --weir-plan-memory | FileCheck %s --check-prefix=BEST

// A permission that raises the peak is not used; here it does where larger values are
// placed first, and does not where more effort is spent.
// BEST-COUNT-2: #schedule.slot<"a, b",
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @large(%x: memref<256xf32>, %y: memref<256xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<256xf32>
      memref.store %v, %y[%i] : memref<256xf32>
      gpu.return
    }
    gpu.func @small(%x: memref<192xf32>, %y: memref<192xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<192xf32>
      memref.store %v, %y[%i] : memref<192xf32>
      gpu.return
    }
  }

  // In wave 2 %b would still lie where %a did, and %c behind it, too far up for the
  // two that come after: 2560 bytes. Elsewhere %b lies between, 2304 will do.
  // CHECK-LABEL: @raises
  // CHECK: memref.alloc() {{.*}}weir.arena} : memref<2304xi8>
  // CHECK: #schedule.slot<"a",
  func.func @raises(%x: memref<256xf32>, %z: memref<192xf32>, %p: memref<256xf32> {weir.result},
                    %q: memref<192xf32> {weir.result}, %r: memref<192xf32> {weir.result},
                    %s: memref<192xf32> {weir.result}) attributes {weir.entry} {
    %a = memref.alloc() {weir.name = "a"} : memref<256xf32>
    %b = memref.alloc() {weir.name = "b"} : memref<256xf32>
    %c = memref.alloc() {weir.name = "c"} : memref<192xf32>
    %d = memref.alloc() {weir.name = "d"} : memref<192xf32>
    %e = memref.alloc() {weir.name = "e"} : memref<192xf32>
    schedule.commands {
      schedule.dispatch @k::@large [1, 1, 1] (%x, %a) wave 0 : (memref<256xf32>, memref<256xf32>)
      schedule.dispatch @k::@large [1, 1, 1] (%a, %b) wave 1 {weir.permissions = [#schedule.permission<1 over 0>]} : (memref<256xf32>, memref<256xf32>)
      schedule.dispatch @k::@large [1, 1, 1] (%b, %p) wave 2 : (memref<256xf32>, memref<256xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%z, %c) wave 2 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%z, %d) wave 3 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%z, %e) wave 3 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%c, %q) wave 4 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%d, %r) wave 5 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%e, %s) wave 5 : (memref<192xf32>, memref<192xf32>)
    }
    return
  }

  // The twin: %c comes a wave later, nothing is in its way.
  // CHECK-LABEL: @keeps
  // CHECK: memref.alloc() {{.*}}weir.arena} : memref<2304xi8>
  // CHECK: #schedule.slot<"a, b",
  func.func @keeps(%x: memref<256xf32>, %z: memref<192xf32>, %p: memref<256xf32> {weir.result},
                    %q: memref<192xf32> {weir.result}, %r: memref<192xf32> {weir.result},
                    %s: memref<192xf32> {weir.result}) attributes {weir.entry} {
    %a = memref.alloc() {weir.name = "a"} : memref<256xf32>
    %b = memref.alloc() {weir.name = "b"} : memref<256xf32>
    %c = memref.alloc() {weir.name = "c"} : memref<192xf32>
    %d = memref.alloc() {weir.name = "d"} : memref<192xf32>
    %e = memref.alloc() {weir.name = "e"} : memref<192xf32>
    schedule.commands {
      schedule.dispatch @k::@large [1, 1, 1] (%x, %a) wave 0 : (memref<256xf32>, memref<256xf32>)
      schedule.dispatch @k::@large [1, 1, 1] (%a, %b) wave 1 {weir.permissions = [#schedule.permission<1 over 0>]} : (memref<256xf32>, memref<256xf32>)
      schedule.dispatch @k::@large [1, 1, 1] (%b, %p) wave 2 : (memref<256xf32>, memref<256xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%z, %c) wave 3 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%z, %d) wave 3 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%z, %e) wave 3 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%c, %q) wave 4 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%d, %r) wave 5 : (memref<192xf32>, memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%e, %s) wave 5 : (memref<192xf32>, memref<192xf32>)
    }
    return
  }
}
