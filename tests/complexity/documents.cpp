#include "tests/complexity/documents.h"

#include <fmt/format.h>

#include "model/schema.h"

namespace berth::testing {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr const char* kJson = "application/json";
constexpr const char* kStrategic = "application/strategic-merge-patch+json";
constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";
constexpr const char* kApply = "application/apply-patch+yaml";
constexpr const char* kYaml = "application/yaml";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

using Item = std::function<Value(std::size_t)>;

Array list(std::size_t size, const Item& item) {
  Array out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(item(i));
  return out;
}

/// In the order of `at(i)`.
Object keys(std::size_t size, const std::function<std::string(std::size_t)>& at, const Value& value = "v") {
  Object out;
  for (std::size_t i = 0; i < size; ++i) out[at(i)] = value;
  return out;
}

std::string ascending(std::size_t i) { return fmt::format("k{:07}", i); }
std::function<std::string(std::size_t)> descending(std::size_t size) {
  return [size](std::size_t i) { return ascending(size - i); };
}
std::string scattered(std::size_t i) { return fmt::format("k{:07}", i * 2654435761U % 9999991U); }
std::string name(std::size_t i) { return fmt::format("n{}", i); }

Value config_map(Object more) {
  Object out{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", Object{{"name", "a"}}}};
  for (auto& [key, value] : more) out[key] = value;
  return out;
}

Value pod(Object spec, Object metadata = {}) {
  metadata["name"] = "a";
  if (!spec.contains("containers")) spec["containers"] = Array{Object{{"name", "c"}, {"image", "i:1"}}};
  return Object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", spec}};
}

Sent post(std::string path, const Value& body) { return {"POST", std::move(path) + "?fieldValidation=Warn", kJson, json::serialize(body)}; }
Sent put(std::string path, const Value& body) { return {"PUT", std::move(path) + "?fieldValidation=Warn", kJson, json::serialize(body)}; }
Sent patch(std::string path, const char* type, const Value& body) {
  if (type == std::string_view(kApply)) path += "?fieldManager=m&force=true";
  return {"PATCH", std::move(path), type, json::serialize(body)};
}

/// The same object in every way in which it can be written.
void every_write(std::vector<Adversary>& out, const std::string& what, const std::string& path, std::function<Value(std::size_t)> object) {
  const std::string at = path + "/a";
  out.push_back({what + ", created", [=](std::size_t n) { return std::vector{post(path, object(n))}; }});
  out.push_back({what + ", replaced", [=](std::size_t n) {
                   Value changed = object(n);
                   json::set(changed, {"metadata", "annotations", "changed"}, "yes");
                   return std::vector{post(path, object(n)), put(at, changed)};
                 }});
  out.push_back({what + ", applied", [=](std::size_t n) { return std::vector{patch(at, kApply, object(n))}; }});
  out.push_back({what + ", applied again by another", [=](std::size_t n) {
                   auto other = patch(at, kApply, object(n / 2 + 1));
                   other.path = at + "?fieldManager=other&force=true";
                   return std::vector{patch(at, kApply, object(n)), other, patch(at, kApply, object(n / 3 + 1))};
                 }});
  out.push_back({what + ", merged strategically into itself", [=](std::size_t n) {
                   return std::vector{post(path, object(n)), patch(at, kStrategic, object(n))};
                 }});
  out.push_back({what + ", merged", [=](std::size_t n) { return std::vector{post(path, object(n)), patch(at, kMerge, object(n))}; }});
  out.push_back({what + ", in a table", [=](std::size_t n) {
                   return std::vector{post(path, object(n)), Sent{"GET", at, "as=Table", ""}};
                 }});
  out.push_back({what + ", in YAML", [=](std::size_t n) { return std::vector{post(path, object(n)), Sent{"GET", at, kYaml, ""}}; }});
  out.push_back({what + ", in protobuf", [=](std::size_t n) {
                   return std::vector{post(path, object(n)), Sent{"GET", at, "application/vnd.kubernetes.protobuf", ""}};
                 }});
}

void add_maps(std::vector<Adversary>& out) {
  every_write(out, "unknown keys ascending", kMaps, [](std::size_t n) { return config_map(keys(n, ascending)); });
  every_write(out, "unknown keys descending", kMaps, [](std::size_t n) { return config_map(keys(n, descending(n))); });
  every_write(out, "unknown keys scattered", kMaps, [](std::size_t n) { return config_map(keys(n, scattered)); });
  every_write(out, "data descending", kMaps, [](std::size_t n) { return config_map({{"data", keys(n, descending(n))}}); });
  every_write(out, "annotations descending", kMaps, [](std::size_t n) {
    return config_map({{"metadata", Object{{"name", "a"}, {"annotations", keys(n, descending(n))}}}});
  });
  every_write(out, "labels", kMaps, [](std::size_t n) {
    return config_map({{"metadata", Object{{"name", "a"}, {"labels", keys(n, descending(n))}}}});
  });
  every_write(out, "a long name above many members", kMaps, [](std::size_t n) {
    return config_map({{std::string(n * 8, 'x'), Value(keys(n, descending(n)))}});
  });
  every_write(out, "owners", kMaps, [](std::size_t n) {
    const auto owner = [](std::size_t i) -> Value {
      return Object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", name(i)}, {"uid", name(i)}};
    };
    return config_map({{"metadata", Object{{"name", "a"}, {"ownerReferences", list(n, owner)}}}});
  });
  every_write(out, "finalizers", kMaps, [](std::size_t n) {
    const auto finalizer = [](std::size_t i) { return Value("example.com/" + name(i)); };
    return config_map({{"metadata", Object{{"name", "a"}, {"finalizers", list(n, finalizer)}}}});
  });
  every_write(out, "nested", kMaps, [](std::size_t n) {
    Value inner = keys(n, ascending);
    for (int depth = 0; depth < 400; ++depth) inner = Object{{"d", std::move(inner)}};
    return config_map({{"deep", std::move(inner)}});
  });
  every_write(out, "managers", kMaps, [](std::size_t n) {
    const auto entry = [](std::size_t i) -> Value {
      return Object{{"manager", name(i)},       {"operation", "Update"},
                    {"apiVersion", "v1"},       {"time", "2026-01-01T00:00:00Z"},
                    {"fieldsType", "FieldsV1"}, {"fieldsV1", Object{{"f:data", Object{{"f:" + name(i), Object()}}}}}};
    };
    return config_map({{"metadata", Object{{"name", "a"}, {"managedFields", list(n, entry)}}}, {"data", keys(n, name)}});
  });
}

void add_pods(std::vector<Adversary>& out) {
  const auto in_container = [](std::string_view field, Array items) {
    return pod({{"containers", Array{Object{{"name", "c"}, {"image", "i:1"}, {field, std::move(items)}}}}});
  };
  const auto differing = [](std::function<Object(std::size_t)> item) { return [item](std::size_t i) -> Value { return item(i); }; };
  every_write(out, "containers", kPods, [=](std::size_t n) {
    return pod({{"containers", list(n, differing([](std::size_t i) { return Object{{"name", name(i)}, {"image", "i:1"}}; }))}});
  });
  every_write(out, "volumes and mounts", kPods, [=](std::size_t n) {
    return pod({{"volumes", list(n, differing([](std::size_t i) {
                                   return Object{{"name", name(i)}, {"emptyDir", Object()}};
                                 }))},
                {"containers", Array{Object{{"name", "c"},
                                            {"image", "i:1"},
                                            {"volumeMounts", list(n, differing([](std::size_t i) {
                                                                    return Object{{"name", name(i)}, {"mountPath", "/" + name(i)}};
                                                                  }))}}}}});
  });
  every_write(out, "mounts of one volume at one place", kPods, [=](std::size_t n) {
    return in_container("volumeMounts", list(n, differing([](std::size_t) { return Object{{"name", "v"}, {"mountPath", "/m"}}; })));
  });
  every_write(out, "projected sources", kPods, [=](std::size_t n) {
    const auto source = differing([](std::size_t i) {
      return Object{{"configMap", Object{{"name", name(i)}, {"items", Array{Object{{"key", "k"}, {"path", name(i)}}}}}}};
    });
    return pod({{"volumes", Array{Object{{"name", "v"}, {"projected", Object{{"sources", list(n, source)}}}}}}});
  });
  every_write(out, "environment with references", kPods, [=](std::size_t n) {
    return in_container(
        "env", list(n, differing([](std::size_t i) {
                      return Object{{"name", name(i)}, {"valueFrom", Object{{"configMapKeyRef", Object{{"name", name(i)}, {"key", "k"}}}}}};
                    })));
  });
  every_write(out, "environment of one name", kPods, [=](std::size_t n) {
    return in_container("env", list(n, differing([](std::size_t i) { return Object{{"name", "same"}, {"value", name(i)}}; })));
  });
  every_write(out, "ports", kPods, [=](std::size_t n) {
    return in_container("ports",
                        list(n, differing([](std::size_t i) {
                               return Object{{"containerPort", static_cast<int>(i % 60000 + 1)}, {"protocol", i % 2 ? "TCP" : "UDP"}};
                             })));
  });
  every_write(out, "equal host ports", kPods, [=](std::size_t n) {
    return in_container("ports", list(n, differing([](std::size_t) { return Object{{"containerPort", 80}, {"hostPort", 80}}; })));
  });
  every_write(out, "resource names", kPods, [=](std::size_t n) {
    const auto amounts = keys(
        n, [](std::size_t i) { return fmt::format("example.com/{}", ascending(i)); }, "1");
    return pod({{"containers",
                 Array{Object{{"name", "c"}, {"image", "i:1"}, {"resources", Object{{"limits", amounts}, {"requests", amounts}}}}}}});
  });
  every_write(out, "tolerations", kPods, [=](std::size_t n) {
    return pod({{"tolerations", list(n, differing([](std::size_t i) { return Object{{"key", name(i)}, {"operator", "Exists"}}; }))}});
  });
  every_write(out, "affinity terms", kPods, [=](std::size_t n) {
    const auto term = differing([](std::size_t i) {
      return Object{{"topologyKey", "zone"}, {"labelSelector", Object{{"matchLabels", Object{{"a", name(i)}}}}}};
    });
    return pod({{"affinity", Object{{"podAntiAffinity", Object{{"requiredDuringSchedulingIgnoredDuringExecution", list(n, term)}}}}}});
  });
  every_write(out, "spread constraints", kPods, [=](std::size_t n) {
    return pod({{"topologySpreadConstraints", list(n, differing([](std::size_t i) {
                                                     return Object{{"maxSkew", 1},
                                                                   {"topologyKey", name(i)},
                                                                   {"whenUnsatisfiable", "DoNotSchedule"},
                                                                   {"labelSelector", Object{{"matchLabels", Object{{"a", "b"}}}}}};
                                                   }))}});
  });
  every_write(out, "host aliases", kPods, [=](std::size_t n) {
    return pod(
        {{"hostAliases",
          list(n, differing([](std::size_t i) {
                 return Object{{"ip", fmt::format("10.{}.{}.{}", i / 65536 % 256, i / 256 % 256, i % 256)}, {"hostnames", Array{"h"}}};
               }))}});
  });
  every_write(out, "a long container name above many variables", kPods, [=](std::size_t n) {
    const auto variable = differing([](std::size_t i) { return Object{{"name", name(i)}, {"value", "v"}, {"unknown", 1}}; });
    return pod({{"containers", Array{Object{{"name", std::string(n * 8, 'x')}, {"image", "i:1"}, {"env", list(n, variable)}}}}});
  });
}

void add_patches(std::vector<Adversary>& out) {
  const auto numbers = [](std::size_t n) { return list(n, [](std::size_t i) -> Value { return static_cast<std::int64_t>(i); }); };
  const auto stored = [=](std::size_t n) { return post(kMaps, config_map({{"x", numbers(n)}})); };
  const std::string at = std::string(kMaps) + "/a";
  out.push_back({"JSON patch that inserts", [=](std::size_t n) {
                   return std::vector{stored(n), patch(at, kJsonPatch, list(n, [](std::size_t) -> Value {
                                                         return Object{{"op", "add"}, {"path", "/x/0"}, {"value", 0}};
                                                       }))};
                 }});
  out.push_back({"JSON patch that copies", [=](std::size_t n) {
                   return std::vector{stored(n), patch(at, kJsonPatch, list(n, [](std::size_t i) -> Value {
                                                         return Object{{"op", "copy"}, {"from", "/x/0"}, {"path", "/" + name(i)}};
                                                       }))};
                 }});
  out.push_back({"JSON patch that doubles", [=](std::size_t n) {
                   return std::vector{stored(n), patch(at, kJsonPatch, list(30, [](std::size_t i) -> Value {
                                                         return Object{{"op", "copy"}, {"from", "/x"}, {"path", i % 2 ? "/x/-" : "/x/0"}};
                                                       }))};
                 }});
  out.push_back({"JSON patch that tests", [=](std::size_t n) {
                   return std::vector{stored(n), patch(at, kJsonPatch, list(n, [](std::size_t) -> Value {
                                                         return Object{{"op", "test"}, {"path", "/x/1"}, {"value", 1}};
                                                       }))};
                 }});
  out.push_back({"strategic order of finalizers", [=](std::size_t n) {
                   const auto finalizers = list(n, [](std::size_t i) { return Value("example.com/" + name(i)); });
                   const auto reversed = list(n, [n](std::size_t i) { return Value("example.com/" + name(n - 1 - i)); });
                   return std::vector{post(kMaps, config_map({{"metadata", Object{{"name", "a"}, {"finalizers", finalizers}}}})),
                                      patch(at, kStrategic, Object{{"metadata", Object{{"$setElementOrder/finalizers", reversed}}}})};
                 }});
  out.push_back({"strategic deletion of finalizers", [=](std::size_t n) {
                   const auto finalizers = list(n, [](std::size_t i) { return Value("example.com/" + name(i)); });
                   return std::vector{
                       post(kMaps, config_map({{"metadata", Object{{"name", "a"}, {"finalizers", finalizers}}}})),
                       patch(at, kStrategic, Object{{"metadata", Object{{"$deleteFromPrimitiveList/finalizers", finalizers}}}})};
                 }});
  out.push_back({"strategic deletion of owners", [=](std::size_t n) {
                   const auto owner = [](std::size_t i) -> Value {
                     return Object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", name(i)}, {"uid", name(i)}};
                   };
                   const auto gone = [](std::size_t i) -> Value { return Object{{"$patch", "delete"}, {"uid", name(i)}}; };
                   return std::vector{post(kMaps, config_map({{"metadata", Object{{"name", "a"}, {"ownerReferences", list(n, owner)}}}})),
                                      patch(at, kStrategic, Object{{"metadata", Object{{"ownerReferences", list(n, gone)}}}})};
                 }});
}

void add_questions(std::vector<Adversary>& out) {
  const auto selector = [&](const std::string& what, const std::string& parameter, std::function<std::string(std::size_t)> term,
                            const char* end) {
    out.push_back({what, [=](std::size_t n) {
                     std::string path = std::string(kPods) + "?" + parameter + "=";
                     for (std::size_t i = 0; i < n; ++i) path += (i == 0 ? "" : "%2C") + term(i);
                     return std::vector{post(kPods, pod({})), Sent{"GET", path + end, kJson, ""}};
                   }});
  };
  selector(
      "label selector", "labelSelector", [](std::size_t i) { return ascending(i) + "!%3Dv"; }, "");
  selector(
      "label selector with a set", "labelSelector", [](std::size_t i) { return (i == 0 ? "k+notin+(" : "") + ascending(i); }, ")");
  selector(
      "field selector", "fieldSelector", [](std::size_t i) { return "spec.nodeName!%3D" + ascending(i); }, "");
  out.push_back(
      {"policy over every key", [](std::size_t n) {
         const auto policy =
             Object{{"metadata", Object{{"name", "p"}}},
                    {"spec", Object{{"matchConstraints", Object{{"resourceRules", Array{Object{{"apiGroups", Array{""}},
                                                                                               {"apiVersions", Array{"v1"}},
                                                                                               {"operations", Array{"CREATE"}},
                                                                                               {"resources", Array{"configmaps"}}}}}}},
                                    {"validations", Array{Object{{"expression", "object.data.all(k, object.data[k] == 'v')"}}}}}}};
         const auto binding =
             Object{{"metadata", Object{{"name", "p"}}}, {"spec", Object{{"policyName", "p"}, {"validationActions", Array{"Deny"}}}}};
         const std::string group = "/apis/admissionregistration.k8s.io/v1/";
         return std::vector{post(group + "validatingadmissionpolicies", policy), post(group + "validatingadmissionpolicybindings", binding),
                            post(kMaps, config_map({{"data", keys(n, descending(n))}}))};
       }});
}

void add_texts(std::vector<Adversary>& out) {
  out.push_back({"review with keys descending", [](std::size_t n) {
                   auto review = keys(n, descending(n));
                   review["spec"] = Object{{"resourceAttributes", Object{{"verb", "get"}, {"resource", "pods"}}}};
                   return std::vector{post(kReviews, review)};
                 }});
  out.push_back(
      {"review with requirements", [](std::size_t n) {
         const auto one = [](std::size_t i) -> Value { return Object{{"key", name(i)}, {"operator", "In"}, {"values", Array{"a"}}}; };
         return std::vector{
             post(kReviews,
                  Object{{"spec", Object{{"resourceAttributes", Object{{"verb", "list"},
                                                                       {"resource", "pods"},
                                                                       {"labelSelector", Object{{"requirements", list(n, one)}}}}}}}})};
       }});
  out.push_back(
      {"review of somebody with a long extra", [](std::size_t n) {
         return std::vector{post(
             "/apis/authorization.k8s.io/v1/subjectaccessreviews",
             Object{{"spec", Object{{"user", "u"},
                                    {"extra", Object{{std::string(n * 8, 'x'), list(n, [](std::size_t i) { return Value(name(i)); })}}},
                                    {"nonResourceAttributes", Object{{"path", "/"}, {"verb", "get"}}}}}})};
       }});
  out.push_back({"duplicate keys below a long one", [](std::size_t n) {
                   std::string body =
                       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},")" + std::string(n * 8, 'x') + "\":{";
                   for (std::size_t i = 0; i < n; ++i) body += fmt::format("{}\"a{}\":1,\"a{}\":2", i == 0 ? "" : ",", i, i);
                   return std::vector{Sent{"POST", std::string(kMaps) + "?fieldValidation=Strict", kJson, body + "}}"}};
                 }});
  for (const char* end : {"", "]"})
    out.push_back({fmt::format("brackets{}", end), [=](std::size_t n) {
                     std::string body(n, '[');
                     for (std::size_t i = 0; i < n; ++i) body += end;
                     return std::vector{Sent{"POST", kMaps, kJson, body}};
                   }});
  const auto yaml = [&](const std::string& what, std::function<std::string(std::size_t)> text) {
    out.push_back({"YAML " + what, [=](std::size_t n) { return std::vector{Sent{"POST", kReviews, kYaml, text(n)}}; }});
  };
  yaml("keys", [](std::size_t n) {
    std::string out = "kind: SelfSubjectAccessReview\napiVersion: authorization.k8s.io/v1\n";
    for (std::size_t i = 0; i < n; ++i) out += fmt::format("{}: v\n", ascending(n - i));
    return out;
  });
  yaml("aliases", [](std::size_t n) {
    std::string out = "a: &a [" + std::string(200, 'x') + "]\nb:\n";
    for (std::size_t i = 0; i < n; ++i) out += "- *a\n";
    return out;
  });
  yaml("anchors", [](std::size_t n) {
    std::string out = "b:\n";
    for (std::size_t i = 0; i < n; ++i) out += fmt::format("- &a{} x\n", i);
    return out;
  });
  yaml("merge keys", [](std::size_t n) {
    std::string out = "a: &a {";
    for (std::size_t i = 0; i < 100; ++i) out += fmt::format("{}: 1, ", ascending(i));
    out += "z: 1}\nb:\n";
    for (std::size_t i = 0; i < n; ++i) out += "- {<<: *a}\n";
    return out;
  });
  yaml("flow brackets", [](std::size_t n) { return "a: " + std::string(n, '['); });
  yaml("a long scalar", [](std::size_t n) { return "a: " + std::string(n * 16, 'x') + "\n"; });
  yaml("a folded scalar", [](std::size_t n) {
    std::string out = "a: >\n";
    for (std::size_t i = 0; i < n; ++i) out += "  x\n";
    return out;
  });
  yaml("a quoted scalar with escapes", [](std::size_t n) {
    std::string out = "a: \"";
    for (std::size_t i = 0; i < n; ++i) out += "\\N\\_";
    return out + "\"\n";
  });
  yaml("documents", [](std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += "---\na: b\n";
    return out;
  });
  yaml("indentation", [](std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < std::min<std::size_t>(n, 2000); ++i) out += "- ";
    return out + "x\n";
  });
}

