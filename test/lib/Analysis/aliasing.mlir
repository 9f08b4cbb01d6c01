// RUN: weir-opt %s --pass-pipeline='builtin.module(func.func(weir-test-aliasing))' 2>&1 >/dev/null | grep -o 'remark: .*' | FileCheck %s

// CHECK: entry_a [0, 32)
// CHECK: entry_a entry_b: disjoint
// CHECK: entry_a entry_local: disjoint
func.func @entry(%a: memref<8xf32> {weir.name = "entry_a"}, %b: memref<8xf32> {weir.name = "entry_b"}) attributes {weir.entry} {
  %l = memref.alloc() {test.name = "entry_local"} : memref<8xf32>
  return
}

// CHECK: foreign_a foreign_b: unknown
// CHECK: foreign_a foreign_local: disjoint
// CHECK: foreign_a foreign_global: unknown
// CHECK: foreign_local foreign_global: disjoint
memref.global "private" @g : memref<8xf32>
memref.global "private" @h : memref<8xf32>
func.func @foreign(%a: memref<8xf32> {weir.name = "foreign_a"}, %b: memref<8xf32> {weir.name = "foreign_b"}) {
  %l = memref.alloc() {test.name = "foreign_local"} : memref<8xf32>
  %g = memref.get_global @g : memref<8xf32> {test.name = "foreign_global"}
  return
}

// CHECK: global_g global_same: overlap
// CHECK: global_g global_other: disjoint
// CHECK: global_g global_arg: disjoint
func.func @globals(%a: memref<8xf32>) attributes {weir.entry} {
  %0 = memref.get_global @g : memref<8xf32> {test.name = "global_g"}
  %1 = memref.get_global @g : memref<8xf32> {test.name = "global_same"}
  %2 = memref.get_global @h : memref<8xf32> {test.name = "global_other"}
  %3 = memref.cast %a {test.name = "global_arg"} : memref<8xf32> to memref<?xf32>
  return
}

// Views move the base, their own subviews count from there.
// CHECK: view_low [0, 64){{$}}
// CHECK: view_low view_high: disjoint
// CHECK: view_low view_middle: overlap
// CHECK: view_low view_dynamic: unknown
// CHECK: view_low view_part: disjoint
// CHECK: view_high [64, 128)
// CHECK: view_high view_middle: overlap
// CHECK: view_high view_part: overlap
// CHECK: view_middle [32, 96)
// CHECK: view_dynamic anywhere
// CHECK: view_part [80, 112)
func.func @views(%n: index) {
  %arena = memref.alloc() : memref<256xi8>
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %low = memref.view %arena[%c0][] {test.name = "view_low"} : memref<256xi8> to memref<16xf32>
  %high = memref.view %arena[%c64][] {test.name = "view_high"} : memref<256xi8> to memref<16xf32>
  %middle = memref.view %arena[%c32][] {test.name = "view_middle"} : memref<256xi8> to memref<16xf32>
  %dynamic = memref.view %arena[%n][] {test.name = "view_dynamic"} : memref<256xi8> to memref<16xf32>
  %part = memref.subview %high[4] [8] [1] {test.name = "view_part"} : memref<16xf32> to memref<8xf32, strided<[1], offset: 4>>
  return
}

// Interleaved columns: the hulls meet, the bytes do not.
// CHECK: column_0 [0, 52) hull
// CHECK: column_0 column_2: disjoint
// CHECK: column_0 columns: overlap
// CHECK: column_0 rows: disjoint
// CHECK: column_0 empty: disjoint
// CHECK: rows [64, 96)
// CHECK: rows rows_flat: overlap
// CHECK: rows_flat [64, 96)
func.func @strided(%a: memref<8x4xf32>) {
  %0 = memref.subview %a[0, 0] [4, 1] [1, 1] {test.name = "column_0"} : memref<8x4xf32> to memref<4x1xf32, strided<[4, 1]>>
  %1 = memref.subview %a[0, 2] [4, 1] [1, 1] {test.name = "column_2"} : memref<8x4xf32> to memref<4x1xf32, strided<[4, 1], offset: 2>>
  %5 = memref.subview %a[0, 0] [4, 2] [1, 1] {test.name = "columns"} : memref<8x4xf32> to memref<4x2xf32, strided<[4, 1]>>
  %2 = memref.subview %a[4, 0] [2, 4] [1, 1] {test.name = "rows"} : memref<8x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 16>>
  %3 = memref.collapse_shape %2 [[0, 1]] {test.name = "rows_flat"} : memref<2x4xf32, strided<[4, 1], offset: 16>> into memref<8xf32, strided<[1], offset: 16>>
  %4 = memref.subview %a[0, 0] [0, 4] [1, 1] {test.name = "empty"} : memref<8x4xf32> to memref<0x4xf32, strided<[4, 1]>>
  return
}

