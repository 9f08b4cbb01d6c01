// RUN: weir-opt %s -split-input-file --weir-set-profile --weir-form-kernels \
// RUN:   --mlir-print-local-scope | FileCheck %s

// Contractions with `weir.in_blocks` are part of the kernel that reads their sums: of a contraction, or of a row's
// maximum and sum of exponentials. The numbers tell readers of one tensor apart, not the kernels of a function.
// Exponentials that are divided before they are summed need the sum of all, so the first function has two kernels.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#p = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
#o = affine_map<(i, c, j) -> (i, j)>
#v = affine_map<(i, c, j) -> (j, c)>
#y = affine_map<(i, c, j) -> (i, c)>

// CHECK-LABEL: func @attention
// CHECK: schedule.kernel "block_row_8x12"
// CHECK-COUNT-3: linalg.generic
// CHECK: schedule.yield %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>
// CHECK: schedule.kernel "block_contraction_8x6x12"
// CHECK-COUNT-3: linalg.generic
// CHECK: schedule.yield %{{.*}} : tensor<8x6xf32>
// CHECK-NOT: schedule.kernel
func.func @attention(%q: tensor<8x4xf32>, %k: tensor<12x4xf32>, %values: tensor<12x6xf32>)
    -> (tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x12xf32>
  %rows = arith.constant dense<0.0> : tensor<8xf32>
  %lowest = arith.constant dense<0xFF7FFFFF> : tensor<8xf32>
  %none = arith.constant dense<0.0> : tensor<8x6xf32>
  %empty = tensor.empty() : tensor<8x12xf32>
  %s0 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %max = linalg.generic {indexing_maps = [#p, #r], iterator_types = ["parallel", "reduction"]}
      ins(%s0 : tensor<8x12xf32>) outs(%lowest : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#p, #r, #r], iterator_types = ["parallel", "reduction"]}
      ins(%s0, %max : tensor<8x12xf32>, tensor<8xf32>) outs(%rows : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    %n = arith.addf %c, %e : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %s1 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %prob = linalg.generic {indexing_maps = [#p, #r, #r, #p], iterator_types = ["parallel", "parallel"]}
      ins(%s1, %max, %sum : tensor<8x12xf32>, tensor<8xf32>, tensor<8xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %b: f32, %l: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    %n = arith.divf %e, %l : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %result = linalg.generic {indexing_maps = [#o, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%prob, %values : tensor<8x12xf32>, tensor<12x6xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x6xf32>
  return %result, %max, %sum : tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Where another op reads what is to be computed in blocks, it is a tensor, made by an ordinary kernel.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#o = affine_map<(i, c, j) -> (i, j)>
#v = affine_map<(i, c, j) -> (j, c)>
#y = affine_map<(i, c, j) -> (i, c)>

// CHECK-LABEL: func @returned
// CHECK-NOT: weir.in_blocks
// CHECK: schedule.kernel "contraction_8x12x4"
// CHECK: schedule.kernel "contraction_8x6x12"
func.func @returned(%q: tensor<8x4xf32>, %k: tensor<12x4xf32>, %values: tensor<12x6xf32>)
    -> (tensor<8x6xf32>, tensor<8x12xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x12xf32>
  %none = arith.constant dense<0.0> : tensor<8x6xf32>
  %s0 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %result = linalg.generic {indexing_maps = [#o, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s0, %values : tensor<8x12xf32>, tensor<12x6xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x6xf32>
  return %result, %s0 : tensor<8x6xf32>, tensor<8x12xf32>
}

// -----

// A sum of the row alone is no pair of a maximum and a sum of exponentials.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#p = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func @sum
// CHECK-NOT: weir.in_blocks
// CHECK: schedule.kernel "contraction_8x12x4"
// CHECK: schedule.kernel "row_8x12"
func.func @sum(%q: tensor<8x4xf32>, %k: tensor<12x4xf32>) -> tensor<8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x12xf32>
  %rows = arith.constant dense<0.0> : tensor<8xf32>
  %s0 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %sum = linalg.generic {indexing_maps = [#p, #r], iterator_types = ["parallel", "reduction"]}
      ins(%s0 : tensor<8x12xf32>) outs(%rows : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.addf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// -----

// A contraction that sums the exponentials of a row, and divides its sums, is summed in the walk that makes the row's
// maximum: from the same products, which are made once.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#p = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
#o = affine_map<(i, c, j) -> (i, j)>
#v = affine_map<(i, c, j) -> (j, c)>
#y = affine_map<(i, c, j) -> (i, c)>
#e = affine_map<(i, c) -> (i, c)>
#w = affine_map<(i, c) -> (i)>

// CHECK-LABEL: func @one_walk
// CHECK-NOT: schedule.kernel
// CHECK: schedule.kernel "block_softmax_8x6x12"
// CHECK-COUNT-1: weir.in_blocks
// CHECK-NOT: weir.in_blocks
// CHECK: schedule.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>, tensor<8x6xf32>
// CHECK-NOT: schedule.kernel
func.func @one_walk(%q: tensor<8x4xf32>, %k: tensor<12x4xf32>, %l: tensor<12x4xf32>, %values: tensor<12x6xf32>)
    -> (tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x12xf32>
  %rows = arith.constant dense<0.0> : tensor<8xf32>
  %lowest = arith.constant dense<0xFF7FFFFF> : tensor<8xf32>
  %none = arith.constant dense<0.0> : tensor<8x6xf32>
  %empty = tensor.empty() : tensor<8x12xf32>
  %s0 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %x0 = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]}
      ins(%s0 : tensor<8x12xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %f = arith.constant 0.5 : f32
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x12xf32>
  %max = linalg.generic {indexing_maps = [#p, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x0 : tensor<8x12xf32>) outs(%lowest : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#p, #r, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x0, %max : tensor<8x12xf32>, tensor<8xf32>) outs(%rows : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    %n = arith.addf %c, %e : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %s1 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %x1 = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]}
      ins(%s1 : tensor<8x12xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %f = arith.constant 0.5 : f32
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x12xf32>
  %powers = linalg.generic {indexing_maps = [#p, #r, #p], iterator_types = ["parallel", "parallel"]}
      ins(%x1, %max : tensor<8x12xf32>, tensor<8xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    linalg.yield %e : f32
  } -> tensor<8x12xf32>
  %sums = linalg.generic {indexing_maps = [#o, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers, %values : tensor<8x12xf32>, tensor<12x6xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x6xf32>
  %result = linalg.generic {indexing_maps = [#e, #w, #e], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %sum : tensor<8x6xf32>, tensor<8xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.divf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x6xf32>
  return %result, %max, %sum : tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Not of products with other keys.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#p = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
#o = affine_map<(i, c, j) -> (i, j)>
#v = affine_map<(i, c, j) -> (j, c)>
#y = affine_map<(i, c, j) -> (i, c)>
#e = affine_map<(i, c) -> (i, c)>
#w = affine_map<(i, c) -> (i)>

// CHECK-LABEL: func @other_keys
// CHECK: schedule.kernel "block_row_8x12"
// CHECK: schedule.kernel "block_contraction_8x6x12"
// CHECK-NOT: schedule.kernel
func.func @other_keys(%q: tensor<8x4xf32>, %k: tensor<12x4xf32>, %l: tensor<12x4xf32>, %values: tensor<12x6xf32>)
    -> (tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x12xf32>
  %rows = arith.constant dense<0.0> : tensor<8xf32>
  %lowest = arith.constant dense<0xFF7FFFFF> : tensor<8xf32>
  %none = arith.constant dense<0.0> : tensor<8x6xf32>
  %empty = tensor.empty() : tensor<8x12xf32>
  %s0 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %x0 = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]}
      ins(%s0 : tensor<8x12xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %f = arith.constant 0.5 : f32
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x12xf32>
  %max = linalg.generic {indexing_maps = [#p, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x0 : tensor<8x12xf32>) outs(%lowest : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#p, #r, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x0, %max : tensor<8x12xf32>, tensor<8xf32>) outs(%rows : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    %n = arith.addf %c, %e : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %s1 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %l : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %x1 = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]}
      ins(%s1 : tensor<8x12xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %f = arith.constant 0.5 : f32
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x12xf32>
  %powers = linalg.generic {indexing_maps = [#p, #r, #p], iterator_types = ["parallel", "parallel"]}
      ins(%x1, %max : tensor<8x12xf32>, tensor<8xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    linalg.yield %e : f32
  } -> tensor<8x12xf32>
  %sums = linalg.generic {indexing_maps = [#o, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers, %values : tensor<8x12xf32>, tensor<12x6xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x6xf32>
  %result = linalg.generic {indexing_maps = [#e, #w, #e], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %sum : tensor<8x6xf32>, tensor<8xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.divf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x6xf32>
  return %result, %max, %sum : tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Nor of other elements.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#p = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
#o = affine_map<(i, c, j) -> (i, j)>
#v = affine_map<(i, c, j) -> (j, c)>
#y = affine_map<(i, c, j) -> (i, c)>
#e = affine_map<(i, c) -> (i, c)>
#w = affine_map<(i, c) -> (i)>

// CHECK-LABEL: func @other_scale
// CHECK: schedule.kernel "block_row_8x12"
// CHECK: schedule.kernel "block_contraction_8x6x12"
// CHECK-NOT: schedule.kernel
func.func @other_scale(%q: tensor<8x4xf32>, %k: tensor<12x4xf32>, %l: tensor<12x4xf32>, %values: tensor<12x6xf32>)
    -> (tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x12xf32>
  %rows = arith.constant dense<0.0> : tensor<8xf32>
  %lowest = arith.constant dense<0xFF7FFFFF> : tensor<8xf32>
  %none = arith.constant dense<0.0> : tensor<8x6xf32>
  %empty = tensor.empty() : tensor<8x12xf32>
  %s0 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %x0 = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]}
      ins(%s0 : tensor<8x12xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %f = arith.constant 0.5 : f32
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x12xf32>
  %max = linalg.generic {indexing_maps = [#p, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x0 : tensor<8x12xf32>) outs(%lowest : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#p, #r, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x0, %max : tensor<8x12xf32>, tensor<8xf32>) outs(%rows : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    %n = arith.addf %c, %e : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %s1 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x4xf32>, tensor<12x4xf32>) outs(%zero : tensor<8x12xf32>)
      attrs = {weir.in_blocks = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>
  %x1 = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]}
      ins(%s1 : tensor<8x12xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %f = arith.constant 0.25 : f32
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<8x12xf32>
  %powers = linalg.generic {indexing_maps = [#p, #r, #p], iterator_types = ["parallel", "parallel"]}
      ins(%x1, %max : tensor<8x12xf32>, tensor<8xf32>) outs(%empty : tensor<8x12xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.subf %a, %b : f32
    %e = math.exp %m : f32
    linalg.yield %e : f32
  } -> tensor<8x12xf32>
  %sums = linalg.generic {indexing_maps = [#o, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers, %values : tensor<8x12xf32>, tensor<12x6xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x6xf32>
  %result = linalg.generic {indexing_maps = [#e, #w, #e], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %sum : tensor<8x6xf32>, tensor<8xf32>) outs(%none : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.divf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x6xf32>
  return %result, %max, %sum : tensor<8x6xf32>, tensor<8xf32>, tensor<8xf32>
}
