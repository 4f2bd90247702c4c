#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/data/table/table_format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// A JSON object a line.
class JsonLines : public RowFormat {
 public:
  JsonLines(const DataText& file, const TableOptions& options)
      : name_(file.name),
        needs_target_(!file.hypotheses),
        all_(options.input.empty() && options.target.empty()),
        input_(options.input.empty() ? std::vector<std::string>{"input"} : parts_of(options.input)),
        target_(options.target.empty() ? std::vector<std::string>{"target"} : parts_of(options.target)) {}

  bool read(std::string_view line, SequenceReader& input, SequenceReader& target) override {
    if (failed_) return false;
    const std::size_t first = line.find_first_not_of(' ', 1);
    failed_ =
        !std::exchange(begun_, true) && line.starts_with('[') && (first == line.npos || line[first] == '{');
    require<DataError>(
        !failed_,
        "a JSON array; write an object a line, and set task.file to that file: python3 -c 'import json, sys; [print(json.dumps(row)) for row in json.load(sys.stdin)]' <{} >{}",
        shell_command({name_}),
        shell_command({std::filesystem::path(name_).replace_extension("lines.jsonl").string()}));
    const std::string object = fmt::format(R"({{"{}": ..., "{}": ...}})", fmt::join(input_, "\": ..., \""),
                                           fmt::join(target_, "\": ..., \""));
    const SortedJson json = parse_untrusted_json(line);
    require<DataError>(json.is_object(), "a line must be {}", object);
    if (all_)
      for (const auto& [key, value] : json.items())
        require<DataError>(
            key == "input" || key == "target" || key == "attends" || key == "varied",
            "unknown key {}; a line must be {}, unless task.input and task.target name its keys",
            printable(key), object);
    const auto read_values = [&](const std::vector<std::string>& keys, bool is_target, SequenceReader& out) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const SortedJson* value = find(json, keys[i]);
        if (value == nullptr && is_target && !needs_target_) continue;
        require<DataError>(value != nullptr, "missing key {}; a line must be {}", printable(keys[i]), object);
        read_value(*value, keys[i], i, is_target, out);
      }
    };
    read_values(input_, false, input);
    read_values(target_, true, target);
    read_marks(json);
    return true;
  }
  const RowMarks& marks() const override { return marks_; }

 private:
  // Returns the value of a key, or of a path through objects such as translation.en; null if there is none.
  static const SortedJson* find(const SortedJson& json, const std::string& key) {
    if (const auto found = json.find(key); found != json.end()) return &*found;
    for (std::size_t dot = 0; (dot = key.find('.', dot)) != key.npos; ++dot) {
      const auto outer = json.find(key.substr(0, dot));
      if (outer == json.end() || !outer->is_object()) continue;
      if (const SortedJson* value = find(*outer, key.substr(dot + 1))) return value;
    }
    return nullptr;
  }

  void read_marks(const SortedJson& json) {
    marks_ = {};
    const auto varied = json.find("varied"), attends = json.find("attends");
    if (!all_ && attends == json.end()) return;
    require<DataError>(varied == json.end() || varied->is_boolean(), "varied must be true or false");
    marks_.is_varied = varied != json.end() && varied->get<bool>();
    if (attends == json.end()) return;
    const auto is_position = [](const SortedJson& at) {
      return at.is_number_integer() && at >= 0 && at < 65536;
    };
    require<DataError>(attends->is_array(), "attends must be a list of {}", kAlignment);
    for (const SortedJson& one : *attends) {
      require<DataError>(one.is_array() && one.size() == 3 && is_position(one[0]) && is_position(one[1]) &&
                             one[2].is_string() && !trimmed(one[2].get_ref<const std::string&>()).empty(),
                         "attends must be a list of {}", kAlignment);
      marks_.attends.push_back(
          {one[0].get<std::int64_t>(), one[1].get<std::int64_t>(), one[2].get<std::string>()});
    }
  }

  static void read_value(const SortedJson& value, const std::string& key, std::size_t column, bool is_target,
                         SequenceReader& out) {
    if (value.is_null() || (value.is_array() && value.empty())) return out.no_text();
    if (value.is_string()) return out.plain_text(value.get_ref<const std::string&>(), column);
    if (value.is_object() && !value.empty())
      throw DataError(fmt::format("{0} is an object; name a key of it, such as {0}.{1}", printable(key),
                                  printable(value.begin().key())));
    const auto read_token = [&](const SortedJson& token) {
      const bool is_text = value.is_array() && token.is_string(), is_null = token.is_null();
      require<DataError>(is_text || is_null || token.is_boolean() || token.is_number_integer(),
                         "{} must be a text, an integer of 64 bits, true or false, or a list of these",
                         printable(key));
      require<DataError>(
          !is_null || is_target,
          "null in the input; only targets can have positions without an answer: write a token, or null for all of the field and set task.skip_empty=true");
      if (is_null) return out.no_answer();
      out.token(is_text ? token.get<std::string>() : token.dump());
    };
    if (!value.is_array()) return read_token(value);
    for (const SortedJson& token : value) read_token(token);
  }

  static constexpr const char* kAlignment =
      R"([query, key, "kind"]: a position and one that it should attend to, both from 0, and what that is)";

  const std::string name_;
  const bool needs_target_, all_;
  const std::vector<std::string> input_, target_;
  RowMarks marks_;
  bool begun_ = false, failed_ = false;
};

}  // namespace

std::unique_ptr<RowFormat> json_lines_format(const DataText& file, const TableOptions& options) {
  return std::make_unique<JsonLines>(file, options);
}

}  // namespace thimble
