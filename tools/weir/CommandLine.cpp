//===- CommandLine.cpp - Help and errors of the command line --------------===//

#include "CommandLine.h"
#include "HelpPages.h"
#include "weir/Artifact/Artifact.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

using namespace weir;
using namespace weir::tool;

//===----------------------------------------------------------------------===//
// Help
//===----------------------------------------------------------------------===//

std::string tool::wrapText(const std::string &text, size_t width, size_t indent) {
  std::string wrapped;
  size_t column = indent;
  auto breakLine = [&] {
    wrapped += "\n" + std::string(indent, ' ');
    column = indent;
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (column > indent && column + 1 + (end - at) > width)
      breakLine();
    if (column > indent) {
      wrapped += " ";
      ++column;
    }
    wrapped += text.substr(at, end - at);
    column += end - at;
    if (end < text.size() && text[end] == '\n')
      breakLine();
    at = end + 1;
  }
  return wrapped;
}

namespace {
/// CLI11's help, with lines that fit a terminal.
class HelpFormatter : public CLI::Formatter {
public:
  static constexpr size_t width = 100;

  std::string make_option(const CLI::Option *option, bool isPositional) const override {
    std::string name = "  " + make_option_name(option, isPositional) + make_option_opts(option);
    return makeEntry(name, make_option_desc(option));
  }

  std::string make_option_opts(const CLI::Option *option) const override {
    std::string text;
    if (option->get_type_size() != 0 && !option->get_type_name().empty())
      text = " " + option->get_type_name();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size)
      text += " ...";
    return text + (option->get_required() ? " (required)" : "");
  }

  std::string make_subcommand(const CLI::App *verb) const override {
    return makeEntry("  " + verb->get_name(), verb->get_description());
  }

  std::string make_footer(const CLI::App *app) const override {
    std::string footer = app->get_footer();
    return footer.empty() ? "" : wrapText(footer, width, 0) + "\n";
  }

private:
  std::string makeEntry(std::string name, const std::string &description) const {
    size_t column = get_column_width();
    name += name.size() < column ? std::string(column - name.size(), ' ')
                                 : "\n" + std::string(column, ' ');
    return name + wrapText(description, width, column) + "\n";
  }
};
} // namespace

/// Returns "weir" for the program, "weir run" for a verb.
static std::string getTitle(const CLI::App &app) {
  return (app.get_parent() ? app.get_parent()->get_name() + " " : "") + app.get_name();
}

static std::vector<std::string> getVerbNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *verb : app.get_subcommands({}))
    names.push_back(verb->get_name());
  return names;
}

/// Returns the verb called `name`, or null.
static const CLI::App *findVerb(const CLI::App &app, const std::string &name) {
  for (const CLI::App *verb : app.get_subcommands({}))
    if (verb->get_name() == name)
      return verb;
  return nullptr;
}

static std::string describeUnknownVerb(const CLI::App &app, const std::string &name) {
  std::string similar = findSimilar(name, getVerbNames(app));
  return "no verb '" + name + "'" + (similar.empty() ? "" : "; did you mean '" + similar + "'?") +
         "; see " + app.get_name() + " --help";
}

namespace {
struct HelpOptions {
  std::string verb, shell, pages;
  bool man = false;
};
} // namespace

static int printHelp(const CLI::App &app, const HelpOptions &options) {
  const CLI::App *explained = options.verb.empty() ? &app : findVerb(app, options.verb);
  if (!explained)
    throw Error(describeUnknownVerb(app, options.verb));
  if (!options.pages.empty()) {
    for (const auto &[name, text] : printAllPages(app)) {
      std::filesystem::path path = std::filesystem::path(options.pages) / name;
      std::error_code code;
      std::filesystem::create_directories(path.parent_path(), code);
      writeText(path, text);
    }
  } else if (!options.shell.empty()) {
    std::cout << printCompletion(app, options.shell);
  } else if (options.man) {
    std::cout << printManPage(*explained);
  } else {
    // App::help() would print the help of the chosen verb, `help` itself.
    std::cout << explained->get_formatter()->make_help(explained, getTitle(*explained),
                                                       CLI::AppFormatMode::Normal);
  }
  return Done;
}

