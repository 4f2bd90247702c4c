#include "program/serve/serve.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <optional>

#include "thimble/engine/error.h"
#include "thimble/inspect/arrays.h"
#include "thimble/train/json.h"
#include "train/files/safetensors_header.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

constexpr const char* kKey = "thimble";      // of the metadata
constexpr const char* kRequest = "request";  // what messages call a message

// A stream of messages whose place is lost.
struct Lost : FileError {
  using FileError::FileError;
};

// Reads as many bytes as there are, at most `count`; fewer at the end.
std::size_t read_some(int from, char* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t n = ::read(from, to + done, count - done);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    require<FileError>(n > 0, "standard input: cannot be read: {}", std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void write_all(int to, const void* bytes, std::size_t count) {
  for (const char* at = static_cast<const char*>(bytes); count > 0;) {
    const ssize_t n = ::write(to, at, count);
    if (n < 0 && errno == EINTR) continue;
    require<FileError>(n > 0, "standard output: cannot be written: {}", std::strerror(errno));
    at += n;
    count -= static_cast<std::size_t>(n);
  }
}

// Returns the next message; nothing at the end. Memory grows with what arrives, not with what a header says; a message that
// is too large for it is read to its end.
std::optional<SafetensorsFile> read_message(int from) {
  constexpr std::uint64_t kMaxHeader = 10'000'000, kPiece = 1 << 24;
  std::uint64_t size = 0;
  std::string message(sizeof size, '\0');
  const std::size_t start = read_some(from, message.data(), sizeof size);
  if (start == 0) return std::nullopt;
  require<Lost>(start == sizeof size, "standard input: ends within the length of a message");
  std::memcpy(&size, message.data(), sizeof size);
  require<Lost>(size >= 2 && size <= kMaxHeader, "a header of {} bytes; it must have 2 to {}", size,
                kMaxHeader);
  message.resize(sizeof size + size);
  require<Lost>(read_some(from, message.data() + sizeof size, size) == size,
                "standard input: ends within a header");
  SafetensorsHeader header;
  try {
    header = parse_safetensors_header(std::string_view(message).substr(sizeof size), kRequest);
  } catch (const Error& e) {
    throw Lost(e.what());
  }
  std::uint64_t left = 0;
  for (const auto& tensor : header.tensors) left = std::max(left, tensor.offsets[1]);
  bool fits = true;
  std::string piece;
  for (; left > 0; left -= piece.size()) {
    piece.resize(std::min(left, kPiece));
    require<Lost>(read_some(from, piece.data(), piece.size()) == piece.size(),
                  "standard input: ends within a message");
    try {
      if (fits) message += piece;
    } catch (const std::bad_alloc&) {
      fits = false;
      message = {};
    }
  }
  if (!fits) throw std::bad_alloc();
  return SafetensorsFile(header, std::move(message), kRequest);
}

// Returns the text of a message whose first line is a summary of the others.
Json error_json(const char* type, std::string_view message) {
  std::vector<std::string_view> problems = split_at('\n', message);
  if (problems.size() > 1) problems.erase(problems.begin());
  return {{"ok", false}, {"error", {{"type", type}, {"message", message}, {"problems", problems}}}};
}

class Server {
 public:
  Server(const ModelSource& model, bool trained, int replies)
      : model_(model),
        trained_(trained),
        arrays_(open_arrays(model, trained)),
        data_(arrays_->dataset()),
        replies_(replies) {}

  void reply(Json json, std::span<const NamedBytes> arrays = {}) const {
    if (!json.contains("ok")) json["ok"] = true;
    std::string small = safetensors_header(arrays, {{kKey, json_text(json)}});  // what is written at once
    for (const NamedBytes& array : arrays) {
      constexpr std::size_t kSmall = 1 << 16;
      const auto* bytes = reinterpret_cast<const char*>(array.bytes.data());
      if (small.size() + array.bytes.size() <= kSmall) {
        small.append(bytes, array.bytes.size());
        continue;
      }
      write_all(replies_, small.data(), small.size());
      small.clear();
      write_all(replies_, bytes, array.bytes.size());
    }
    write_all(replies_, small.data(), small.size());
  }

  // Answers a request; returns whether further ones may follow.
  bool answer(const SafetensorsFile& file) {
    const auto found = file.metadata().find(kKey);
    require<DataError>(found != file.metadata().end(), "request: its metadata have no key {}", kKey);
    const SortedJson request = parse_untrusted_json(found->second);
    const std::string what = take<std::string>(request, "do", "");
    static const std::map<std::string_view, std::vector<std::string_view>> kRequests{
        {"describe", {}},
        {"tokens", {"texts", "targets"}},
        {"texts", {}},
        {"data", {"split", "first", "count", "indices"}},
        {"forward", {"texts", "targets", "return", "positions", "replace", "gradients", "cotangent"}},
        {"close", {}}};
    const auto known = kRequests.find(what);
    if (known == kRequests.end()) {
      std::vector<std::string> names;
      for (const auto& [name, keys] : kRequests) names.emplace_back(name);
      throw DataError(
          fmt::format("request: there is no request {}{}", printable(what), did_you_mean(what, names)));
    }
    check_keys(request.get_ref<const SortedJson::object_t&>(), known->second, what);
    if (what == "describe") describe();
    if (what == "tokens") reply_batch(of_texts(request), Json::object());
    if (what == "texts") reply_texts(file);
    if (what == "data") reply_data(request);
    if (what == "forward") forward(request, file);
    if (what == "close") reply(Json::object());
    return what != "close";
  }

 private:
  template <class Map>
  static void check_keys(const Map& map, const std::vector<std::string_view>& keys, std::string_view what) {
    for (const auto& [key, value] : map)
      if (key != "do" && std::ranges::find(keys, key) == keys.end())
        throw DataError(
            fmt::format("{}: there is no key {}{}", what, printable(key), did_you_mean(key, keys)));
  }

  // Returns the value of a key, or another one where it is missing. Throws DataError for one of another type.
  template <class T>
  static T take(const SortedJson& object, const char* key, const T& otherwise) {
    require<DataError>(object.is_object(), "request: is no JSON object");
    try {
      if (!object.contains(key)) return otherwise;
      const SortedJson& value = object.at(key);
      if constexpr (std::is_same_v<T, std::int64_t>)
        return value.is_number_integer() ? value.get<T>()
                                         : throw SortedJson::type_error::create(302, "no integer", &value);
      return value.get<T>();
    } catch (const SortedJson::exception&) {
      throw DataError(fmt::format("request: {} has a value of another type", key));
    }
  }

  static std::vector<std::int64_t> integers(const SortedJson& object, const char* key) {
    const SortedJson list = take(object, key, SortedJson::array());
    require<DataError>(
        list.is_array() &&
            std::ranges::all_of(list, [](const SortedJson& i) { return i.is_number_integer(); }),
        "request: {} must be a list of integers", key);
    return list.get<std::vector<std::int64_t>>();
  }

  static std::vector<std::string> texts(const SortedJson& request, const char* key) {
    return take(request, key, std::vector<std::string>());
  }

  Batch of_texts(const SortedJson& request) const {
    return batch_of_texts(model_, data_, texts(request, "texts"), texts(request, "targets"));
  }

  void describe() const {
    constexpr const char* kLayouts[] = {"position", "sequence", "next", "seq2seq"};
    auto sites = Json::array(), parameters = Json::array();
    for (const ArraySite& site : arrays_->sites())
      sites.push_back({{"name", site.name},
                       {"shape", site.shape()},
                       {"meaning", site.meaning},
                       {"read_only", site.scale.has_value()}});
    for (const auto& [name, shape] : arrays_->parameters()) {
      std::vector<std::int64_t> sizes;
      for (int d = 0; d < shape.rank(); ++d) sizes.push_back(shape[d]);
      parameters.push_back({{"name", name}, {"shape", sizes}});
    }
    const std::span<const std::int32_t> outputs = data_.output_tokens();
    reply({{"config", to_json(model_.config)},
           {"vocabulary", data_.names()},
           {"outputs", std::vector<std::int32_t>(outputs.begin(), outputs.end())},
           {"layout", kLayouts[static_cast<std::size_t>(data_.layout())]},
           {"length", arrays_->longest()},
           {"source_length", arrays_->longest_source()},
           {"precision", model_.config.train.precision == Precision::float32 ? "float32" : "float64"},
           {"weights", trained_ ? Json(model_.weights.string()) : Json()},
           {"sites", sites},
           {"parameters", parameters}});
  }

  void reply_batch(const Batch& batch, const Json& json) const {
    std::vector<NamedBytes> arrays;
    const auto add = [&](const char* name, const std::vector<std::int32_t>& values, std::int64_t width) {
      Shape shape{batch.sequences};
      if (width > 0) shape = shape.appended(width);
      if (!values.empty()) arrays.push_back({name, DType::i32, shape, std::as_bytes(std::span(values))});
    };
    add("ids", batch.tokens, batch.length);
    add("lengths", batch.lengths, 0);
    add("sources", batch.sources, batch.source_length);
    add("source_lengths", batch.source_lengths, 0);
    add("labels", batch.labels, data_.layout() == Layout::sequence ? 0 : batch.length);
    reply(json, arrays);
  }

  void reply_texts(const SafetensorsFile& file) const {
    const Batch batch = read_batch(file);
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < batch.sequences; ++i) {
      const auto ids = batch.tokens_of(i);
      for (const std::int32_t id : ids)
        require<DataError>(id >= kIgnore && id < data_.vocabulary(),
                           "ids: token {}; the vocabulary has 0 to {}", id, data_.vocabulary() - 1);
      texts.push_back(token_text(data_.names(), ids, model_.config.task.target_tokens()));
    }
    reply({{"texts", texts}});
  }

  void reply_data(const SortedJson& request) const {
    const std::string name = take<std::string>(request, "split", "test");
    constexpr Split kSplits[] = {Split::train, Split::validation, Split::test, Split::varied};
    const auto* split = std::ranges::find(kSplits, name, split_name);
    require<DataError>(split != std::end(kSplits),
                       "data: there is no split {}; it is train, validation, test or varied",
                       printable(name));
    data_.require_rows(*split);
    std::vector<std::int64_t> indices = integers(request, "indices");
    if (!request.contains("indices")) {
      const auto first = take<std::int64_t>(request, "first", 0),
                 count = take<std::int64_t>(request, "count", 1000);
      const std::int64_t size = data_.size(*split);
      constexpr std::int64_t kMaxCount = 1'000'000;
      require<DataError>(first >= 0 && first <= kAll / 2 && count >= 1 && count <= kMaxCount,
                         "data: first {}, count {}; first must be at least 0, and count from 1 to {}", first,
                         count, kMaxCount);
      for (std::int64_t i = first; i < first + count && (size == 0 || i < size); ++i) indices.push_back(i);
    }
    require<DataError>(!indices.empty(), "data: no sequence; the {} split has {}", name, data_.size(*split));
    Batch batch;
    data_.fill(*split, indices, batch);
    auto where = Json::array();
    for (const std::int64_t i : indices) where.push_back(data_.where(*split, i));
    reply_batch(batch, {{"where", where}});
  }

  // Throws DataError for an array that is neither of a batch nor among the others.
  Batch read_batch(const SafetensorsFile& file, std::vector<std::string_view> others = {}) const {
    others.insert(others.end(), {"ids", "lengths", "sources", "source_lengths", "labels"});
    check_keys(file.entries(), others, "arrays of the request");
    Batch batch;
    const auto read = [&](const char* name, std::vector<std::int32_t>& to, int rank) {
      if (!file.entries().contains(name)) return Shape{};
      const Shape& shape = file.entry(name).shape;
      require<DataError>(shape.rank() == rank, "{}: shape {}; it must have {}", name, shape,
                         rank == 1 ? "1 dimension" : "2 dimensions");
      to = file.values<std::int32_t>(name);
      return shape;
    };
    const Shape ids = read("ids", batch.tokens, 2);
    require<DataError>(ids.rank() == 2, "there is no array ids");
    batch.sequences = ids[0];
    batch.length = ids[1];
    const auto lengths = [&](const char* name, std::vector<std::int32_t>& to, std::int64_t longest) {
      const Shape shape = read(name, to, 1);
      if (shape.rank() == 0)
        to.assign(static_cast<std::size_t>(batch.sequences), static_cast<std::int32_t>(longest));
      require<DataError>(std::ssize(to) == batch.sequences, "{}: {} for {} sequences", name, to.size(),
                         batch.sequences);
    };
    lengths("lengths", batch.lengths, batch.length);
    for (std::size_t i = 0; i < batch.lengths.size(); ++i)
      require<DataError>(batch.lengths[i] >= 0 && batch.lengths[i] <= batch.length,
                         "lengths: {} at {}; T is {}", batch.lengths[i], i, batch.length);
    if (const Shape sources = read("sources", batch.sources, 2); sources.rank() == 2) {
      require<DataError>(sources[0] == batch.sequences, "sources: {} for {} sequences", sources[0],
                         batch.sequences);
      batch.source_length = sources[1];
      lengths("source_lengths", batch.source_lengths, batch.source_length);
    }
    read("labels", batch.labels, data_.layout() == Layout::sequence ? 1 : 2);
    return batch;
  }

  void forward(const SortedJson& request, const SafetensorsFile& file) const {
    ArrayRequest wanted{.batch = {},
                        .sites = texts(request, "return"),
                        .positions = integers(request, "positions"),
                        .arrays = &file};
    if (!request.contains("return")) wanted.sites = {"logits"};
    wanted.loss = std::erase(wanted.sites, "loss") > 0;
    wanted.gradients = texts(request, "gradients");
    wanted.cotangent = take<std::string>(request, "cotangent", "");
    for (const SortedJson& one : take(request, "replace", SortedJson::array())) {
      const auto numbers = [&](const char* key) {
        return one.contains(key) ? std::optional(integers(one, key)) : std::nullopt;
      };
      wanted.replace.push_back(
          {take<std::string>(one, "site", ""), take<std::string>(one, "values", ""),
           one.contains("mean") ? std::optional(take<std::int64_t>(one, "mean", 0)) : std::nullopt,
           take<std::string>(one, "mask", ""), numbers("heads"), numbers("positions")});
      check_keys(one.get_ref<const SortedJson::object_t&>(),
                 {"site", "values", "mean", "mask", "heads", "positions"}, "replace");
    }
    std::vector<std::string_view> others{wanted.cotangent};
    for (const Replacement& one : wanted.replace) others.insert(others.end(), {one.values, one.mask});
    wanted.batch = request.contains("texts") ? of_texts(request) : read_batch(file, others);
    arrays_->forward(wanted, [&](const ArrayReply& part) {
      reply({{"sequences", wanted.batch.sequences},
             {"rows", {part.first, part.last}},
             {"last", part.is_last},
             {"whole", part.whole}},
            part.arrays);
    });
  }

  const ModelSource& model_;
  const bool trained_;
  const std::unique_ptr<ModelArrays> arrays_;
  const Dataset& data_;
  const int replies_;
};

}  // namespace

void serve(const ModelSource& model, bool trained, int requests, int replies) {
  Server server(model, trained, replies);
  for (bool more = true; more;) {
    try {
      const std::optional<SafetensorsFile> message = read_message(requests);
      if (!message) return;
      more = server.answer(*message);
    } catch (const Lost& e) {
      server.reply(error_json("FileError", e.what()));
      throw;
    } catch (const FileError&) {
      throw;
    } catch (const std::bad_alloc&) {
      server.reply(error_json("MemoryError", "out of memory; give fewer sequences, or ask for fewer sites"));
    } catch (const Error& e) {
      server.reply(error_json("DataError", e.what()));
    } catch (const std::exception& e) {
      server.reply(error_json("Error", e.what()));
    }
  }
}

}  // namespace thimble