/// A value with something in every field, a few levels deep.
Value sample(const model::TypeRef& ref, int depth) {
  using Kind = model::TypeRef::Kind;
  switch (ref.kind) {
    case Kind::kInt32:
    case Kind::kInt64:
    case Kind::kDouble:
    case Kind::kIntOrString:
      return 1;
    case Kind::kBool:
      return true;
    case Kind::kQuantity:
      return "1";
    case Kind::kTime:
      return "2026-01-01T00:00:00Z";
    case Kind::kMicroTime:
      return "2026-01-01T00:00:00.000000Z";
    case Kind::kBytes:
      return "YQ==";
    case Kind::kString:
      return "a";
    case Kind::kList:
      return depth == 0 ? Value(Array()) : Value(Array{sample(*ref.element, depth - 1)});
    case Kind::kMap:
      return depth == 0 ? Value(Object()) : Value(Object{{"k", sample(*ref.element, depth - 1)}});
    case Kind::kStruct: {
      Object out;
      if (depth > 0)
        for (const auto& field : ref.type->fields) out[field.name] = sample(field.ref, depth - 1);
      return out;
    }
    case Kind::kAny:
      break;
  }
  return Object();
}

/// Gives every string and number below `node` another value, so that elements differ.
void number(Value& node, std::size_t i) {
  if (node.is_string() && json::as_view(node) == "a") node = fmt::format("a{}", i);
  if (node.is_int64()) node = static_cast<std::int64_t>(i % 60000 + 1);
  if (auto* object = node.if_object())
    for (auto& member : *object) number(member.value(), i);
  if (auto* array = node.if_array())
    for (auto& item : *array) number(item, i);
}

