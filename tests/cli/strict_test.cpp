// A field that the server does not know is shown where it stands in the user's file, with the field that was meant (SPEC A8).
#include "cli/verbs/strict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace berth::cli {
namespace {

/// The manifests of a file with this text.
std::vector<Manifest> manifests_of(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("berth-strict-{}.yaml", ::getpid());
  std::ofstream(path) << text;
  auto read = read_manifests({path});
  std::filesystem::remove(path);
  EXPECT_TRUE(read) << read.error().message;
  std::vector<Manifest> out = read ? std::move(*read) : std::vector<Manifest>{};
  for (Manifest& one : out) one.file = "pods.yaml";
  return out;
}

TEST(Strict, AnUnknownFieldHasALineAndTheNameThatWasMeant) {
  const auto all = manifests_of(
      "apiVersion: v1\n"
      "kind: Pod\n"
      "metadata: {name: a}\n"
      "spec:\n"
      "  containers:\n"
      "  - name: c\n"
      "    image: i\n"
      "    imagePullPolizy: Always\n"
      "  nodeSelectr: {a: b}\n");
  ASSERT_EQ(all.size(), 1u);
  const auto places =
      places_of(all[0], R"(strict decoding error: unknown field "spec.containers[0].imagePullPolizy", unknown field "spec.nodeSelectr")");
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0], R"(pods.yaml:8: unknown field "spec.containers[0].imagePullPolizy"; did you mean "imagePullPolicy"?)");
  EXPECT_EQ(places[1], R"(pods.yaml:9: unknown field "spec.nodeSelectr"; did you mean "nodeSelector"?)");
}

TEST(Strict, LinesCountFromTheTopOfTheFile) {
  const auto all = manifests_of(
      "# a comment\n"
      "---\n"
      "---\n"
      "apiVersion: v1\n"
      "kind: ConfigMap\n"
      "metadata: {name: one}\n"
      "--- \n"
      "apiVersion: v1\n"
      "kind: ConfigMap\n"
      "metadata: {name: two}\n"
      "dataa: {}\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].line_of("dataa"), 11);
  EXPECT_EQ(all[0].line_of("metadata"), 6);
}

TEST(Strict, AnItemOfAListIsFoundInIt) {
  const auto all = manifests_of(
      "apiVersion: v1\n"
      "kind: List\n"
      "items:\n"
      "- apiVersion: v1\n"
      "  kind: ConfigMap\n"
      "  metadata: {name: one}\n"
      "- apiVersion: v1\n"
      "  kind: ConfigMap\n"
      "  metadata: {name: two}\n"
      "  dataa: {}\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(places_of(all[1], R"(unknown field "dataa")")[0], R"(pods.yaml:10: unknown field "dataa"; did you mean "data"?)");
}

TEST(Strict, ServerSideApplysWordsNameTheSameLines) {
  const auto all = manifests_of(
      "apiVersion: v1\n"
      "kind: Pod\n"
      "metadata: {name: a}\n"
      "spec:\n"
      "  containers:\n"
      "  - name: first\n"
      "  - name: second\n"
      "    imagee: i\n");
  const auto places = places_of(
      all[0],
      R"(failed to create typed patch object (default/a; /v1, Kind=Pod): .spec.containers[name="second"].imagee: field not declared in schema)");
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0], R"(pods.yaml:8: unknown field "spec.containers[1].imagee"; did you mean "image"?)");
}

TEST(Strict, AnotherRefusalNamesNoPlaces) {
  const auto all = manifests_of("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n");
  EXPECT_TRUE(places_of(all[0], "pods \"a\" already exists").empty());
}

}  // namespace
}  // namespace berth::cli