void tool::addHelp(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<HelpOptions>();
  CLI::App *help = app.add_subcommand("help", "Explain a verb, or list all verbs");
  help->footer("For this shell alone, tab completes verbs and options after\n"
               "  source <(" +
               app.get_name() + " help --completion=bash)");
  help->add_option("verb", options->verb, "The verb to explain")->type_name("VERB");
  help->add_flag("--man", options->man, "Print the man page instead, for man -l -");
  help->add_option("--completion", options->shell,
                   "Print a script that completes verbs and options: bash, zsh or fish")
      ->type_name("SHELL");
  // For the build: writes files below DIR as in a system's share/.
  help->add_option("--pages", options->pages, "Write all man pages and scripts")
      ->type_name("DIR")
      ->group("");
  help->callback(
      [&app, options, &chosen] { chosen = [&app, options] { return printHelp(app, *options); }; });
}

void tool::finishVerbs(CLI::App &app) {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("SUBCOMMAND", "VERB");
  formatter->label("Positionals", "Arguments");
  app.formatter(formatter);
  for (CLI::App *verb : app.get_subcommands({})) {
    verb->formatter(formatter);
    verb->group("Verbs");
    for (CLI::Option *option : verb->get_options())
      if (option->nonpositional() &&
          option->get_expected_max() == CLI::detail::expected_max_vector_size)
        option->allow_extra_args(false);
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Returns the number of insertions, deletions, replacements and swaps of neighbours that
/// turn `a` into `b` (optimal string alignment).
static size_t getDistance(const std::string &a, const std::string &b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (!i || !j) {
        best[i][j] = i + j;
        continue;
      }
      best[i][j] = std::min(
          {best[i - 1][j] + 1, best[i][j - 1] + 1, best[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best[i][j] = std::min(best[i][j], best[i - 2][j - 2] + 1);
    }
  return best[a.size()][b.size()];
}

static bool isOption(const std::string &word) { return word.size() > 1 && word[0] == '-'; }

std::string tool::findSimilar(const std::string &word, const std::vector<std::string> &candidates) {
  constexpr size_t maxLength = 100; // no name is longer; the distance takes quadratic time
  if (word.size() > maxLength)
    return "";
  std::string best;
  size_t fewest = word.size() / 3 + 1;
  for (const std::string &candidate : candidates) {
    if (word.size() >= 2 && candidate.starts_with(word))
      return candidate;
    size_t distance = getDistance(word, candidate);
    if (distance < fewest) {
      best = candidate;
      fewest = distance;
    }
  }
  return best;
}

void tool::refuseSingleDashes(const CLI::App &app, int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i], name = word.substr(0, word.find('='));
    if (name.size() <= 2 || name[0] != '-' || name[1] == '-')
      continue;
    for (const CLI::App *verb : app.get_subcommands({}))
      for (const CLI::Option *option : verb->get_options())
        if (option->check_lname(name.substr(1)))
          throw Error("no option '" + name + "'; did you mean '-" + name + "'?");
  }
}

/// Returns a sentence for each word that the parser took for an option that `app` lacks.
static std::vector<std::string> describeUnknownOptions(const CLI::App &app) {
  std::vector<std::string> names, sentences;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  for (const std::string &word : app.remaining()) {
    if (!isOption(word))
      continue;
    std::string given = word.substr(0, word.find('='));
    std::string similar = findSimilar(given, names);
    sentences.push_back(getTitle(app) + " has no option '" + given + "'" +
                        (similar.empty() ? "" : "; did you mean '" + similar + "'?") + "; see " +
                        getTitle(app) + " --help");
  }
  return sentences;
}

std::vector<std::string> tool::describeUsage(const CLI::App &app, const CLI::ParseError &error) {
  std::vector<CLI::App *> verbs = app.get_subcommands();
  const CLI::App &refused = verbs.empty() ? app : *verbs.front();
  std::vector<std::string> words = refused.remaining();
  std::string hint = "; see " + getTitle(refused) + " --help";
  // Report a misspelt word first: it may be the reason why something required is missing. If
  // the verb is misspelt, its options are unknown, too.
  if (verbs.empty() && !words.empty() && !isOption(words.front()))
    return {describeUnknownVerb(app, words.front())};
  std::vector<std::string> sentences = describeUnknownOptions(app);
  if (!verbs.empty())
    for (std::string &sentence : describeUnknownOptions(refused))
      sentences.push_back(std::move(sentence));
  if (!sentences.empty())
    return sentences;
  if (!words.empty())
    return {getTitle(refused) + " takes no argument '" + words.front() + "'" + hint};
  if (verbs.empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
    return {"no verb is given" + hint};
  return {error.what() + hint};
}