using Step = std::string;  ///< A key, or "" for the first element.

Value* at_path(Value& root, const std::vector<Step>& path) {
  Value* at = &root;
  for (const auto& step : path) at = step.empty() ? &at->get_array()[0] : at->get_object().if_contains(step);
  return at;
}

void find_containers(const model::TypeRef& ref, const Value& value, std::vector<Step>& path, std::vector<std::vector<Step>>& out) {
  using Kind = model::TypeRef::Kind;
  if (ref.kind == Kind::kStruct && value.is_object()) {
    for (const auto& field : ref.type->fields) {
      const auto* member = value.get_object().if_contains(field.name);
      if (member == nullptr) continue;
      path.push_back(field.name);
      find_containers(field.ref, *member, path, out);
      path.pop_back();
    }
  } else if (ref.kind == Kind::kList && value.is_array() && !value.get_array().empty()) {
    out.push_back(path);
    path.emplace_back();
    find_containers(*ref.element, value.get_array()[0], path, out);
    path.pop_back();
  } else if (ref.kind == Kind::kMap && value.is_object() && !value.get_object().empty()) {
    out.push_back(path);
  }
}

}  // namespace

std::vector<Adversary> adversaries() {
  std::vector<Adversary> out;
  add_maps(out);
  add_pods(out);
  add_patches(out);
  add_questions(out);
  add_texts(out);
  return out;
}

