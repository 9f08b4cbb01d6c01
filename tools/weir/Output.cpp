//===- Output.cpp - Tables, JSON and progress -----------------------------===//

#include "Output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
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
                      const std::vector<std::vector<std::string>> &rows) {
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
    std::cout << line << "\n";
  };
  print(head);
  for (const auto &row : rows)
    print(row);
}

void tool::printJson(const Json &json) {
  // Names come from files; what is no UTF-8 is replaced.
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
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

void Progress::show() {
  std::unique_lock lock(mutex);
  bool shown = false;
  for (int seconds = 1;; ++seconds) {
    if (changed.wait_for(lock, std::chrono::seconds(1), [&] { return over; }))
      break;
    std::fprintf(stderr, "\r\033[K%s (%d s)", current.c_str(), seconds);
    shown = true;
  }
  if (shown)
    std::fprintf(stderr, "\r\033[K");
}
