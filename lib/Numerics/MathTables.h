//===- MathTables.h - Coefficients of Weir's math functions -----*- C++ -*-===//
//
// As scripts/fit-math.py prints them. A name that ends in 32 or 64 is of f32 or f64.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_NUMERICS_MATHTABLES_H
#define WEIR_LIB_NUMERICS_MATHTABLES_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace weir::expression {

/// The same polynomial, lowest degree first, or the same constant in pieces, for both types.
struct Table {
  llvm::ArrayRef<double> f32, f64;
};

// clang-format off
// On [-0.34692, 0.34692], error 0.231 * 2^-24.
static constexpr double expTail32[] = {0x1.fffffep-2, 0x1.5554b4p-3, 0x1.5556f2p-5, 0x1.12256p-7, 0x1.6b9caap-10};
// On [-0.34692, 0.34727], error 0.00835 * 2^-53.
static constexpr double expTail64[] = {0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100acp-7, 0x1.6c16c16c15d7p-10, 0x1.a01a01ac01acep-13, 0x1.a01a01a918f9p-16, 0x1.71de01e046135p-19, 0x1.27e4d55b2ad71p-22, 0x1.af4e926dc2e45p-26, 0x1.1f7e306e975b7p-29};
static constexpr Table expTail = {expTail32, expTail64};
// On [-0.5005, 0.5005], error 0.0525 * 2^-24.
static constexpr double exp2Tail32[] = {0x1.62e43p-1, 0x1.ebfbep-3, 0x1.c6af7ap-5, 0x1.3b2a28p-7, 0x1.5f098ep-10, 0x1.4447bcp-13};
// On [-0.5005, 0.5005], error 0.13 * 2^-53.
static constexpr double exp2Tail64[] = {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0c6p-5, 0x1.3b2ab6fba4e79p-7, 0x1.5d87fe78a3f4bp-10, 0x1.430912f86b7bap-13, 0x1.ffcbfc6dc7729p-17, 0x1.62c02242c55a8p-20, 0x1.b524eb7daec92p-24, 0x1.e4cf109c96efp-28, 0x1.e9ecb42c532a9p-32, 0x1.c4a308a6fefb4p-36};
static constexpr Table exp2Tail = {exp2Tail32, exp2Tail64};
// On [-0.29299, 0.41431], error 0.0703 * 2^-24.
static constexpr double logTail[] = {-0x1.fffff8p-2, 0x1.55555p-2, -0x1.000438p-2, 0x1.99a428p-3, -0x1.542422p-3, 0x1.226b38p-3, -0x1.0f4cc8p-3, 0x1.087d1ep-3, -0x1.384d88p-4};
// On [-0.29299, 0.41431], error 0.123 * 2^-24.
static constexpr double log2Tail[] = {0x1.c551dap-2, -0x1.715476p-1, 0x1.ec7024p-2, -0x1.7156d2p-2, 0x1.278b62p-2, -0x1.eb68bap-3, 0x1.a222f2p-3, -0x1.81ace8p-3, 0x1.7ea972p-3, -0x1.dc1a76p-4};
// On [-0.29299, 0.41431], error 0.105 * 2^-24.
static constexpr double log10Tail[] = {-0x1.0d213ap-4, -0x1.bcb7b2p-3, 0x1.287a5p-3, -0x1.bcbad8p-4, 0x1.63d44p-4, -0x1.27c6d2p-4, 0x1.f887a4p-5, -0x1.d2a6ecp-5, 0x1.c8b85ep-5, -0x1.158056p-5};
// On [0.001, 0.5505], error 0.019 * 2^-24.
static constexpr double tanhTail32[] = {-0x1.55554ap-2, 0x1.110cfp-3, -0x1.b91f2ap-5, 0x1.58ed88p-6, -0x1.9962p-8};
// On [0, 0.30305], error 0.0431 * 2^-53.
static constexpr double tanhTail64[] = {-0x1.5555555555555p-2, 0x1.111111111102ep-3, -0x1.ba1ba1b9fe56dp-5, 0x1.664f4876eacb4p-6, -0x1.226e32e8c5e85p-7, 0x1.d6d337b3bde71p-9, -0x1.7d97b7e2de955p-10, 0x1.34c4bceb1a8fcp-11, -0x1.ec05a392c9621p-13, 0x1.64d9bcad8e6fp-14, -0x1.5944ca734c609p-16};
static constexpr Table tanhTail = {tanhTail32, tanhTail64};
// On [0.001, 1], error 0.0239 * 2^-24.
static constexpr double erfTail32[] = {0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce6p-4, -0x1.b7f71ap-6, 0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fcp-14};
// On [0, 1], error 0.173 * 2^-53.
static constexpr double erfTail64[] = {0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b3p-4, -0x1.b82ce31284ep-6, 0x1.565bcd0dbaa38p-8, -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17, 0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30, 0x1.05ffd737fb32ep-34};
static constexpr Table erfTail = {erfTail32, erfTail64};
// On [1, 4], error 0.000405 * 2^-24.
static constexpr double erfcLog2[] = {0x1.1d1bb6p-12, -0x1.a13014p+0, -0x1.d3bb4cp-1, -0x1.4058fep-3, 0x1.29f2a6p-5, -0x1.8d9868p-8, 0x1.4de87p-11, -0x1.068f6ap-15};
// On [-0.010101, 0.90654], error 0.337 * 2^-24.
static constexpr double erfcTail32[] = {0x1.3b3bc4p-1, 0x1.a5e5c4p-4, -0x1.9cf7aap-5, -0x1.097afap-4, -0x1.de8024p-5, 0x1.1dcff4p-4, -0x1.2e78aap-2, 0x1.3d685ep-1, -0x1.89d42ep-1, 0x1.1e431ep-1, -0x1.522a62p-3};
// On [-0.60643, 0.86667], error 0.266 * 2^-53.
static constexpr double erfcTail64[] = {0x1.058671b52c776p+0, -0x1.5fd386754eff9p-1, 0x1.1e2deea6b117ap-2, -0x1.2a88e6107d5dp-5, -0x1.606e41552c57bp-6, 0x1.a89eaff8761e6p-8, 0x1.9517bb73a2b6fp-9, -0x1.b6fbf9a1b3db1p-11, -0x1.5ba43940e57c7p-11, 0x1.20541a581cde4p-15, 0x1.2efa547d1e446p-13, 0x1.1e75eebfff5cp-15, -0x1.6c0a94a82b83dp-16, -0x1.0e7073555e6d7p-16, -0x1.2b82b0b88f6fcp-20, 0x1.e7ce8120251b7p-19, 0x1.0944a988ea98dp-19, 0x1.3abbaff356d18p-25, -0x1.1e963f4e5f421p-21, -0x1.adbe9ea1cbdd8p-22, -0x1.7943c00710448p-26, 0x1.b2cb1d79d84dbp-23, 0x1.3365bbe6bece3p-25, -0x1.fffa1316ee7eep-25, 0x1.1e83dc76cc23bp-27};
static constexpr Table erfcTail = {erfcTail32, erfcTail64};
// On [-14.5, 0], error 0.293 * 2^-24.
static constexpr double tailNumerator[] = {-0x1.83ad1cp+5, 0x1.53d532p+5, -0x1.1c24a6p+4, 0x1.f81468p+1, -0x1.98858ap-2};
static constexpr double tailDenominator[] = {-0x1.83ad1cp+6, 0x1.4493bp+7, -0x1.d22e72p+6, 0x1.6c012cp+5, -0x1.3be7b6p+3, 0x1p+0};
// On [-0.69384, 0.69384], error 1.55 * 2^-24.
static constexpr double expOfHalf[] = {0x1p+0, -0x1.fffff6p-2, 0x1.fffdc4p-4, -0x1.555a7ap-6, 0x1.573afep-9, -0x1.0fa40cp-12};
// On [0.875, 0.94531], error 242 * 2^-24.
static constexpr double inverseGuess[] = {0x1.a6387ep+1, -0x1.d0127cp+1, 0x1.53ebd8p+0};
// On [0.001, 0.787], error 0.0698 * 2^-24.
static constexpr double sinTail32[] = {-0x1.555544p-3, 0x1.1106c6p-7, -0x1.991c16p-13};
// On [0, 0.61937], error 0.0573 * 2^-53.
static constexpr double sinTail64[] = {-0x1.5555555555555p-3, 0x1.111111111111p-7, -0x1.a01a01a019914p-13, 0x1.71de3a545c308p-19, -0x1.ae64540b27247p-26, 0x1.612179050e235p-33, -0x1.ab1448a1391b9p-41};
static constexpr Table sinTail = {sinTail32, sinTail64};
// On [0.001, 0.787], error 0.00201 * 2^-24.
static constexpr double cosTail32[] = {0x1.55554ap-5, -0x1.6c0c26p-10, 0x1.99e714p-16};
// On [0, 0.61937], error 0.0111 * 2^-53.
static constexpr double cosTail64[] = {0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019cfap-16, -0x1.27e4fb7710e1ep-22, 0x1.1eed8de8343b7p-29, -0x1.9394b4b0ba969p-37, 0x1.ab7533d07d10cp-45};
static constexpr Table cosTail = {cosTail32, cosTail64};
// On [1, 4], error 1.18e+05 * 2^-24.
static constexpr double rsqrtGuess[] = {0x1.8e623cp+0, -0x1.7a4c22p-1, 0x1.8eb72ap-3, -0x1.381fp-6};
// On [-0.026, 0.026], error 0.00352 * 2^-24.
static constexpr double rsqrtTail32[] = {0x1.fffffep-2, 0x1.7ffffcp-2, 0x1.403412p-2, 0x1.183ec4p-2};
// On [-0.0002, 0.0002], error 0.0001 * 2^-53.
static constexpr double rsqrtTail64[] = {0x1.fffffffffffffp-2, 0x1.7ffffffffffffp-2, 0x1.400000a91d459p-2, 0x1.1800009b057fcp-2};
static constexpr Table rsqrtTail = {rsqrtTail32, rsqrtTail64};
// On [1, 8], error 3.13e+04 * 2^-24.
static constexpr double cbrtGuess[] = {0x1.412ccep-1, 0x1.cbf95cp-2, -0x1.572464p-4, 0x1.3a0ab2p-7, -0x1.c516cap-12};
// On [-0.018, 0.018], error 0.00109 * 2^-24.
static constexpr double cbrtTail32[] = {0x1.555556p-2, -0x1.c71c72p-4, 0x1.f96acap-5, -0x1.512844p-5};
// On [-0.0001, 0.0001], error 1.67e-05 * 2^-53.
static constexpr double cbrtTail64[] = {0x1.5555555555555p-2, -0x1.c71c71c71c71cp-4, 0x1.f9add3ea44539p-5, -0x1.511e8d4b74006p-5};
static constexpr Table cbrtTail = {cbrtTail32, cbrtTail64};
// On [0.001, 0.1717], error 0.0279 * 2^-24.
static constexpr double atanhTail32[] = {0x1.997b2ep-3, 0x1.2f579ap-3};
// On [0, 0.029481], error 0.00108 * 2^-53.
static constexpr double atanhTail64[] = {0x1.999999999999fp-3, 0x1.249249248e4a8p-3, 0x1.c71c71d80657ep-4, 0x1.745d09dd15b06p-4, 0x1.3b18be6eb04cdp-4, 0x1.1017f782418d8p-4, 0x1.08815cc5a3481p-4};
static constexpr Table atanhTail = {atanhTail32, atanhTail64};
// On [0.001, 1], error 0.281 * 2^-24.
static constexpr double atanTail32[] = {-0x1.5554dcp-2, 0x1.9978ecp-3, -0x1.230a96p-3, 0x1.b4dedep-4, -0x1.35519p-4, 0x1.61f14p-5, -0x1.0c1c26p-6, 0x1.7eb1a4p-9};
// On [0, 1], error 0.211 * 2^-53.
static constexpr double atanTail64[] = {-0x1.5555555555555p-2, 0x1.999999999997dp-3, -0x1.2492492491234p-3, 0x1.c71c71c6882cdp-4, -0x1.745d1731e853fp-4, 0x1.3b13af957f086p-4, -0x1.1110f9a06b09dp-4, 0x1.e1e0069edf96ep-5, -0x1.af1a76061e434p-5, 0x1.85c82bf04fbd6p-5, -0x1.62c464c86804fp-5, 0x1.42a843b89b0ebp-5, -0x1.20f157ad652dfp-5, 0x1.f0f041d3e2f5p-6, -0x1.8c59dbc673323p-6, 0x1.198ad7e0bd0c6p-6, -0x1.552f78ddf9b3p-7, 0x1.50ea3497605b5p-8, -0x1.0110cfd66bd22p-9, 0x1.19e6b726893dp-11, -0x1.890e58e18ff08p-14, 0x1.04a3628aee536p-17};
static constexpr Table atanTail = {atanTail32, atanTail64};
// On [0.001, 0.501], error 0.0843 * 2^-24.
static constexpr double asinTail32[] = {0x1.5555ccp-3, 0x1.3300bp-4, 0x1.749ebap-5, 0x1.8ad4bp-6, 0x1.5a9c7p-5};
// On [0, 0.251], error 0.047 * 2^-53.
static constexpr double asinTail64[] = {0x1.5555555555556p-3, 0x1.3333333332e8ap-4, 0x1.6db6db6e38657p-5, 0x1.f1c71c19a275ep-6, 0x1.6e8bb26fa6343p-6, 0x1.1c4d25eecfbeep-6, 0x1.c9d0edd9a961ap-7, 0x1.78133a8b928abp-7, 0x1.52c193749d0a4p-7, 0x1.61479900c1d2p-8, 0x1.2025403edee61p-6, -0x1.f064ad2b2b433p-7, 0x1.da8dfbbc86955p-6};
static constexpr Table asinTail = {asinTail32, asinTail64};
// On [0.001, 1], error 0.00509 * 2^-24.
static constexpr double sinhTail32[] = {0x1.555556p-3, 0x1.1110ep-7, 0x1.a022bcp-13, 0x1.756c1ep-19};
// On [0, 1], error 0.072 * 2^-53.
static constexpr double sinhTail64[] = {0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a01a001p-13, 0x1.71de3a556f96cp-19, 0x1.ae6456792a77fp-26, 0x1.612467ccb226p-33, 0x1.ae777c36fd5b6p-41, 0x1.99f0806c2628dp-49};
static constexpr Table sinhTail = {sinhTail32, sinhTail64};
static constexpr double ln232[] = {0x1.62e4p-1, 0x1.7f7d1cp-20};
static constexpr double ln264[] = {0x1.62e42fefa4p-1, -0x1.8432a1b0e2634p-43};
static constexpr Table ln2 = {ln232, ln264};
static constexpr double log10Of232[] = {0x1.344p-2, 0x1.3509f8p-18};
static constexpr double log10Of264[] = {0x1.34413509f8p-2, -0x1.80433b83b532ap-44};
static constexpr Table log10Of2 = {log10Of232, log10Of264};
static constexpr double twoLog2E32[] = {0x1.716p+1, -0x1.7135a8p-12};
static constexpr double twoLog2E64[] = {0x1.7154768p+1, -0x1.6a3e80f444178p-26};
static constexpr Table twoLog2E = {twoLog2E32, twoLog2E64};
static constexpr double twoThirdsLog2E32[] = {0x1.ec8p-1, -0x1.ec478cp-14};
static constexpr double twoThirdsLog2E64[] = {0x1.ec709ep-1, -0x1.e2fe0145b01f5p-28};
static constexpr Table twoThirdsLog2E = {twoThirdsLog2E32, twoThirdsLog2E64};
static constexpr double halfPi32[] = {0x1.922p+0, -0x1.2aeef4p-18};
static constexpr double halfPi64[] = {0x1.921fb58p+0, -0x1.dde973dcb3b3ap-27};
static constexpr Table halfPi = {halfPi32, halfPi64};
static constexpr double halfPiPair32[] = {0x1.921fb6p+0, -0x1.777a5cp-25};
static constexpr double halfPiPair64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static constexpr Table halfPiPair = {halfPiPair32, halfPiPair64};
static constexpr double log2E[] = {0x1.7154768p+0, -0x1.6a3e80f444178p-27};
static constexpr double log10E[] = {0x1.bcb7b18p-2, -0x1.6c8d78e6acaa4p-29};
static constexpr uint64_t twoOverPiWords32[] = {0x28, 0xbe60db93, 0x91054a7f, 0x9d5f47d, 0x4d377036, 0xd8a5664f, 0x10e4107f};
static constexpr uint64_t twoOverPiWords64[] = {0x145, 0xf306dc9c882a53f8, 0x4eafa3ea69bb81b6, 0xc52b3278872083fc, 0xa2c757bd778ac36e, 0x48dc74849ba5c00c, 0x925dd413a32439fc, 0x3bd63962534e7dd1, 0x46bea5d768909d3, 0x38e04d68befc8273, 0x23ac7306a673e939, 0x8bf177bf250763f, 0xf12fffbc0b301fde, 0x5e2316b414da3eda, 0x6cfd9e4f96136e9e, 0x8c7ecd3cbfd45aea, 0x4f758fd7cbe2f67a, 0xe73ef14a525d4d7, 0xf6bf623f1aba10ac};
// clang-format on

} // namespace weir::expression

#endif // WEIR_LIB_NUMERICS_MATHTABLES_H
