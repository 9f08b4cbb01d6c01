// RUN: weir-opt %s --weir-set-profile --weir-emit-spirv --weir-print-spirv | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-emit-spirv -o %t.1
// RUN: weir-opt %s --weir-set-profile --weir-emit-spirv -o %t.2
// RUN: cmp %t.1 %t.2

#global = #gpu.address_space<global>
#workgroup = #gpu.address_space<workgroup>
#private = #gpu.address_space<private>

module attributes {gpu.container_module} {

// The interface: names, bindings, strides, the version's storage class.
// CHECK-LABEL: ; gpu.binary @interface
// CHECK:      OpMemoryModel Logical GLSL450
// CHECK-NEXT: OpEntryPoint GLCompute %[[#]] "interface"
// CHECK-NEXT: OpExecutionMode %[[#]] SignedZeroInfNanPreserve 32
// CHECK-NEXT: OpExecutionMode %[[#]] SignedZeroInfNanPreserve 64
// CHECK-NEXT: OpExecutionMode %[[#]] LocalSize 8 1 1
// CHECK-DAG:  OpDecorate %_arr_v2ulong_uint_8 ArrayStride 16
// CHECK-DAG:  OpDecorate %_arr_uchar_uint_3 ArrayStride 1
// CHECK-DAG:  OpDecorate %_arr_v4double_uint_2 ArrayStride 32
// CHECK-DAG:  OpDecorate %_arr_ulong_uint_5 ArrayStride 8
// CHECK-DAG:  OpDecorate %[[X:[0-9]+]] Binding 0
// CHECK-DAG:  OpDecorate %[[X]] DescriptorSet 0
// CHECK-DAG:  OpDecorate %[[#]] Binding 3
// CHECK-DAG:  OpVariable %_ptr_StorageBuffer__struct_[[#]] StorageBuffer
gpu.module @interface {
  gpu.func @interface(%x: memref<8xvector<4xf32>, #global> {llvm.noalias},
                      %m: memref<3xi8, #global>,
                      %d: memref<2xvector<4xf64>, #global>,
                      %n: memref<5xi64, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xvector<4xf32>, #global>
    %w = arith.addf %v, %v : vector<4xf32>
    memref.store %w, %x[%i] : memref<8xvector<4xf32>, #global>
    gpu.return
  }
}

// Vectors of 32-bit elements lie in buffers as 64-bit words, for a profile of such
// habits (emit-spirv-profile.test has the twin); others stay.
// CHECK-LABEL: ; gpu.binary @words
// CHECK-DAG:  OpDecorate %_arr_ulong_uint_8 ArrayStride 8
// CHECK-DAG:  OpDecorate %_arr_v2double_uint_8 ArrayStride 16
// CHECK:      %[[WORD:.*]] = OpLoad %ulong
// CHECK:      %[[PAIR:.*]] = OpBitcast %v2float %[[WORD]]
// CHECK:      %[[SUM:.*]] = OpFAdd %v2float %[[PAIR]] %[[PAIR]]
// CHECK:      %[[SUMS:.*]] = OpBitcast %ulong %[[SUM]]
// CHECK:      OpStore %[[#]] %[[SUMS]]
// CHECK:      OpLoad %v2double
gpu.module @words {
  gpu.func @words(%x: memref<8xvector<2xf32>, #global>, %d: memref<8xvector<2xf64>, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xvector<2xf32>, #global>
    %w = arith.addf %v, %v : vector<2xf32>
    memref.store %w, %x[%i] : memref<8xvector<2xf32>, #global>
    %p = memref.load %d[%i] : memref<8xvector<2xf64>, #global>
    %q = arith.addf %p, %p : vector<2xf64>
    memref.store %q, %d[%i] : memref<8xvector<2xf64>, #global>
    gpu.return
  }
}

// CHECK-LABEL: ; gpu.binary @ids
// CHECK:      OpCapability GroupNonUniform
// CHECK-DAG:  BuiltIn WorkgroupId
// CHECK-DAG:  BuiltIn LocalInvocationId
// CHECK-DAG:  BuiltIn SubgroupLocalInvocationId
// CHECK-DAG:  BuiltIn SubgroupId
// CHECK-DAG:  BuiltIn NumSubgroups
// CHECK:      OpFunction
gpu.module @ids {
  gpu.func @ids(%o: memref<64xi32, #global>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %b = gpu.block_id x
    %i = gpu.thread_id x
    %l = gpu.lane_id
    %s = gpu.subgroup_id : index
    %n = gpu.num_subgroups : index
    %d = gpu.block_dim x
    %a0 = arith.addi %b, %l : index
    %a1 = arith.addi %a0, %s : index
    %a2 = arith.addi %a1, %n : index
    %a3 = arith.addi %a2, %d : index
    %v = arith.index_cast %a3 : index to i32
    memref.store %v, %o[%i] : memref<64xi32, #global>
    gpu.return
  }
}

// The twin of @ids: no subgroup builtin, no subgroup capability.
// CHECK-LABEL: ; gpu.binary @no_subgroups
// CHECK-NOT:  GroupNonUniform
// CHECK:      OpFunctionEnd
gpu.module @no_subgroups {
  gpu.func @no_subgroups(%o: memref<8xi32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = arith.index_cast %i : index to i32
    memref.store %v, %o[%i] : memref<8xi32, #global>
    gpu.return
  }
}

// CHECK-LABEL: ; gpu.binary @shuffle
// CHECK:      OpCapability GroupNonUniformShuffle
// CHECK:      OpGroupNonUniformShuffleXor %float %uint_3
gpu.module @shuffle {
  gpu.func @shuffle(%o: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %offset = arith.constant 4 : i32
    %width = arith.constant 8 : i32
    %v = memref.load %o[%i] : memref<8xf32, #global>
    %w, %valid = gpu.shuffle xor %v, %offset, %width : f32
    memref.store %w, %o[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// A barrier orders storage buffers and workgroup memory: 0x8 | 0x40 | 0x100.
// CHECK-LABEL: ; gpu.binary @barrier
// CHECK-DAG:  %uint_328 = OpConstant %uint 328
// CHECK-DAG:  OpVariable %_ptr_Workgroup__struct_[[#]] Workgroup
// CHECK:      OpControlBarrier %uint_2 %uint_2 %uint_328
gpu.module @barrier {
  gpu.func @barrier(%o: memref<8xf32, #global>) workgroup(%s: memref<8xf32, #workgroup>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c7 = arith.constant 7 : index
    %i = gpu.thread_id x
    %j = arith.subi %c7, %i : index
    %v = memref.load %o[%i] : memref<8xf32, #global>
    memref.store %v, %s[%i] : memref<8xf32, #workgroup>
    gpu.barrier
    %w = memref.load %s[%j] : memref<8xf32, #workgroup>
    memref.store %w, %o[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// A private row is a variable of the function's first block, even when it is
// allocated in a loop, and the loop stays rolled.
// CHECK-LABEL: ; gpu.binary @private_row
// CHECK:      OpLabel
// CHECK-NEXT: OpVariable %_ptr_Function__struct_[[#]] Function
// CHECK:      OpLoopMerge %[[#]] %[[#]] DontUnroll
gpu.module @private_row {
  gpu.func @private_row(%x: memref<4xvector<4xf32>, #global>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %p = memref.alloca() : memref<4xvector<4xf32>, #private>
      %v = memref.load %x[%i] : memref<4xvector<4xf32>, #global>
      memref.store %v, %p[%i] : memref<4xvector<4xf32>, #private>
      %w = memref.load %p[%c0] : memref<4xvector<4xf32>, #private>
      memref.store %w, %x[%i] : memref<4xvector<4xf32>, #global>
    }
    gpu.return
  }
}

// A loop that may make no trips yields its initial values from a branch of its
// own: a loop's results are stored by its body alone.
// CHECK-LABEL: ; gpu.binary @maybe_no_trips
// CHECK:      OpBranchConditional %[[#]] %[[THEN:[0-9]+]] %[[ELSE:[0-9]+]]
// CHECK:      %[[THEN]] = OpLabel
// CHECK:      OpLoopMerge
// CHECK:      %[[ELSE]] = OpLabel
// CHECK-NEXT: OpLine
// CHECK-NEXT: OpStore %[[R:[0-9]+]] %float_1
// CHECK:      OpLoad %float %[[R]]
gpu.module @maybe_no_trips {
  gpu.func @maybe_no_trips(%o: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    %i = gpu.thread_id x
    %r = scf.for %k = %i to %c4 step %c1 iter_args(%a = %one) -> (f32) {
      %b = arith.addf %a, %one : f32
      scf.yield %b : f32
    }
    memref.store %r, %o[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// The twin: trips are certain, no branch but the loop's own.
// CHECK-LABEL: ; gpu.binary @always_trips
// CHECK-NOT:  OpSelectionMerge
// CHECK:      OpFunctionEnd
gpu.module @always_trips {
  gpu.func @always_trips(%o: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    %i = gpu.thread_id x
    %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %one) -> (f32) {
      %b = arith.addf %a, %one : f32
      scf.yield %b : f32
    }
    memref.store %r, %o[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// CHECK-LABEL: ; gpu.binary @if_results
// CHECK:      OpSelectionMerge
// CHECK:      OpBranchConditional
gpu.module @if_results {
  gpu.func @if_results(%o: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c3 = arith.constant 3 : index
    %one = arith.constant 1.0 : f32
    %i = gpu.thread_id x
    %p = arith.cmpi ult, %i, %c3 : index
    %r, %q = scf.if %p -> (f32, i1) {
      %v = memref.load %o[%i] : memref<8xf32, #global>
      scf.yield %v, %p : f32, i1
    } else {
      scf.yield %one, %p : f32, i1
    }
    scf.if %q {
      memref.store %r, %o[%i] : memref<8xf32, #global>
    }
    gpu.return
  }
}

// Every rounding operation is exact, and so is an fma; a select has no rounding.
// CHECK-LABEL: ; gpu.binary @exact
// CHECK-COUNT-7: OpDecorate %[[#]] NoContraction
// CHECK-NOT:     NoContraction
// CHECK-NOT:     FPFastMathMode
// CHECK-DAG:     OpFAdd %v4float
// CHECK-DAG:     OpFSub %v4float
// CHECK-DAG:     OpFMul %v4float
// CHECK-DAG:     OpFDiv %v4float
// CHECK-DAG:     OpFNegate %v4float
// CHECK-DAG:     OpExtInst %v4float %[[#]] Fma
// CHECK-DAG:     OpFAdd %float
gpu.module @exact {
  gpu.func @exact(%o: memref<8xvector<4xf32>, #global>, %s: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %o[%i] : memref<8xvector<4xf32>, #global>
    %a = arith.addf %v, %v fastmath<fast> : vector<4xf32>
    %b = arith.subf %a, %v : vector<4xf32>
    %c = arith.mulf %a, %b : vector<4xf32>
    %d = arith.divf %c, %v : vector<4xf32>
    %e = arith.negf %d : vector<4xf32>
    %f = math.fma %e, %v, %a : vector<4xf32>
    %x = vector.extract %f[0] : f32 from vector<4xf32>
    %y = vector.extract %f[1] : f32 from vector<4xf32>
    %z = arith.addf %x, %y fastmath<reassoc> : f32
    memref.store %f, %o[%i] : memref<8xvector<4xf32>, #global>
    memref.store %z, %s[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// NaN and the sign of zero come through; GLSL's FMax would promise neither.
// CHECK-LABEL: ; gpu.binary @maximum
// CHECK-NOT:  FMax
// CHECK-DAG:  OpFUnordGreaterThan %bool
// CHECK-DAG:  OpBitwiseAnd %uint
// CHECK-DAG:  OpFUnordLessThan %v4bool
// CHECK-NOT:  OpBitwiseOr
// CHECK:      OpExtInst %float %[[#]] FMax
gpu.module @maximum {
  gpu.func @maximum(%o: memref<8xf32, #global>, %p: memref<8xvector<4xf32>, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %two = arith.constant dense<2.0> : vector<4xf32>
    %i = gpu.thread_id x
    %v = memref.load %o[%i] : memref<8xf32, #global>
    %w = memref.load %p[%i] : memref<8xvector<4xf32>, #global>
    %x = vector.extract %w[1] : f32 from vector<4xf32>
    %a = arith.maximumf %v, %x : f32
    %b = arith.minimumf %w, %two : vector<4xf32>
    %c = arith.maxnumf %a, %x : f32
    memref.store %c, %o[%i] : memref<8xf32, #global>
    memref.store %b, %p[%i] : memref<8xvector<4xf32>, #global>
    gpu.return
  }
}

// Either zero will do, a NaN still comes through.
// CHECK-LABEL: ; gpu.binary @maximum_of_any_zero
// CHECK-NOT:  OpBitwiseAnd
// CHECK:      OpFUnordGreaterThan %bool
// CHECK-NOT:  OpBitwiseAnd
// CHECK:      OpIsNan
gpu.module @maximum_of_any_zero {
  gpu.func @maximum_of_any_zero(%o: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %c = arith.constant 3 : index
    %v = memref.load %o[%i] : memref<8xf32, #global>
    %w = memref.load %o[%c] : memref<8xf32, #global>
    %a = arith.maximumf %v, %w fastmath<nsz> : f32
    memref.store %a, %o[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// CHECK-LABEL: ; gpu.binary @compare_and_cast
// CHECK-DAG:  OpFOrdLessThan
// CHECK-DAG:  OpFUnordNotEqual
// CHECK-DAG:  OpIsNan
// CHECK-DAG:  OpSelect %uchar
// CHECK-DAG:  OpConvertSToF %float
// CHECK-DAG:  OpConvertUToF %float
// CHECK-DAG:  OpConvertFToS %uint
// CHECK-DAG:  OpFConvert %double
// CHECK-DAG:  OpBitcast %uint
// CHECK-DAG:  OpSConvert %ulong
gpu.module @compare_and_cast {
  gpu.func @compare_and_cast(%x: memref<8xf32, #global>, %m: memref<8xi8, #global>,
                             %n: memref<8xi64, #global>, %d: memref<8xf64, #global>,
                             %j: memref<8xi32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %v = memref.load %x[%i] : memref<8xf32, #global>
    %p = arith.cmpf olt, %v, %zero : f32
    %q = arith.cmpf une, %v, %zero : f32
    %r = arith.cmpf uno, %v, %v : f32
    %p1 = arith.andi %p, %q : i1
    %p2 = arith.ori %p1, %r : i1
    %b = arith.extui %p2 : i1 to i8
    memref.store %b, %m[%i] : memref<8xi8, #global>
    %k = arith.bitcast %v : f32 to i32
    %k1 = arith.shrui %k, %c1 : i32
    %s = arith.sitofp %k1 : i32 to f32
    %u = arith.uitofp %k1 : i32 to f32
    %su = arith.addf %s, %u : f32
    %t = arith.fptosi %su : f32 to i32
    memref.store %t, %j[%i] : memref<8xi32, #global>
    %l = arith.extsi %t : i32 to i64
    memref.store %l, %n[%i] : memref<8xi64, #global>
    %e = arith.extf %su : f32 to f64
    memref.store %e, %d[%i] : memref<8xf64, #global>
    %y = arith.bitcast %t : i32 to f32
    %z = arith.select %p, %y, %v : f32
    memref.store %z, %x[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// A byte that holds a bool becomes i1 again.
// CHECK-LABEL: ; gpu.binary @bool_in_memory
// CHECK:      OpLoad %uchar
// CHECK:      OpSelect %v4float
gpu.module @bool_in_memory {
  gpu.func @bool_in_memory(%m: memref<8xi8, #global>, %x: memref<8xvector<4xf32>, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %z = arith.constant dense<0.0> : vector<4xf32>
    %b = memref.load %m[%i] : memref<8xi8, #global>
    %p = arith.trunci %b : i8 to i1
    %v = memref.load %x[%i] : memref<8xvector<4xf32>, #global>
    %w = arith.select %p, %v, %z : vector<4xf32>
    memref.store %w, %x[%i] : memref<8xvector<4xf32>, #global>
    gpu.return
  }
}

// CHECK-LABEL: ; gpu.binary @maths
// CHECK-DAG:  FAbs
// CHECK-DAG:  Floor
// CHECK-DAG:  Ceil
// CHECK-DAG:  RoundEven
// CHECK-DAG:  InverseSqrt
// CHECK-DAG:  OpExtInst %float %[[#]] Sqrt
// CHECK-DAG:  OpExtInst %double %[[#]] Sqrt
gpu.module @maths {
  gpu.func @maths(%x: memref<8xf32, #global>, %d: memref<8xf64, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xf32, #global>
    %a = math.absf %v : f32
    %b = math.floor %a : f32
    %c = math.ceil %b : f32
    %e = math.roundeven %c : f32
    %f = math.copysign %e, %v : f32
    %g = math.sqrt %f : f32
    %h = math.rsqrt %g : f32
    memref.store %h, %x[%i] : memref<8xf32, #global>
    %w = memref.load %d[%i] : memref<8xf64, #global>
    %s = math.sqrt %w : f64
    memref.store %s, %d[%i] : memref<8xf64, #global>
    gpu.return
  }
}

// CHECK-LABEL: ; gpu.binary @vectors
// CHECK-DAG:  OpVectorExtractDynamic %float
// CHECK-DAG:  OpCompositeInsert %v4float
// CHECK-DAG:  OpCompositeExtract %float %[[#]] 3
// CHECK-DAG:  OpCompositeConstruct %v4float
gpu.module @vectors {
  gpu.func @vectors(%x: memref<4xvector<4xf32>, #global>)
      kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
    %i = gpu.thread_id x
    %two = arith.constant dense<2.0> : vector<4xf32>
    %v = memref.load %x[%i] : memref<4xvector<4xf32>, #global>
    %a = vector.extract %v[%i] : f32 from vector<4xf32>
    %b = vector.extract %v[3] : f32 from vector<4xf32>
    %c = vector.insert %a, %v[1] : f32 into vector<4xf32>
    %d = vector.from_elements %a, %b, %a, %b : vector<4xf32>
    %e = vector.broadcast %b : f32 to vector<4xf32>
    %f = arith.addf %c, %d : vector<4xf32>
    %g = arith.addf %f, %e : vector<4xf32>
    %h = arith.mulf %g, %two : vector<4xf32>
    memref.store %h, %x[%i] : memref<4xvector<4xf32>, #global>
    gpu.return
  }
}

// What upstream or a driver computes wrongly is spelled out in what is exact.
// CHECK-LABEL: ; gpu.binary @spelled_out
// CHECK-NOT:  OpSRem
// CHECK-NOT:  OpUMod
// CHECK-NOT:  RoundEven
// CHECK-DAG:  OpSDiv %uint
// CHECK-DAG:  OpExtInst %float %[[#]] Floor
// CHECK-DAG:  OpFAdd %double %[[#]] %double_4503599627370496
// CHECK-DAG:  OpFSub %double %[[#]] %double_4503599627370496
gpu.module @spelled_out {
  gpu.func @spelled_out(%x: memref<8xf32, #global>, %d: memref<8xf64, #global>,
                        %j: memref<8xi32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c7 = arith.constant 7 : i32
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xf32, #global>
    %a = math.trunc %v : f32
    memref.store %a, %x[%i] : memref<8xf32, #global>
    %w = memref.load %d[%i] : memref<8xf64, #global>
    %b = math.roundeven %w : f64
    memref.store %b, %d[%i] : memref<8xf64, #global>
    %k = memref.load %j[%i] : memref<8xi32, #global>
    %r = arith.remsi %k, %c7 : i32
    %f = arith.floordivsi %r, %c7 : i32
    %c = arith.ceildivsi %f, %c7 : i32
    memref.store %c, %j[%i] : memref<8xi32, #global>
    gpu.return
  }
}

// Arithmetic of booleans is bitwise. Their sign is their bit; of wider integers the
// comparison stays signed.
// CHECK-LABEL: ; gpu.binary @booleans
// CHECK-NOT:  OpIAdd %bool
// CHECK-NOT:  OpIMul %bool
// CHECK-DAG:  OpLogicalNotEqual %bool
// CHECK-DAG:  OpLogicalAnd %bool
// CHECK-DAG:  OpSLessThan %bool
// CHECK-DAG:  OpConvertSToF %float
// CHECK-NOT:  OpSLessThan %bool
gpu.module @booleans {
  gpu.func @booleans(%x: memref<8xf32, #global>, %j: memref<8xi32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xf32, #global>
    %k = memref.load %j[%i] : memref<8xi32, #global>
    %c7 = arith.constant 7 : i32
    %a = arith.cmpi slt, %k, %c7 : i32
    %b = arith.cmpf olt, %v, %v : f32
    %t = arith.cmpf true, %v, %v : f32
    %sum = arith.addi %a, %b : i1
    %product = arith.muli %sum, %b : i1
    %most = arith.maxsi %product, %a : i1
    %less = arith.cmpi slt, %most, %sum : i1
    %both = arith.andi %less, %t : i1
    %f = arith.sitofp %both : i1 to f32
    memref.store %f, %x[%i] : memref<8xf32, #global>
    gpu.return
  }
}

// f16 and bf16 are stored as integers, and cast by integer arithmetic.
// CHECK-LABEL: ; gpu.binary @halves
// CHECK-NOT:  OpTypeFloat 16
// CHECK-NOT:  OpFConvert
// CHECK-DAG:  OpCapability Int16
// CHECK-DAG:  OpCapability StorageBuffer16BitAccess
// CHECK-DAG:  OpDecorate %{{.*}} ArrayStride 2
// CHECK-DAG:  OpConvertUToF %float
// CHECK:      OpFunctionEnd
gpu.module @halves {
  gpu.func @halves(%x: memref<8xf16, #global>, %y: memref<8xbf16, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c = arith.constant 1.5 : f16
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xf16, #global>
    %n = arith.cmpi ult, %i, %i : index
    %s = arith.select %n, %v, %c : f16
    %w = arith.extf %s : f16 to f32
    %z = arith.truncf %w : f32 to bf16
    %u = vector.from_elements %z, %z : vector<2xbf16>
    %e = arith.extf %u : vector<2xbf16> to vector<2xf32>
    %f = arith.truncf %e : vector<2xf32> to vector<2xbf16>
    %g = vector.extract %f[1] : bf16 from vector<2xbf16>
    memref.store %g, %y[%i] : memref<8xbf16, #global>
    gpu.return
  }
}

// The twin: nothing has 16 bits.
// CHECK-LABEL: ; gpu.binary @no_halves
// CHECK-NOT:  Int16
// CHECK-NOT:  StorageBuffer16BitAccess
// CHECK:      OpFunctionEnd
gpu.module @no_halves {
  gpu.func @no_halves(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}

}
