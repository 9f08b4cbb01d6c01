// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --check-prefixes=CHECK,KEPT --implicit-check-not=gpu.barrier --implicit-check-not=device_async_wait
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier --implicit-check-not=device_async_wait

// An asynchronous copy lands at any time until its invocation has waited for it; a barrier behind the
// wait shows it to others. Each case that inserts has a twin that must not.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<256xf32, #gpu.address_space<workgroup>>
!g = memref<256xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// All is missing: a group, a wait, a barrier.
// CHECK-LABEL: gpu.func @nothing_is_there
gpu.func @nothing_is_there(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c255 = arith.constant 255 : index
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK: nvgpu.device_async_copy
  %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
  // CHECK-NEXT: %[[GROUP:.*]] = nvgpu.device_async_create_group
  // CHECK-NEXT: nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %x = memref.load %s[%r] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// Each invocation reads what it has copied itself: it must have waited.
// CHECK-LABEL: gpu.func @own_bytes
gpu.func @own_bytes(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %i = arith.muli %t, %c4 : index
  // CHECK: nvgpu.device_async_copy
  %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
  // CHECK: nvgpu.device_async_wait
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %x = memref.load %s[%i] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @complete
gpu.func @complete(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c255 = arith.constant 255 : index
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK:      nvgpu.device_async_copy
  // CHECK-NEXT: nvgpu.device_async_create_group
  // CHECK-NEXT: nvgpu.device_async_wait
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
  %group = nvgpu.device_async_create_group %token
  nvgpu.device_async_wait %group
  gpu.barrier
  %x = memref.load %s[%r] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// The barrier alone is missing.
// CHECK-LABEL: gpu.func @no_barrier
gpu.func @no_barrier(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c255 = arith.constant 255 : index
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK:      nvgpu.device_async_wait
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
  %group = nvgpu.device_async_create_group %token
  nvgpu.device_async_wait %group
  %x = memref.load %s[%r] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// The wait leaves one group, which is the copy's; a second group behind it would do.
// CHECK-LABEL: gpu.func @a_wait_for_older_groups
gpu.func @a_wait_for_older_groups(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c255 = arith.constant 255 : index
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK:      nvgpu.device_async_wait {{.*}} {numGroups = 1 : i32}
  // CHECK-NEXT: nvgpu.device_async_create_group
  // CHECK-NEXT: nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
  %group = nvgpu.device_async_create_group %token
  nvgpu.device_async_wait %group {numGroups = 1 : i32}
  %x = memref.load %s[%r] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @a_wait_that_leaves_another_group
gpu.func @a_wait_that_leaves_another_group(%in: !g {llvm.noalias}, %out: !g {llvm.noalias})
    workgroup(%s: !s, %other: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c255 = arith.constant 255 : index
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK:      nvgpu.device_async_wait {{.*}} {numGroups = 1 : i32}
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
  %group = nvgpu.device_async_create_group %token
  %later = nvgpu.device_async_copy %in[%i], %other[%i], 4 : !g to !s
  %second = nvgpu.device_async_create_group %later
  nvgpu.device_async_wait %group {numGroups = 1 : i32}
  gpu.barrier
  %x = memref.load %s[%r] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// A barrier before the wait does not help.
// CHECK-LABEL: gpu.func @barrier_before_the_wait
gpu.func @barrier_before_the_wait(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %i = arith.muli %t, %c4 : index
  // CHECK:      nvgpu.device_async_copy
  // CHECK-NEXT: nvgpu.device_async_create_group
  // KEPT-NEXT:  gpu.barrier
  // CHECK:      nvgpu.device_async_wait
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
  %group = nvgpu.device_async_create_group %token
  gpu.barrier
  nvgpu.device_async_wait %group
  %x = memref.load %s[%t] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// Two slabs in turn: one is read while the other is on its way. All that is needed is there.
// CHECK-LABEL: gpu.func @pipeline
gpu.func @pipeline(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c255 = arith.constant 255 : index
  %zero = arith.constant 0.0 : f32
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK: nvgpu.device_async_create_group
  %first = nvgpu.device_async_copy %in[%i], %a[%i], 4 : !g to !s
  %begun = nvgpu.device_async_create_group %first
  // CHECK: scf.for
  %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> f32 {
    // CHECK-NEXT: nvgpu.device_async_wait
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: nvgpu.device_async_copy
    nvgpu.device_async_wait %begun {numGroups = 0 : i32}
    gpu.barrier
    %second = nvgpu.device_async_copy %in[%i], %b[%i], 4 : !g to !s
    %group = nvgpu.device_async_create_group %second
    %x = memref.load %a[%r] : !s
    %next = arith.addf %acc, %x : f32
    // CHECK: nvgpu.device_async_wait
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: nvgpu.device_async_copy
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    gpu.barrier
    %third = nvgpu.device_async_copy %in[%i], %a[%i], 4 : !g to !s
    %last = nvgpu.device_async_create_group %third
    %y = memref.load %b[%r] : !s
    %after = arith.addf %next, %y : f32
    scf.yield %after : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// The same without what orders it. A copy over a slab needs a barrier behind its readers, too.
// CHECK-LABEL: gpu.func @pipeline_without_order
gpu.func @pipeline_without_order(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%a: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c255 = arith.constant 255 : index
  %zero = arith.constant 0.0 : f32
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK: scf.for
  %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> f32 {
    // CHECK: gpu.barrier
    // CHECK-NEXT: nvgpu.device_async_copy
    %token = nvgpu.device_async_copy %in[%i], %a[%i], 4 : !g to !s
    // CHECK: nvgpu.device_async_wait
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: memref.load
    %x = memref.load %a[%r] : !s
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// What a copy reads is written behind it, by another invocation.
// CHECK-LABEL: gpu.func @sources_stay
gpu.func @sources_stay(%io: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c255 = arith.constant 255 : index
  %one = arith.constant 1.0 : f32
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  // CHECK: nvgpu.device_async_copy
  %token = nvgpu.device_async_copy %io[%i], %s[%i], 4 : !g to !s
  // CHECK: nvgpu.device_async_wait
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %one, %io[%r] : !g
  gpu.return
}

}
}
