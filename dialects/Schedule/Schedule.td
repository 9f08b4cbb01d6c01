//===- Schedule.td - Kernels, dispatches and what orders them -------------===//

#ifndef WEIR_DIALECTS_SCHEDULE_TD
#define WEIR_DIALECTS_SCHEDULE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/Properties.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Schedule_Dialect : Dialect {
  let name = "schedule";
  let cppNamespace = "::weir::schedule";
  let summary = "Kernels, dispatches on views, and their order.";
  let description = [{
    At the `kernels` level, tensor computation is in `schedule.kernel` regions, each
    of which becomes one GPU kernel. From `dispatches` on, a function has one
    `schedule.commands` region: the command list, in recorded order. Dispatches in
    it may overlap unless a `schedule.barrier` separates them.

    A command is for one queue, number 0 unless stated. A queue runs its commands in
    recorded order. Queues run at the same time; `schedule.signal` and
    `schedule.wait` order them.
  }];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Schedule_Enum<string name, string summary, list<I32EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::weir::schedule";
}

def Schedule_Access : Schedule_Enum<"Access", "how a kernel uses an operand", [
  I32EnumCase<"none", 0>, I32EnumCase<"read", 1>, I32EnumCase<"write", 2>,
  I32EnumCase<"update", 3>]>;

def Schedule_HazardKind : Schedule_Enum<"HazardKind", "kind of a hazard", [
  I32EnumCase<"raw", 0>, I32EnumCase<"war", 1>, I32EnumCase<"waw", 2>]>;

class Schedule_Attr<string name, string mnemonicName> : AttrDef<Schedule_Dialect, name> {
  let mnemonic = mnemonicName;
}

def Schedule_EffectAttr : Schedule_Attr<"Effect", "effect"> {
  let summary = "How a kernel uses one operand.";
  let description = [{
    Set on arguments of a kernel under the name `schedule.effect`.
    `covers_all`: whether every byte of the operand is written. `slice`: the bytes that
    are written, as runs at equal distances: [begin, bytes, stride, count], where stride
    is the distance between the beginnings of two runs.

    - C1: an operand with a slice is written, and not covered.
    - C2: a slice has four numbers, 0 <= begin, 1 <= bytes < stride and 1 <= count; begin,
      stride and stride * count are up to 2^40.

    Example: `#schedule.effect<write, covers_all = true>`,
    `#schedule.effect<write, slice = [32, 16, 64, 8]>`
  }];
  let parameters = (ins EnumParameter<Schedule_Access>:$access,
                        DefaultValuedParameter<"bool", "false">:$coversAll,
                        OptionalArrayRefParameter<"int64_t">:$slice);
  let assemblyFormat = [{
    `<` $access `` custom<Extent>($coversAll, $slice) `>`
  }];
  let genVerifyDecl = 1;
}

def Schedule_HazardAttr : Schedule_Attr<"Hazard", "hazard"> {
  let summary = "Two commands that must not overlap, and on which operands.";
  let description = [{
    `from` and `to` count the dispatches, copies and fills of the command list
    from 0, in recorded order; the operand numbers count each one's operands.

    The form in which barriers and messages print hazards. A barrier stores numbers: a long
    list of barriers has too many hazards for each to be an attribute.

    Example: `#schedule.hazard<raw, 0 operand 2 -> 1 operand 0>`
  }];
  let parameters = (ins EnumParameter<Schedule_HazardKind>:$kind,
                        "int64_t":$from, "int64_t":$fromOperand,
                        "int64_t":$to, "int64_t":$toOperand);
  let assemblyFormat = [{
    `<` $kind `,` $from `operand` $fromOperand `->` $to `operand` $toOperand `>`
  }];
}

def Schedule_PermissionAttr : Schedule_Attr<"Permission", "permission"> {
  let summary = "A dispatch may write one operand over the bytes of another.";
  let description = [{
    Set on dispatches, in an array under the name `weir.permissions`, by
    weir-donate-buffers: the value that `target` names may begin at byte 0 of the
    value that `source` names, of which this dispatch is the last reader.

    Example: `#schedule.permission<3 over 0>`
  }];
  let parameters = (ins "int64_t":$target, "int64_t":$source);
  let assemblyFormat = "`<` $target `over` $source `>`";
}

