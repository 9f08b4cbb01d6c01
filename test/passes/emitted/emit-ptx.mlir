// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-emit-ptx --weir-print-ptx -o /dev/null | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-emit-ptx -o %t.1
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-emit-ptx -o %t.2
// RUN: cmp %t.1 %t.2
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-emit-ptx --weir-print-ptx -o /dev/null | FileCheck %s --check-prefix=SM90

// SM90: .target sm_90

#global = #gpu.address_space<global>
#workgroup = #gpu.address_space<workgroup>
#private = #gpu.address_space<private>

module attributes {gpu.container_module} {

// Version, GPU, one address per operand, the workgroup, and 128 bits a load. An
// operand that is only read, and was said to share nothing, is read coherently:
// it may share bytes with the one that is written.
// CHECK-LABEL: // gpu.binary @interface
// CHECK:      .version 8.0
// CHECK-NEXT: .target sm_80
// CHECK:      .visible .entry interface(
// CHECK-NEXT:   .param .u64 .ptr .global {{.*}}interface_param_0,
// CHECK-NEXT:   .param .u64 .ptr .global {{.*}}interface_param_1
// CHECK-NEXT: )
// CHECK-NEXT: .reqntid 32, 2, 1
// CHECK-NOT:  .nc
// CHECK:      ld.global.v4.b32
// CHECK-NOT:  .nc
// CHECK:      st.global.v4.b32
gpu.module @interface {
  gpu.func @interface(%x: memref<32xvector<4xf32>, #global> {llvm.noalias, llvm.readonly},
                      %y: memref<32xvector<4xf32>, #global> {llvm.noalias})
      kernel attributes {known_block_size = array<i32: 32, 2, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xvector<4xf32>, #global>
    %w = arith.addf %v, %v : vector<4xf32>
    memref.store %w, %y[%i] : memref<32xvector<4xf32>, #global>
    gpu.return
  }
}

// A scalar is loaded alone, its alignment promises no more.
// CHECK-LABEL: // gpu.binary @scalars
// CHECK-NOT:  .v4
// CHECK-NOT:  .v2
// CHECK:      ld.global.b32
// CHECK:      ld.global.b32
gpu.module @scalars {
  gpu.func @scalars(%x: memref<64xf32, #global>, %y: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %i = gpu.thread_id x
    %j = arith.muli %i, %c2 : index
    %k = arith.addi %j, %c1 : index
    %v = memref.load %x[%j] : memref<64xf32, #global>
    %w = memref.load %x[%k] : memref<64xf32, #global>
    %s = arith.addf %v, %w : f32
    memref.store %s, %y[%i] : memref<32xf32, #global>
    gpu.return
  }
}

// Subgroups are warps of the workgroup's linear order.
// CHECK-LABEL: // gpu.binary @ids
// CHECK-DAG:  %tid.x
// CHECK-DAG:  %tid.y
// CHECK-DAG:  %ctaid.x
// CHECK-DAG:  %laneid
// CHECK:      ret;
gpu.module @ids {
  gpu.func @ids(%o: memref<64xi32, #global>)
      kernel attributes {known_block_size = array<i32: 16, 4, 1>} {
    %b = gpu.block_id x
    %i = gpu.thread_id x
    %l = gpu.lane_id
    %s = gpu.subgroup_id : index
    %n = gpu.num_subgroups : index
    %z = gpu.subgroup_size : index
    %d = gpu.block_dim x
    %a0 = arith.addi %b, %l : index
    %a1 = arith.muli %a0, %s : index
    %a2 = arith.addi %a1, %n : index
    %a3 = arith.addi %a2, %d : index
    %a4 = arith.addi %a3, %z : index
    %v = arith.index_cast %a4 : index to i32
    memref.store %v, %o[%i] : memref<64xi32, #global>
    gpu.return
  }
}

// The twin: invocations in a row need no other axis.
// CHECK-LABEL: // gpu.binary @ids_in_a_row
// CHECK-NOT:  %tid.y
// CHECK:      ret;
gpu.module @ids_in_a_row {
  gpu.func @ids_in_a_row(%o: memref<64xi32, #global>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %i = gpu.thread_id x
    %s = gpu.subgroup_id : index
    %v = arith.index_cast %s : index to i32
    memref.store %v, %o[%i] : memref<64xi32, #global>
    gpu.return
  }
}

// All lanes take part; 64 bits go in halves.
// CHECK-LABEL: // gpu.binary @shuffle
// CHECK:      shfl.sync.bfly.b32 {{.*}}, 4, 31, -1;
// CHECK:      shfl.sync.bfly.b32 {{.*}}, 4, 31, -1;
// CHECK:      shfl.sync.bfly.b32 {{.*}}, 4, 31, -1;
gpu.module @shuffle {
  gpu.func @shuffle(%o: memref<32xf32, #global>, %d: memref<32xf64, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %offset = arith.constant 4 : i32
    %width = arith.constant 32 : i32
    %v = memref.load %o[%i] : memref<32xf32, #global>
    %w, %valid = gpu.shuffle xor %v, %offset, %width : f32
    memref.store %w, %o[%i] : memref<32xf32, #global>
    %e = memref.load %d[%i] : memref<32xf64, #global>
    %f, %valid64 = gpu.shuffle xor %e, %offset, %width : f64
    memref.store %f, %d[%i] : memref<32xf64, #global>
    gpu.return
  }
}

// Workgroup memory is aligned for the vectors that LLVM makes of scalars.
// CHECK-LABEL: // gpu.binary @barrier
// CHECK:      .shared .align 32 .b8 {{.*}}[128];
// CHECK:      st.shared.b32
// CHECK:      bar{{.*}}.sync
// CHECK:      ld.shared.v4.b32
gpu.module @barrier {
  gpu.func @barrier(%o: memref<32xf32, #global>) workgroup(%s: memref<32xf32, #workgroup>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %i = gpu.thread_id x
    %v = memref.load %o[%i] : memref<32xf32, #global>
    memref.store %v, %s[%i] : memref<32xf32, #workgroup>
    gpu.barrier
    %v0 = memref.load %s[%c0] : memref<32xf32, #workgroup>
    %v1 = memref.load %s[%c1] : memref<32xf32, #workgroup>
    %v2 = memref.load %s[%c2] : memref<32xf32, #workgroup>
    %v3 = memref.load %s[%c3] : memref<32xf32, #workgroup>
    %a = arith.addf %v0, %v1 : f32
    %b = arith.addf %a, %v2 : f32
    %c = arith.addf %b, %v3 : f32
    memref.store %c, %o[%i] : memref<32xf32, #global>
    gpu.return
  }
}

// A private row that only constants index is in registers.
// CHECK-LABEL: // gpu.binary @private_row
// CHECK-NOT:  .local
// CHECK:      ret;
gpu.module @private_row {
  gpu.func @private_row(%x: memref<4xvector<4xf32>, #global>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %p = memref.alloca() : memref<2xvector<4xf32>, #private>
    %v = memref.load %x[%c0] : memref<4xvector<4xf32>, #global>
    %w = memref.load %x[%c1] : memref<4xvector<4xf32>, #global>
    memref.store %v, %p[%c0] : memref<2xvector<4xf32>, #private>
    memref.store %w, %p[%c1] : memref<2xvector<4xf32>, #private>
    %a = memref.load %p[%c0] : memref<2xvector<4xf32>, #private>
    memref.store %a, %x[%c1] : memref<4xvector<4xf32>, #global>
    gpu.return
  }
}

// The twin: a row indexed by what is read is in memory, aligned for its vectors.
// CHECK-LABEL: // gpu.binary @private_memory
// CHECK:      .local .align 16
// CHECK:      st.local.v4.b32
gpu.module @private_memory {
  gpu.func @private_memory(%x: memref<64xvector<4xf32>, #global>, %n: memref<1xi32, #global>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %p = memref.alloca() : memref<64xvector<4xf32>, #private>
    scf.for %i = %c0 to %c64 step %c1 {
      %v = memref.load %x[%i] : memref<64xvector<4xf32>, #global>
      memref.store %v, %p[%i] : memref<64xvector<4xf32>, #private>
    }
    %k = memref.load %n[%c0] : memref<1xi32, #global>
    %j = arith.index_cast %k : i32 to index
    %a = memref.load %p[%j] : memref<64xvector<4xf32>, #private>
    memref.store %a, %x[%c1] : memref<64xvector<4xf32>, #global>
    gpu.return
  }
}

// Each operation rounds to nearest by itself, whatever it would allow, and a
// product and a sum stay two; only the fma is one.
// CHECK-LABEL: // gpu.binary @exact
// CHECK-NOT:  fma
// CHECK:      mul.rn.f32
// CHECK:      add.rn.f32
// CHECK:      sub.rn.f32
// CHECK:      div.rn.f32
// CHECK:      mul.rn.f64
// CHECK-NEXT: add.rn.f64
// CHECK:      sqrt.rn.f64
// CHECK-LABEL: // gpu.binary @fused
// CHECK-NOT:  mul.rn
// CHECK:      fma.rn.f32
// CHECK-NOT:  mul.rn
// CHECK:      ret;
gpu.module @exact {
  gpu.func @exact(%o: memref<32xf32, #global>, %d: memref<32xf64, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %o[%i] : memref<32xf32, #global>
    %a = arith.mulf %v, %v fastmath<fast> : f32
    %b = arith.addf %a, %v fastmath<contract> : f32
    %c = arith.subf %b, %a fastmath<reassoc> : f32
    %d0 = arith.divf %c, %v fastmath<arcp> : f32
    memref.store %d0, %o[%i] : memref<32xf32, #global>
    %w = memref.load %d[%i] : memref<32xf64, #global>
    %e = arith.mulf %w, %w fastmath<fast> : f64
    %f = arith.addf %e, %w fastmath<fast> : f64
    %g = math.sqrt %f fastmath<afn> : f64
    memref.store %g, %d[%i] : memref<32xf64, #global>
    gpu.return
  }
}
gpu.module @fused {
  gpu.func @fused(%o: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %o[%i] : memref<32xf32, #global>
    %a = math.fma %v, %v, %v : f32
    memref.store %a, %o[%i] : memref<32xf32, #global>
    gpu.return
  }
}

// NaN and the sign of zero come through.
// CHECK-LABEL: // gpu.binary @maximum
// CHECK-DAG:  max.NaN.f32
// CHECK-DAG:  min.NaN.f32
// CHECK-DAG:  max.f32
// CHECK:      ret;
gpu.module @maximum {
  gpu.func @maximum(%o: memref<32xf32, #global>, %p: memref<32xf64, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c1 = arith.constant 1 : index
    %i = gpu.thread_id x
    %v = memref.load %o[%i] : memref<32xf32, #global>
    %x = memref.load %o[%c1] : memref<32xf32, #global>
    %a = arith.maximumf %v, %x : f32
    %b = arith.minimumf %a, %v : f32
    %c = arith.maxnumf %b, %x : f32
    memref.store %c, %o[%i] : memref<32xf32, #global>
    %d = memref.load %p[%i] : memref<32xf64, #global>
    %e = memref.load %p[%c1] : memref<32xf64, #global>
    %f = arith.maximumf %d, %e : f64
    memref.store %f, %p[%i] : memref<32xf64, #global>
    gpu.return
  }
}

// Instructions, nothing of libdevice.
// CHECK-LABEL: // gpu.binary @maths
// CHECK-DAG:  abs.f32
// CHECK-DAG:  cvt.rmi.f32.f32
// CHECK-DAG:  cvt.rpi.f32.f32
// CHECK-DAG:  cvt.rni.f32.f32
// CHECK-DAG:  cvt.rzi.f32.f32
// CHECK-DAG:  copysign.f32
// CHECK:      ret;
gpu.module @maths {
  gpu.func @maths(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xf32, #global>
    %half = arith.constant 0.5 : f32
    %a = math.absf %v : f32
    %a1 = arith.mulf %a, %half : f32
    %b = math.floor %a1 : f32
    %b1 = arith.mulf %b, %half : f32
    %c = math.ceil %b1 : f32
    %c1 = arith.mulf %c, %half : f32
    %e = math.roundeven %c1 : f32
    %e1 = arith.mulf %e, %half : f32
    %f = math.trunc %e1 : f32
    %f1 = arith.mulf %f, %half : f32
    %g = math.round %f1 : f32
    %h = math.copysign %g, %v : f32
    memref.store %h, %x[%i] : memref<32xf32, #global>
    gpu.return
  }
}

// Halves are of their own types in memory; their sums are rounded once.
// CHECK-LABEL: // gpu.binary @halves
// CHECK-DAG:  ld.global.b16
// CHECK-DAG:  add.rn.f16
// CHECK-DAG:  cvt.f32.f16
// CHECK-DAG:  cvt.rn.bf16.f32
// CHECK:      ret;
gpu.module @halves {
  gpu.func @halves(%x: memref<32xf16, #global>, %y: memref<32xbf16, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xf16, #global>
    %a = arith.addf %v, %v : f16
    %m = arith.mulf %a, %v : f16
    %n = arith.divf %m, %a : f16
    memref.store %n, %x[%i] : memref<32xf16, #global>
    %w = arith.extf %m : f16 to f32
    %b = memref.load %y[%i] : memref<32xbf16, #global>
    %c = arith.addf %b, %b : bf16
    %e = arith.mulf %c, %b : bf16
    %f = arith.extf %e : bf16 to f32
    %g = arith.addf %f, %w : f32
    %h = arith.truncf %g : f32 to bf16
    memref.store %h, %y[%i] : memref<32xbf16, #global>
    gpu.return
  }
}

// A loop that the caller's data ends, and an atomic of integers.
// CHECK-LABEL: // gpu.binary @while
// CHECK:      atom{{.*}}.add
gpu.module @while {
  gpu.func @while(%n: memref<32xi32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c1 = arith.constant 1 : i32
    %i = gpu.thread_id x
    %first = memref.load %n[%i] : memref<32xi32, #global>
    %last = scf.while (%k = %first) : (i32) -> i32 {
      %more = arith.cmpi sgt, %k, %c1 : i32
      scf.condition(%more) %k : i32
    } do {
    ^bb0(%k: i32):
      %next = arith.shrsi %k, %c1 : i32
      scf.yield %next : i32
    }
    %old = memref.atomic_rmw addi %last, %n[%i] : (i32, memref<32xi32, #global>) -> i32
    gpu.return
  }
}

// Copies to workgroup memory, in groups.
// CHECK-LABEL: // gpu.binary @copies
// CHECK:      cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16;
// CHECK-NEXT: cp.async.commit_group;
// CHECK:      cp.async.ca.shared.global [{{.*}}], [{{.*}}], 4;
// CHECK-NEXT: cp.async.commit_group;
// CHECK:      cp.async.wait_group 1;
// CHECK:      bar.sync 0;
// CHECK:      ld.shared
gpu.module @copies {
  gpu.func @copies(%x: memref<128xf32, #global>, %y: memref<128xf32, #global>)
      workgroup(%a: memref<128xf32, #workgroup>, %b: memref<32xf32, #workgroup>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %c4 = arith.constant 4 : index
    %k = arith.muli %i, %c4 : index
    %0 = nvgpu.device_async_copy %x[%k], %a[%k], 4 {bypassL1} : memref<128xf32, #global> to memref<128xf32, #workgroup>
    %1 = nvgpu.device_async_create_group %0
    %2 = nvgpu.device_async_copy %x[%i], %b[%i], 1 : memref<128xf32, #global> to memref<32xf32, #workgroup>
    %3 = nvgpu.device_async_create_group %2
    nvgpu.device_async_wait %1 {numGroups = 1 : i32}
    gpu.barrier
    %v = memref.load %a[%i] : memref<128xf32, #workgroup>
    memref.store %v, %y[%i] : memref<128xf32, #global>
    gpu.return
  }
}

// A binary states what the packer reads, and dispatches call it as its kernel.
// CHECK-NOT: gpu.func

// A limit is one instruction, which keeps NaNs. The twins are other ones: zeros of either sign are equal, and a
// comparison that holds for NaNs drops them.
// CHECK-LABEL: .visible .entry limits(
// CHECK:         ld.global.b32 %[[A:.*]], [
// CHECK-NEXT:    ld.global.b32 %[[B:.*]], [
// CHECK-NEXT:    ld.global.b32 %[[C:.*]], [
// CHECK-NEXT:    ld.global.b32 %[[D:.*]], [
// CHECK-DAG:     max.NaN.f32 {{.*}}, %[[A]],
// CHECK-DAG:     min.NaN.f32 {{.*}}, %[[B]],
// CHECK-DAG:     selp.f32 {{.*}}, 0f00000000, %[[C]],
// CHECK-DAG:     max.f32 {{.*}}, %[[D]],
gpu.module @limits {
  gpu.func @limits(%x: memref<4xf32, #global>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %2 = arith.constant 2 : index
    %3 = arith.constant 3 : index
    %low = arith.constant -104.0 : f32
    %zero = arith.constant 0.0 : f32
    %a = memref.load %x[%0] : memref<4xf32, #global>
    %b = memref.load %x[%1] : memref<4xf32, #global>
    %c = memref.load %x[%2] : memref<4xf32, #global>
    %d = memref.load %x[%3] : memref<4xf32, #global>
    %below = arith.cmpf olt, %a, %low : f32
    %above = arith.cmpf ogt, %b, %low : f32
    %negative = arith.cmpf olt, %c, %zero : f32
    %other = arith.cmpf ult, %d, %low : f32
    %e = arith.select %below, %low, %a : f32
    %f = arith.select %above, %low, %b : f32
    %g = arith.select %negative, %zero, %c : f32
    %h = arith.select %other, %low, %d : f32
    memref.store %e, %x[%0] : memref<4xf32, #global>
    memref.store %f, %x[%1] : memref<4xf32, #global>
    memref.store %g, %x[%2] : memref<4xf32, #global>
    memref.store %h, %x[%3] : memref<4xf32, #global>
    gpu.return
  }
}
}
