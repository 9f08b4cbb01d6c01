//===- Verify.cpp - weir verify -------------------------------------------===//

#include "weir/Verify/Verify.h"
#include "Output.h"
#include "Verbs.h"

#include <memory>

using namespace weir;
using namespace weir::tool;

static int runVerify(const std::string &path, bool json) {
  std::vector<Claim> claims = verify(readArtifact(path));
  bool allHold = true;
  size_t proved = 0, taken = 0;
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const Claim &claim : claims) {
    allHold &= claim.holds;
    list.push_back({{"entry", claim.entry},
                    {"target", claim.target},
                    {"claim", claim.what},
                    {"holds", claim.holds},
                    {"proved_from_code", claim.proved},
                    {"taken_from_compiler", claim.taken},
                    {"detail", claim.detail}});
    proved += claim.proved;
    taken += claim.taken;
    rows.push_back(
        {claim.entry, claim.target, claim.what, claim.holds ? "holds" : "FAILS", claim.detail});
  }
  if (json)
    printJson({{"holds", allHold},
               {"proved_from_code", proved},
               {"taken_from_compiler", taken},
               {"claims", list}});
  else {
    printTable({"entry", "target", "claim", "", "detail"}, rows);
    std::cout << (allHold ? "All claims hold" : "Some claims fail")
              << "; of what they say of code, " << proved << " facts are proved from it, " << taken
              << " taken from the compiler.\n";
  }
  return allHold ? Done : CheckFailed;
}

void tool::addVerify(CLI::App &app, Verb &chosen) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App *verb = app.add_subcommand(
      "verify",
      "Prove an artifact's plans again from the artifact alone; exits with 1 if a claim fails");
  verb->add_option("artifact", *path, "The artifact")->required()->type_name("X.weir");
  verb->add_flag("--json", *json, "Print JSON");
  verb->callback(
      [path, json, &chosen] { chosen = [path, json] { return runVerify(*path, *json); }; });
}
