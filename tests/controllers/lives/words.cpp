// What lives' plans and documents are called.
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {

using json::get_array;
using json::get_string;
using json::Value;

namespace {

void brief_to(std::string& out, const Value& value) {
  if (const auto* object = value.if_object()) {
    out += '{';
    const char* comma = "";
    for (const auto& field : *object) {
      out += comma;
      out += std::string_view(field.key());
      out += ": ";
      comma = ", ";
      if (field.key() == "ownerReferences" && field.value().is_array()) {
        out += '[';
        for (const Value& one : field.value().get_array())
          out += fmt::format(" {}/{} {}{}{}", get_string(one, {"kind"}), get_string(one, {"name"}), get_string(one, {"uid"}),
                             json::get_bool(one, {"controller"}) ? "!" : "", json::get_bool(one, {"blockOwnerDeletion"}) ? "^" : "");
        out += ']';
      } else {
        brief_to(out, field.value());
      }
    }
    out += '}';
  } else if (const auto* array = value.if_array()) {
    out += '[';
    const char* comma = "";
    for (const Value& one : *array) {
      out += comma;
      comma = ", ";
      brief_to(out, one);
    }
    out += ']';
  } else if (value.is_string()) {
    // Keys and certificates are others each time.
    const std::string_view text = json::as_view(value);
    out += text.size() > 300 && text.find(' ') == std::string_view::npos ? std::string_view("(a long text)") : text;
  } else {
    json::serialize_to(out, value);
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

}  // namespace

std::string brief(const Value& value) {
  std::string out;
  brief_to(out, value);
  replace_all(out, "2026-01-05T", "");
  replace_all(out, "\n", "|");
  return out;
}

std::string World::tell_write(const Write& write) {
  static constexpr const char* kVerbs[] = {"create", "update", "patch", "delete", "get", "list", "deletecollection"};
  std::string out =
      fmt::format("{}{} {}{}{} {}{}{}", kVerbs[static_cast<int>(write.verb)], write.patch_type == PatchType::kStrategicMerge ? "*" : "",
                  write.kind->kind.empty() ? write.kind->plural : write.kind->kind, write.subresource.empty() ? "" : "/", write.subresource,
                  write.ns, write.ns.empty() ? "" : "/", write.name);
  Value body = write.body;
  const Value* object = find(write.kind, write.ns.empty() ? write.name : write.ns + "/" + write.name);
  const auto check = [&](std::string_view field, std::string_view given) {
    if (given.empty()) return;
    const bool same = object != nullptr && get_string(*object, {"metadata", field}) == given;
    if (field == "resourceVersion") out += same ? " @" : " @old";
    if (field == "uid" && !same) out += fmt::format(" of {}", given);
  };
  check("uid", write.uid.empty() ? get_string(body, {"metadata", "uid"}) : write.uid);
  check("resourceVersion", get_string(body, {"metadata", "resourceVersion"}));
  check("resourceVersion", write.delete_options.precondition_resource_version);
  if (write.verb == Write::Verb::kDelete || write.verb == Write::Verb::kDeleteCollection) {
    if (write.delete_options.grace_period_seconds) out += fmt::format(" grace {}", *write.delete_options.grace_period_seconds);
    if (write.delete_options.propagation != Propagation::kBackground)
      out += fmt::format(" propagation {}", static_cast<int>(write.delete_options.propagation));
    if (write.delete_options.precondition_uid != write.uid) out += " without its uid";
  }
  if (write.verb == Write::Verb::kPatch && body.is_object()) {
    json::erase(body, {"metadata", "uid"});
    json::erase(body, {"metadata", "resourceVersion"});
    if (json::get_object(body, {"metadata"}).empty()) body.get_object().erase("metadata");
  } else if (body.is_object()) {
    for (const char* field : {"apiVersion", "kind"}) body.get_object().erase(field);
    json::erase(body, {"metadata", "namespace"});
  }
  if (!body.is_null()) out += " " + brief(body);
  if (!write.query.empty()) out += " ?" + write.query;
  if (write.stage != 0) out += fmt::format(" stage {}", write.stage);
  if (write.slow_start) out += " slowly";
  if (write.may_fail) out += " may fail";
  if (!write.tag.empty()) out += " tag " + write.tag;
  return out;
}

std::string World::tell_plan(const Plan& plan) {
  std::string out;
  std::string last;
  int times = 0;
  const auto flush = [&] {
    if (times > 0) out += fmt::format("    {}{}\n", last, times > 1 ? fmt::format(" x{}", times) : "");
    times = 0;
  };
  for (const Write& write : plan.writes) {
    std::string text = tell_write(write);
    if (text != last) flush();
    last = std::move(text);
    ++times;
  }
  flush();
  for (const EventNote& note : plan.events)
    out += fmt::format("    event {} {} of {} {}: {}\n", note.type, note.reason, note.kind, note.name, note.message);
  if (plan.requeue_after) out += fmt::format("    again in {}\n", format_go_duration(*plan.requeue_after));
  for (const std::string& other : plan.enqueue) out += fmt::format("    then {}\n", other);
  if (plan.error) out += fmt::format("    error {}\n", *plan.error);
  return out;
}

}  // namespace berth::controllers::lives
