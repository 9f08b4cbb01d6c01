//===- ExplainPage.cpp - An explanation as a page -------------------------===//
//
// The page is a template (explain/page.html with style and script) with the data as JSON in it.
// Names in the data come from files: the script shows them only as text, and they cannot end
// the element that holds the data.
//
//===----------------------------------------------------------------------===//

#include "ExplainPage.h"
#include "tools/weir/explain/Page.h"

using namespace weir;
using namespace weir::tool;

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

/// Whether the events are the plan's dispatches, one each, in order.
static bool areOf(const std::vector<const Json *> &events, const PlanStory &story) {
  if (events.size() != story.dispatches.size())
    return false;
  for (size_t i = 0; i < events.size(); ++i) {
    const Json &args = events[i]->at("args");
    const Command &dispatch = *story.dispatches[i];
    if (args.at("dispatch") != i || args.at("wave") != dispatch.wave ||
        args.at("grid") != Json(dispatch.grid) || args.at("source") != dispatch.location ||
        args.at("kernel") != story.getKernelName(i))
      return false;
  }
  return true;
}

PlanTimes tool::readTrace(const std::string &path, const std::vector<PlanStory> &stories) {
  Bytes bytes = readFile(path, "trace");
  PlanTimes times;
  try {
    Json trace = Json::parse(bytes.begin(), bytes.end());
    std::vector<const Json *> events;
    std::string thread;
    for (const Json &event : trace.at("traceEvents"))
      if (event.at("ph") == "X")
        events.push_back(&event);
      else if (event.at("name") == "thread_name")
        thread = event.at("args").at("name").get<std::string>();
    for (const PlanStory &story : stories) {
      if (!thread.starts_with("entry " + story.plan->entry + ",") || !areOf(events, story))
        continue;
      if (times.plan)
        throw Error("--trace=" + path + " fits the plans of several targets, " +
                    times.plan->target + " and " + story.plan->target +
                    "; choose one with --target");
      times.plan = story.plan;
      for (const Json *event : events)
        times.microseconds.push_back(event->at("dur").get<double>());
    }
  } catch (const Json::exception &) {
    throw Error("--trace=" + path + " is not a trace that 'weir run --profile' wrote");
  }
  if (!times.plan)
    throw Error("--trace=" + path +
                " is a trace of another artifact, entry or target: its "
                "dispatches are not those of the plan");
  return times;
}

//===----------------------------------------------------------------------===//
// The page
//===----------------------------------------------------------------------===//

/// Returns signals and waits with the dispatches recorded before each.
static Json listSignals(const PlanStory &story) {
  Json list = Json::array();
  size_t position = 0;
  for (const Command &command : story.plan->commands) {
    position += command.kind == Command::Kind::Dispatch;
    if (command.kind == Command::Kind::Signal || command.kind == Command::Kind::Wait)
      list.push_back({{"what", command.kind == Command::Kind::Signal ? "signal" : "wait"},
                      {"signal", command.signal},
                      {"queue", command.queue},
                      {"before_dispatch", position}});
  }
  return list;
}

/// Returns the notes: ops by kernel, kernels that are not fused, and the kernel of each
/// dispatch.
static Json listNotes(const EntryNotes &notes) {
  Json kernels = Json::array(), apart = Json::array();
  for (const std::vector<OpNote> &ops : notes.kernels) {
    Json list = Json::array();
    for (const OpNote &op : ops)
      list.push_back(Json::array({op.what, op.source}));
    kernels.push_back(std::move(list));
  }
  for (const ApartNote &note : notes.apart)
    apart.push_back(Json::array({note.producer, note.reader, note.why}));
  return {{"kernels", kernels}, {"apart", apart}, {"dispatches", notes.dispatchKernels}};
}

/// Returns JSON for a script element, in which "</script>" and "<!--" cannot occur.
static std::string printForPage(const Json &json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace), safe;
  safe.reserve(text.size());
  for (char c : text)
    if (c == '<' || c == '>' || c == '&')
      safe += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      safe += c;
  return safe;
}

void tool::writePage(const std::string &path, const std::string &title,
                     const std::vector<PlanStory> &stories, const std::vector<PlanChange> &changes,
                     const std::string &other, const PlanTimes &times) {
  Json plans = Json::array();
  for (const PlanStory &story : stories) {
    Json plan = {{"summary", summarize(story)},     {"dispatches", listDispatches(story)},
                 {"barriers", listBarriers(story)}, {"signals", listSignals(story)},
                 {"memory", listMemory(story)},     {"donation", listDonations(story)},
                 {"kernels", listKernels(story)}};
    if (story.notes)
      plan["notes"] = listNotes(*story.notes);
    if (times.plan == story.plan)
      plan["microseconds"] = times.microseconds;
    for (const PlanChange &change : changes)
      if (change.entry == story.plan->entry && change.target == story.plan->target) {
        Json sentences = Json::array();
        for (const Difference &difference : change.differences)
          sentences.push_back(difference.sentence);
        plan["changes"] = std::move(sentences);
      }
    plans.push_back(std::move(plan));
  }
  Json data = {{"artifact", title},
               {"producer", stories.front().artifact->manifest.producer},
               {"compared_with", other},
               {"plans", std::move(plans)}};
  std::string page(pageHead);
  page += printForPage(data);
  page += pageTail;
  writeText(path, page);
}
