// RUN: weir-opt %s --weir-set-profile | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-set-profile=profile=lavapipe | FileCheck %s
// RUN: not weir-opt %s --weir-set-profile=profile=no-such-profile 2>&1 | FileCheck %s --check-prefix=MISSING

// CHECK: module attributes {weir.profile = {
// CHECK-SAME: max_grid = [65535, 65535, 65535]
// CHECK-SAME: max_loop_trips = 65535
// CHECK-SAME: name = "lavapipe"
// MISSING: error: {{.*}}no-such-profile
module {
}
