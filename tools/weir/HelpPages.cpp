//===- HelpPages.cpp - Man pages and completion of shells -----------------===//

#include "HelpPages.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <cctype>
#include <vector>

using namespace weir;
using namespace weir::tool;

/// Returns the options that --help shows.
static std::vector<const CLI::Option *> getOptions(const CLI::App &app) {
  return app.get_options([](const CLI::Option *option) {
    return option->nonpositional() && !option->get_group().empty();
  });
}

static std::vector<const CLI::Option *> getArguments(const CLI::App &app) {
  return app.get_options([](const CLI::Option *option) { return option->get_positional(); });
}

static bool takesValue(const CLI::Option &option) { return option.get_items_expected_max() > 0; }

/// Whether the value is optional, and only written after "=".
static bool mayLackValue(const CLI::Option &option) { return option.get_items_expected_min() == 0; }

static std::string replaceAll(const std::string &text,
                              const std::vector<std::pair<char, std::string>> &by) {
  std::string replaced;
  for (char c : text) {
    auto found = std::find_if(by.begin(), by.end(), [&](auto &pair) { return pair.first == c; });
    replaced += found == by.end() ? std::string(1, c) : found->second;
  }
  return replaced;
}

//===----------------------------------------------------------------------===//
// Man pages
//===----------------------------------------------------------------------===//

/// Escapes a line for roff: it does not begin with a command, and - can be copied.
static std::string escapeRoff(const std::string &text) {
  bool isCommand = text.starts_with('.') || text.starts_with('\'');
  return (isCommand ? "\\&" : "") + replaceAll(text, {{'\\', "\\e"}, {'-', "\\-"}});
}

/// Returns "\fB\-o\fR, \fB\-\-output\fR \fIOUT\fR".
static std::string printOptionName(const CLI::Option &option) {
  std::string names;
  for (const std::string &name : option.get_snames())
    names += (names.empty() ? "" : ", ") + ("\\fB\\-" + escapeRoff(name) + "\\fR");
  for (const std::string &name : option.get_lnames())
    names += (names.empty() ? "" : ", ") + ("\\fB\\-\\-" + escapeRoff(name) + "\\fR");
  if (takesValue(option) || !option.get_type_name().empty())
    names += " \\fI" + escapeRoff(option.get_type_name()) + "\\fR";
  return names;
}

static std::string printSynopsis(const CLI::App &app) {
  std::string synopsis = " [\\fIOPTIONS\\fR]";
  for (const CLI::Option *argument : getArguments(app)) {
    std::string name = "\\fI" + escapeRoff(argument->get_type_name()) + "\\fR";
    synopsis += argument->get_required() ? " " + name : " [" + name + "]";
  }
  return synopsis;
}

std::string tool::printManPage(const CLI::App &app) {
  const CLI::App *program = app.get_parent() ? app.get_parent() : &app;
  std::string name = app.get_parent() ? program->get_name() + "-" + app.get_name() : app.get_name();
  std::string command = app.get_parent() ? program->get_name() + " " + app.get_name() : name;
  std::string title = name;
  for (char &c : title)
    c = char(std::toupper(uint8_t(c)));
  std::string page = ".TH \"" + escapeRoff(title) + "\" 1 \"\" \"" +
                     escapeRoff(program->version()) + "\" \"User Commands\"\n.SH NAME\n" +
                     escapeRoff(name) + " \\- " + escapeRoff(app.get_description()) +
                     "\n.SH SYNOPSIS\n\\fB" + escapeRoff(command) + "\\fR";
  std::vector<const CLI::App *> verbs = app.get_subcommands({});
  page += (verbs.empty() ? printSynopsis(app) : " \\fIVERB\\fR [\\fIOPTIONS\\fR]") + "\n";
  auto addEntry = [&](const std::string &head, const std::string &text) {
    page += ".TP\n" + head + "\n" + escapeRoff(text) + "\n";
  };
  if (!verbs.empty())
    page += ".SH VERBS\n";
  for (const CLI::App *verb : verbs)
    addEntry("\\fB" + escapeRoff(verb->get_name()) + "\\fR", verb->get_description());
  if (!getArguments(app).empty())
    page += ".SH ARGUMENTS\n";
  for (const CLI::Option *argument : getArguments(app))
    addEntry("\\fI" + escapeRoff(argument->get_type_name()) + "\\fR", argument->get_description());
  page += ".SH OPTIONS\n";
  for (const CLI::Option *option : getOptions(app))
    addEntry(printOptionName(*option), option->get_description());
  // A verb without a footer inherits the program's.
  if (app.get_parent() && app.get_footer() != program->get_footer()) {
    page += ".SH NOTES\n";
    for (const std::string &line : CLI::detail::split(app.get_footer(), '\n'))
      page += ".PP\n" + escapeRoff(line) + "\n";
  }
  page += ".SH EXIT STATUS\n0 done, 1 a check failed, 2 bad usage or bad input.\n.SH SEE ALSO\n";
  std::string others = app.get_parent() ? "\\fB" + escapeRoff(program->get_name()) + "\\fR(1)" : "";
  for (const CLI::App *verb : verbs)
    others += (others.empty() ? "" : ", ") +
              ("\\fB" + escapeRoff(name + "-" + verb->get_name()) + "\\fR(1)");
  return page + others + "\n";
}

