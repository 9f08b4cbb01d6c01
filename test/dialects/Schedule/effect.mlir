// Every effect that is printed parses again.
// RUN: weir-opt %s | weir-opt | FileCheck %s
// RUN: not weir-opt -split-input-file %S/Inputs/effect-invalid.mlir 2>&1 | FileCheck %s --check-prefix=INVALID

// CHECK: func.func private @read() attributes {x = #schedule.effect<read>}
func.func private @read() attributes {x = #schedule.effect<read, covers_all = false>}
// CHECK: func.func private @all() attributes {x = #schedule.effect<write, covers_all = true>}
func.func private @all() attributes {x = #schedule.effect<write, covers_all = true>}
// CHECK: func.func private @slice() attributes {x = #schedule.effect<write, slice = [32, 16, 64, 8]>}
func.func private @slice() attributes {x = #schedule.effect<write, slice = [32, 16, 64, 8]>}

// INVALID: covers_all is true or false, not maybe
// INVALID: nothing follows the slice
// INVALID: expected 'slice'
