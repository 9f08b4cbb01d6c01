//===- Integers.cpp - Results of integer instructions ---------------------===//

#include "weir/SpirvReader/Integers.h"

#include <algorithm>

using namespace weir;
using namespace weir::spv;

std::optional<uint64_t> spv::computeBinary(Op op, uint64_t a, uint64_t b, uint32_t width) {
  int64_t sa = extend(a, width), sb = extend(b, width);
  bool canDivide = b != 0 && !(sb == -1 && sa == extend(uint64_t(1) << (width - 1), width));
  switch (op) {
  case Op::IAdd:
    return a + b;
  case Op::ISub:
    return a - b;
  case Op::IMul:
    return a * b;
  case Op::UDiv:
    return canDivide ? std::optional(a / b) : std::nullopt;
  case Op::UMod:
    return canDivide ? std::optional(a % b) : std::nullopt;
  case Op::SDiv:
    return canDivide ? std::optional(uint64_t(sa / sb)) : std::nullopt;
  case Op::SRem:
    return canDivide ? std::optional(uint64_t(sa % sb)) : std::nullopt;
  case Op::SMod:
    return canDivide
               ? std::optional(uint64_t(sa % sb && (sa < 0) != (sb < 0) ? sa % sb + sb : sa % sb))
               : std::nullopt;
  case Op::ShiftLeftLogical:
    return b < width ? std::optional(a << b) : std::nullopt;
  case Op::ShiftRightLogical:
    return b < width ? std::optional(a >> b) : std::nullopt;
  case Op::ShiftRightArithmetic:
    return b < width ? std::optional(uint64_t(sa >> b)) : std::nullopt;
  case Op::BitwiseAnd:
  case Op::LogicalAnd:
    return a & b;
  case Op::BitwiseOr:
  case Op::LogicalOr:
    return a | b;
  case Op::BitwiseXor:
    return a ^ b;
  case Op::IEqual:
  case Op::LogicalEqual:
    return a == b;
  case Op::INotEqual:
  case Op::LogicalNotEqual:
    return a != b;
  case Op::UGreaterThan:
    return a > b;
  case Op::SGreaterThan:
    return sa > sb;
  case Op::UGreaterThanEqual:
    return a >= b;
  case Op::SGreaterThanEqual:
    return sa >= sb;
  case Op::ULessThan:
    return a < b;
  case Op::SLessThan:
    return sa < sb;
  case Op::ULessThanEqual:
    return a <= b;
  case Op::SLessThanEqual:
    return sa <= sb;
  default:
    return std::nullopt;
  }
}

std::optional<uint64_t> spv::computeGlsl(Glsl function, uint64_t a, uint64_t b, uint32_t width) {
  int64_t sa = extend(a, width), sb = extend(b, width);
  switch (function) {
  case Glsl::SAbs:
    return uint64_t(sa < 0 ? -sa : sa);
  case Glsl::UMin:
    return std::min(a, b);
  case Glsl::UMax:
    return std::max(a, b);
  case Glsl::SMin:
    return uint64_t(std::min(sa, sb));
  case Glsl::SMax:
    return uint64_t(std::max(sa, sb));
  default:
    return std::nullopt;
  }
}
