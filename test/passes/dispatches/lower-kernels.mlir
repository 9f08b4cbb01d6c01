// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels -split-input-file | FileCheck %s

// Equal kernels are one function, whatever they are called on; a reshape is the
// same bytes.
// CHECK-COUNT-1: gpu.func @map_2x4
// CHECK-NOT:     gpu.func
// CHECK-LABEL: func @equal_kernels_once
// CHECK-SAME:    %[[X:arg[0-9]+]]: memref<8xf32> {weir.name = "x", weir.shape = tensor<2x4xf32>}
// CHECK-SAME:    %[[Y:arg[0-9]+]]: memref<8xf32> {weir.shape = tensor<2x4xf32>}
// CHECK-SAME:    %[[R:arg[0-9]+]]: memref<8xf32> {weir.result, weir.shape = tensor<4x2xf32>}
// CHECK-SAME:    %[[S:arg[0-9]+]]: memref<8xf32> {weir.name = "s", weir.result, weir.shape = tensor<2x4xf32>}
// CHECK-SAME:    attributes {weir.entry}
// CHECK:         schedule.commands
// CHECK:           schedule.dispatch @map_2x4::@map_2x4 [1, 1, 1](%[[X]], %[[R]])
// CHECK:           schedule.dispatch @map_2x4::@map_2x4 [1, 1, 1](%[[Y]], %[[S]])
func.func @equal_kernels_once(%x: tensor<2x4xf32> {weir.name = "x"}, %y: tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32> {weir.name = "s"}) {
  %e = tensor.empty() : tensor<2x4xf32>
  %a = linalg.exp ins(%x : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = linalg.exp ins(%y : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %f = tensor.collapse_shape %a [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %r = tensor.expand_shape %f [[0, 1]] output_shape [4, 2] : tensor<8xf32> into tensor<4x2xf32>
  return %r, %b : tensor<4x2xf32>, tensor<2x4xf32>
}

// -----

// Nothing is launched for an empty tensor, and nothing reads one.
// CHECK-NOT:   gpu.func @map
// CHECK:       gpu.func @row_0(%arg0: memref<1xf32
// CHECK:         memref.store %{{.*}}, %arg0
// CHECK-LABEL: func @empty
// CHECK:         schedule.commands {
// CHECK-NEXT:      schedule.dispatch @row_0::@row_0 [1, 1, 1](%arg2) : (memref<1xf32>)
// CHECK-NEXT:    }
func.func @empty(%x: tensor<0xf32>) -> (tensor<0xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<0xf32>
  %a = linalg.exp ins(%x : tensor<0xf32>) outs(%e : tensor<0xf32>) -> tensor<0xf32>
  %e0 = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<0xf32>) outs(%z : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.addf %v, %o : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %a, %s : tensor<0xf32>, tensor<f32>
}

// -----

// A constant becomes a flat global; a bool is stored as a byte.
// CHECK:       gpu.func @map_2x2(%arg0: memref<4xf32, {{.*}}, %arg1: memref<4xf32, {{.*}}, %arg2: memref<4xi8,
// CHECK:         arith.extui
// CHECK:       memref.global "private" constant @constant : memref<4xf32> = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK-LABEL: func @constants_and_bools
// CHECK-SAME:    memref<4xi8> {weir.result, weir.shape = tensor<2x2xi1>}
// CHECK:         memref.get_global @constant : memref<4xf32>
func.func @constants_and_bools(%x: tensor<2x2xf32>) -> tensor<2x2xi1> {
  %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x2xi1>
  %r = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2xi1>) {
  ^bb0(%a: f32, %b: f32, %o: i1):
    %t = arith.cmpf olt, %a, %b : f32
    linalg.yield %t : i1
  } -> tensor<2x2xi1>
  return %r : tensor<2x2xi1>
}

// -----

// Constants have a name each; what is the same is one.
// CHECK-DAG:   memref.global "private" constant @[[ONE:constant.*]] : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>
// CHECK-DAG:   memref.global "private" constant @[[OTHER:constant.*]] : memref<2xf32> = dense<[3.000000e+00, 4.000000e+00]>
// CHECK-NOT:   memref.global
// CHECK-LABEL: func @constants
// CHECK-DAG:     memref.get_global @[[ONE]] :
// CHECK-DAG:     memref.get_global @[[OTHER]] :
func.func @constants(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.add ins(%x, %a : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %s = linalg.mul ins(%x, %b : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %t = linalg.sub ins(%x, %c : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %r, %s, %t : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// A row longer than an invocation's memory is read again in every pass.
// CHECK:       gpu.func @row_2x65536
// CHECK-NOT:     memref.alloca
// CHECK:         memref.load %arg0
// CHECK:         memref.load %arg0
// CHECK-LABEL: func @long_rows
func.func @long_rows(%x: tensor<2x65536xf32>) -> tensor<2x65536xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<2xf32>
  %e2 = tensor.empty() : tensor<2x65536xf32>
  %z = linalg.fill ins(%low : f32) outs(%e1 : tensor<2xf32>) -> tensor<2xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x65536xf32>) outs(%z : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<2x65536xf32>, tensor<2xf32>) outs(%e2 : tensor<2x65536xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x65536xf32>
  return %y : tensor<2x65536xf32>
}

// -----

// A loop of more trips than the target runs stays one here: 4,000,000 / 8 units of a vector are
// 125,000 trips, which weir-limit-loop-trips unrolls.
// CHECK:       gpu.func @row_4000000
// CHECK-DAG:     %[[TRIPS:.*]] = arith.constant 125000 : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[TRIPS]]
func.func @long_loop(%x: tensor<4000000xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4000000xf32>) outs(%z : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.maximumf %v, %o : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// More workgroups than one axis holds: a second axis.
// CHECK-LABEL: func @large_grid
// CHECK:         schedule.dispatch @row_5000011x3::@row_5000011x3 [65535, 2, 1]
func.func @large_grid(%x: tensor<5000011x3xf32>) -> tensor<5000011xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5000011xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5000011xf32>) -> tensor<5000011xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5000011x3xf32>) outs(%z : tensor<5000011xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.addf %v, %o : f32
    linalg.yield %t : f32
  } -> tensor<5000011xf32>
  return %s : tensor<5000011xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>

// One load of x for a row's sum, the quotient and the columns; the part of a
// column is loaded and stored where the invocation keeps it, and stored for good
// after the last of its rows. 21 rows are 3 parts, the last of 5 rows.
// CHECK:       gpu.func @across_64x3(%[[Q:arg[0-9]]]: memref<48xvector<4xf32>, {{.*}} %[[S:arg[0-9]]]: memref<16xvector<4xf32>,
// CHECK:         scf.for %{{.*}} = %{{.*}} iter_args(%{{.*}}) -> (vector<4xf32>)
// CHECK:           memref.load %[[Q]]
// CHECK:         memref.store %{{.*}}, %[[S]]
// CHECK:       gpu.func @row_column_21x64(%[[X:arg[0-9]]]: memref<336xvector<4xf32>, {{.*}} %[[Y:arg[0-9]]]: memref<336xvector<4xf32>, {{.*}} %[[P:arg[0-9]]]: memref<48xvector<4xf32>,
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[C21:.*]] = arith.constant 21 : index
// CHECK:         memref.alloca() : memref<2xvector<4xf32>
// CHECK:         %[[KEPT:.*]] = memref.alloca() : memref<2xvector<4xf32>
// CHECK:         scf.for
// CHECK:           memref.store %{{.*}}, %[[KEPT]]
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %[[C8]]
// CHECK:         scf.for %[[TURN:.*]] = %{{.*}} to %[[C8]]
// CHECK:           %[[ROW:.*]] = arith.addi %[[FIRST]], %[[TURN]]
// CHECK:           %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %[[C21]]
// CHECK:           scf.if %[[INSIDE]]
// CHECK:             memref.load %[[X]]
// CHECK-NOT:         memref.load %[[X]]
// CHECK:             memref.load %[[KEPT]]
// CHECK:             memref.store %{{.*}}, %[[KEPT]]
// CHECK:             memref.store %{{.*}}, %[[Y]]
// CHECK:         memref.load %[[KEPT]]
// CHECK:         memref.store %{{.*}}, %[[P]]
// CHECK-LABEL: func @rows_and_columns
// CHECK:         schedule.dispatch @row_column_21x64::@row_column_21x64 [3, 1, 1](%{{.*}}, %{{.*}}, %[[PARTS:.*]]) :
// CHECK:         schedule.dispatch @across_64x3::@across_64x3 [2, 1, 1](%[[PARTS]], %{{.*}}) :
func.func @rows_and_columns(%x: tensor<21x64xf32>) -> (tensor<21x64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<21xf32>
  %ec = tensor.empty() : tensor<64xf32>
  %e = tensor.empty() : tensor<21x64xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<21xf32>) -> tensor<21xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<64xf32>) -> tensor<64xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<21x64xf32>) outs(%zr : tensor<21xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<21xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rows : tensor<21x64xf32>, tensor<21xf32>) outs(%e : tensor<21x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<21x64xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<21x64xf32>) outs(%zc : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %y, %c : tensor<21x64xf32>, tensor<64xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// Columns alone: an invocation has a part of four columns in registers, and stores
// what else is made of the rows that it walks. 3 parts of 2 vectors: one workgroup,
// of which 6 invocations work.
// CHECK:       gpu.func @column_21x8(%[[X:arg[0-9]]]: memref<42xvector<4xf32>, {{.*}} %[[Y:arg[0-9]]]: memref<42xvector<4xf32>, {{.*}} %[[P:arg[0-9]]]: memref<6xvector<4xf32>,
// CHECK:         %[[C6:.*]] = arith.constant 6 : index
// CHECK:         arith.cmpi ult, %{{.*}}, %[[C6]]
// CHECK:         scf.for {{.*}} iter_args(%{{.*}}) -> (vector<4xf32>)
// CHECK:           memref.load %[[X]]
// CHECK:           arith.addf
// CHECK:           memref.store %{{.*}}, %[[Y]]
// CHECK:         memref.store %{{.*}}, %[[P]]
// CHECK-LABEL: func @columns
func.func @columns(%x: tensor<21x8xf32>) -> (tensor<21x8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %ec = tensor.empty() : tensor<8xf32>
  %e = tensor.empty() : tensor<21x8xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.negf ins(%x : tensor<21x8xf32>) outs(%e : tensor<21x8xf32>) -> tensor<21x8xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<21x8xf32>) outs(%zc : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %y, %c : tensor<21x8xf32>, tensor<8xf32>
}

// -----

// All walked as it lies in memory: vectors go over the ends of rows of 7. The twin
// reads a value per column, and does not.
// CHECK:       gpu.func @map_4x7_0(%arg0: memref<28xf32,
// CHECK:       gpu.func @map_4x7(%arg0: memref<7xvector<4xf32>, {{.*}} %arg1: memref<7xvector<4xf32>,
// CHECK-NOT:     arith.divui
// CHECK-NOT:     arith.remui
// CHECK:         gpu.return
// CHECK-LABEL: func @flat
func.func @flat(%x: tensor<4x7xf32>, %b: tensor<7xf32>) -> (tensor<4x7xf32>, tensor<4x7xf32>) {
  %e = tensor.empty() : tensor<4x7xf32>
  %y = linalg.negf ins(%x : tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<4x7xf32>, tensor<7xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<4x7xf32>
  return %y, %z : tensor<4x7xf32>, tensor<4x7xf32>
}

// -----

// Rows that no tile size divides: the last tile begins earlier, and stores its own
// rows alone. Columns past the end repeat the last one when they are read. Both are
// told apart where they are written: the address of a store is affine.
// CHECK:       gpu.func @contraction_33x13x4(
// CHECK:         %[[NUMBER:.*]] = gpu.block_id x
// CHECK:         %[[LANE:.*]] = gpu.lane_id
// CHECK:         %[[TILE:.*]] = arith.muli %{{.*}}, %c17
// CHECK:         arith.minui %[[TILE]], %c16
// CHECK:         %[[COLUMN:.*]] = arith.addi %{{.*}}, %[[LANE]]
// CHECK:         arith.minui %[[COLUMN]], %c12
// CHECK:         gpu.shuffle idx
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %[[COLUMN]], %c13
// CHECK:         scf.if %[[INSIDE]]
// CHECK:           scf.for %[[I:.*]] =
// CHECK:             %[[ROW:.*]] = arith.addi %[[TILE]], %[[I]]
// CHECK:             %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %c33
// CHECK:             scf.if %[[INSIDE]]
// CHECK-COUNT-16:      arith.select
// CHECK-NOT:           arith.select
// CHECK:               %[[FIRST:.*]] = arith.muli %[[ROW]], %c13
// CHECK:               %[[AT:.*]] = arith.addi %[[FIRST]], %[[COLUMN]]
// CHECK:               memref.store %{{.*}}, %arg2[%[[AT]]]
func.func @part_of_a_tile(%a: tensor<33x4xf32>, %b: tensor<4x13xf32>) -> tensor<33x13xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33x13xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<33x13xf32>) -> tensor<33x13xf32>
  %m = linalg.matmul ins(%a, %b : tensor<33x4xf32>, tensor<4x13xf32>) outs(%z : tensor<33x13xf32>) -> tensor<33x13xf32>
  return %m : tensor<33x13xf32>
}

// -----

// Lanes go along what is enough for all of them: of 64 x 3 columns of one factor the 64, as
// for the gradient of a convolution's weights.
// CHECK:       gpu.func @contraction_5x64x3x40(
// Two neighbours of these are 6 elements apart.
// CHECK:         %[[LANE:.*]] = gpu.lane_id
// CHECK:         arith.muli %[[LANE]], %c6
// CHECK:         memref.store %{{.*}}, %arg2[
func.func @lanes_of_many(%a: tensor<5x40xf32>, %b: tensor<40x64x3xf32>) -> tensor<5x64x3xf32> {
  %z = arith.constant dense<0.0> : tensor<5x64x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k, l) -> (i, l)>, affine_map<(i, j, k, l) -> (l, j, k)>,
                                        affine_map<(i, j, k, l) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<5x40xf32>, tensor<40x64x3xf32>) outs(%z : tensor<5x64x3xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x64x3xf32>
  return %m : tensor<5x64x3xf32>
}