// CHECK: dynamic_part [0, 128) hull
// CHECK: dynamic_part recast: unknown
// CHECK: recast [4, 12)
func.func @dynamic(%a: memref<8x4xf32>, %n: index) {
  %0 = memref.subview %a[%n, 0] [1, 4] [1, 1] {test.name = "dynamic_part"} : memref<8x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
  %1 = memref.reinterpret_cast %a to offset: [1], sizes: [2], strides: [1] {test.name = "recast"} : memref<8x4xf32> to memref<2xf32, strided<[1], offset: 1>>
  return
}

// As many elements as bytes of the hull would hold, but not side by side.
// CHECK: repeated [0, 16) hull
// CHECK: repeated inner: disjoint
// CHECK: repeated second: disjoint
// CHECK: repeated last: overlap
// CHECK: transposed [0, 16){{$}}
func.func @exact(%a: memref<4xf32>) {
  %0 = memref.reinterpret_cast %a to offset: [0], sizes: [2, 2], strides: [3, 0] {test.name = "repeated"} : memref<4xf32> to memref<2x2xf32, strided<[3, 0]>>
  %1 = memref.subview %a[1] [2] [1] {test.name = "inner"} : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
  %3 = memref.subview %a[1] [1] [1] {test.name = "second"} : memref<4xf32> to memref<1xf32, strided<[1], offset: 1>>
  %4 = memref.subview %a[3] [1] [1] {test.name = "last"} : memref<4xf32> to memref<1xf32, strided<[1], offset: 3>>
  %2 = memref.reinterpret_cast %a to offset: [0], sizes: [2, 2], strides: [1, 2] {test.name = "transposed"} : memref<4xf32> to memref<2x2xf32, strided<[1, 2]>>
  return
}

// An argument that promises it shares with no other argument and no global.
// CHECK: apart promised: disjoint
// CHECK: apart plain: unknown
// CHECK: apart table: unknown
// CHECK: promised plain: disjoint
// CHECK: promised table: disjoint
// CHECK: promised hidden: unknown
func.func @noalias(%a: memref<8xf32> {weir.name = "apart"}, %b: memref<8xf32> {weir.name = "promised", llvm.noalias}, %c: memref<8xf32> {weir.name = "plain"}, %p: i1) {
  %g = memref.get_global @g : memref<8xf32> {test.name = "table"}
  %0 = arith.select %p, %b, %a {test.name = "hidden"} : memref<8xf32>
  return
}

// Two kinds of memory never meet, whatever else is unknown of them.
// CHECK: ram shared: disjoint
// CHECK: ram other_ram: unknown
// CHECK: ram chosen_shared: disjoint
// CHECK: ram generic: unknown
// CHECK: shared other_ram: disjoint
// CHECK: shared chosen_shared: unknown
func.func @spaces(%a: memref<8xf32, #gpu.address_space<global>> {weir.name = "ram"}, %b: memref<8xf32, #gpu.address_space<workgroup>> {weir.name = "shared"},
                  %c: memref<8xf32, #gpu.address_space<global>> {weir.name = "other_ram"}, %d: memref<8xf32, #gpu.address_space<workgroup>>, %p: i1,
                  %e: memref<8xf32>) {
  %0 = arith.select %p, %b, %d {test.name = "chosen_shared"} : memref<8xf32, #gpu.address_space<workgroup>>
  %1 = memref.cast %e {test.name = "generic"} : memref<8xf32> to memref<?xf32>
  return
}

// The base buffer is where the view's allocation begins, not the view.
// CHECK: from_base [0, 16)
// CHECK: from_base reshaped: disjoint
// CHECK: reshaped [64, 96)
// CHECK: reshaped turned: overlap
// CHECK: turned [80, 96)
func.func @metadata() {
  %a = memref.alloc() : memref<8x4xf32>
  %0 = memref.subview %a[4, 0] [2, 4] [1, 1] : memref<8x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 16>>
  %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %0 : memref<2x4xf32, strided<[4, 1], offset: 16>> -> memref<f32>, index, index, index, index, index
  %1 = memref.reinterpret_cast %base to offset: [0], sizes: [4], strides: [1] {test.name = "from_base"} : memref<f32> to memref<4xf32, strided<[1]>>
  %2 = memref.reinterpret_cast %base to offset: [16], sizes: [2, 4], strides: [4, 1] : memref<f32> to memref<2x4xf32, strided<[4, 1], offset: 16>>
  %3 = memref.collapse_shape %2 [[0, 1]] {test.name = "reshaped"} : memref<2x4xf32, strided<[4, 1], offset: 16>> into memref<8xf32, strided<[1], offset: 16>>
  %4 = memref.transpose %2 (i, j) -> (j, i) : memref<2x4xf32, strided<[4, 1], offset: 16>> to memref<4x2xf32, strided<[1, 4], offset: 16>>
  %5 = memref.subview %4[0, 1] [4, 1] [1, 1] {test.name = "turned"} : memref<4x2xf32, strided<[1, 4], offset: 16>> to memref<4x1xf32, strided<[1, 4], offset: 20>>
  return
}

