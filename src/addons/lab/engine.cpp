#include "addons/lab/engine.h"

#include <malloc.h>

#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "addons/lab/session.h"
#include "engine/kernels/arithmetic.h"
#include "thimble/engine/error.h"
#include "thimble/engine/real.h"
#include "thimble/inspect/scores.h"
#include "thimble/train/file.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/config/differences.h"
#include "train/config/fields.h"
#include "train/config/with_precision.h"
#include "train/data/task_page.h"
#include "train/files/memory.h"
#include "train/files/version.h"
#include "train/step/cost.h"
#include "train/step/gradcheck_json.h"

namespace thimble {

namespace lab {

namespace {

namespace fs = std::filesystem;

const std::string kConfigName = "config.yaml";

std::unique_ptr<Session> session;
fs::path run;  // of the session; empty: none
int runs_so_far = 0;

Session& open_session() {
  require<ConfigError>(session != nullptr, "no run is open; call open or load first");
  return *session;
}

std::vector<std::string> overrides_of(const Json& request) {
  return request.value("overrides", std::vector<std::string>());
}

OpenConfig config_of(const Json& request) {
  return open_data(parse_config(request.at("yaml").get<std::string>(), kConfigName, overrides_of(request)));
}

bool is_for_shards(const Json& request) { return request.value("role", std::string()) == "shards"; }

// Opens a session whose run is in a new directory, which prepare(directory) fills, in place of the present
// one, which stays if that fails. The history of the session `before`, if any, goes on.
template <class F>
Json opened(const Json& request, const F& prepare, Session* before = nullptr) {
  const fs::path directory = fs::path(kFiles) / fmt::format("run-{}", ++runs_so_far);
  try {
    SessionOptions options{.directory = directory, .shards_only = is_for_shards(request)};
    const OpenConfig config = prepare(options);
    require_fit(training_memory(config));
    std::unique_ptr<Session> made =
        with_precision(config, [&]<class R>() { return make_session<R>(config, options); });
    Json json = made->describe();
    json["buffers"] = made->buffers();
    if (before != nullptr) made->take_history(*before);
    session = std::move(made);
    fs::remove_all(std::exchange(run, directory));
    return json;
  } catch (...) {
    fs::remove_all(directory);
    throw;
  }
}

Json about(const Json&) {
  return {{"version", version()},
          {"arithmetic", kernels::arithmetic()},
          {"scores", score_table()},
          {"memory",
           {{"used", static_cast<std::uint64_t>(::mallinfo().uordblks)},
            {"peak", peak_memory()},
            {"limit", available_memory()}}}};
}

Json tasks(const Json&) {
  Json json = Json::object();
  for (const std::string_view name : task_names()) json[std::string(name)] = find_task(name).summary;
  return json;
}

Json task(const Json& request) {
  const OpenConfig config = task_config(request.at("name").get<std::string>(), overrides_of(request));
  Json keys = to_json(config)["task"];
  keys.erase("name");
  return task_page(source_of(config), keys, config.train.seed, request.value("examples", std::int64_t{3}))
      .json;
}

Json fields(const Json&) {
  Config config;
  Json json = Json::object();
  const config::Section root = config::describe(config);
  for (const config::Named& named : config::flatten(root))
    if (named.field->section() == nullptr)
      json[named.path] = {{"may_change", named.field->may_change || named.path == "train.optimizer.lr"}};
  for (const std::string_view name : task_names())
    for (const std::string_view key : find_task(name).keys)
      json[fmt::format("task.{}", key)]["tasks"].push_back(name);
  return json;
}

Json resolve(const Json& request) {
  const OpenConfig config = config_of(request);
  return {{"config", to_json(config)}, {"yaml", to_yaml(config)}, {"cost", cost_json(config)}};
}

Json open(const Json& request) {
  return opened(request, [&](SessionOptions& options) {
    if (options.shards_only) options.directory.clear();
    return config_of(request);
  });
}

// Opens the run that the options name.
OpenConfig resumed(SessionOptions& options) {
  options.resume = true;
  return open_config((options.directory / kConfigName).string());
}

Json load(const Json& request) {
  const std::string weights = request.value("weights", std::string());
  return opened(request, [&](SessionOptions& options) {
    if (weights.empty()) {
      fs::rename(kLoaded, options.directory);
      return resumed(options);
    }
    const ModelSource source = open_weights(weights, request.value("config", std::string()));
    options.directory.clear();
    options.weights = source.file;
    for (const FileChange& change : source.changes) options.warnings.push_back(change.text);
    return source.config;
  });
}

// Goes on with another value of a key: writes a checkpoint, and opens the run again, whose metrics say when which key was
// changed.
Json set(const Json& request) {
  Session& present = open_session();
  const auto key = request.at("key").get<std::string>();
  const Json& value = request.at("value");
  const std::vector<std::string> override = {
      fmt::format("{}={}", key, value.is_string() ? value.get<std::string>() : json_text(value))};
  const OpenConfig changed = open_data(parse_config(to_yaml(present.config()), kConfigName, override));
  for (const Difference& difference : differences(present.config(), changed, "the run", "the change"))
    require<ConfigError>(difference.may_change || difference.key == "train.optimizer.lr",
                         "{}: cannot change while the run goes on; open a new one", difference.key);
  present.checkpoint();
  const auto fill = [&](SessionOptions& options) {
    fs::copy(run, options.directory, fs::copy_options::recursive);
    options.resume = true;
    return changed;
  };
  return opened(request, fill, &present);
}

Split split_of(const Json& request) {
  const auto name = request.value("split", std::string("test"));
  for (const Split split : {Split::train, Split::validation, Split::test})
    if (split_name(split) == name) return split;
  throw ConfigError(fmt::format("split: must be train, validation or test, not {}", name));
}

Json gradcheck(const Json&) { return to_json(check_model(open_session().config())); }

using Method = Json (*)(const Json& request);

const std::map<std::string_view, Method> kMethods = {
    {"about", about},
    {"tasks", tasks},
    {"task", task},
    {"schema", [](const Json&) { return config_schema(); }},
    {"fields", fields},
    {"resolve", resolve},
    {"open", open},
    {"load", load},
    {"set", set},
    {"step",
     [](const Json& r) {
       constexpr double kForEver = 1e12;
       const bool timed = r.contains("milliseconds");
       return open_session().step(r.value("milliseconds", kForEver),
                                  r.value("steps", timed ? std::int64_t{1} << 40 : std::int64_t{1}));
     }},
    {"compute",
     [](const Json& r) {
       open_session().compute({r.at("first").get<std::size_t>(), r.at("last").get<std::size_t>()});
       return Json::object();
     }},
    {"update", [](const Json&) { return open_session().update(); }},
    {"evaluate",
     [](const Json& r) { return open_session().evaluate(split_of(r), r.value("limit", std::int64_t{0})); }},
    {"examples",
     [](const Json& r) {
       return open_session().examples(split_of(r), r.value("first", std::int64_t{0}),
                                      r.value("count", std::int64_t{8}));
     }},
    {"trace", [](const Json& r) { return open_session().trace(r); }},
    {"scores", [](const Json& r) { return open_session().scores(r.value("at", Json())); }},
    {"ablate",
     [](const Json& r) {
       const Json& heads = r.at("heads");
       std::string list = heads.is_string() ? heads.get<std::string>() : "";
       if (heads.is_array())
         for (const Json& head : heads) list += (list.empty() ? "" : ",") + head.get<std::string>();
       return open_session().ablate(list, r.value("sequences", std::int64_t{1000}), r.value("at", Json()));
     }},
    {"inspect",
     [](const Json& r) { return open_session().inspect(r.value("sequences", std::int64_t{1000})); }},
    {"gradcheck", gradcheck},
    {"history", [](const Json&) { return open_session().history(); }},
    {"hash", [](const Json&) { return open_session().hash(); }},
    {"save",
     [](const Json&) {
       open_session().checkpoint();
       return Json{{"directory", run.string()}};
     }},
};

Json error_json(std::string_view kind, std::string_view message,
                const std::vector<ConfigProblem>& problems = {}) {
  Json list = Json::array();
  for (const ConfigProblem& problem : problems)
    list.push_back({{"key", problem.key},
                    {"line", problem.location.line},
                    {"column", problem.location.column},
                    {"message", problem.rule}});
  return {{"error", {{"kind", kind}, {"message", message}, {"problems", list}}}};
}

Json answer_json(std::string_view text) {
  try {
    const Json request = parse_json(text);
    const auto name = request.at("method").get<std::string>();
    const auto found = kMethods.find(name);
    require<ConfigError>(found != kMethods.end(), "{}: no such method", name);
    return found->second(request);
  } catch (const ConfigError& e) {
    return error_json("config", e.what(), e.problems());
  } catch (const DataError& e) {
    return error_json("data", e.what());
  } catch (const CheckpointError& e) {
    return error_json("data", e.what());
  } catch (const NumericError& e) {
    return error_json("numeric", e.what());
  } catch (const std::bad_alloc&) {
    return error_json("memory",
                      "not enough memory: the page may use 2 GiB for each worker; choose a smaller model");
  } catch (const std::exception& e) {
    return error_json("internal", e.what());
  }
}

}  // namespace

std::string answer(std::string_view request) noexcept {
  try {
    return json_text(answer_json(request), -1, Json::error_handler_t::replace);
  } catch (...) {
    return R"({"error":{"kind":"memory","message":"not enough memory for the answer","problems":[]}})";
  }
}

}  // namespace lab
}  // namespace thimble
