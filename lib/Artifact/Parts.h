//===- Parts.h - Functions shared by files of this room ---------*- C++ -*-===//

#ifndef WEIR_LIB_ARTIFACT_PARTS_H
#define WEIR_LIB_ARTIFACT_PARTS_H

#include "Json.h"
#include "weir/Artifact/Artifact.h"

#include <functional>

namespace weir {

nlohmann::ordered_json toJson(const Profile &profile);
/// Reads a profile that has all keys, as those in a manifest do.
Profile readProfile(const JsonNode &node);

/// Reads three integers from 1 to 2^32 - 1.
std::array<int64_t, 3> readTriple(const JsonNode &node);

/// Whether `name` is valid for a file in an artifact: letters, digits and "_.$-", without a
/// leading dot.
bool isFileName(std::string_view name);
std::string readFileName(const JsonNode &node);

/// Reads the format's version. Errors: `Error` when it is not `schemaVersion`.
void readSchemaVersion(const JsonNode &node);

/// Checks that the parts of a plan fit together: indices, operand counts, views in allocations.
/// Errors: `Error` naming `where`.
void checkPlan(const Plan &plan, const std::string &where);

/// Returns the first bytes of a file, at most 64 KiB; none if it cannot be read.
std::string readBeginning(const std::string &path);

/// Calls `write` with a temporary name in the folder of `path`, then renames the file to
/// `path`. Removes the temporary file on any exception.
void replaceFile(const std::string &path,
                 const std::function<void(const std::string &temporary)> &write);

} // namespace weir

#endif // WEIR_LIB_ARTIFACT_PARTS_H
