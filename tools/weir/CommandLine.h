//===- CommandLine.h - Help and errors of the command line ------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_COMMANDLINE_H
#define WEIR_TOOLS_WEIR_COMMANDLINE_H

#include "Verbs.h"

namespace weir::tool {

/// Breaks `text` at spaces into lines from column `indent` to at most `width`. The first line
/// is already indented. A longer word gets its own line.
std::string wrapText(const std::string &text, size_t width, size_t indent);

/// Returns the candidate that `word` probably misspells: the first that begins with it, or else
/// the one with the min number of insertions, deletions, replacements and swaps of neighbours,
/// at most one per three characters. Returns "" if there is none.
std::string findSimilar(const std::string &word, const std::vector<std::string> &candidates);

/// Adds the verb `help` to `app`, after all other verbs.
void addHelp(CLI::App &app, Verb &chosen);

/// Applies settings common to all verbs: help is wrapped, and a repeatable option takes one
/// value each time, so that it does not consume positional arguments.
void finishVerbs(CLI::App &app);

/// Refuses words such as -output=x.weir, which the parser would take for -o utput=x.weir.
/// Errors: `Error`.
void refuseSingleDashes(const CLI::App &app, int argc, char **argv);

/// Returns a sentence for each problem of a command line that `app` refused.
std::vector<std::string> describeUsage(const CLI::App &app, const CLI::ParseError &error);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_COMMANDLINE_H
