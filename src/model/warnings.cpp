#include "model/warnings.h"

#include <fmt/format.h>

#include "model/kind_hooks.h"
#include "model/pods/pod_warnings.h"

namespace berth::model {

using json::get_string;
using json::Value;
using validation::check_dns1123_label;
using validation::Path;
using Sentences = std::vector<std::string>;

namespace {

void name_warning(const Value& doc, std::string_view use, Sentences& out) {
  const std::string why = check_dns1123_label(get_string(doc, {"metadata", "name"}));
  if (why.empty()) return;
  std::string listed = why;
  std::ranges::replace(listed, '\n', ' ');
  out.push_back(fmt::format("metadata.name: this is used in {}, which can result in surprising behavior; a DNS label is recommended: [{}]",
                            use, listed));
}

}  // namespace

void surprising_hostname_warning(const Value& pod, Sentences& out) { name_warning(pod, "the Pod's hostname", out); }
void surprising_name_warning(const Value& doc, Sentences& out) { name_warning(doc, "Pod names and hostnames", out); }

void template_warnings(const Value& doc, json::Path where, const Path& at, Sentences& out) {
  if (const Value* found = json::find(doc, where)) pod_warnings(*found, &at, out);
}

void job_spec_warnings(const Value& spec, const Path& at, Sentences& out) {
  const std::int64_t completions = json::get_int(spec, {"completions"}), parallel = json::get_int(spec, {"parallelism"});
  if (get_string(spec, {"completionMode"}) == "Indexed" && completions > 100000 && parallel > 10000) {
    out.push_back(
        fmt::format("{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
                    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
                    at.text()));
  }
  const Path template_at = at / "template";
  if (const Value* found = json::find(spec, "template")) pod_warnings(*found, &template_at, out);
}

bool says_nothing_new(const Value* old, const Value& doc) {
  return old != nullptr && json::get_int(*old, {"metadata", "generation"}) == json::get_int(doc, {"metadata", "generation"});
}

void workload_warnings(const Value* old, const Value& doc, Sentences& out) {
  if (says_nothing_new(old, doc)) return;
  const Path spec("spec");
  template_warnings(doc, {"spec", "template"}, spec / "template", out);
}

void named_workload_warnings(const Value* old, const Value& doc, Sentences& out) {
  if (old == nullptr) surprising_name_warning(doc, out);
  workload_warnings(old, doc, out);
}

std::vector<std::string> write_warnings(const KindInfo& kind, const Value* old, const Value& doc) {
  Sentences out;
  if (const auto& own = hooks_of(kind).rules->warnings) own(old, doc, out);
  return out;
}

std::string_view kind_warning(const KindInfo& kind) { return hooks_of(kind).rules->deprecation; }

}  // namespace berth::model