// CHECK: high reshape: overlap
// CHECK: low reshape: disjoint
// CHECK: reshape [64, 128){{$}}
func.func @reshape(%shape: memref<1xindex>) {
  %b = memref.alloc() : memref<128xi8>
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %0 = memref.view %b[%c64][] {test.name = "high"} : memref<128xi8> to memref<4x4xf32>
  %1 = memref.view %b[%c0][] {test.name = "low"} : memref<128xi8> to memref<4x4xf32>
  %2 = memref.reshape %0(%shape) {test.name = "reshape"} : (memref<4x4xf32>, memref<1xindex>) -> memref<16xf32>
  return
}

// Constants say what types leave open.
// CHECK: const_rows [64, 96){{$}}
// CHECK: const_rows const_column: disjoint
// CHECK: const_rows const_view: disjoint
// CHECK: const_rows const_recast: overlap
// CHECK: const_rows const_open: unknown
// CHECK: const_column [4, 56) hull
// CHECK: const_view [0, 8){{$}}
// CHECK: const_recast [92, 100){{$}}
// CHECK: const_negative anywhere
// CHECK: const_open [0, 128) hull
func.func @constants(%n: index) {
  %c-1 = arith.constant -1 : index
  %a = memref.alloc() : memref<128xi8>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c23 = arith.constant 23 : index
  %m = memref.view %a[%c0][%c8] : memref<128xi8> to memref<?x4xf32>
  %0 = memref.subview %m[%c4, 0] [%c2, 4] [1, 1] {test.name = "const_rows"} : memref<?x4xf32> to memref<?x4xf32, strided<[4, 1], offset: ?>>
  %1 = memref.cast %m : memref<?x4xf32> to memref<?x?xf32, strided<[?, ?], offset: ?>>
  %2 = memref.subview %1[0, %c1] [%c4, 1] [%c1, 1] {test.name = "const_column"} : memref<?x?xf32, strided<[?, ?], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
  %3 = memref.view %a[%c0][%c2] {test.name = "const_view"} : memref<128xi8> to memref<?xf32>
  %4 = memref.reinterpret_cast %m to offset: [%c23], sizes: [%c2], strides: [%c1] {test.name = "const_recast"} : memref<?x4xf32> to memref<?xf32, strided<[?], offset: ?>>
  %6 = memref.reinterpret_cast %m to offset: [0], sizes: [%c-1], strides: [1] {test.name = "const_negative"} : memref<?x4xf32> to memref<?xf32, strided<[1]>>
  %5 = memref.subview %m[%n, 0] [%c2, 4] [1, 1] {test.name = "const_open"} : memref<?x4xf32> to memref<?x4xf32, strided<[4, 1], offset: ?>>
  return
}

// What comes from nowhere known may be anything, even a fresh allocation.
// CHECK: loaded anywhere
// CHECK: loaded fresh: unknown
// CHECK: fresh chosen: unknown
func.func @unknown(%box: memref<memref<?xf32>>, %p: i1) {
  %0 = memref.load %box[] {test.name = "loaded"} : memref<memref<?xf32>>
  %l = memref.alloc() {test.name = "fresh"} : memref<8xf32>
  %k = memref.alloc() : memref<8xf32>
  %1 = arith.select %p, %l, %k {test.name = "chosen"} : memref<8xf32>
  return
}

// The same through loops, branches and blocks.
// CHECK: carried fresh_a: unknown
// CHECK: carried fresh_b: unknown
// CHECK: through_for fresh_a: unknown
// CHECK: through_if fresh_a: unknown
// CHECK: fresh_a fresh_b: disjoint
// CHECK: fresh_a through_block: unknown
func.func @flow(%p: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = memref.alloc() : memref<8xf32>
  %f = scf.for %i = %c0 to %n step %c1 iter_args(%m = %x) -> memref<8xf32> {
    %t = memref.cast %m {test.name = "carried"} : memref<8xf32> to memref<?xf32>
    scf.yield %x : memref<8xf32>
  } {test.name = "through_for"}
  %r = scf.if %p -> memref<8xf32> {
    scf.yield %x : memref<8xf32>
  } else {
    scf.yield %f : memref<8xf32>
  } {test.name = "through_if"}
  %l = memref.alloc() {test.name = "fresh_a"} : memref<8xf32>
  %k = memref.alloc() {test.name = "fresh_b"} : memref<8xf32>
  cf.br ^next(%l : memref<8xf32>)
^next(%b: memref<8xf32>):
  %c = memref.cast %b {test.name = "through_block"} : memref<8xf32> to memref<?xf32>
  return
}
