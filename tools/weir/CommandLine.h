//===- CommandLine.h - Help and errors of the command line ------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_COMMANDLINE_H
#define WEIR_TOOLS_WEIR_COMMANDLINE_H

#include "Verbs.h"

namespace weir::tool {

/// Returns `text` broken at spaces into lines that begin at column `indent`, as the first
/// does already, and end at `width` at most. A longer word has a line of its own.
std::string wrapText(const std::string &text, size_t width, size_t indent);

/// Returns the candidate that `word` most likely misspells: the first that begins with
/// it, or else the one that the fewest insertions, deletions, replacements and swaps of
/// neighbours make, at most one for every three characters. Returns "" if there is none.
std::string findSimilar(const std::string &word, const std::vector<std::string> &candidates);

/// Adds the verb `help` to `app`, behind all other verbs.
void addHelp(CLI::App &app, Verb &chosen);

/// Sets what all verbs have in common: lines of help are wrapped, and an option that may
/// be repeated takes one value each time, so that it swallows no positional argument.
void finishVerbs(CLI::App &app);

/// Refuses words such as -output=x.weir, which the parser would take for -o utput=x.weir.
/// Errors: `Error`.
void refuseSingleDashes(const CLI::App &app, int argc, char **argv);

/// Returns a sentence for each problem of a command line that `app` refused.
std::vector<std::string> describeUsage(const CLI::App &app, const CLI::ParseError &error);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_COMMANDLINE_H
