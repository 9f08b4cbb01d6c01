//===- HelpPages.h - Man pages and completion of shells ---------*- C++ -*-===//
//
// Generates man pages and completion scripts from the verbs and options, like --help.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_HELPPAGES_H
#define WEIR_TOOLS_WEIR_HELPPAGES_H

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace weir::tool {

/// Returns the man page of the program, or of one of its verbs, for man(7)'s macros.
std::string printManPage(const CLI::App &app);

/// Returns a script that completes verbs and options in "bash", "zsh" or "fish".
/// Errors: `Error` on another shell.
std::string printCompletion(const CLI::App &app, const std::string &shell);

/// Returns all pages and scripts by their standard paths below the prefix's share/,
/// "man/man1/weir-run.1".
std::map<std::string, std::string> printAllPages(const CLI::App &app);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_HELPPAGES_H
