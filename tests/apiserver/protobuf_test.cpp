// Answers in protobuf: what Go's clients ask for first.
#include "model/protobuf/protobuf.h"

#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

constexpr const char* kProtobuf = "application/vnd.kubernetes.protobuf";
constexpr const char* kGoAccept = "application/vnd.kubernetes.protobuf,application/json";

/// The fields of bytes of a message, by number.
std::multimap<int, std::string> fields_of(std::string_view message) {
  std::multimap<int, std::string> out;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; at < message.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.size()) {
    const auto tag = varint();
    const auto value = varint();
    if ((tag & 7) != 2) continue;
    out.emplace(static_cast<int>(tag >> 3), std::string(message.substr(at, value)));
    at += value;
  }
  return out;
}

std::string one(const std::multimap<int, std::string>& fields, int number) {
  const auto found = fields.find(number);
  return found == fields.end() ? "" : found->second;
}

class ProtobufAnswers : public ServerTest {
 protected:
  Response ask(const std::string& path, const std::string& accept = kGoAccept) { return send("GET", path, "", "", {{"Accept", accept}}); }
  static json::Value decoded(std::string_view body) {
    auto document = model::decode_protobuf(body);
    EXPECT_TRUE(document) << document.error().message;
    return document ? *document : json::Value();
  }
  /// A list's items, its kind and its metadata's message.
  struct List {
    std::string api_version, kind;
    std::multimap<int, std::string> metadata;
    std::vector<json::Value> items;
  };
  static List list_of(std::string_view body, const std::string& item_version, const std::string& item_kind) {
    List out;
    EXPECT_TRUE(body.starts_with(std::string_view("k8s\0", 4)));
    const auto envelope = fields_of(body.substr(4));
    const auto type = fields_of(one(envelope, 1));
    out.api_version = one(type, 1);
    out.kind = one(type, 2);
    const auto list = fields_of(one(envelope, 2));
    out.metadata = fields_of(one(list, 1));
    const auto [first, last] = list.equal_range(2);
    for (auto item = first; item != last; ++item)
      out.items.push_back(decoded(model::protobuf_head(item_version, item_kind, item->second.size()) + item->second));
    return out;
  }
  static std::vector<std::pair<std::string, json::Value>> events_of(std::string_view stream) {
    std::vector<std::pair<std::string, json::Value>> out;
    while (stream.size() >= 4) {
      std::size_t size = 0;
      for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(stream[static_cast<std::size_t>(i)]);
      const auto event = fields_of(stream.substr(4, size));
      out.emplace_back(one(event, 1), decoded(one(fields_of(one(event, 2)), 1)));
      stream.remove_prefix(4 + size);
    }
    EXPECT_TRUE(stream.empty());
    return out;
  }
};

TEST_F(ProtobufAnswers, ObjectsAreTheSameInBothForms) {
  const auto created = send("POST", kPods, pod("a", R"("nodeName":"n1")"), "application/json", {{"Accept", kGoAccept}});
  EXPECT_EQ(created->status, 201);
  EXPECT_EQ(created->headers.get("Content-Type"), kProtobuf);
  const auto read = ask(std::string(kPods) + "/a");
  EXPECT_EQ(read->headers.get("Content-Type"), kProtobuf);
  EXPECT_EQ(read->body, created->body);
  auto plain = get(std::string(kPods) + "/a")->document();
  auto fields = decoded(read->body);
  // Times that are null, and what is empty, have no protobuf form: the decoder of bodies brings them back.
  model::DecodeReport report;
  ASSERT_TRUE(model::decode(*model::find_kind("", "v1", "Pod"), fields, report));
  EXPECT_TRUE(json::equal(fields, plain)) << json::serialize(fields) << "\n" << json::serialize(plain);
}

TEST_F(ProtobufAnswers, ConvertedVersionsToo) {
  create("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
         R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"scaleTargetRef":)"
         R"({"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"maxReplicas":3}})");
  for (const std::string version : {"v1", "v2"}) {
    const auto answer = ask("/apis/autoscaling/" + version + "/namespaces/default/horizontalpodautoscalers/h");
    ASSERT_EQ(answer->headers.get("Content-Type"), kProtobuf);
    const auto document = decoded(answer->body);
    EXPECT_EQ(text(document, {"apiVersion"}), "autoscaling/" + version);
    EXPECT_EQ(json::get_int(document, {"spec", "maxReplicas"}), 3);
    // What an item is its list says, in every version and form.
    const auto list = get("/apis/autoscaling/" + version + "/horizontalpodautoscalers")->document();
    EXPECT_EQ(json::find(json::get_array(list, {"items"})[0], "kind"), nullptr);
  }
}

