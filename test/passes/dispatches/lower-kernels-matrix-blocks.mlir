// Attention in blocks by instructions on matrices: scores stay in registers, and what is computed from them becomes
// two numbers of bf16. The twins' elements are no multiple of 16, in f32 without tf32, or their rows are too few, or
// the profile has none of these instructions.
// RUN: mkdir -p %t
// RUN: echo '{"like": "sm_80", "name": "blocks", "attention_keys": 1}' > %t/blocks.json
// RUN: echo '{"like": "sm_80", "name": "rounding", "attention_keys": 1, "precision": "tf32"}' > %t/tf32.json
// RUN: echo '{"like": "sm_80", "name": "none", "attention_keys": 1, "matrix_tile": 0}' > %t/none.json
// RUN: weir-opt %s -split-input-file --weir-set-profile=profile=%t/blocks.json --weir-decompose-norms --cse --weir-prepare-kernels \
// RUN:   --weir-form-kernels --weir-lower-kernels | FileCheck %s
// RUN: weir-opt %s -split-input-file --weir-set-profile=profile=%t/tf32.json --weir-decompose-norms --cse --weir-prepare-kernels \
// RUN:   --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=TF32
// RUN: weir-opt %s -split-input-file --weir-set-profile=profile=%t/none.json --weir-decompose-norms --cse --weir-prepare-kernels \
// RUN:   --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=NONE --implicit-check-not=nvgpu
// NONE: gpu.func @block_softmax

// One workgroup of four subgroups: the keys, the values and the queries of a head are in its memory, with eight elements
// behind each line.
// CHECK-LABEL: gpu.func @block_softmax_64x16x64(
// CHECK-SAME:    workgroup(%[[Q:.*]] : memref<1536xbf16, {{.*}}workgroup>>, %[[K:.*]] : memref<1536xbf16, {{.*}}workgroup>>, %[[V:.*]] : memref<1536xbf16, {{.*}}workgroup>>)
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK:         nvgpu.device_async_copy {{.*}}, %[[Q]]
// CHECK:         gpu.barrier
// CHECK:         nvgpu.device_async_copy {{.*}}, %[[K]]
// CHECK-NEXT:    nvgpu.device_async_copy {{.*}}, %[[V]]
// CHECK-NEXT:    %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK:         %[[ROWS:.*]] = nvgpu.ldmatrix %[[Q]]{{.*}}transpose = false
// CHECK:         nvgpu.ldmatrix %[[K]]{{.*}}transpose = false
// CHECK-COUNT-8: nvgpu.mma.sync(%[[ROWS]], {{.*}}mmaShape = [16, 8, 16]
// CHECK-NOT:     memref.store
// A row's numbers are in four neighbours: its maximum, then the exponentials of what they are above it.
// CHECK-COUNT-2: gpu.shuffle xor
// CHECK:         %[[NEW:.*]] = arith.maximumf
// CHECK-NEXT:    %[[BEFORE:.*]] = arith.subf %{{.*}}, %[[NEW]]
// CHECK-NEXT:    %[[SCALE:.*]] = math.exp %[[BEFORE]]
// CHECK-NEXT:    arith.mulf %[[SCALE]]
// CHECK-COUNT-2: gpu.shuffle xor
// CHECK:         vector.broadcast %[[SCALE]] : f32 to vector<2xf32>
// CHECK:         %[[P:.*]] = vector.from_elements {{.*}} : vector<2xf32>
// CHECK-NEXT:    %[[HIGH:.*]] = arith.truncf %[[P]] : vector<2xf32> to vector<2xbf16>
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[HIGH]]
// CHECK-NEXT:    %[[LEFT:.*]] = arith.subf %[[P]], %[[WIDE]]
// CHECK-NEXT:    arith.truncf %[[LEFT]] : vector<2xf32> to vector<2xbf16>
// CHECK:         nvgpu.ldmatrix %[[V]]{{.*}}transpose = true
// CHECK:         %[[SMALL:.*]] = nvgpu.mma.sync(%{{.*}}, %[[COLUMNS:.*]], %{{[^)]*}})
// CHECK-NEXT:    nvgpu.mma.sync(%{{.*}}, %[[COLUMNS]], %[[SMALL]])
// CHECK:         gpu.barrier
// The sums of exponentials of neighbours, once for both rows.
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK-NOT:     gpu.shuffle
// CHECK:         gpu.return

func.func @bf16(%q: tensor<64x16xbf16>, %k: tensor<64x16xbf16>, %v: tensor<64x16xbf16>) -> tensor<64x16xbf16> {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.125 : f64} : tensor<64x16xbf16>, tensor<64x16xbf16>,
      tensor<64x16xbf16> -> tensor<64x16xbf16>, tensor<64xf32>
  return %y : tensor<64x16xbf16>
}

// -----

// Both factors of f16 are two numbers of bf16. The values are so in workgroup memory. Three products are added.
// CHECK-LABEL: gpu.func @block_softmax_64x16x64(
// CHECK-SAME:    workgroup({{.*}}, %[[HIGH:[^ ]*]] : memref<1536xbf16, {{[^,]*}}workgroup>>, %[[LOW:[^ ]*]] : memref<1536xbf16, {{[^,]*}}workgroup>>)
// CHECK:         arith.extf {{.*}} : vector<8xf16> to vector<8xf32>
// CHECK:         vector.store {{.*}}, %[[HIGH]]
// CHECK:         vector.store {{.*}}, %[[LOW]]
// CHECK:         nvgpu.mma.sync{{.*}}vector<4x2xf16>
// CHECK:         arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK:         nvgpu.ldmatrix %[[HIGH]]{{.*}}transpose = true
// CHECK:         nvgpu.ldmatrix %[[LOW]]{{.*}}transpose = true
// CHECK:         nvgpu.mma.sync{{.*}}vector<4x2xbf16>
// CHECK-NEXT:    nvgpu.mma.sync{{.*}}vector<4x2xbf16>
// CHECK-NEXT:    nvgpu.mma.sync{{.*}}vector<4x2xbf16>
// CHECK:         gpu.return
func.func @f16(%q: tensor<64x16xf16>, %k: tensor<64x16xf16>, %v: tensor<64x16xf16>) -> tensor<64x16xf16> {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.125 : f64} : tensor<64x16xf16>, tensor<64x16xf16>,
      tensor<64x16xf16> -> tensor<64x16xf16>, tensor<64xf32>
  return %y : tensor<64x16xf16>
}

