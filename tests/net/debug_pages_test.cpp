// What administrators look at: profiles that name what was busy, figures, and refusals that say why.
#include "net/debug_pages.h"

#include "base/cpu_profile.h"
#include "tests/net/net_fixture.h"

namespace berth::net::test {

/// Busy until told otherwise; has a name of its own for the profile.
__attribute__((noinline)) void spin_for_the_profile(const std::atomic<bool>& stop) {
  volatile std::uint64_t count = 0;
  while (!stop) count = count + 1;
}

namespace {

class Pages : public ::testing::Test {
 protected:
  std::shared_ptr<Handler> pages = make_debug_pages(
      {.component = "kube-tested", .flags = {{"listen", "127.0.0.1:0"}}, .version = "v1", .emulated = "v1.36", .paths = {"/x"}});
  std::unique_ptr<Server> server = start_server(*pages);
  std::unique_ptr<HttpClient> client = make_client(*server);

  HttpResponse get(std::string path, std::string query = {}) const {
    auto request = make_request("GET", std::move(path));
    request.query = std::move(query);
    return wait_for(*client, std::move(request));
  }
};

TEST_F(Pages, AProfileNamesWhatWasBusy) {
  std::atomic<bool> stop{false};
  std::thread busy([&] { spin_for_the_profile(stop); });
  std::promise<HttpResponse> first;
  auto request = make_request("GET", "/debug/pprof/profile");
  request.query = "seconds=1&format=folded";
  client->send(std::move(request), [&](HttpResponse response) { first.set_value(std::move(response)); });
  const auto folded = first.get_future().get();
  const auto packed = get("/debug/pprof/profile", "seconds=1");
  stop = true;
  busy.join();
  EXPECT_EQ(folded.status, 200);
  EXPECT_NE(folded.body.find("spin_for_the_profile"), std::string::npos) << folded.body;
  EXPECT_EQ(packed.status, 200);
  EXPECT_EQ(packed.body.substr(0, 2), "\x1f\x8b") << "pprof's files are gzip";
}

TEST_F(Pages, OneProfileAtATime) {
  const auto other = CpuSampler::start();
  ASSERT_NE(other, nullptr);
  const auto refused = get("/debug/pprof/profile", "seconds=1");
  EXPECT_EQ(refused.status, 500);
  EXPECT_NE(refused.body.find("already in use"), std::string::npos);
}

TEST_F(Pages, WrongQueriesAreRefused) {
  for (const std::string query : {"seconds=0", "seconds=-1", "seconds=301", "seconds=1x", "seconds=", "format=svg"})
    EXPECT_EQ(get("/debug/pprof/profile", query).status, 400) << query;
  const auto held = get("/debug/pprof/allocations");
  EXPECT_EQ(held.status, 404);
  EXPECT_NE(held.body.find("MALLOC_CONF=prof:true"), std::string::npos) << held.body;
  EXPECT_EQ(get("/debug/pprof/goroutine").status, 404);
  EXPECT_EQ(get("/flagzoo").status, 404);
  EXPECT_EQ(wait_for(*client, make_request("POST", "/debug/pprof/profile")).status, 405);
}

TEST_F(Pages, FlagsStatusThreadsAndHeap) {
  EXPECT_TRUE(get("/flagz").body.starts_with("kube-tested flagz\nWarning: ")) << get("/flagz").body;
  EXPECT_NE(get("/flagz").body.find("\nlisten=127.0.0.1:0\n"), std::string::npos);
  EXPECT_NE(get("/statusz").body.find("Emulation version: v1.36\nPaths: /x\n"), std::string::npos);
  EXPECT_NE(get("/debug/pprof/threads").body.find(" http-0\n"), std::string::npos);
  EXPECT_EQ(get("/debug/pprof/heap").status, 200);
  EXPECT_EQ(get("/debug/pprof/").status, 200);
}

TEST(DebugPages, ProfilesCanBeSwitchedOff) {
  const auto pages = make_debug_pages({.component = "x", .flags = {}, .version = {}, .emulated = {}, .paths = {}, .profiling = false});
  const auto server = start_server(*pages);
  const auto client = make_client(*server);
  EXPECT_EQ(wait_for(*client, make_request("GET", "/debug/pprof/heap")).status, 404);
  EXPECT_EQ(wait_for(*client, make_request("GET", "/statusz")).status, 200);
}

}  // namespace
}  // namespace berth::net::test
