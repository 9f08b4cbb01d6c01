// RUN: weir-opt %s --weir-set-profile --weir-pack --split-input-file --verify-diagnostics

module {
  // expected-error @below {{does not state weir.workgroup (three sizes) and weir.operands}}
  gpu.binary @silent [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "words">]
  // expected-error @below {{does not state effect, bytes and alignment of operand 0}}
  gpu.binary @vague {weir.workgroup = array<i64: 1, 1, 1>, weir.operands = [{bytes = 4 : i64}]} [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "words">]
  func.func @f(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @silent [1, 1, 1] (%x) wave 0 : (memref<4xf32>)
    }
    return
  }
  func.func @g(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @vague [1, 1, 1] (%x) wave 0 : (memref<4xf32>)
    }
    return
  }
  // expected-error @below {{has no command list}}
  func.func @h(%x: memref<4xf32>) attributes {weir.entry} {
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<4xf32>) kernel {
      gpu.return
    }
  }
  func.func @f(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{launches @k::@k, which was not emitted}}
      schedule.dispatch @k::@k [1, 1, 1] (%x) wave 0 : (memref<4xf32>)
    }
    return
  }
}

// -----

module {
  gpu.binary @k {weir.workgroup = array<i64: 1, 1, 1>, weir.operands = [{effect = #schedule.effect<read>, bytes = 16 : i64, alignment = 4 : i64}]} [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "words">]
  func.func @unplaced() attributes {weir.entry} {
    // expected-error @below {{is not the one arena; run weir-plan-memory first}}
    %a = memref.alloc() : memref<4xf32>
    schedule.commands {
      schedule.dispatch @k [1, 1, 1] (%a) wave 0 : (memref<4xf32>)
    }
    return
  }
  func.func @no_wave(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{has no wave; run weir-schedule first}}
      schedule.dispatch @k [1, 1, 1] (%x) : (memref<4xf32>)
    }
    return
  }
  // The plan is read back: what a reader would refuse is refused here.
  // expected-error @below {{cannot be packed: the plan: dispatch 0 has 2 operands}}
  func.func @wrong_count(%x: memref<4xf32>)
      attributes {weir.entry, weir.value_names = ["x"], weir.value_bytes = array<i64: 16>} {
    schedule.commands {
      schedule.dispatch @k [1, 1, 1] (%x, %x) wave 0 values [0, 0, 0, 0] : (memref<4xf32>, memref<4xf32>)
    }
    return
  }
}

// -----

module {
  // expected-error @below {{has two arguments of the name 'x'}}
  func.func @f(%x: memref<4xf32> {weir.name = "x"}, %y: memref<4xf32> {weir.name = "x"}) attributes {weir.entry} {
    schedule.commands {
    }
    return
  }
}

// -----

module {
  // expected-error @below {{argument 0 holds 'i4', which tensor files cannot}}
  func.func @f(%x: memref<4xi4>) attributes {weir.entry} {
    schedule.commands {
    }
    return
  }
}

// -----

// expected-error @below {{which cannot name a file in an artifact}}
module {
  func.func @"../f"(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
    }
    return
  }
}

// -----

module {
  // expected-error @below {{has no value, but a dispatch may read it}}
  memref.global "private" @c : memref<4xf32> = uninitialized
  func.func @f() attributes {weir.entry} {
    %c = memref.get_global @c : memref<4xf32>
    schedule.commands {
    }
    return
  }
}

// -----

module {
  gpu.binary @k {weir.workgroup = array<i64: 1, 1, 1>, weir.operands = [{effect = #schedule.effect<update>, bytes = 16 : i64, alignment = 4 : i64}]} [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "words">]
  func.func @columns(%x: memref<4x4xf32>) attributes {weir.entry} {
    %0 = memref.subview %x[0, 0] [4, 1] [1, 1] : memref<4x4xf32> to memref<4x1xf32, strided<[4, 1]>>
    schedule.commands {
      // expected-error @below {{operand of type 'memref<4x1xf32, strided<[4, 1]>>' does not lie side by side}}
      schedule.dispatch @k [1, 1, 1] (%0) wave 0 : (memref<4x1xf32, strided<[4, 1]>>)
    }
    return
  }
  // The twin's rows do.
  func.func @rows(%x: memref<4x4xf32>)
      attributes {weir.entry, weir.value_names = ["x"], weir.value_bytes = array<i64: 64>} {
    %0 = memref.subview %x[1, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: 4>>
    schedule.commands {
      schedule.dispatch @k [1, 1, 1] (%0) wave 0 values [0, 16] : (memref<1x4xf32, strided<[4, 1], offset: 4>>)
    }
    return
  }
  // Which value an operand is must be stated, and of what the values are.
  func.func @no_values(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{has no two values for each operand; run weir-schedule first}}
      schedule.dispatch @k [1, 1, 1] (%x) wave 0 : (memref<4xf32>)
    }
    return
  }
  // expected-error @below {{has no weir.value_names with as many weir.value_bytes; run weir-schedule first}}
  func.func @no_list(%x: memref<4xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k [1, 1, 1] (%x) wave 0 values [0, 0] : (memref<4xf32>)
    }
    return
  }
}
