//===- Autodiff.td - The autodiff dialect ------------------------------------------===//

#ifndef WEIR_DIALECTS_AUTODIFF_TD
#define WEIR_DIALECTS_AUTODIFF_TD

include "mlir/IR/OpBase.td"

def Autodiff_Dialect : Dialect {
  let name = "autodiff";
  let cppNamespace = "::weir::autodiff";
}

#endif // WEIR_DIALECTS_AUTODIFF_TD