def Schedule_SlotAttr : Schedule_Attr<"Slot", "slot"> {
  let summary = "The waves in which bytes of the arena are a view's own.";
  let description = [{
    Set on a `memref.view` of the arena under the name `weir.slot`, by
    weir-plan-memory: the value or values that use the bytes in turn, for people to
    read; the alignment of their offset; the first and the last wave.

    - C1: 0 <= first wave <= last wave.

    Example: `#schedule.slot<"hidden", alignment = 256, waves = 0 to 3>`
  }];
  let parameters = (ins StringRefParameter<>:$value, "int64_t":$alignment,
                        "int64_t":$firstWave, "int64_t":$lastWave);
  let assemblyFormat = [{
    `<` $value `,` `alignment` `=` $alignment `,` `waves` `=` $firstWave `to` $lastWave `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

def Schedule_CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::weir::schedule";
  let description = [{
    A command touches memory: a dispatch, a copy or a fill. What is said of
    dispatches (hazards, waves, barriers) holds of all three, and they are
    counted together. Its operands are the op's, scalars included.
  }];
  let methods = [
    InterfaceMethod<"The number of the command's wave.", "std::optional<int64_t>", "getWave">,
    InterfaceMethod<"", "void", "setWave", (ins "std::optional<int64_t>":$wave)>,
    InterfaceMethod<"The number of the queue that runs it.", "int64_t", "getQueue">,
    InterfaceMethod<"", "void", "setQueue", (ins "int64_t":$queue)>,
  ];
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// What a command takes: memory, or a scalar, which no hazard concerns.
def Schedule_CommandOperand : AnyTypeOf<
    [AnyRankedOrUnrankedMemRef, AnyInteger, Index, AnyFloat,
     VectorOfAnyRankOf<[AnyInteger, Index, AnyFloat]>]>;

/// Properties, since tens of thousands of ops each have their own: an attribute would be
/// looked up among all others of its kind.
def Schedule_Wave : OptionalProp<I64Prop>;
def Schedule_OptionalNumbers : DefaultValuedProp<IntArrayProp<I64Prop>,
                                                 "::llvm::ArrayRef<int64_t>{}",
                                                 "::llvm::SmallVector<int64_t>{}">;

/// The number of a queue; Plan.h has the same bound.
def Schedule_Queue : DefaultValuedProp<
    ConfinedProp<I64Prop, CPred<"$_self >= 0 && $_self <= 63">, "a queue's number, 0 to 63">, "0">;

class Schedule_Op<string mnemonic, list<Trait> traits = []>
    : Op<Schedule_Dialect, mnemonic, traits>;

def Schedule_KernelOp : Schedule_Op<"kernel",
    [IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Tensor computation that becomes exactly one GPU kernel.";
  let description = [{
    The region's arguments are the inputs, in order; `schedule.yield` names the
    results. `name` says what the kernel does and need not be unique.

    The region holds ops on tensors, or the kernel's stages: kernels and reshapes of
    what they make. A workgroup then computes all stages, in order, for one group.
    `group_dims` of a stage are the dimensions of its rows that number the groups.

    - C1: the region's arguments have the inputs' types.
    - C2: `schedule.yield` yields the result types.
    - C3: a kernel has `group_dims` only inside of a kernel.

    Example:
    ```mlir
    func.func @double(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = schedule.kernel "double" (%x) : (tensor<8xf32>) -> tensor<8xf32> {
      ^bb0(%a: tensor<8xf32>):
        %e = tensor.empty() : tensor<8xf32>
        %s = linalg.add ins(%a, %a : tensor<8xf32>, tensor<8xf32>)
               outs(%e : tensor<8xf32>) -> tensor<8xf32>
        schedule.yield %s : tensor<8xf32>
      }
      return %y : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<DenseI64ArrayAttr>:$group_dims);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<
      (ins "mlir::TypeRange":$results, "mlir::StringAttr":$name, "mlir::ValueRange":$inputs),
      [{ build($_builder, $_state, results, name, inputs, mlir::DenseI64ArrayAttr()); }]>];
  let assemblyFormat = [{
    $name `(` $inputs `)` attr-dict-with-keyword `:`
    functional-type($inputs, $results) $body
  }];
  let hasVerifier = 1;
}

def Schedule_YieldOp : Schedule_Op<"yield",
    [Pure, Terminator, ReturnLike, HasParent<"KernelOp">]> {
  let summary = "Names the results of a `schedule.kernel`.";
  let arguments = (ins Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

def Schedule_CommandsOp : Schedule_Op<"commands",
    [SingleBlock, NoTerminator, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "A command list, in recorded order.";
  let description = [{
    - C1: holds only commands (`schedule.dispatch`, `schedule.copy`,
      `schedule.fill`), `schedule.barrier`, `schedule.signal` and
      `schedule.wait`.

    Example:
    ```mlir
    schedule.commands {
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Schedule_DispatchOp : Schedule_Op<"dispatch",
    [HasParent<"CommandsOp">, Schedule_CommandOpInterface,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One launch of a kernel on views.";
  let description = [{
    `kernel` names a `gpu.func` inside a `gpu.module`, or, once emitted, a
    `gpu.binary` of that name. `grid` is the number of workgroups for each axis, `wave`
    the wave that `weir-schedule` chose, `queue` the queue that `weir-assign-queues` chose.
    Operand i is binding i.

    `values`, in entries, has two numbers for each operand: the index of its value in
    `weir.value_names`, or -1 for a constant, and its first byte in that value.
    `before` has one number for each operand: where the kernel inserts into it, the
    value whose other bytes stay; else -1. It is empty where the kernel inserts into no
    operand. Scalar operands are for kernels that Weir did not make; no artifact has
    such a dispatch.

    - C1: `grid` has three sizes, each at least 1.
    - C2: `kernel` names a kernel of this module.
    - C3: there are as many operands as the kernel has arguments.
    - C4: each memref is as many bytes long as the kernel's argument, where both
      lengths are known.
    - C5: a scalar has the type of the kernel's argument; a memref is for one.
    - C6: `grid` is the kernel's `known_grid_size`, if there is one: analyses of the
      kernel assume it.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @k(%x: memref<8xf32, #gpu.address_space<global>>) kernel {
          gpu.return
        }
      }
      func.func @f(%x: memref<8xf32>) {
        schedule.commands {
          schedule.dispatch @k::@k [1, 1, 1] (%x) : (memref<8xf32>)
        }
        return
      }
    }
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel, DenseI64ArrayAttr:$grid,
                       Variadic<Schedule_CommandOperand>:$operands, Schedule_Wave:$wave,
                       Schedule_Queue:$queue, Schedule_OptionalNumbers:$values,
                       Schedule_OptionalNumbers:$before);
  let assemblyFormat = [{
    $kernel $grid `(` $operands `)` (`wave` $wave^)? (`queue` $queue^)?
    (`values` $values^)? (`before` $before^)? attr-dict (`:` `(` type($operands)^ `)`)?
  }];
  let hasVerifier = 1;
}

def Schedule_CopyOp : Schedule_Op<"copy", [HasParent<"CommandsOp">, Schedule_CommandOpInterface]> {
  let summary = "Copies every element of a view to another.";
  let description = [{
    Reads operand 0, the source, and writes all of operand 1, the target. The
    views may be of different layouts and memory spaces.

    - C1: both have the same element type and, where known, the same shape.

    Example:
    ```mlir
    func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) {
      schedule.commands {
        schedule.copy %x to %y : memref<8xf32> to memref<8xf32>
      }
      return
    }
    ```
  }];
  let arguments = (ins AnyRankedOrUnrankedMemRef:$source, AnyRankedOrUnrankedMemRef:$target,
                       Schedule_Wave:$wave, Schedule_Queue:$queue);
  let assemblyFormat = [{
    $source `to` $target (`wave` $wave^)? (`queue` $queue^)? attr-dict
    `:` type($source) `to` type($target)
  }];
  let hasVerifier = 1;
}

def Schedule_FillOp : Schedule_Op<"fill", [HasParent<"CommandsOp">, Schedule_CommandOpInterface]> {
  let summary = "Sets every element of a view to one value.";
  let description = [{
    Operand 0 is the value, operand 1 the target, all of which is written.

    - C1: the value is of the target's element type.

    Example:
    ```mlir
    func.func @f(%zero: f32, %y: memref<8xf32>) {
      schedule.commands {
        schedule.fill %y with %zero : memref<8xf32>, f32
      }
      return
    }
    ```
  }];
  let arguments = (ins Schedule_CommandOperand:$value, AnyRankedOrUnrankedMemRef:$target,
                       Schedule_Wave:$wave, Schedule_Queue:$queue);
  let assemblyFormat = [{
    $target `with` $value (`wave` $wave^)? (`queue` $queue^)? attr-dict
    `:` type($target) `,` type($value)
  }];
  let hasVerifier = 1;
}

def Schedule_BarrierOp : Schedule_Op<"barrier", [HasParent<"CommandsOp">]> {
  let summary = "Orders all earlier dispatches of the queue before all later ones.";
  let description = [{
    `memory` lists the views whose writes become visible: those of its RAW and
    WAW hazards. `hazards` lists the hazards that need it, the one that forced
    it first: five numbers each, kind, `from`, its operand, `to` and its operand.
    Other queues are not held up.

    - C1: there is at least one hazard; each has five numbers, of which kind is 0 to 2.
    - C2: every hazard's `from` is recorded before the barrier, `to` after it.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @w(%x: memref<8xf32, #gpu.address_space<global>>) kernel {
          gpu.return
        }
      }
      func.func @f(%x: memref<8xf32>) {
        schedule.commands {
          schedule.dispatch @k::@w [1, 1, 1] (%x) : (memref<8xf32>)
          schedule.barrier memory(%x : memref<8xf32>)
            [#schedule.hazard<waw, 0 operand 0 -> 1 operand 0>]
          schedule.dispatch @k::@w [1, 1, 1] (%x) : (memref<8xf32>)
        }
        return
      }
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedOrUnrankedMemRef>:$memory,
                       IntArrayProp<I64Prop>:$hazardNumbers, Schedule_Queue:$queue);
  let assemblyFormat = [{
    (`queue` $queue^)? (`memory` `(` $memory^ `:` type($memory) `)`)?
    custom<Hazards>($hazardNumbers) attr-dict
  }];
  let extraClassDeclaration = [{
    llvm::SmallVector<HazardFields> getHazards();
  }];
  let hasVerifier = 1;
}

def Schedule_SignalOp : Schedule_Op<"signal", [HasParent<"CommandsOp">]> {
  let summary = "A point in a queue that other queues can wait for.";
  let description = [{
    Point `id` covers every command recorded earlier on the queue, readers as
    well as writers, and all that these waited for. It makes what was written to
    the views in `memory` available, so that whoever waits sees it.

    - C1: no other signal of the list has the same `id`.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @w(%x: memref<8xf32, #gpu.address_space<global>>) kernel {
          gpu.return
        }
      }
      func.func @f(%x: memref<8xf32>) {
        schedule.commands {
          schedule.dispatch @k::@w [1, 1, 1] (%x) queue 1 : (memref<8xf32>)
          schedule.signal queue 1 id 0 memory(%x : memref<8xf32>)
          schedule.wait on 0
          schedule.dispatch @k::@w [1, 1, 1] (%x) : (memref<8xf32>)
        }
        return
      }
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$id,
                       Variadic<AnyRankedOrUnrankedMemRef>:$memory, Schedule_Queue:$queue);
  let assemblyFormat = [{
    (`queue` $queue^)? `id` $id (`memory` `(` $memory^ `:` type($memory) `)`)? attr-dict
  }];
}

def Schedule_WaitOp : Schedule_Op<"wait", [HasParent<"CommandsOp">]> {
  let summary = "Holds up a queue until another has reached a point.";
  let description = [{
    Every command recorded later on the queue runs after all that point `signal`
    covers, and sees what that made available. Commands recorded earlier on the
    queue are not waited for.

    - C1: the signal is recorded before the wait: so no queue waits for itself
      through others, and nothing deadlocks.
    - C2: the signal is of another queue.

    Example:
    ```mlir
    func.func @f() {
      schedule.commands {
        schedule.signal id 0
        schedule.wait queue 1 on 0
      }
      return
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$signal, Schedule_Queue:$queue);
  let assemblyFormat = "(`queue` $queue^)? `on` $signal attr-dict";
}

//===----------------------------------------------------------------------===//
// Inside kernels
//===----------------------------------------------------------------------===//

def Schedule_GroupProductOp : Schedule_Op<"group_product", [
    AllTypesMatch<["sums", "result"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Adds a product of two matrices in workgroup memory to the sums of four subgroups.";
  let description = [{
    `wgmma.mma_async` of sm_90a: 64 rows by as many columns as twice the sums of an
    invocation, of 16 products; of 8 where the factors are f32, which must have been
    rounded to tf32.

    Each factor lies in blocks of eight lines of 128 bytes, in which runs of 16 bytes
    have their number combined with the line's (exclusive or). A line holds 64
    products of a row or column, or 32 of f32; or, if transposed, 64 rows or columns of a
    product.
    `strides` has for each factor the bytes from one block to the next: along the
    lines, and across them.

    A factor begins at the index and `rowOffset`, or `columnOffset`, elements behind it:
    products of different slabs share the address that is computed.

    The factors are read at any time up to the `nvvm.wgmma.wait.group.sync.aligned`
    that waits for the product's group, through a proxy that sees stores only behind
    `nvvm.fence.proxy`; the sums are no numbers until then.

    C1. The sums are a vector of 4 to 128 f32, a multiple of 4.
    C2. Both factors have one element type.
    C3. There are four strides.
    C4. The offsets are multiples of 16 bytes.
    C5. Factors of f32 are not transposed.

    Example:
    ```mlir
    func.func @f(%a: memref<8192xbf16, #gpu.address_space<workgroup>>,
                 %b: memref<16384xbf16, #gpu.address_space<workgroup>>,
                 %sums: vector<128xf32>, %at: index) -> vector<128xf32> {
      %r = schedule.group_product %sums, %a[%at], %b[%at]
        {strides = array<i64: 16, 1024, 8192, 1024>, transposesColumns}
        : memref<8192xbf16, #gpu.address_space<workgroup>>,
          memref<16384xbf16, #gpu.address_space<workgroup>>, vector<128xf32>
      return %r : vector<128xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1], [F32]>:$sums,
                       MemRefRankOf<[F16, BF16, F32], [1]>:$rows, Index:$row,
                       MemRefRankOf<[F16, BF16, F32], [1]>:$columns, Index:$column,
                       DenseI64ArrayAttr:$strides,
                       UnitAttr:$transposesRows, UnitAttr:$transposesColumns,
                       DefaultValuedAttr<I64Attr, "0">:$rowOffset,
                       DefaultValuedAttr<I64Attr, "0">:$columnOffset);
  let results = (outs VectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $sums `,` $rows `[` $row `]` `,` $columns `[` $column `]` attr-dict
    `:` type($rows) `,` type($columns) `,` type($sums)
  }];
  let hasVerifier = 1;
}

class Schedule_MBarrier_Op<string name> : Schedule_Op<name, [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins MemRefRankOf<[I64], [1]>:$barriers,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$number);
  let assemblyFormat = "$barriers `[` $number `]` attr-dict `:` type($barriers)";
}

def Schedule_MBarrierInitOp : Schedule_MBarrier_Op<"mbarrier_init"> {
  let summary = "Makes an mbarrier that one invocation arrives at.";
  let description = [{
    `mbarrier.init` of PTX, with a count of 1. Its first phase begins. One invocation
    does this; others use the mbarrier behind an `nvvm.fence.proxy` and a barrier of the
    workgroup.

    Example:
    ```mlir
    func.func @f(%m: memref<4xi64, #gpu.address_space<workgroup>>) {
      schedule.mbarrier_init %m[0] : memref<4xi64, #gpu.address_space<workgroup>>
      return
    }
    ```
  }];
}

def Schedule_MBarrierExpectOp : Schedule_MBarrier_Op<"mbarrier_expect"> {
  let summary = "Arrives at an mbarrier, whose phase ends when so many bytes have been copied.";
  let description = [{
    `mbarrier.arrive.expect_tx` of PTX. The copies of those bytes follow, by the same
    invocation.

    Example:
    ```mlir
    func.func @f(%m: memref<4xi64, #gpu.address_space<workgroup>>) {
      schedule.mbarrier_expect %m[0] {bytes = 24576} : memref<4xi64, #gpu.address_space<workgroup>>
      return
    }
    ```
  }];
  let arguments = (ins MemRefRankOf<[I64], [1]>:$barriers,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$number,
                       ConfinedAttr<I64Attr, [IntPositive]>:$bytes);
}

def Schedule_MBarrierWaitOp : Schedule_MBarrier_Op<"mbarrier_wait"> {
  let summary = "Waits until a phase of an mbarrier has ended.";
  let description = [{
    `mbarrier.try_wait.parity` of PTX, in a loop until it succeeds. Phases count from 0;
    `parity` is whether the number of the phase is odd. What was copied in the phase is
    there afterwards.

    Example:
    ```mlir
    func.func @f(%m: memref<4xi64, #gpu.address_space<workgroup>>) {
      schedule.mbarrier_wait %m[0] {parity = true} : memref<4xi64, #gpu.address_space<workgroup>>
      return
    }
    ```
  }];
  let arguments = (ins MemRefRankOf<[I64], [1]>:$barriers,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$number, BoolAttr:$parity);
}

def Schedule_TileCopyOp : Schedule_Op<"tile_copy", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Copies a box of an operand to workgroup memory, behind the invocation.";
  let description = [{
    `cp.async.bulk.tensor` of PTX (TMA). The operand is a tensor of `shape`, row by row.
    `coordinates` are those of the first element of a box of `box` elements; what lies
    outside of the tensor is 0. The box lies in workgroup memory row by row, in lines of
    128 bytes, in which runs of 16 bytes have their number combined with the line's
    (exclusive or): as `schedule.group_product` reads them. Elements of f32 are rounded to
    tf32 on the way, to the nearest, of two equally near to the even one.

    The copy ends at any time before an invocation has waited for the phase of the
    mbarrier, which counts its bytes.

    The device finds the tensor by a tensor map, a parameter of the kernel. `map` is set
    only once a kernel becomes PTX.

    C1. `shape` and `box` have a size for each coordinate, two to five.
    C2. Operand and workgroup memory have one element type.
    C3. The last size of the box has 128 bytes; the others are 1 to 256.
    C4. The last size of `shape` is a multiple of 16 bytes.

    Example:
    ```mlir
    func.func @f(%a: memref<65536xbf16, #gpu.address_space<global>>,
                 %slab: memref<8192xbf16, #gpu.address_space<workgroup>>,
                 %m: memref<4xi64, #gpu.address_space<workgroup>>, %row: index, %at: index) {
      schedule.tile_copy %a[%row, %at] to %slab[%at] signals %m[0]
        {shape = array<i64: 256, 256>, box = array<i64: 128, 64>}
        : memref<65536xbf16, #gpu.address_space<global>>,
          memref<8192xbf16, #gpu.address_space<workgroup>>,
          memref<4xi64, #gpu.address_space<workgroup>>
      return
    }
    ```
  }];
  let arguments = (ins MemRefRankOf<[F16, BF16, F32], [1]>:$operand, Variadic<Index>:$coordinates,
                       MemRefRankOf<[F16, BF16, F32], [1]>:$slab, Index:$place,
                       MemRefRankOf<[I64], [1]>:$barriers, Optional<AnyType>:$map,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$number,
                       DenseI64ArrayAttr:$shape, DenseI64ArrayAttr:$box);
  let assemblyFormat = [{
    $operand `[` $coordinates `]` `to` $slab `[` $place `]` `signals` $barriers `[` $number `]`
    (`by` $map^ `:` type($map))? attr-dict
    `:` type($operand) `,` type($slab) `,` type($barriers)
  }];
  let extraClassDeclaration = [{
    /// Returns the number of elements that are copied.
    int64_t getElements();
  }];
  let hasVerifier = 1;
}

#endif // WEIR_DIALECTS_SCHEDULE_TD