//===----------------------------------------------------------------------===//
// Completion
//===----------------------------------------------------------------------===//

/// Returns the beginning of a description that fits beside a word.
static std::string shorten(const std::string &description) {
  constexpr size_t maxLength = 72;
  size_t end = description.size();
  for (const char *stop : {"; ", ", such", "\n", " ("})
    end = std::min(end, description.find(stop));
  if (end <= maxLength)
    return description.substr(0, end);
  return description.substr(0, description.rfind(' ', maxLength)) + "...";
}

static std::vector<std::string> getNames(const CLI::Option &option) {
  std::vector<std::string> names;
  for (const std::string &name : option.get_lnames())
    names.push_back("--" + name);
  for (const std::string &name : option.get_snames())
    names.push_back("-" + name);
  return names;
}

static std::string printVerbNames(const CLI::App &app) {
  std::string names;
  for (const CLI::App *verb : app.get_subcommands({}))
    names += (names.empty() ? "" : " ") + verb->get_name();
  return names;
}

/// Returns the options' names in one row; options with a value end in "=".
static std::string printWords(const CLI::App &app) {
  std::string words;
  for (const CLI::Option *option : getOptions(app))
    for (const std::string &name : getNames(*option)) {
      bool isLong = name.starts_with("--");
      words += (words.empty() ? "" : " ") + name +
               (isLong && takesValue(*option) && !mayLackValue(*option) ? "=" : "");
    }
  return words;
}

/// Returns a valid name for a shell function.
static std::string getFunctionName(const CLI::App &app) {
  return "_" + replaceAll(app.get_name(), {{'-', "_"}});
}

static std::string printBash(const CLI::App &app) {
  std::string function = getFunctionName(app), name = app.get_name();
  std::string text = "# Completion of " + name + " for bash\n" + function + "() {\n" +
                     "  local word=${COMP_WORDS[COMP_CWORD]} verb= words= i\n"
                     "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
                     "    [[ ${COMP_WORDS[i]} == -* ]] || { verb=${COMP_WORDS[i]}; break; }\n"
                     "  done\n"
                     "  case $verb in\n"
                     "  '') words='" +
                     printVerbNames(app) + " " + printWords(app) + "' ;;\n";
  for (const CLI::App *verb : app.get_subcommands({}))
    text += "  " + verb->get_name() + ") words='" + printWords(*verb) +
            (verb->get_name() == "help" ? " " + printVerbNames(app) : "") + "' ;;\n";
  return text +
         "  esac\n"
         "  # Words that are not options are files, which bash completes.\n"
         "  [[ -z $verb || $verb == help || $word == -* ]] || return\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
         "}\n"
         "complete -o default -F " +
         function + " " + name + "\n";
}

static std::string quote(const std::string &text) {
  return "'" + replaceAll(text, {{'\'', "'\\''"}}) + "'";
}

