// RUN: weir-opt %s --split-input-file --verify-diagnostics --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier --implicit-check-not=wgmma.wait --implicit-check-not=fence.proxy

// Products of matrices by four subgroups read until they have been waited for, and see what was stored only behind a
// fence. A copy of a box ends with the wait for its mbarrier. Each case that inserts has a twin that must not.

#one = array<i32: 1, 1, 1>
#team = array<i32: 128, 1, 1>
!s = memref<4096xbf16, #gpu.address_space<workgroup>>
!v = vector<32xf32>

gpu.module @stores {

// What was stored is read without a fence and a barrier.
// CHECK-LABEL: gpu.func @nothing_is_there
gpu.func @nothing_is_there(%x: bf16, %sums: !v) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  memref.store %x, %a[%t] : !s
  // CHECK: memref.store
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  // CHECK-NEXT: nvvm.fence.proxy
  // CHECK-NEXT: gpu.barrier
  // CHECK: schedule.group_product
  nvvm.wgmma.fence.aligned
  %r = schedule.group_product %sums, %a[%c0], %b[%c0] {strides = array<i64: 16, 1024, 16, 1024>} : !s, !s, !v
  nvvm.wgmma.commit.group.sync.aligned
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  nvvm.wgmma.wait.group.sync.aligned 0
  gpu.return
}

// CHECK-LABEL: gpu.func @complete
gpu.func @complete(%x: bf16, %sums: !v) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  memref.store %x, %a[%t] : !s
  // CHECK: nvvm.fence.proxy
  // CHECK-NEXT: gpu.barrier
  // CHECK: schedule.group_product
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  gpu.barrier
  nvvm.wgmma.fence.aligned
  %r = schedule.group_product %sums, %a[%c0], %b[%c0] {strides = array<i64: 16, 1024, 16, 1024>} : !s, !s, !v
  nvvm.wgmma.commit.group.sync.aligned
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  // CHECK: gpu.barrier
  // CHECK: memref.store
  nvvm.wgmma.wait.group.sync.aligned 0
  gpu.barrier
  memref.store %x, %a[%t] : !s
  gpu.return
}

// A product may still read where others write.
// CHECK-LABEL: gpu.func @no_wait
gpu.func @no_wait(%x: bf16, %sums: !v) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  nvvm.wgmma.fence.aligned
  // CHECK: schedule.group_product
  %r = schedule.group_product %sums, %a[%c0], %b[%c0] {strides = array<i64: 16, 1024, 16, 1024>} : !s, !s, !v
  nvvm.wgmma.commit.group.sync.aligned
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  // CHECK: nvvm.fence.proxy
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %x, %a[%t] : !s
  gpu.return
}
}

// -----

#one = array<i32: 1, 1, 1>
#team = array<i32: 128, 1, 1>
!s = memref<4096xbf16, #gpu.address_space<workgroup>>
!m = memref<2xi64, #gpu.address_space<workgroup>>
!g = memref<65536xbf16>
!v = vector<32xf32>

gpu.module @boxes {

// All have waited for the box, and others read it: a barrier is missing.
// CHECK-LABEL: gpu.func @no_barrier
gpu.func @no_barrier(%in: !g {llvm.noalias}, %sums: !v) workgroup(%a: !s, %b: !s, %m: !m)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    schedule.mbarrier_init %m[0] : !m
  }
  // CHECK: gpu.barrier
  gpu.barrier
  scf.if %first {
    schedule.mbarrier_expect %m[0] {bytes = 8192} : !m
    // CHECK: schedule.tile_copy
    schedule.tile_copy %in[%c0, %c0] to %a[%c0] signals %m[0]
      {shape = array<i64: 256, 256>, box = array<i64: 64, 64>} : !g, !s, !m
  }
  // CHECK: schedule.mbarrier_wait
  // CHECK: gpu.barrier
  // CHECK: schedule.group_product
  schedule.mbarrier_wait %m[0] {parity = false} : !m
  nvvm.wgmma.fence.aligned
  %r = schedule.group_product %sums, %a[%c0], %b[%c0] {strides = array<i64: 16, 1024, 16, 1024>} : !s, !s, !v
  nvvm.wgmma.commit.group.sync.aligned
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  nvvm.wgmma.wait.group.sync.aligned 0
  gpu.return
}

// CHECK-LABEL: gpu.func @complete
gpu.func @complete(%in: !g {llvm.noalias}, %sums: !v) workgroup(%a: !s, %b: !s, %m: !m)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    schedule.mbarrier_init %m[0] : !m
  }
  // CHECK: gpu.barrier
  gpu.barrier
  scf.if %first {
    schedule.mbarrier_expect %m[0] {bytes = 8192} : !m
    // CHECK: schedule.tile_copy
    schedule.tile_copy %in[%c0, %c0] to %a[%c0] signals %m[0]
      {shape = array<i64: 256, 256>, box = array<i64: 64, 64>} : !g, !s, !m
  }
  // CHECK: schedule.mbarrier_wait
  // CHECK-NEXT: gpu.barrier
  // CHECK: schedule.group_product
  schedule.mbarrier_wait %m[0] {parity = false} : !m
  gpu.barrier
  nvvm.wgmma.fence.aligned
  %r = schedule.group_product %sums, %a[%c0], %b[%c0] {strides = array<i64: 16, 1024, 16, 1024>} : !s, !s, !v
  nvvm.wgmma.commit.group.sync.aligned
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  nvvm.wgmma.wait.group.sync.aligned 0
  gpu.return
}
}

// -----

#one = array<i32: 1, 1, 1>
#team = array<i32: 128, 1, 1>
!s = memref<4096xbf16, #gpu.address_space<workgroup>>
!m = memref<2xi64, #gpu.address_space<workgroup>>
!g = memref<65536xbf16>

gpu.module @other {

// No barrier helps: what is waited for is another mbarrier.
gpu.func @other_mbarrier(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%a: !s, %m: !m)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %t, %c0 : index
  // expected-note @below {{invocations take different ways here}}
  scf.if %first {
    // expected-note @below {{the earlier access}}
    schedule.tile_copy %in[%c0, %c0] to %a[%c0] signals %m[0]
      {shape = array<i64: 256, 256>, box = array<i64: 64, 64>} : !g, !s, !m
  }
  schedule.mbarrier_wait %m[1] {parity = false} : !m
  gpu.barrier
  // expected-error @below {{RAW hazard between invocations of one workgroup: this meets the bytes of an earlier access, and not all invocations come to any place between the two}}
  %x = memref.load %a[%t] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}
}