std::vector<Adversary> lengthened_kinds() {
  std::vector<Adversary> out;
  for (const auto& kind : model::all_kinds()) {
    if (!kind.has_verb("create") || kind.is_virtual) continue;
    const model::TypeRef ref{model::TypeRef::Kind::kStruct, model::type_of(kind), nullptr};
    auto document = sample(ref, 6);
    document.get_object()["apiVersion"] = kind.api_version();
    document.get_object()["kind"] = kind.kind;
    json::set(document, {"metadata"}, Object{{"name", "a"}});
    std::vector<Step> path;
    std::vector<std::vector<Step>> containers;
    find_containers(ref, document, path, containers);
    const auto base = (kind.group.empty() ? "/api/" : "/apis/" + kind.group + "/") + kind.version +
                      (kind.namespaced ? "/namespaces/default/" : "/") + kind.plural;
    for (const auto& place : containers) {
      // Pods themselves show what their templates cost.
      if (std::ranges::any_of(place, [](const Step& step) { return step == "template" || step == "jobTemplate"; })) continue;
      out.push_back({fmt::format("{}: {}", kind.api_version() + "/" + kind.kind, fmt::join(place, ".")),
                     [=](std::size_t n) {
                       Value long_one = document;
                       Value* at = at_path(long_one, place);
                       if (auto* array = at->if_array()) {
                         const Value first = (*array)[0];
                         for (std::size_t i = 1; i < n; ++i) {
                           array->push_back(first);
                           number(array->back(), i);
                         }
                       } else {
                         const Value first = at->get_object().begin()->value();
                         for (std::size_t i = 1; i < n; ++i) at->get_object()[ascending(n - i)] = first;
                       }
                       return std::vector{Sent{"POST", base + "?dryRun=All", kJson, json::serialize(long_one)}};
                     },
                     true});
    }
  }
  return out;
}

}  // namespace berth::testing