static std::string printZsh(const CLI::App &app) {
  auto escape = [](const std::string &text) {
    return replaceAll(text, {{'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'\\', "\\\\"}});
  };
  std::string function = getFunctionName(app);
  std::string text = "#compdef " + app.get_name() + "\n" + function + "() {\n  local -a verbs=(\n";
  for (const CLI::App *verb : app.get_subcommands({}))
    text +=
        "    " + quote(verb->get_name() + ":" + escape(shorten(verb->get_description()))) + "\n";
  text += "  )\n"
          "  if (( CURRENT == 2 )); then\n"
          "    _describe verb verbs\n"
          "    return\n"
          "  fi\n"
          "  case $words[2] in\n";
  for (const CLI::App *verb : app.get_subcommands({})) {
    text += "  " + verb->get_name() + ")\n    _arguments";
    for (const CLI::Option *option : getOptions(*verb))
      for (const std::string &name : getNames(*option)) {
        bool repeats = option->get_expected_max() == CLI::detail::expected_max_vector_size;
        std::string value = ":" + escape(option->get_type_name()) + ":_files";
        std::string form = (repeats ? "*" : "") + name;
        if (takesValue(*option))
          form += mayLackValue(*option) ? "=-" : name.starts_with("--") ? "=" : "+";
        form += "[" + escape(shorten(option->get_description())) + "]";
        if (takesValue(*option))
          form += (mayLackValue(*option) ? ":" : "") + value;
        text += " \\\n      " + quote(form);
      }
    text += std::string(" \\\n      ") +
            (verb->get_name() == "help" ? "'2:verb:(" + printVerbNames(app) + ")'"
                                        : "'*:file:_files'") +
            "\n    ;;\n";
  }
  return text + "  esac\n}\n" + function + " \"$@\"\n";
}

static std::string printFish(const CLI::App &app) {
  auto escape = [](const std::string &text) {
    return "'" + replaceAll(text, {{'\\', "\\\\"}, {'\'', "\\'"}}) + "'";
  };
  std::string begin = "complete -c " + app.get_name();
  std::string text = "# Completion of " + app.get_name() + " for fish\n";
  for (const CLI::App *verb : app.get_subcommands({}))
    text += begin + " -f -n __fish_use_subcommand -a " + verb->get_name() + " -d " +
            escape(shorten(verb->get_description())) + "\n";
  for (const CLI::App *verb : app.get_subcommands({})) {
    std::string here = begin + " -n '__fish_seen_subcommand_from " + verb->get_name() + "'";
    for (const CLI::Option *option : getOptions(*verb)) {
      text += here;
      for (const std::string &name : option->get_lnames())
        text += " -l " + name;
      for (const std::string &name : option->get_snames())
        text += " -s " + name;
      text += (takesValue(*option) && !mayLackValue(*option) ? " -r -F" : "") +
              std::string(" -d ") + escape(shorten(option->get_description())) + "\n";
    }
    if (verb->get_name() == "help")
      text += here + " -f -a '" + printVerbNames(app) + "'\n";
  }
  return text;
}

std::string tool::printCompletion(const CLI::App &app, const std::string &shell) {
  if (shell == "bash")
    return printBash(app);
  if (shell == "zsh")
    return printZsh(app);
  if (shell == "fish")
    return printFish(app);
  throw Error("--completion=" + shell + ": no such shell; there are bash, zsh and fish");
}

std::map<std::string, std::string> tool::printAllPages(const CLI::App &app) {
  std::string name = app.get_name(), manual = "man/man1/" + name;
  std::map<std::string, std::string> pages = {
      {manual + ".1", printManPage(app)},
      {"bash-completion/completions/" + name, printBash(app)},
      {"zsh/site-functions/_" + name, printZsh(app)},
      {"fish/vendor_completions.d/" + name + ".fish", printFish(app)}};
  for (const CLI::App *verb : app.get_subcommands({}))
    pages[manual + "-" + verb->get_name() + ".1"] = printManPage(*verb);
  return pages;
}