// -----

// All three forms load pairs as they lie in memory, for each lane those of other
// products or columns, and shuffle what the rows are multiplied with.
// A·B^T: the columns' pairs are of products, too, and taken apart.
// CHECK:       gpu.func @contraction_4x16x32_1(%arg0: memref<64xvector<2xf32>, {{.*}}, %arg1: memref<256xvector<2xf32>,
// CHECK:         scf.for
// CHECK-COUNT-4:   memref.load %arg0
// CHECK-NOT:       memref.load %arg0
// CHECK:           scf.for
// CHECK-COUNT-2:     memref.load %arg1
// CHECK-NOT:         memref.load
// CHECK:             %[[FIRST:.*]] = vector.extract %[[#]][0]
// CHECK:             %[[SECOND:.*]] = vector.extract %[[#]][0]
// CHECK:             vector.from_elements %[[FIRST]], %[[SECOND]], %[[FIRST]], %[[SECOND]]
// CHECK:             gpu.shuffle idx
// A^T·B: pairs of rows.
// CHECK:       gpu.func @contraction_4x16x32_0(%arg0: memref<64xvector<2xf32>, {{.*}}, %arg1: memref<256xvector<2xf32>,
// CHECK:         scf.for
// CHECK-COUNT-4:   memref.load %arg0
// CHECK-NOT:       memref.load %arg0
// CHECK:           scf.for
// A·B: pairs of products, pairs of columns; 32 products are two full chunks.
// CHECK:       gpu.func @contraction_4x16x32(%arg0: memref<64xvector<2xf32>, {{.*}}, %arg1: memref<256xvector<2xf32>, {{.*}}, %arg2: memref<32xvector<2xf32>,
// CHECK:         scf.for %{{.*}} = %c0 to %c2
// CHECK-COUNT-4:   memref.load %arg0
// CHECK-NOT:       memref.load %arg0
// CHECK:           scf.for %{{.*}} = %c0 to %c8
// CHECK-COUNT-2:     memref.load %arg1
// CHECK-NOT:         memref.load
// CHECK-COUNT-8:     gpu.shuffle idx
// CHECK-NOT:         gpu.shuffle
// CHECK:           scf.for %{{.*}} = %c0 to %c4
// CHECK-COUNT-2:     arith.select
// CHECK-NOT:         arith.select
// CHECK:             memref.store %{{.*}}, %arg2
func.func @forms(%a: tensor<4x32xf32>, %at: tensor<32x4xf32>, %b: tensor<32x16xf32>, %bt: tensor<16x32xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %x = linalg.matmul ins(%a, %b : tensor<4x32xf32>, tensor<32x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%at, %b : tensor<32x4xf32>, tensor<32x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %w = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %bt : tensor<4x32xf32>, tensor<16x32xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %x, %y, %w : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// What may be written over is read by who writes: nothing would order the others'
// reads with that. An operand that can't be is read by all, once.
// CHECK:       gpu.func @map_4(%arg0
// CHECK:         memref.load %arg1
// CHECK:         scf.if
// CHECK:           memref.load %arg0
// CHECK:           memref.store %{{.*}}, %arg2
// CHECK:       gpu.func @map(%arg0
// CHECK-NOT:     memref.load
// CHECK:         scf.if
// CHECK:           memref.load %arg0
// CHECK:           memref.load %arg1
// CHECK:           memref.store %{{.*}}, %arg2
func.func @one_element(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<f32>
  %a = linalg.sub ins(%x, %y : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  %e4 = tensor.empty() : tensor<4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%z, %y : tensor<4xf32>, tensor<f32>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %a, %b : tensor<f32>, tensor<4xf32>
}
