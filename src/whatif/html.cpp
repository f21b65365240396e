// An answer as one page: no script, nothing from elsewhere; every text of the cluster is escaped.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "whatif/text_table.h"
#include "whatif/whatif.h"
#include "whatif/words.h"

namespace berth::whatif {
namespace {

constexpr std::size_t kMostRows = 2000, kMostBars = 400;

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root{color-scheme:light dark;--back:#fff;--text:#1c2430;--dim:#5b6675;--line:#d9dee5;--card:#f5f7fa;--before:#b6c2d1;--after:#2f6fde;--bad:#c62f3b;--good:#1f8a4c}
@media (prefers-color-scheme:dark){:root{--back:#12161c;--text:#e6eaf0;--dim:#9aa6b5;--line:#2c343f;--card:#1a2028;--before:#4a5666;--after:#6aa1ff;--bad:#ff7b84;--good:#5fd08d}}
body{margin:0 auto;max-width:72rem;padding:1.5rem 1rem 4rem;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
.tiles{display:flex;flex-wrap:wrap;gap:.75rem;padding:0;margin:1rem 0;list-style:none}
.tiles li{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem 1rem;min-width:7rem}
.tiles b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums}.tiles span{color:var(--dim);font-size:.9rem}.broken{color:var(--bad)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:break-word}th{white-space:nowrap}.wide table{min-width:34rem}
th{color:var(--dim);font-weight:600}h3{font-size:1rem;margin:1.2rem 0 .4rem}.key{color:var(--dim);font-size:.9rem}
.bars>div{display:grid;grid-template-columns:minmax(5rem,11rem) 1fr 6.5rem;gap:.75rem;align-items:center;padding:.15rem 0;font-size:.85rem;font-variant-numeric:tabular-nums}
.bars .name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.track{display:block;background:var(--card);outline:1px solid var(--line)}
.track i{display:block;height:.55rem}.track .before{background:var(--before)}.track .after{background:var(--after)}.track .over{background:var(--bad)}
@media(max-width:30rem){.bars>div{grid-template-columns:5.5rem 1fr 5.5rem;gap:.4rem;font-size:.8rem}}
.verdict{border:1px solid var(--line);border-left:6px solid var(--good);border-radius:.5rem;background:var(--card);padding:.6rem 1rem;margin:1rem 0}.verdict.fails{border-left-color:var(--bad)}
.verdict b{font-size:1.2rem}.verdict ul{margin:.4rem 0 0;padding-left:1.4rem}
.swatch{display:inline-block;width:.8rem;height:.8rem;border-radius:.15rem;vertical-align:-.1rem;margin:0 .3rem 0 .8rem}
</style>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string field(const json::Value& value, std::string_view key) { return escaped(json::get_string(value, {key})); }

double number_at(const json::Value& entry, std::string_view when, std::string_view key) {
  const json::Value* value = json::find(entry, {when, key});
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

/// Cells are HTML already.
std::string html_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=wide><table><thead><tr>";
  for (const std::string& cell : head) out += "<th scope=col>" + cell;
  out += "<tbody>";
  for (std::size_t i = 0; i < std::min(kMostRows, rows.size()); ++i) {
    out += "<tr>";
    for (const std::string& cell : rows[i]) out += "<td>" + cell;
  }
  out += "</table></div>\n";
  if (rows.size() > kMostRows) out += fmt::format("<p>{} more are not shown; -o json has all.</p>\n", rows.size() - kMostRows);
  return out;
}

/// Two bars a row, before and after, of a share from 0 to 1. No drawing: boxes stay readable on a telephone.
std::string bars(const json::Array& entries, std::string_view key, std::string_view title) {
  const std::size_t count = std::min(kMostBars, entries.size());
  std::string out = fmt::format("<h3>{}</h3><div class=bars>", title);
  for (std::size_t i = 0; i < count; ++i) {
    const json::Value& one = entries[i];
    const double before = number_at(one, "before", key), after = number_at(one, "after", key);
    std::string name(json::get_string(one, {"name"}));
    if (name.empty()) name = "no zone";
    const auto width = [](double share) { return std::clamp(share, 0.0, 1.0) * 100; };
    out += fmt::format(
        "<div title=\"{0}: {1:.1f}% before, {2:.1f}% after\"><span class=name>{0}</span><span class=track><i class=before "
        "style=\"width:{3:.1f}%\"></i><i class=\"{4}\" style=\"width:{5:.1f}%\"></i></span><span>{1:.0f}% → {2:.0f}%</span></div>",
        escaped(name), before * 100, after * 100, width(before), after > 1 ? "over" : "after", width(after));
  }
  out += "</div>\n";
  if (entries.size() > count) out += fmt::format("<p>{} more are not drawn.</p>\n", entries.size() - count);
  return out;
}

/// The answer before all that it is made of.
std::string headline(const json::Value& answer) {
  const Verdict verdict = verdict_of(answer);
  std::string out = fmt::format("<div class=\"verdict{}\"><b>{} {}</b>", verdict.is_good ? "" : " fails", verdict.is_good ? "✓" : "✕",
                                escaped(verdict.sentence));
  if (!verdict.more.empty()) out += "<ul>";
  for (const std::string& one : verdict.more) out += "<li>" + escaped(one);
  return out + (verdict.more.empty() ? "</div>\n" : "</ul></div>\n");
}

/// "EUR", where the prices say so.
std::string currency_of(const json::Value& cost) {
  const std::string name = field(cost, "currency");
  return name.empty() ? "units" : name;
}

/// What is no sentence of the verdict: nodes and money.
std::string tiles(const json::Value& answer) {
  const std::int64_t before = json::get_int(answer, {"summary", "nodes", "before"}),
                     after = json::get_int(answer, {"summary", "nodes", "after"});
  std::string out;
  if (before != after) out += fmt::format("<li><b>{} → {}</b><span>nodes</span>", before, after);
  if (const json::Value* cost = json::find(answer, "cost"); cost != nullptr && cost->is_object())
    out += fmt::format("<li><b>{:.2f} → {:.2f} {}</b><span>cost an hour</span>", number_at(answer, "cost", "before"),
                       number_at(answer, "cost", "after"), currency_of(*cost));
  return out.empty() ? out : "<ul class=tiles>" + out + "</ul>\n";
}

using Rows = std::vector<Row>;

void section(std::string& out, std::string_view title, const std::vector<std::string>& head, const Rows& rows) {
  if (!rows.empty()) out += fmt::format("<h2>{}</h2>\n", title) + html_table(head, rows);
}

std::string pods_of_page(const json::Value& answer) {
  Rows pending, refused, others, moves, losses;
  // Who waits because of the changes stands before those who waited anyhow.
  for (const bool before : {false, true})
    for (const json::Value& one : json::get_array(answer, {"pending"}))
      if (json::get_bool(one, {"before"}) == before)
        pending.push_back({field(one, "pod"), field(one, "from"), json::get_bool(one, {"before"}) ? "before" : field(one, "reason"),
                           field(one, "message")});
  for (const json::Value& one : json::get_array(answer, {"evictions"})) {
    const std::string_view outcome = json::get_string(one, {"outcome"});
    if (outcome == "blocked")
      refused.push_back({field(one, "pod"), field(one, "node"), field(one, "budget"), field(one, "reason")});
    else if (outcome != "evicted")
      others.push_back({field(one, "pod"), field(one, "node"), field(one, "outcome"), field(one, "reason")});
  }
  for (const json::Value& one : json::get_array(answer, {"moves"})) {
    const std::string when = field(one, "when");
    moves.push_back(
        {field(one, "pod"), field(one, "from"), field(one, "to"), field(one, "reason") + (when.empty() ? "" : " (" + when + ")")});
  }
  for (const json::Value& one : json::get_array(answer, {"each"})) {
    const auto& examples = json::get_array(one, {"pending"});
    std::string broken;
    for (const json::Value& budget : json::get_array(one, {"broken"}))
      broken += (broken.empty() ? "" : ", ") + escaped(json::as_view(budget));
    losses.push_back(
        {field(one, "lost"), std::to_string(json::get_int(one, {"moves"})), std::to_string(json::get_int(one, {"pendingCount"})),
         std::to_string(json::get_int(one, {"lostPodsCount"})), std::to_string(json::get_int(one, {"blockedCount"})), broken,
         examples.empty() ? "" : field(examples[0], "pod") + ": " + escaped(in_short(json::get_string(examples[0], {"message"})))});
  }
  std::string out;
  section(out, "Single losses that leave something", {"Loss", "Moves", "Pending", "Lost", "Refused", "Budgets broken", "For example"},
          losses);
  section(out, "Pending", {"Pod", "Was on", "Because", "Message"}, pending);
  section(out, "Refused evictions", {"Pod", "Node", "Budget", "Reason"}, refused);
  section(out, "Pods that go", {"Pod", "Node", "Outcome", "Reason"}, others);
  section(out, "Moves", {"Pod", "From", "To", "Because"}, moves);
  return out;
}

std::string plan_of_page(const json::Value& answer) {
  Rows steps, shapes;
  const json::Value* cost = json::find(answer, "cost");
  const std::string unit = cost == nullptr || !cost->is_object() ? "units" : currency_of(*cost);
  for (const json::Value& one : json::get_array(answer, {"pack", "shapes"})) {
    const std::int64_t needed = json::get_int(one, {"nodesNeeded"});
    const json::Value* price = json::find(one, "cost");
    shapes.push_back({field(one, "shape"), needed == 0 ? "none will do" : std::to_string(needed),
                      price == nullptr || !price->is_number() ? "" : fmt::format("{:.3f} {}", price->to_number<double>(), unit)});
  }
  for (const json::Value& one : json::get_array(answer, {"pack", "steps"})) {
    std::string pods;
    for (const json::Value& pod : json::get_array(one, {"evictions"})) pods += (pods.empty() ? "" : "<br>") + escaped(json::as_view(pod));
    steps.push_back({std::to_string(steps.size() + 1), field(one, "step"), field(one, "node"), pods});
  }
  Rows stays;
  for (const json::Value& one : json::get_array(answer, {"pack", "stays"})) stays.push_back({field(one, "node"), field(one, "reason")});
  Rows bought;
  for (const json::Value& plan : json::get_array(answer, {"bought"}))
    for (const json::Value& claim : json::get_array(plan, {"nodeClaims"}))
      bought.push_back({field(claim, "nodePool"), field(claim, "instanceType"), field(claim, "zone"), field(claim, "capacityType"),
                        fmt::format("{:.4f} {}", json::find(claim, "pricePerHour")->to_number<double>(), unit),
                        std::to_string(json::get_array(claim, {"pods"}).size())});
  std::string out;
  section(out, "Nodes that are bought", {"Pool", "Instance type", "Zone", "Capacity type", "An hour", "Pods"}, bought);
  section(out, "These stay", {"Node", "Because"}, stays);
  if (shapes.size() > 1) section(out, "Shapes", {"Shape", "Nodes", "Cost an hour"}, shapes);
  section(out, "Steps, in this order", {"", "Step", "Node", "Evictions"}, steps);
  return out;
}

std::string capacity_of_page(const json::Value& answer) {
  Rows limits, zones, nodes;
  for (const json::Value& one : json::get_array(answer, {"capacity", "limits"}))
    limits.push_back({field(one, "reason"), std::to_string(json::get_int(one, {"nodes"}))});
  for (const json::Value& one : json::get_array(answer, {"capacity", "zones"}))
    zones.push_back({field(one, "name").empty() ? "no zone" : field(one, "name"), std::to_string(json::get_int(one, {"count"}))});
  for (const json::Value& one : json::get_array(answer, {"capacity", "nodes"}))
    nodes.push_back({field(one, "name"), field(one, "zone"), std::to_string(json::get_int(one, {"count"}))});
  std::string out;
  section(out, "What stops the next one", {"Reason", "Nodes"}, limits);
  if (zones.size() > 1) section(out, "By zone", {"Zone", "Fit"}, zones);
  section(out, "By node", {"Node", "Zone", "Fit"}, nodes);
  return out;
}

std::string fullness_of_page(const json::Value& answer) {
  std::string out;
  const auto &zones = json::get_array(answer, {"zones"}), &nodes = json::get_array(answer, {"nodes"});
  if (!zones.empty() || !nodes.empty())
    out +=
        "<h2>How full</h2>\n<p class=key>Requests of what can be allocated: <span class=swatch "
        "style=\"background:var(--before)\"></span>before "
        "<span class=swatch style=\"background:var(--after)\"></span>after</p>\n";
  if (!zones.empty()) out += bars(zones, "cpu", "Zones: CPU") + bars(zones, "memory", "Zones: memory");
  if (!nodes.empty()) out += bars(nodes, "cpu", "Nodes that change: CPU") + bars(nodes, "memory", "Nodes that change: memory");
  Rows budgets;
  for (const json::Value& one : json::get_array(answer, {"budgets"}))
    budgets.push_back({field(one, "budget"),
                       fmt::format("{} → {}", json::get_int(one, {"before", "healthy"}), json::get_int(one, {"after", "healthy"})),
                       std::to_string(json::get_int(one, {"lowest"})), std::to_string(json::get_int(one, {"after", "desired"})),
                       json::get_bool(one, {"broken"}) ? "<b class=broken>broken</b>" : "kept"});
  section(out, "Budgets", {"Budget", "Healthy", "Lowest", "Wanted", ""}, budgets);
  return out;
}

}  // namespace

std::string to_html(const json::Value& answer) {
  std::string out(kHead);
  const std::string question = escaped(question_words(answer));
  out += fmt::format("<title>{0}</title></head><body><main>\n<h1>{0}</h1>\n", question) + headline(answer) + tiles(answer) +
         capacity_of_page(answer) + plan_of_page(answer) + pods_of_page(answer) + fullness_of_page(answer);
  if (const auto& notes = json::get_array(answer, {"notes"}); !notes.empty()) {
    out += "<h2>Notes</h2>\n<ul>";
    for (const json::Value& note : notes) out += "<li>" + escaped(json::as_view(note));
    out += "</ul>\n";
  }
  if (const json::Value* moment = json::find(answer, "of"); moment != nullptr && !moment->get_object().empty()) {
    out += "<p class=key>Of the cluster at ";
    bool is_first = true;
    for (const auto& [key, words] :
         {std::pair("revision", "revision"), std::pair("newest", "the newest change at"), std::pair("asked", "asked at")})
      if (const std::string text = field(*moment, key); !text.empty())
        out += fmt::format("{}{} {}", std::exchange(is_first, false) ? "" : ", ", words, text);
    out += ".</p>\n";
  }
  return out + "</main></body></html>\n";
}

}  // namespace berth::whatif
