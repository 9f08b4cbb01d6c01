//===- Norm.td - The norm dialect ------------------------------------------===//

#ifndef WEIR_DIALECTS_NORM_TD
#define WEIR_DIALECTS_NORM_TD

include "mlir/IR/OpBase.td"

def Norm_Dialect : Dialect {
  let name = "norm";
  let cppNamespace = "::weir::norm";
}

#endif // WEIR_DIALECTS_NORM_TD
