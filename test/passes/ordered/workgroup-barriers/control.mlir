// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// Branches, blocks and calls: barriers only where all invocations come.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// CHECK-LABEL: gpu.func @before_divergent
gpu.func @before_divergent(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  %low = arith.cmpi ult, %t, %c32 : index
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.if
  scf.if %low {
    scf.if %low {
      %y = memref.load %s[%r] : !s
      memref.store %y, %out[%t] : !g
    }
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @after_divergent
gpu.func @after_divergent(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %low = arith.cmpi ult, %t, %c32 : index
  scf.if %low {
    memref.store %x, %s[%t] : !s
  }
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// The lower half and the upper half keep apart.
// CHECK-LABEL: gpu.func @halves
gpu.func @halves(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %low = arith.cmpi ult, %t, %c32 : index
  scf.if %low {
    memref.store %x, %s[%t] : !s
  } else {
    %y = memref.load %s[%t] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// All take the same way: then or else, inside is a fine place.
// CHECK-LABEL: gpu.func @uniform_branch
gpu.func @uniform_branch(%out: !g {llvm.noalias}, %x: f32, %flag: i1) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  // CHECK: scf.if
  scf.if %flag {
    memref.store %x, %s[%t] : !s
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : !g
  } else {
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// A condition that is always true.
// CHECK-LABEL: gpu.func @always
gpu.func @always(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %r = arith.subi %c63, %t : index
  %in = arith.cmpi ult, %t, %c64 : index
  scf.if %in {
    memref.store %x, %s[%t] : !s
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// Until all agree that it is done: what everyone loads from one place of
// workgroup memory is the same for all.
// CHECK-LABEL: gpu.func @until_converged
gpu.func @until_converged(%out: !g {llvm.noalias}, %in: !g {llvm.noalias}, %x: f32)
    workgroup(%s: !s, %done: memref<1xi1, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %true = arith.constant true
  %first = arith.cmpi eq, %t, %c0 : index
  scf.while (%v = %x) : (f32) -> f32 {
    memref.store %v, %s[%t] : !s
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    %z = arith.addf %y, %v : f32
    scf.if %first {
      %small = arith.cmpf olt, %z, %x : f32
      memref.store %small, %done[%c0] : memref<1xi1, #gpu.address_space<workgroup>>
    }
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %stop = memref.load %done[%c0] : memref<1xi1, #gpu.address_space<workgroup>>
    %go = arith.xori %stop, %true : i1
    scf.condition(%go) %z : f32
  } do {
  ^bb0(%v: f32):
    scf.yield %v : f32
  }
  gpu.return
}

// The number of trips comes from memory that nobody writes.
// CHECK-LABEL: gpu.func @trips_from_memory
gpu.func @trips_from_memory(%n: memref<1xindex> {llvm.noalias}, %out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %trips = memref.load %n[%c0] : memref<1xindex>
  // CHECK: scf.for
  scf.for %i = %c0 to %trips step %c1 {
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %s[%t] : !s
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// Blocks: a diamond on a uniform flag, one side of which writes.
// CHECK-LABEL: gpu.func @blocks
gpu.func @blocks(%out: !g {llvm.noalias}, %x: f32, %flag: i1) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  // CHECK: cf.cond_br
  cf.cond_br %flag, ^write, ^join
^write:
  memref.store %x, %s[%t] : !s
  cf.br ^join
^join:
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @blocks_divergent
gpu.func @blocks_divergent(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  %low = arith.cmpi ult, %t, %c32 : index
  // CHECK:      gpu.barrier
  // CHECK-NEXT: cf.cond_br
  cf.cond_br %low, ^read, ^join
^read:
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  cf.br ^join
^join:
  gpu.return
}

// A loop of blocks; its counter is the same for all.
// CHECK-LABEL: gpu.func @loop_of_blocks
gpu.func @loop_of_blocks(%out: !g {llvm.noalias}, %x: f32, %n: index) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  cf.br ^head(%c0 : index)
^head(%i: index):
  %more = arith.cmpi ult, %i, %n : index
  // CHECK: cf.cond_br
  cf.cond_br %more, ^body, ^done
^body:
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %x, %s[%t] : !s
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next : index)
^done:
  gpu.return
}

// Two buffers in turn, in blocks.
// CHECK-LABEL: gpu.func @pingpong_of_blocks
gpu.func @pingpong_of_blocks(%out: !g {llvm.noalias}, %x: f32, %n: index)
    workgroup(%s: memref<2x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  cf.br ^head(%c0 : index)
^head(%i: index):
  %more = arith.cmpi ult, %i, %n : index
  // CHECK: cf.cond_br
  cf.cond_br %more, ^body, ^done
^body:
  %b = arith.remui %i, %c2 : index
  memref.store %x, %s[%b, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%b, %r] : memref<2x64xf32, #gpu.address_space<workgroup>>
  memref.store %y, %out[%t] : !g
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next : index)
^done:
  gpu.return
}

// What a called function does counts, where it is called.
func.func @put(%m: !s, %i: index, %x: f32) {
  memref.store %x, %m[%i] : !s
  return
}
func.func @get(%m: !s, %i: index) -> f32 {
  %x = memref.load %m[%i] : !s
  return %x : f32
}
func.func @wait() {
  // CHECK: func.func @wait
  // CHECK: gpu.barrier
  gpu.barrier
  return
}
// CHECK-LABEL: gpu.func @calls
gpu.func @calls(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  func.call @put(%s, %t, %x) : (!s, index, f32) -> ()
  // CHECK:      gpu.barrier
  // CHECK-NEXT: func.call @get
  %y = func.call @get(%s, %r) : (!s, index) -> f32
  memref.store %y, %out[%t] : !g
  gpu.return
}
// CHECK-LABEL: gpu.func @called_barrier
gpu.func @called_barrier(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  func.call @wait() : () -> ()
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A function of its own may be given a barrier.
// CHECK-LABEL: func.func @exchange
func.func @exchange(%m: !s, %t: index, %r: index, %x: f32) -> f32 {
  memref.store %x, %m[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %m[%r] : !s
  return %y : f32
}
// CHECK-LABEL: gpu.func @called_exchange
gpu.func @called_exchange(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %y = func.call @exchange(%s, %t, %r, %x) : (!s, index, index, f32) -> f32
  memref.store %y, %out[%t] : !g
  gpu.return
}

// switch, scopes, regions that run once.
// CHECK-LABEL: gpu.func @other_regions
gpu.func @other_regions(%out: !g {llvm.noalias}, %x: f32, %n: index) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.alloca_scope {
    memref.store %x, %s[%t] : !s
  }
  scf.execute_region {
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : !g
    scf.yield
  }
  // CHECK: scf.index_switch
  scf.index_switch %n
  case 0 {
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %s[%t] : !s
    scf.yield
  }
  default {
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}
}
}
