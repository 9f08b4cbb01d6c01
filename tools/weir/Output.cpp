//===- Output.cpp - Tables, JSON and progress -----------------------------===//

#include "Output.h"
#include "weir/Artifact/Artifact.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace weir;
using namespace weir::tool;

void tool::printError(std::string sentence) {
  for (char &c : sentence)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  std::cerr << "error: " << sentence << "\n";
}

void tool::printTable(const std::vector<std::string> &head,
                      const std::vector<std::vector<std::string>> &rows, std::ostream &out) {
  std::vector<size_t> widths;
  for (const std::string &cell : head)
    widths.push_back(cell.size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  auto print = [&](const std::vector<std::string> &row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(i + 1 < row.size() ? widths[i] - row[i].size() + 2 : 0, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  };
  print(head);
  for (const auto &row : rows)
    print(row);
}

void tool::printJson(const Json &json) {
  // Names come from files: replace invalid UTF-8.
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void tool::checkOutput(const std::string &option, const std::string &path) {
  if (path == "-")
    throw Error(option + "=-: standard output has the report; name a file");
  if (!path.empty())
    checkWritable(path);
}

void tool::refuseOverwriting(const std::string &option, const std::string &path,
                             const std::vector<std::string> &inputs) {
  std::error_code code;
  auto getPlace = [&](const std::string &file) {
    return std::filesystem::weakly_canonical(file, code);
  };
  for (const std::string &input : inputs)
    if (!input.empty() && getPlace(input) == getPlace(path))
      throw Error(option + "=" + path + " would write over " + input + "; name another file");
}

std::string tool::printShape(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

Json tool::toJson(double number) {
  return std::isfinite(number) ? Json(number) : Json(printNumber(number));
}

std::string tool::printNumber(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", number);
  return text;
}

std::string tool::printProgress(const std::string &what, std::chrono::duration<double> elapsed,
                                unsigned columns) {
  auto seconds = std::chrono::floor<std::chrono::seconds>(elapsed).count();
  if (seconds < 1)
    return "";
  std::string time = " (" + std::to_string(seconds) + " s)";
  size_t room = std::max<size_t>(columns, time.size() + 1) - time.size() - 1;
  if (what.size() <= room)
    return what + time;
  std::string cut = room < 3 ? "" : what.substr(0, room - 3) + "...";
  return cut + time;
}

/// Returns the terminal's width; 80 columns if it is unknown.
static unsigned getColumns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Progress::Progress() {
  if (isatty(STDERR_FILENO))
    shower = std::thread([this] { show(); });
}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  if (shower.joinable())
    shower.join();
}

void Progress::begin(const std::string &what) {
  std::lock_guard lock(mutex);
  current = what;
}

static constexpr const char *clear = "\r\033[K";

void Progress::print(const std::string &line) {
  std::lock_guard lock(mutex);
  if (shown)
    std::fprintf(stderr, "%s", clear);
  shown = false;
  std::cout << line << std::endl; // a step may take minutes
}

void Progress::show() {
  auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, std::chrono::milliseconds(250), [&] { return over; })) {
    std::string line =
        printProgress(current, std::chrono::steady_clock::now() - start, getColumns());
    if (line.empty())
      continue;
    std::fprintf(stderr, "%s%s", clear, line.c_str());
    shown = true;
  }
  if (shown)
    std::fprintf(stderr, "%s", clear);
}
