// RUN: weir-opt %s --weir-plan-memory | FileCheck %s
// RUN: weir-opt %s --weir-plan-memory=effort=0 | FileCheck %s --check-prefix=GREEDY
// RUN: weir-opt %s --weir-plan-memory --remarks-filter=plan-memory -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// The larger values lie at 0 and 768 where larger ones are placed first, and the two
// of 512 bytes, only one of which meets both, behind them. The bytes live in wave 3
// will do: 1792.
// CHECK:  memref.alloc() {{.*}}weir.arena} : memref<1792xi8>
// GREEDY: memref.alloc() {{.*}}weir.arena} : memref<2048xi8>
// REMARK: remark: {{.*}}Remark="the arena has 1792 bytes, at least 1792 are needed, and 2560 would be if every value had bytes of its own; number of values
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @small(%y: memref<128xf32>) kernel {
      %i = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      memref.store %v, %y[%i] : memref<128xf32>
      gpu.return
    }
    gpu.func @large(%y: memref<192xf32>) kernel {
      %i = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      memref.store %v, %y[%i] : memref<192xf32>
      gpu.return
    }
  }
  func.func @f() attributes {weir.entry} {
    %a = memref.alloc() : memref<128xf32>
    %b = memref.alloc() : memref<192xf32>
    %c = memref.alloc() : memref<192xf32>
    %d = memref.alloc() : memref<128xf32>
    schedule.commands {
      schedule.dispatch @k::@large [1, 1, 1] (%b) wave 2 : (memref<192xf32>)
      schedule.dispatch @k::@large [1, 1, 1] (%c) wave 2 : (memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%a) wave 3 : (memref<128xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%d) wave 3 : (memref<128xf32>)
      schedule.dispatch @k::@large [1, 1, 1] (%c) wave 4 : (memref<192xf32>)
      schedule.dispatch @k::@small [1, 1, 1] (%a) wave 5 : (memref<128xf32>)
    }
    return
  }
}
