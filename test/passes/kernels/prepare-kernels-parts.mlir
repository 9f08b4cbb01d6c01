// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-prepare-kernels -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels -split-input-file | FileCheck %s --check-prefix=WHOLE
// RUN: weir-opt %s --weir-set-profile=profile=nvidia --weir-prepare-kernels -split-input-file | FileCheck %s --check-prefix=NVIDIA
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s --check-prefix=KERNELS

// 4 tiles of 128 x 128 sums leave most of 132 units idle: 32 parts of 128 products would be 128 workgroups.
// CHECK-DAG: #[[PART:.*]] = affine_map<(d0, d1, d2) -> (d2 floordiv 128, d0, d1)>
// CHECK-LABEL: func @few_tiles_are_cut
// CHECK:         %[[PARTS:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #[[PART]]]
// CHECK-SAME:      outs(%{{.*}} : tensor<32x256x256xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[PARTS]] : tensor<32x256x256xf32>) outs(%arg2 : tensor<256x256xf32>)
// WHOLE-LABEL: func @few_tiles_are_cut
// WHOLE-NOT:     floordiv
// WHOLE:         linalg.generic {{.*}} outs(%arg2 : tensor<256x256xf32>)
// WHOLE-NEXT:    ^bb0
// The prologue stays with the products, the parts are combined across memory, and the initial value comes in there.
// KERNELS-LABEL: func @few_tiles_are_cut
// KERNELS:         schedule.kernel "contraction_32x256x256x128"(%arg0, %arg1)
// KERNELS:           arith.addf %[[V:.*]], %[[V]]
// KERNELS:         schedule.kernel "across_256x256x32"(%{{.*}}, %arg2)
#id = affine_map<(i, k) -> (i, k)>
func.func @few_tiles_are_cut(%a: tensor<256x4096xf32>, %b: tensor<4096x256xf32>, %c: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x4096xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<256x4096xf32>) outs(%e : tensor<256x4096xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.addf %v, %v : f32
    linalg.yield %r : f32
  } -> tensor<256x4096xf32>
  %m = linalg.matmul ins(%x, %b : tensor<256x4096xf32>, tensor<4096x256xf32>) outs(%c : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %m : tensor<256x256xf32>
}

// -----

