//===- Draw.cpp - Bytes over waves, an SVG --------------------------------===//

#include "weir/Planner/Planner.h"
#include "weir/Planner/Svg.h"

#include <algorithm>

using namespace weir;
using svg::escape, svg::print;

static constexpr double width = 1000, height = 500, left = 90, top = 30, bottom = 40;

std::string weir::drawPlan(const PlanProblem &problem, const BufferPlan &plan, size_t space) {
  double first = 0, last = 0;
  bool any = false;
  for (const Buffer &buffer : problem.buffers) {
    if (buffer.space != space)
      continue;
    for (const LiveRange &range : buffer.live) {
      first = any ? std::min(first, double(range.first)) : double(range.first);
      last = any ? std::max(last, double(range.last)) : double(range.last);
      any = true;
    }
  }
  const SpacePlan &report = plan.spaces[space];
  int64_t capacity = problem.spaces[space].capacity;
  double top = std::max(1.0, double(report.peak));
  if (capacity != unlimitedBytes && double(capacity) < 2 * top)
    top = std::max(top, double(capacity));
  double perWave = width / (last - first + 1), perByte = height / top;

  std::string result = svg::begin(left + width + 20, top + height + bottom);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    if (buffer.space != space)
      continue;
    for (const LiveRange &range : buffer.live) {
      int64_t end = std::min(range.end, buffer.bytes);
      if (range.begin >= end)
        continue;
      double bytes = double(end - range.begin);
      double w = (double(range.last) - double(range.first) + 1) * perWave;
      result += print("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                      "fill=\"hsl(%d,60%%,%d%%)\" stroke=\"#333\" stroke-width=\"0.3\">",
                      left + (double(range.first) - first) * perWave,
                      top + height - double(plan.offsets[i] + end) * perByte, w, bytes * perByte,
                      int(i * 137 % 360), buffer.fixed ? 50 : 75);
      result += "<title>" + escape(buffer.name) +
                print(": %lld bytes at %lld, waves %lld to %lld</title></rect>\n",
                      (long long)buffer.bytes, (long long)plan.offsets[i], (long long)range.first,
                      (long long)range.last);
    }
  }
  auto addLine = [&](int64_t bytes, const char *what, const char *color) {
    double y = top + height - double(bytes) * perByte;
    result += print("<line x1=\"%g\" x2=\"%g\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
                    "stroke-dasharray=\"4 3\"/>\n<text x=\"%g\" y=\"%.2f\" fill=\"%s\" "
                    "text-anchor=\"end\">%s</text>\n<text x=\"%g\" y=\"%.2f\" fill=\"%s\" "
                    "text-anchor=\"end\">%lld</text>\n",
                    left, left + width, y, y, color, left + width, y - 3, color, what, left - 4,
                    y + 4, color, (long long)bytes);
  };
  addLine(report.peak, report.isOptimal() ? "peak, proven least" : "peak", "#000");
  if (!report.isOptimal())
    addLine(report.bound, "bound", "#06c");
  if (double(capacity) <= top)
    addLine(capacity, "capacity", "#c00");
  result += print("<text x=\"%g\" y=\"%g\">wave %.0f</text>\n<text x=\"%g\" y=\"%g\" "
                  "text-anchor=\"end\">wave %.0f</text>\n</svg>\n",
                  left, top + height + 16, first, left + width, top + height + 16, last);
  return result;
}
