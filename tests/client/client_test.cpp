// What a client reads of an answer.
#include "client/client.h"

#include <gtest/gtest.h>

namespace berth::client::test {
namespace {

const Gvr kPods{"", "v1", "pods"};

/// Answers everything with the same words.
class Echo final : public net::Handler {
 public:
  void handle(net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) override {
    writer->respond({.status = status, .headers = {}, .body = body});
  }
  int status = 201;
  std::string body =
      R"({"kind":"Pod","metadata":{"name":"a\u0062","namespace":"ns","uid":"u-1","resourceVersion":"17","labels":{"x":"y"}},"spec":{"nodeName":"n"}})";
};

class Answers : public testing::Test {
 protected:
  ApiResult<json::Value> call(Answer answer) {
    std::optional<ApiResult<json::Value>> got;
    client.create(
        kPods, "ns", json::Object{{"kind", "Pod"}}, [&](ApiResult<json::Value> result) { got = std::move(result); }, answer);
    return std::move(*got);
  }
  Echo echo;
  Client client{make_in_process_transport(echo, {"admin", {}}), nullptr, "test/1"};
};

TEST_F(Answers, AreWholeByDefault) {
  const auto pod = call(Answer::kDocument);
  ASSERT_TRUE(pod);
  EXPECT_EQ(json::get_string(*pod, {"spec", "nodeName"}), "n");
}

TEST_F(Answers, IdentityIsNamesUidAndRevisionAlone) {
  const auto pod = call(Answer::kIdentity);
  ASSERT_TRUE(pod);
  EXPECT_EQ(json::serialize(*pod), R"({"metadata":{"name":"ab","namespace":"ns","uid":"u-1","resourceVersion":"17"}})");
}

TEST_F(Answers, OfNoInterestAreNull) {
  const auto pod = call(Answer::kNone);
  ASSERT_TRUE(pod);
  EXPECT_TRUE(pod->is_null());
}

TEST_F(Answers, FailuresAreReadWhateverWasAskedFor) {
  echo.status = 409;
  echo.body = R"({"kind":"Status","status":"Failure","reason":"AlreadyExists","message":"it is there","code":409})";
  for (const Answer answer : {Answer::kDocument, Answer::kIdentity, Answer::kNone}) {
    const auto pod = call(answer);
    ASSERT_FALSE(pod);
    EXPECT_EQ(pod.error().message, "it is there");
    EXPECT_TRUE(pod.error().is("AlreadyExists"));
  }
}

TEST_F(Answers, ThatAreNoJsonFailWhenTheyAreRead) {
  echo.body = "hello";
  EXPECT_FALSE(call(Answer::kDocument));
  EXPECT_FALSE(call(Answer::kIdentity));
  EXPECT_TRUE(call(Answer::kNone));
}

}  // namespace
}  // namespace berth::client::test
