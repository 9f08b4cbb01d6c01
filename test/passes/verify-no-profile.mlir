// RUN: weir-opt %s --weir-verify-kernels --split-input-file --verify-diagnostics
// RUN: weir-opt %s --weir-verify-dispatches --split-input-file --verify-diagnostics
// RUN: weir-opt %s --weir-verify-placed --split-input-file --verify-diagnostics
// RUN: weir-opt %s --weir-verify-ordered --split-input-file --verify-diagnostics

// expected-error @below {{module has no attribute weir.profile; run weir-set-profile first}}
module {
}

// -----

// expected-error @below {{weir.profile}}
module attributes {weir.profile = {name = 1}} {
}

// -----

// Only a profile's own file may say so.
// expected-error @below {{unknown key "like"}}
module attributes {weir.profile = {like = "lavapipe"}} {
}