// -----

// CHECK-LABEL: gpu.func @block_softmax_64x16x80(
// CHECK-NOT:     nvgpu
// CHECK:         gpu.return
// TF32-LABEL:  gpu.func @block_softmax_64x16x80(
// TF32-NOT:      device_async
// TF32:          nvvm.convert.float.to.tf32
// TF32:          nvgpu.mma.sync{{.*}}mmaShape = [16, 8, 8], tf32Enabled
// TF32-NOT:      bf16
// TF32:          gpu.return
func.func @f32(%q: tensor<64x16xf32>, %k: tensor<80x16xf32>, %v: tensor<80x16xf32>) -> tensor<64x16xf32> {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.125 : f64} : tensor<64x16xf32>, tensor<80x16xf32>,
      tensor<80x16xf32> -> tensor<64x16xf32>, tensor<64xf32>
  return %y : tensor<64x16xf32>
}

// -----

// CHECK-LABEL: gpu.func @block_softmax_64x20x64(
// CHECK-NOT:     nvgpu
// CHECK:         gpu.return
func.func @odd(%q: tensor<64x20xbf16>, %k: tensor<64x20xbf16>, %v: tensor<64x20xbf16>) -> tensor<64x20xbf16> {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.125 : f64} : tensor<64x20xbf16>, tensor<64x20xbf16>,
      tensor<64x20xbf16> -> tensor<64x20xbf16>, tensor<64xf32>
  return %y : tensor<64x20xbf16>
}

// -----

// CHECK-LABEL: gpu.func @block_softmax_31x16x64(
// CHECK-NOT:     nvgpu
// CHECK:         gpu.return
func.func @few(%q: tensor<31x16xbf16>, %k: tensor<64x16xbf16>, %v: tensor<64x16xbf16>) -> tensor<31x16xbf16> {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.125 : f64} : tensor<31x16xbf16>, tensor<64x16xbf16>,
      tensor<64x16xbf16> -> tensor<31x16xbf16>, tensor<31xf32>
  return %y : tensor<31x16xbf16>
}

// -----

// Statistics alone are reduced from the sums in registers; those of neighbours are combined at the end.
// CHECK-LABEL: gpu.func @block_row_64x64(
// CHECK:         nvgpu.mma.sync
// CHECK-NOT:     gpu.shuffle
// CHECK:         gpu.barrier
// CHECK-COUNT-2: gpu.shuffle xor
// CHECK:         gpu.return
func.func @statistics(%q: tensor<64x16xbf16>, %k: tensor<64x16xbf16>, %v: tensor<64x16xbf16>)
    -> (tensor<64xf32>, tensor<64xf32>) {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.125 : f64} : tensor<64x16xbf16>, tensor<64x16xbf16>,
      tensor<64x16xbf16> -> tensor<64x16xbf16>, tensor<64xf32>
  return %m, %s : tensor<64xf32>, tensor<64xf32>
}

// -----

// What the graph rounds to the type of the other factor is a factor as it is.
// CHECK-LABEL: gpu.func @block_contraction_64x16x64(
// CHECK:         %[[P:.*]] = math.exp {{.*}} : vector<2xf32>
// CHECK-NEXT:    arith.truncf %[[P]] : vector<2xf32> to vector<2xbf16>
// CHECK-NOT:     arith.subf
// CHECK:         nvgpu.ldmatrix {{.*}}transpose = true
// CHECK:         nvgpu.mma.sync(%[[ROWS:.*]], %[[COLUMNS:.*]], %{{[^)]*}})
// CHECK-NOT:     nvgpu.mma.sync(%{{.*}}, %[[COLUMNS]],
// CHECK:         gpu.return
#row = affine_map<(i, j, k) -> (i, k)>
#column = affine_map<(i, j, k) -> (j, k)>
#down = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>
#point = affine_map<(i, j) -> (i, j)>
func.func @rounded(%q: tensor<64x16xbf16>, %k: tensor<64x16xbf16>, %v: tensor<64x16xbf16>) -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.generic {indexing_maps = [#row, #column, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<64x16xbf16>, tensor<64x16xbf16>) outs(%zeros : tensor<64x64xf32>) attrs = {weir.in_blocks = 1} {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<64x64xf32>
  %e2 = tensor.empty() : tensor<64x64xbf16>
  %p = linalg.generic {indexing_maps = [#point, #point], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<64x64xf32>) outs(%e2 : tensor<64x64xbf16>) {
  ^bb0(%a: f32, %b: bf16):
    %x = math.exp %a : f32
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<64x64xbf16>
  %e3 = tensor.empty() : tensor<64x16xf32>
  %zeros3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<64x16xf32>) -> tensor<64x16xf32>
  %r = linalg.generic {indexing_maps = [#row, #down, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<64x64xbf16>, tensor<64x16xbf16>) outs(%zeros3 : tensor<64x16xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}
