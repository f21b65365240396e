// The kinds' records: each states every part, and says nothing that nobody asks for.
#include "model/kinds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "model/kind_hooks.h"
#include "tests/support/source_dir.h"

namespace berth::model {
namespace {

// A record that leaves a part out does not compile.
static_assert(!std::is_default_constructible_v<KindHooks>);
static_assert(!std::is_default_constructible_v<Stated<Form>> && !std::is_default_constructible_v<Stated<Life>>);

std::string title(const KindInfo& kind) { return kind.api_version() + " " + kind.kind; }

TEST(Kinds, EveryKindHasItsRecord) {
  std::set<std::string> titles;
  for (const KindInfo& kind : all_kinds()) {
    EXPECT_NE(kind.hooks, nullptr) << title(kind);
    EXPECT_TRUE(titles.insert(title(kind)).second) << title(kind) << " twice";
    EXPECT_EQ(find_kind(kind.group, kind.version, kind.kind), &kind);
  }
  EXPECT_GT(titles.size(), 70U);
}

TEST(Kinds, WhatIsStoredElsewhereSaysWhere) {
  for (const KindInfo& kind : all_kinds()) {
    const bool is_stored = kind.group == kind.storage_group && kind.version == kind.storage_version;
    EXPECT_EQ(kind.stored == nullptr, is_stored) << title(kind);
    EXPECT_TRUE(is_stored || kind.storage().version == kind.storage_version) << title(kind);
    // Only what is stored in another form is converted.
    const Form& form = *hooks_of(kind).form;
    EXPECT_FALSE(is_stored && (form.to_storage || form.from_storage)) << title(kind);
    EXPECT_EQ(static_cast<bool>(form.to_storage), static_cast<bool>(form.from_storage)) << title(kind);
  }
}

TEST(Kinds, NoPartSpeaksOfWhatTheKindHasNot) {
  const std::set<std::string_view> kMetadata = {"labels", "annotations", "finalizers", "ownerReferences"};
  for (const KindInfo& kind : all_kinds()) {
    const KindHooks& own = hooks_of(kind);
    const bool has_status = kind.has_subresource("status");
    if (!has_status) {
      EXPECT_FALSE(own.strategy->initial_status || own.strategy->prepare_status || own.rules->status) << title(kind);
      EXPECT_TRUE(own.strategy->kept_in_status_update.empty()) << title(kind);
    }
    for (const auto key : own.strategy->kept_in_status_update) EXPECT_TRUE(kMetadata.contains(key)) << title(kind) << key;
    EXPECT_TRUE(kind.generation || !own.strategy->is_new_generation) << title(kind);
    EXPECT_TRUE(kind.has_subresource("scale") || own.scale.is_default()) << title(kind);
    for (const SelectedField& field : *own.selected)
      EXPECT_NE(std::ranges::find(kind.field_selectors, field.name), kind.field_selectors.end()) << title(kind) << " " << field.name;
    EXPECT_TRUE(own.printer.is_default() || (own.printer->cells && !own.printer->columns.empty())) << title(kind);
    EXPECT_TRUE(!kind.is_virtual || (own.life.is_default() && own.counted.is_default() && !own.rules->create && !own.rules->update))
        << title(kind);
  }
}

/// What is asked of a kind's name outside its record grows into a chain of kinds that nobody finds again.
TEST(Kinds, NobodyInTheModelComparesNames) {
  const std::filesystem::path root = std::filesystem::path(berth::testing::source_dir()) / "src/model";
  static const std::regex kComparison(R"re(kind\.(kind|group|plural)\s*[!=]=\s*"|kind\.(kind|group|plural)\.(starts|ends)_with)re");
  for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
    if (file.path().extension() != ".cpp" && file.path().extension() != ".h") continue;
    std::ifstream in(file.path());
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_FALSE(std::regex_search(text.str(), kComparison)) << file.path() << ": say it in the kind's record (model/kind_hooks.h)";
  }
}

}  // namespace
}  // namespace berth::model
