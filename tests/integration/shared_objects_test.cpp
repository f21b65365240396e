// What lives in the server's process holds no copies of what the server holds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "client/informer.h"
#include "tests/integration/world.h"

namespace berth::integration {

TEST(SharedObjects, WatchesInTheServersProcessHoldOneObject) {
  World world;
  client::Client client(world.own_transport(), &world.loop(), "test");
  client::Informer one(client, {"", "v1", "configmaps"}), other(client, {"", "v1", "configmaps"});
  std::vector<std::string> seen;
  other.add_handler({.on_add = [&](const client::ObjectRef& object) { seen.push_back("+" + object->name()); },
                     .on_update = [&](const client::ObjectRef&, const client::ObjectRef& object) { seen.push_back("~" + object->name()); },
                     .on_delete = [&](const client::ObjectRef& object) { seen.push_back("-" + object->name()); }});
  one.start();
  other.start();
  world.run(std::chrono::seconds(1));
  seen.clear();
  for (const char* name : {"a", "b", "c"}) world.create(fmt::format("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}", name));
  world.run(std::chrono::seconds(1));
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(one.get("default", name));
    EXPECT_EQ(one.get("default", name), other.get("default", name));
    EXPECT_EQ(json::get_string(one.get("default", name)->document(), {"kind"}), "ConfigMap");
  }
  world.client().remove({"", "v1", "configmaps"}, "default", "b", {}, [](const auto& gone) { EXPECT_TRUE(gone); });
  world.run(std::chrono::seconds(1));
  EXPECT_EQ(seen, (std::vector<std::string>{"+a", "+b", "+c", "-b"}));
  EXPECT_FALSE(one.get("default", "b"));
}

}  // namespace berth::integration
