#include "program/reproduce/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "inspect/report/page.h"
#include "program/reproduce/measure.h"
#include "thimble/train/statistics.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>thimble reproduce</title>
<style>{}</style>
</head>
<body>
<header><div class="title"><h1><span>thimble reproduce</span>Reproducing published results</h1></div>
<dl class="facts">{}</dl></header>
<main>
)";

constexpr std::string_view kFoot = R"(</main>
<footer>Written by <code>thimble reproduce --html</code>. PASS: every condition holds on every seed. FAIL: some condition
holds on none. NOT SHOWN: neither, or a value could not be measured.</footer>
</body>
</html>
)";

std::string_view kind_of(const ExperimentResult& result) {
  return kExperimentKinds[static_cast<std::size_t>(result.experiment.kind)];
}

std::string verdict(const ExperimentResult& result) {
  const bool passed = result.verdict == ExperimentVerdict::pass;
  const bool failed = result.verdict == ExperimentVerdict::fail;
  return fmt::format("<span class=\"claim {}\">{}</span>",
                     passed   ? "shown"
                     : failed ? "wrong"
                              : "none",
                     name(result.verdict));
}

std::string facts(std::span<const ExperimentResult> results) {
  std::string out;
  for (const auto verdict : {ExperimentVerdict::pass, ExperimentVerdict::fail, ExperimentVerdict::not_shown})
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name(verdict),
                       std::ranges::count(results, verdict, &ExperimentResult::verdict));
  return out;
}

std::string overview(std::span<const ExperimentResult> results) {
  std::string out =
      "<section><h2>Verdicts</h2><div class=\"panel scroll\"><table><thead><tr><th>experiment</th>"
      "<th>kind</th><th>verdict</th><th>seconds</th></tr></thead><tbody>\n";
  for (const ExperimentResult& result : results)
    out +=
        fmt::format("<tr><th><a href=\"#{0}\">{0}</a></th><td>{1}</td><td>{2}</td><td>{3:.0f}</td></tr>\n",
                    escape_markup(result.experiment.name), kind_of(result), verdict(result), result.seconds);
  return out + "</tbody></table></div></section>\n";
}

std::string numbers_table(const ExperimentResult& result) {
  const Experiment& experiment = result.experiment;
  std::string out = "<table><thead><tr><th>value</th>";
  for (const std::uint64_t seed : experiment.seeds) out += fmt::format("<th>seed {}</th>", seed);
  out += "<th>min</th><th>median</th><th>max</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const Spread all = spread(result.values[i]);
    out += "<tr><th>" + escape_markup(experiment.values[i].name) + "</th>";
    for (const double x : result.values[i]) out += "<td>" + format_number(x, 6) + "</td>";
    for (const double x : {all.min, all.median, all.max}) out += "<td>" + format_number(x, 6) + "</td>";
    out += "</tr>\n";
  }
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    out += "<tr><th>" + escape_markup(describe(experiment.conditions[i])) + "</th>";
    for (const bool holds : result.conditions[i])
      out += holds ? "<td>holds</td>" : "<td class=\"wrong\">does not hold</td>";
    out += "<td></td><td></td><td></td></tr>\n";
  }
  return out + "</tbody></table>";
}

std::string section(const ExperimentResult& result) {
  const Experiment& experiment = result.experiment;
  std::string out = fmt::format(
      "<section id=\"{0}\"><h2>{0} {1}</h2>\n<p class=\"about\">{2}</p>\n<p class=\"about\">{3}: {4}</p>\n",
      escape_markup(experiment.name), verdict(result), escape_markup(experiment.statement), kind_of(result),
      escape_markup(experiment.source));
  out += "<div class=\"panel scroll\">" + numbers_table(result) + "</div>\n<ul>\n";
  for (const ExperimentRun& run : experiment.runs)
    out += fmt::format("<li>{}: <code>{} {}</code></li>\n", escape_markup(run.name),
                       escape_markup(run.setting.file),
                       escape_markup(fmt::format("{}", fmt::join(run.setting.overrides, " "))));
  for (const std::string& problem : result.problems)
    out += "<li class=\"wrong\">" + escape_markup(problem) + "</li>\n";
  return out + "</ul></section>\n";
}

}  // namespace

std::string reproduce_page(std::span<const ExperimentResult> results) {
  std::string out =
      fmt::format(kHead, page::policy_source(page::style_hash()), page::style(), facts(results));
  out += overview(results);
  for (const ExperimentResult& result : results) out += section(result);
  return out.append(kFoot);
}

}  // namespace thimble
