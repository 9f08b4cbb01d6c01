def Broken_NoneOp : Broken_Op<"none"> {
}
def Broken_EndOp : Broken_Op<"end", [Terminator]> {
}
def Broken_WrongOp : Broken_Op<"wrong"> {
  let description = [{
    ```mlir
    broken.wrong
    ```
  }];
}
def Broken_OtherOp : Broken_Op<"other"> {
  let description = [{
    ```mlir
    module {
    }
    ```
  }];
}
