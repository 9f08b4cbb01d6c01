// RUN: weir-opt %s --weir-test-uniformity -split-input-file -verify-diagnostics

module attributes {gpu.container_module} {
gpu.module @m {

func.func @helper(%x: index, %y: index) -> index {
  // expected-remark @below {{of_uniform: workgroup}}
  %a = arith.addi %x, %x {test.name = "of_uniform"} : index
  // expected-remark @below {{of_varying: varies}}
  %b = arith.addi %x, %y {test.name = "of_varying"} : index
  return %b : index
}

gpu.func @kernel(%n: index, %flag: i1, %m: memref<64xindex, #gpu.address_space<global>>)
    workgroup(%s: memref<64xindex, #gpu.address_space<workgroup>>)
    private(%p: memref<4xindex, #gpu.address_space<private>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c100 = arith.constant 100 : index
  // expected-remark @below {{id: varies}}
  %t = gpu.thread_id x {test.name = "id"}
  // The workgroup is one invocation deep.
  // expected-remark @below {{id_of_one: grid}}
  %ty = gpu.thread_id y {test.name = "id_of_one"}
  // expected-remark @below {{block: workgroup}}
  %b = gpu.block_id x {test.name = "block"}
  // expected-remark @below {{of_arguments: grid}}
  %a = arith.addi %n, %c1 {test.name = "of_arguments"} : index
  // expected-remark @below {{always: grid}}
  %always = arith.cmpi ult, %t, %c64 {test.name = "always"} : index
  %some = arith.cmpi ult, %t, %n : index
  // expected-remark @below {{lane: varies}}
  %lane = gpu.lane_id {test.name = "lane"}

  // expected-remark @below {{called: varies}}
  %called = func.call @helper(%b, %t) {test.name = "called"} : (index, index) -> index

  // Everyone loads one element of memory that the workgroup shares.
  // expected-remark @below {{loaded_shared: workgroup}}
  %0 = memref.load %s[%c0] {test.name = "loaded_shared"} : memref<64xindex, #gpu.address_space<workgroup>>
  // expected-remark @below {{loaded_own: varies}}
  %1 = memref.load %s[%t] {test.name = "loaded_own"} : memref<64xindex, #gpu.address_space<workgroup>>
  // expected-remark @below {{loaded_private: varies}}
  %2 = memref.load %p[%c0] {test.name = "loaded_private"} : memref<4xindex, #gpu.address_space<private>>
  // expected-remark @below {{loaded_global: varies}}
  %3 = memref.load %m[%c0] {test.name = "loaded_global"} : memref<64xindex, #gpu.address_space<global>>

  // expected-remark @below {{chosen: varies}}
  %chosen = scf.if %some -> index {
    // expected-remark @below {{inside: grid at divergent control}}
    %i = arith.addi %n, %n {test.name = "inside"} : index
    scf.yield %c0 : index
  } else {
    scf.yield %c1 : index
  } {test.name = "chosen"}
  // expected-remark @below {{chosen_together: grid}}
  %together = scf.if %flag -> index {
    // expected-remark @below {{inside_uniform: grid}}
    %i = arith.addi %n, %n {test.name = "inside_uniform"} : index
    scf.yield %c0 : index
  } else {
    scf.yield %c1 : index
  } {test.name = "chosen_together"}
  scf.if %always {
    // expected-remark @below {{inside_always: grid}}
    %i = arith.addi %n, %n {test.name = "inside_always"} : index
  }

  // As many trips for everyone, two, though each starts elsewhere.
  scf.for %i = %t to %c128 step %c64 {
    // expected-remark @below {{strided: varies}}
    %j = arith.addi %i, %c1 {test.name = "strided"} : index
  }
  // One or two trips.
  scf.for %i = %t to %c100 step %c64 {
    // expected-remark @below {{uneven: varies at divergent control}}
    %j = arith.addi %i, %c1 {test.name = "uneven"} : index
  }
  // expected-remark @below {{summed: workgroup}}
  %sum = scf.for %i = %c0 to %b step %c1 iter_args(%x = %n) -> index {
    // expected-remark @below {{trip: grid}}
    %j = arith.addi %i, %c1 {test.name = "trip"} : index
    %y = arith.addi %x, %b : index
    scf.yield %y : index
  } {test.name = "summed"}
  // expected-remark @below {{halved: grid}}
  %halved = scf.while (%x = %c64) : (index) -> index {
    %go = arith.cmpi ugt, %x, %c1 : index
    scf.condition(%go) %x : index
  } do {
  ^bb0(%x: index):
    // expected-remark @below {{in_while: grid}}
    %half = arith.shrui %x, %c1 {test.name = "in_while"} : index
    scf.yield %half : index
  } attributes {test.name = "halved"}
  // expected-remark @below {{own_while: varies}}
  %own = scf.while (%x = %t) : (index) -> index {
    %go = arith.cmpi ugt, %x, %c1 : index
    scf.condition(%go) %x : index
  } do {
  ^bb0(%x: index):
    // expected-remark @below {{in_own_while: varies at divergent control}}
    %half = arith.shrui %x, %c1 {test.name = "in_own_while"} : index
    scf.yield %half : index
  } attributes {test.name = "own_while"}
  gpu.return
}

}
}

// -----

module attributes {gpu.container_module} {
gpu.module @m {

gpu.func @blocks(%n: index, %flag: i1) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  cf.cond_br %flag, ^a(%c0 : index), ^a(%n : index)
^a(%x: index):
  // expected-remark @below {{joined: grid}}
  %0 = arith.addi %x, %c1 {test.name = "joined"} : index
  %some = arith.cmpi ult, %t, %n : index
  cf.cond_br %some, ^then, ^join(%c0 : index)
^then:
  // expected-remark @below {{then: grid at divergent control}}
  %1 = arith.addi %n, %c1 {test.name = "then"} : index
  cf.br ^join(%1 : index)
^join(%y: index):
  // expected-remark @below {{which_way: varies}}
  %2 = arith.addi %y, %c1 {test.name = "which_way"} : index
  cf.br ^loop(%c0 : index)
^loop(%i: index):
  // Left on different trips: the same inside, not behind.
  // expected-remark @below {{in_loop: varies at divergent control}}
  %next = arith.addi %i, %c1 {test.name = "in_loop"} : index
  %more = arith.cmpi ult, %next, %t : index
  cf.cond_br %more, ^loop(%next : index), ^done
^done:
  // expected-remark @below {{behind_loop: varies}}
  %3 = arith.addi %next, %c1 {test.name = "behind_loop"} : index
  // expected-remark @below {{again_together: grid}}
  %4 = arith.addi %n, %c1 {test.name = "again_together"} : index
  gpu.return
}
}
}
