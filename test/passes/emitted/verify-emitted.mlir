// RUN: weir-opt %s --weir-verify-emitted --split-input-file --verify-diagnostics

// pack.mlir has a module that passes.

// expected-error @below {{has no manifest; run weir-pack first}}
module attributes {gpu.container_module} {
  // expected-error @below {{was not emitted}}
  gpu.module @k {
    gpu.func @k(%x: memref<4xf32>) kernel {
      gpu.return
    }
  }
  // expected-error @below {{has 2 objects; a module is for one target}}
  gpu.binary @two [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "a">, #gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "b">]
  // expected-error @below {{has no plan; run weir-pack first}}
  func.func @f(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{launches @k::@k, which was not emitted}}
      schedule.dispatch @k::@k [1, 1, 1] (%x) wave 0 : (memref<4xf32>)
    }
    return
  }
}

// -----

// expected-error @below {{has no valid manifest: weir.manifest}}
module attributes {weir.manifest = "{}"} {
  // expected-error @below {{has no valid plan: weir.plan}}
  func.func @f() attributes {weir.entry, weir.plan = "nonsense"} {
    return
  }
}