// The twin: 256 tiles keep the device busy.
// CHECK-LABEL: func @many_tiles_stay_whole
// CHECK:         linalg.generic {{.*}} outs(%arg2 : tensor<2048x2048xf32>)
// CHECK-NOT:     linalg.generic
func.func @many_tiles_stay_whole(%a: tensor<2048x4096xf32>, %b: tensor<4096x2048xf32>, %c: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %m = linalg.matmul ins(%a, %b : tensor<2048x4096xf32>, tensor<4096x2048xf32>) outs(%c : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %m : tensor<2048x2048xf32>
}

// A prime has no equal parts; 240 products are too few.
// CHECK-LABEL: func @no_parts
// CHECK-NOT:     floordiv
// CHECK:         return
func.func @no_parts(%a: tensor<32x4099xf32>, %b: tensor<4099x32xf32>, %c: tensor<32x240xf32>, %d: tensor<240x32xf32>, %e: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %m = linalg.matmul ins(%a, %b : tensor<32x4099xf32>, tensor<4099x32xf32>) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %n = linalg.matmul ins(%c, %d : tensor<32x240xf32>, tensor<240x32xf32>) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %m, %n : tensor<32x32xf32>, tensor<32x32xf32>
}

// -----

#x = affine_map<(i, j, b, t) -> (b, t, i)>
#y = affine_map<(i, j, b, t) -> (b, t, j)>
#z = affine_map<(i, j, b, t) -> (i, j)>

// Parts count the products of all summed loops, the innermost fastest: here 64 of the 256 of a batch.
// CHECK: affine_map<(d0, d1, d2, d3) -> (d2 * 4 + d3 floordiv 64, d0, d1)>
// CHECK-LABEL: func @parts_of_two_loops
// KERNELS:         schedule.kernel "contraction_12x16x48x64"
func.func @parts_of_two_loops(%a: tensor<3x256x16xf32>, %b: tensor<3x256x48xf32>) -> tensor<16x48xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x48xf32>
  %m = linalg.generic {indexing_maps = [#x, #y, #z], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b : tensor<3x256x16xf32>, tensor<3x256x48xf32>) outs(%zero : tensor<16x48xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x48xf32>
  return %m : tensor<16x48xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// Parts of 8 rows would be 16 workgroups for 132 units.
// CHECK: affine_map<(d0, d1) -> (d0 floordiv 4, d1)>
// CHECK-LABEL: func @few_rows_have_short_parts
func.func @few_rows_have_short_parts(%x: tensor<128x768xf32>) -> tensor<768xf32> {
  %zero = arith.constant dense<0.0> : tensor<768xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<128x768xf32>) outs(%zero : tensor<768xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<768xf32>
  return %c : tensor<768xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// The twin: 256 parts of 8192 rows, two for a unit, hide the time of their own reductions. Vulkan copies no rows ahead, so
// that parts of 8 make more workgroups.
// CHECK: affine_map<(d0, d1) -> (d0 floordiv 32, d1)>
// CHECK-LABEL: func @many_rows_have_long_parts
// NVIDIA: affine_map<(d0, d1) -> (d0 floordiv 16, d1)>
// NVIDIA-LABEL: func @many_rows_have_long_parts
func.func @many_rows_have_long_parts(%x: tensor<8192x1024xf32>) -> tensor<1024xf32> {
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8192x1024xf32>) outs(%zero : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  return %c : tensor<1024xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// A prime has no equal parts but one of all rows, which would leave all units but one idle.
// CHECK: affine_map<(d0, d1) -> (d0 floordiv 4, d1)>
// CHECK-LABEL: func @unequal_parts
func.func @unequal_parts(%x: tensor<2053x768xf32>) -> tensor<768xf32> {
  %zero = arith.constant dense<0.0> : tensor<768xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<2053x768xf32>) outs(%zero : tensor<768xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<768xf32>
  return %c : tensor<768xf32>
}

// -----

// Instructions on matrices add 512 products of 16 bits sooner than parts of them would be stored and read again. The twin
// has 2,048, and no more parts than that takes.
// CHECK: affine_map<(d0, d1, d2) -> (d2 floordiv 512, d0, d1)>
// CHECK-LABEL: func @short_sums_of_halves_stay_whole
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<512x512xbf16>)
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<4x256x256xbf16>)
func.func @short_sums_of_halves_stay_whole(%a: tensor<512x512xbf16>, %b: tensor<512x512xbf16>, %c: tensor<512x512xbf16>, %d: tensor<256x2048xbf16>, %e: tensor<2048x256xbf16>, %f: tensor<256x256xbf16>) -> (tensor<512x512xbf16>, tensor<256x256xbf16>) {
  %m = linalg.matmul ins(%a, %b : tensor<512x512xbf16>, tensor<512x512xbf16>) outs(%c : tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %n = linalg.matmul ins(%d, %e : tensor<256x2048xbf16>, tensor<2048x256xbf16>) outs(%f : tensor<256x256xbf16>) -> tensor<256x256xbf16>
  return %m, %n : tensor<512x512xbf16>, tensor<256x256xbf16>
}

// -----

// 18 parts of 128 products would be as large as the factor that they come from, and could be written over it.
// CHECK: affine_map<(d0, d1, d2) -> (d2 floordiv 144, d0, d1)>
// CHECK-LABEL: func @parts_no_larger_than_a_factor
func.func @parts_no_larger_than_a_factor(%a: tensor<128x2304xf32>, %b: tensor<2304x768xf32>, %c: tensor<128x768xf32>) -> tensor<128x768xf32> {
  %m = linalg.matmul ins(%a, %b : tensor<128x2304xf32>, tensor<2304x768xf32>) outs(%c : tensor<128x768xf32>) -> tensor<128x768xf32>
  return %m : tensor<128x768xf32>
}

// -----

// Columns of rows of 32000 elements, which no team keeps: 32 parts are busy invocations for 132 units. The twin's rows of
// 4096 elements, 2048 of them, have a part for each unit.
// CHECK-DAG: #[[LONG:.*]] = affine_map<(d0, d1) -> (d0 floordiv 32, d1)>
// CHECK-DAG: #[[SHORT:.*]] = affine_map<(d0, d1) -> (d0 floordiv 16, d1)>
// CHECK-LABEL: func @long_rows_have_few_parts
// CHECK:         linalg.generic {indexing_maps = [#{{.*}}, #[[LONG]]]
// CHECK:         linalg.generic {indexing_maps = [#{{.*}}, #[[SHORT]]]
func.func @long_rows_have_few_parts(%x: tensor<1024x32000xf32>, %y: tensor<2048x4096xf32>, %a: tensor<32000xf32>, %b: tensor<4096xf32>) -> (tensor<32000xf32>, tensor<4096xf32>) {
  %r = linalg.reduce { arith.addf } ins(%x : tensor<1024x32000xf32>) outs(%a : tensor<32000xf32>) dimensions = [0]
  %s = linalg.reduce { arith.addf } ins(%y : tensor<2048x4096xf32>) outs(%b : tensor<4096xf32>) dimensions = [0]
  return %r, %s : tensor<32000xf32>, tensor<4096xf32>
}