TEST_F(ProtobufAnswers, ListsShortAndLong) {
  for (int i = 0; i < 3; ++i) create(kMaps, config_map(fmt::format("c{}", i), R"({"k":"v"})"));
  auto list = list_of(ask(std::string(kMaps) + "?limit=2")->body, "v1", "ConfigMap");
  EXPECT_EQ(list.api_version, "v1");
  EXPECT_EQ(list.kind, "ConfigMapList");
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(text(list.items[1], {"metadata", "name"}), "c1");
  EXPECT_EQ(text(list.items[1], {"data", "k"}), "v");
  EXPECT_FALSE(one(list.metadata, 2).empty());
  EXPECT_FALSE(one(list.metadata, 3).empty());
  // Too long for one piece: streamed, and as long as its head says.
  for (int i = 3; i < 12; ++i) create(kMaps, config_map(fmt::format("c{}", i), fmt::format(R"({{"k":"{}"}})", std::string(60'000, 'x'))));
  const auto answer = ask(kMaps);
  EXPECT_GT(answer->chunks, 1);
  EXPECT_EQ(list_of(answer->body, "v1", "ConfigMap").items.size(), 12U);
  EXPECT_TRUE(answer->body.ends_with(std::string_view("\x1a\0\x22\0", 4)));
}

TEST_F(ProtobufAnswers, MetadataAloneHasItForEveryKind) {
  create(kMaps, config_map("a", R"({"k":"v"})"));
  const std::string form = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  const auto document = decoded(ask(std::string(kMaps) + "/a", kProtobuf + form)->body);
  EXPECT_EQ(text(document, {"kind"}), "PartialObjectMetadata");
  EXPECT_EQ(text(document, {"apiVersion"}), "meta.k8s.io/v1");
  EXPECT_EQ(text(document, {"metadata", "name"}), "a");
  EXPECT_EQ(json::find(document, "data"), nullptr);
  const auto list = list_of(ask(kMaps, std::string(kProtobuf) + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")->body, "meta.k8s.io/v1",
                            "PartialObjectMetadata");
  EXPECT_EQ(list.kind, "PartialObjectMetadataList");
  ASSERT_EQ(list.items.size(), 1U);
  EXPECT_EQ(text(list.items[0], {"metadata", "name"}), "a");
}

TEST_F(ProtobufAnswers, KindsWithoutItComeAsJsonOrNotAtAll) {
  const std::string machines = "/apis/machine.openshift.io/v1beta1/namespaces/default/machinesets";
  EXPECT_EQ(ask(machines)->headers.get("Content-Type"), "application/json");
  EXPECT_EQ(text(decoded(ask(machines, kProtobuf)->body), {"reason"}), "NotAcceptable");
  const auto table = ask(kMaps, std::string(kProtobuf) + ";as=Table;g=meta.k8s.io;v=v1");
  EXPECT_STATUS(table, 406, "NotAcceptable");
  EXPECT_EQ(table->headers.get("Content-Type"), "application/json");
}

TEST_F(ProtobufAnswers, ErrorsAndSuccessAreStatuses) {
  const auto missing = ask(std::string(kMaps) + "/none");
  EXPECT_EQ(missing->status, 404);
  EXPECT_EQ(missing->headers.get("Content-Type"), kProtobuf);
  const auto status = decoded(missing->body);
  EXPECT_EQ(text(status, {"kind"}), "Status");
  EXPECT_EQ(text(status, {"reason"}), "NotFound");
  EXPECT_EQ(text(status, {"details", "name"}), "none");
  EXPECT_EQ(json::get_int(status, {"code"}), 404);
  create(kMaps, config_map("a"));
  const auto deleted = decoded(send("DELETE", std::string(kMaps) + "/a", "", "", {{"Accept", kGoAccept}})->body);
  EXPECT_EQ(text(deleted, {"status"}), "Success");
}

TEST_F(ProtobufAnswers, DiscoveryToo) {
  EXPECT_EQ(text(decoded(ask("/api")->body), {"kind"}), "APIVersions");
  const auto groups = decoded(ask("/apis")->body);
  EXPECT_EQ(text(groups, {"kind"}), "APIGroupList");
  EXPECT_GT(json::get_array(groups, {"groups"}).size(), 10U);
  const auto plain = get("/apis/apps/v1")->document();
  const auto resources = decoded(ask("/apis/apps/v1")->body);
  EXPECT_TRUE(json::equal(*json::find(plain, "groupVersion"), *json::find(resources, "groupVersion")));
  const auto& all = json::get_array(resources, {"resources"});
  ASSERT_EQ(all.size(), json::get_array(plain, {"resources"}).size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(json::equal(*json::find(all[i], "verbs"), *json::find(json::get_array(plain, {"resources"})[i], "verbs")));
    EXPECT_EQ(text(all[i], {"kind"}), text(json::get_array(plain, {"resources"})[i], {"kind"}));
  }
}

TEST_F(ProtobufAnswers, WatchesAreFramed) {
  create(kMaps, config_map("a", R"({"k":"v"})"));
  const std::string path =
      std::string(kMaps) + "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  const auto watch = ask(path), second = ask(path), plain = get(path);
  const auto partial = ask(path, std::string(kProtobuf) + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  EXPECT_EQ(watch->headers.get("Content-Type"), "application/vnd.kubernetes.protobuf;stream=watch");
  patch(std::string(kMaps) + "/a", R"({"data":{"k":"w"}})");
  remove(std::string(kMaps) + "/a");
  loop_.run_for(std::chrono::seconds(1));
  const auto events = events_of(watch->body);
  const auto expected = plain->events();
  ASSERT_EQ(events.size(), 4U);
  ASSERT_EQ(expected.size(), 4U);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].first, text(expected[i], {"type"}));
    EXPECT_TRUE(json::equal(events[i].second, *json::find(expected[i], "object"))) << json::serialize(events[i].second);
  }
  EXPECT_EQ(second->body, watch->body);
  const auto metadata = events_of(partial->body);
  ASSERT_EQ(metadata.size(), 4U);
  EXPECT_EQ(text(metadata[2].second, {"kind"}), "PartialObjectMetadata");
  EXPECT_EQ(text(metadata[2].second, {"metadata", "name"}), "a");
  EXPECT_EQ(json::find(metadata[2].second, "data"), nullptr);
}

}  // namespace berth::apiserver::testing
