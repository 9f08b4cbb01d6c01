// Uses stand before definitions in the text, though not where control goes; names are used again in other regions.
func.func @f(%c: i1, %n: index, %m: memref<8xf32>) -> f32 {
  cf.br ^defines
^uses:
  %r = scf.if %c -> (f32) {
    %0 = arith.negf %late : f32
    scf.yield %0 : f32
  } else {
    scf.yield %late : f32
  }
  return %r : f32
^defines:
  %late, %i = func.call @two(%n) : (index) -> (f32, index)
  scf.for %i_0 = %i to %n step %i {
    %0 = memref.load %m[%i_0] : memref<8xf32>
    memref.store %0, %m[%i_0] : memref<8xf32>
  }
  scf.for %i_0 = %i to %n step %i {
    %0 = memref.load %m[%i_0] : memref<8xf32>
    memref.store %0, %m[%i] : memref<8xf32>
  }
  cf.br ^uses
}
func.func private @two(%n: index) -> (f32, index)
