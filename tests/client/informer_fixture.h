// What informer tests have in common: a server that misbehaves on demand, near and far, and somebody who keeps what handlers say.
#pragma once
#include <gtest/gtest.h>

#include "client/informer.h"
#include "tests/client/fake_api.h"

namespace berth::client::test {

using namespace std::chrono_literals;

inline const Gvr kPods{"", "v1", "pods"};

/// Keeps what the handlers said, and checks that it makes sense: no add of a known object, no update or delete of an unknown one, no
/// repeat.
struct Recorder {
  std::map<std::string, ObjectRef> state;
  std::vector<std::string> log;

  InformerHandler handler() {
    return {.on_add =
                [this](const ObjectRef& object) {
                  EXPECT_FALSE(state.contains(object->key())) << "added twice: " << object->key();
                  state[object->key()] = object;
                  log.push_back("+" + object->key());
                },
            .on_update =
                [this](const ObjectRef& before, const ObjectRef& after) {
                  EXPECT_TRUE(state.contains(after->key()) && state[after->key()] == before);
                  EXPECT_NE(before->revision(), after->revision()) << "repeated: " << after->key();
                  EXPECT_EQ(before->uid(), after->uid());
                  state[after->key()] = after;
                  log.push_back("~" + after->key());
                },
            .on_delete =
                [this](const ObjectRef& object) {
                  EXPECT_EQ(state.erase(object->key()), 1U) << "deleted twice: " << object->key();
                  log.push_back("-" + object->key());
                }};
  }
};

/// As a connection to another process.
class Elsewhere final : public Transport {
 public:
  explicit Elsewhere(std::shared_ptr<Transport> inner) : inner_(std::move(inner)) {}
  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    inner_->send(std::move(request), std::move(done));
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    return inner_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    inner_->upgrade(std::move(request), std::move(done));
  }

 private:
  std::shared_ptr<Transport> inner_;
};

class InformerTest : public ::testing::Test {
 protected:
  VirtualLoop loop{TimePoint{}};
  FakeApi api;
  std::shared_ptr<Transport> here = make_in_process_transport(api, {"test", {"system:masters"}});
  Client client{std::make_shared<Elsewhere>(here), &loop, "test/1"};
  Client near{here, &loop, "test/1"};  ///< In the server's process.
  Recorder recorder;

  std::unique_ptr<Informer> start(InformerOptions options = {}, bool is_near = false) {
    auto informer = std::make_unique<Informer>(is_near ? near : client, kPods, options);
    informer->add_handler(recorder.handler());
    informer->start();
    loop.run_ready();
    return informer;
  }

  void expect_same_state(const Informer& informer) {
    EXPECT_EQ(informer.size(), api.objects().size());
    EXPECT_EQ(recorder.state.size(), api.objects().size());
    for (const auto& [key, bytes] : api.objects()) {
      const auto slash = key.find('/');
      const auto object = informer.get(key.substr(0, slash), key.substr(slash + 1));
      ASSERT_TRUE(object) << key;
      const auto expected = Object(bytes);
      EXPECT_EQ(object->revision(), expected.revision()) << key;
      EXPECT_EQ(object->uid(), expected.uid()) << key;
      EXPECT_EQ(recorder.state[key], object) << key;
    }
  }
};

}  // namespace berth::client::test
