//===- Pareto.cpp - Files of bytes against work ---------------------------===//

#include "Pareto.h"
#include "Output.h"
#include "weir/Artifact/Artifact.h"
#include "weir/Planner/Svg.h"

#include <algorithm>

using namespace weir;
using namespace weir::tool;

static constexpr const char *curveExtension = ".json";

static std::string getPicturePath(const std::string &path) {
  return path.substr(0, path.size() - std::string(curveExtension).size()) + ".svg";
}

void tool::checkPareto(const std::string &path, const std::vector<std::string> &others) {
  if (!path.ends_with(curveExtension))
    throw Error("--pareto=" + path + " is not a .json file; name one that ends in .json");
  for (const std::string &file : {path, getPicturePath(path)}) {
    refuseOverwriting("--pareto", file, others);
    checkWritable(file);
  }
}

static Json toJson(const MemoryCurve &curve) {
  Json points = Json::array();
  for (const CurvePoint &point : curve.points)
    points.push_back({{"arena_bytes", point.bytes},
                      {"live_bytes", point.live},
                      {"bound_bytes", point.bound},
                      {"work", point.work},
                      {"dispatches", point.commands},
                      {"barriers", point.barriers},
                      {"knee", point.isKnee}});
  return {{"entry", curve.entry}, {"target", curve.target}, {"points", points}};
}

namespace {
/// The place of one curve in the picture.
struct Panel {
  static constexpr double width = 800, height = 320, left = 110, top = 40, bottom = 50;

  double origin = 0; ///< its upper edge
  double mostBytes = 1, mostWork = 1;

  double getX(double work) const { return left + (work - 1) / (mostWork - 1) * width; }
  double getY(int64_t bytes) const {
    return origin + top + height - double(bytes) / mostBytes * height;
  }
  std::string draw(const MemoryCurve &curve) const;

private:
  std::string drawLine(const MemoryCurve &curve, int64_t CurvePoint::*bytes, bool isBound,
                       const char *color) const;
};
} // namespace

/// Draws steps between the points: to the next one's work, then to its bytes; or first to its
/// bytes, for what holds for all work up to there.
std::string Panel::drawLine(const MemoryCurve &curve, int64_t CurvePoint::*bytes, bool isBound,
                            const char *color) const {
  std::string steps =
      svg::print("M%.2f,%.2f", getX(curve.points.front().work), getY(curve.points.front().*bytes));
  for (const CurvePoint &point : curve.points) {
    double x = getX(point.work), y = getY(point.*bytes);
    steps += isBound ? svg::print("V%.2fH%.2f", y, x) : svg::print("H%.2fV%.2f", x, y);
  }
  return svg::print("<path fill=\"none\" stroke=\"%s\" d=\"", color) + steps +
         svg::print("H%.2f\"/>\n", left + width);
}

std::string Panel::draw(const MemoryCurve &curve) const {
  double base = origin + top + height;
  std::string result =
      svg::print("<text x=\"%g\" y=\"%g\" font-size=\"13\">", left, origin + top - 14) +
      svg::escape(curve.entry + ", " + curve.target) + "</text>\n";
  result += svg::print("<path fill=\"none\" stroke=\"#999\" d=\"M%g,%gV%gH%g\"/>\n", left,
                       origin + top, base, left + width);
  auto label = [&](double x, double y, const char *anchor, const std::string &text) {
    result += svg::print("<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x, y, anchor) +
              svg::escape(text) + "</text>\n";
  };
  for (const CurvePoint *point : {&curve.points.front(), &curve.points.back()})
    label(left - 6, getY(point->bytes) + 4, "end", std::to_string(point->bytes));
  label(left, base + 16, "middle", "0%");
  label(left + width, base + 16, "middle", svg::print("%.1f%%", 100 * (mostWork - 1)));
  label(left + width / 2, base + 34, "middle",
        "more work; black: bytes of the arena, blue: fewest bytes of any order with that work");
  result += drawLine(curve, &CurvePoint::bound, /*isBound=*/true, "#06c");
  result += drawLine(curve, &CurvePoint::bytes, /*isBound=*/false, "#000");
  for (const CurvePoint &point : curve.points)
    result += svg::print(
        "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\" fill=\"%s\"><title>%lld bytes, at the "
        "least %lld, %.2f%% more work, %lld dispatches, %lld barriers%s</title></circle>\n",
        getX(point.work), getY(point.bytes), point.isKnee ? 6.0 : 3.0,
        point.isKnee ? "#c00" : "#000", (long long)point.bytes, (long long)point.bound,
        100 * (point.work - 1), (long long)point.commands, (long long)point.barriers,
        point.isKnee ? "; --checkpoint=auto takes this" : "");
  return result;
}

static std::string drawCurves(const std::vector<MemoryCurve> &curves) {
  double height = Panel::top + Panel::height + Panel::bottom;
  std::string result = svg::begin(Panel::left + Panel::width + 40, height * double(curves.size()));
  Panel panel;
  for (const MemoryCurve &curve : curves) {
    // The first point has the most bytes and the last one the most work.
    panel.mostBytes = std::max(1.0, double(curve.points.front().bytes));
    panel.mostWork = std::max(1.001, curve.points.back().work);
    result += panel.draw(curve);
    panel.origin += height;
  }
  return result + "</svg>\n";
}

void tool::writePareto(const std::string &path, const std::vector<MemoryCurve> &curves) {
  Json entries = Json::array();
  for (const MemoryCurve &curve : curves)
    entries.push_back(::toJson(curve));
  // Names come from files: replace invalid UTF-8.
  writeText(path, Json({{"entries", entries}}).dump(1, ' ', false, Json::error_handler_t::replace) +
                      "\n");
  writeText(getPicturePath(path), drawCurves(curves));
}
