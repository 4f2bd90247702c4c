// Reads texts: what Corpus keeps of its files.
#include <cmath>
#include <utility>

#include "thimble/engine/error.h"
#include "train/data/corpus/corpus.h"
#include "train/data/files/data_lines.h"
#include "train/data/files/vocabulary.h"
#include "train/files/hash.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

constexpr std::string_view kLineBreak = "\n";
constexpr std::size_t kMaxDocument = 1 << 26;  // bytes of a document of several lines

// Returns the shares of a stream: training, validation and test, or training and what is both of the others.
std::vector<double> parse_split(const std::string& text) {
  std::vector<double> shares;
  double sum = 0;
  for (const std::string_view share : split_at(',', text)) {
    shares.push_back(parse_number<double>(share).value_or(-1));
    sum += shares.back();
  }
  const bool positive = std::ranges::all_of(shares, [](double share) { return share > 0; });
  require<DataError>(positive && (shares.size() == 2 || shares.size() == 3) && std::abs(sum - 1) < 1e-9,
                     "task.split is \"{}\"; give 2 or 3 positive shares that sum to 1, such as 0.9,0.1",
                     printable(text));
  return shares;
}

}  // namespace

void Corpus::read_file(const DataText& file, std::size_t index, Vocabulary& vocabulary, Problems& problems,
                       DataFile& source, const Visit& visit) {
  const bool bytes = text_.tokens == Tokenization::bytes;
  const Lines lines = is_stream() ? (bytes ? Lines::bytes : Lines::parts)
                      : bytes     ? Lines::any_bytes
                                  : Lines::any;
  // Of a document, or a part of a stream; `blank`: of the blank lines after it, which another line makes a part of it.
  std::vector<std::int32_t> numbers, blank;
  std::string document, after;
  std::size_t first = 0;  // the line that a document of several lines begins with; 0: none
  const auto visit_document = [&] {
    if (first > 0 && !numbers.empty()) visit(index, numbers, document, first);
    first = 0;
  };
  std::array<std::int32_t, 128> known;  // numbers of characters of ASCII
  known.fill(kIgnore);
  const auto append = [&](std::string_view line, std::vector<std::int32_t>& to) {
    tokenize(line, text_.tokens, [&](std::string_view token) {
      const auto c = static_cast<unsigned char>(token[0]);
      if (token.size() > 1 || c >= known.size())
        return to.push_back(vocabulary.number(token, !problems.full()));
      if (known[c] == kIgnore) known[c] = vocabulary.number(token, !problems.full());
      to.push_back(known[c]);
    });
  };
  const auto add_line = [&](std::string_view line, std::size_t number) {
    const bool is_blank = line.find_first_not_of(" \t") == line.npos,
               is_record = text_.documents == TextForm::records,
               begins = is_record ? line.starts_with(options().separator) : first == 0 && !is_blank;
    if (begins || (is_blank && !is_record)) visit_document();
    if (begins) {
      first = number;
      for (std::string* text : {&document, &after}) text->clear();
      for (auto* tokens : {&numbers, &blank}) tokens->clear();
    } else if (first == 0) {
      if (is_record) visit(index, {}, line, number);
      return;
    } else {
      after += kLineBreak;
      blank.push_back(vocabulary.number(kLineBreak, false));
    }
    after += line;
    append(line, blank);
    require<DataError>(document.size() + after.size() <= kMaxDocument,
                       "document of more than {} bytes; set task.documents=stream", kMaxDocument);
    if (is_blank) return;
    document += std::exchange(after, {});
    numbers.insert(numbers.end(), blank.begin(), blank.end());
    blank.clear();
  };
  for_lines(
      file, lines, source,
      [&](std::size_t line, const char* rule) {
        const bool is_long = !is_stream() && std::string_view(rule).starts_with("line of ");
        problems.add(file.name, line,
                     is_long ? fmt::format("{}; set task.documents=stream", rule) : std::string(rule));
      },
      [&](std::string_view line, std::size_t number, bool complete) {
        if (has_lines()) return add_line(line, number);
        numbers.clear();
        append(line, numbers);
        if (is_stream() && complete) numbers.push_back(vocabulary.number(kLineBreak, false));
        visit(index, numbers, line, number);
      });
  if (text_.documents == TextForm::records && document.empty() && source.bytes > 0)
    problems.add(file.name, 0,
                 fmt::format("no line begins with task.separator={}", shell_command({options().separator})));
  visit_document();
}

void Corpus::count(const DataTexts& texts, Vocabulary& vocabulary, bool trained,
                   std::vector<std::int64_t>& counts) {
  if (!is_stream()) boundary_ = vocabulary.number(boundary_text(), false);
  Problems problems;
  const auto add = [&](std::size_t file, std::span<const std::int32_t> numbers, std::string_view text,
                       std::size_t line) {
    counts.resize(std::max(counts.size(), vocabulary.size()));
    std::span<const std::int32_t> kept = numbers;
    bool counted = true;
    if (!is_stream()) {
      if (numbers.empty()) return void(++left_out_[file]);
      longer_ += std::ssize(numbers) + 1 > length_ ? 1 : 0;
      kept = kept_of(numbers);
      input_hashes_.push_back(hash_of(text));
      lines_.push_back(static_cast<std::uint32_t>(line));
      ends_.push_back(static_cast<std::uint32_t>(count_ + std::ssize(kept)));
      counted = options().vocabulary == VocabularyOf::all || split_of(file, input_hashes_.back()) == 0;
    }
    count_ += std::ssize(kept);
    for (const std::int32_t number : kept) counts[static_cast<std::size_t>(number)] += counted ? 1 : 0;
  };
  read_files(texts, problems, trained,
             [&](std::size_t i, const DataText& file, Problems& own, DataFile& source) {
               read_file(file, i, vocabulary, own, source, add);
               starts_[i + 1] = count_;
             });
  for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] = std::max(starts_[i], starts_[i - 1]);
  problems.finish();
  counts.resize(vocabulary.size());
  if (!is_stream()) return;
  divide_stream(trained);
  if (options().vocabulary == VocabularyOf::all || vocabulary.fixed()) return;
  std::ranges::fill(counts, 0);
  std::int64_t position = 0;
  DataFile again;
  read_file(texts.main, 0, vocabulary, problems, again,
            [&](std::size_t, const auto& numbers, std::string_view, std::size_t) {
              for (const std::int32_t number : numbers)
                if (position++ < parts_[0].end) ++counts.at(static_cast<std::size_t>(number));
            });
}

void Corpus::take_back(std::size_t file, std::uint32_t count) {
  input_hashes_.resize(count);
  ends_.resize(count);
  lines_.resize(count);
  left_out_[file] = 0;
  starts_[file + 1] = 0;
  count_ = std::ranges::max(starts_);
}

void Corpus::store(const DataTexts& texts, Vocabulary& vocabulary, std::span<const std::int32_t> ids) {
  const bool narrow = tokens_.size() <= 256;
  if (narrow)
    narrow_.reserve(static_cast<std::size_t>(count_));
  else
    wide_.reserve(static_cast<std::size_t>(count_));
  const auto files = texts.rows();
  std::size_t source = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i] == nullptr) continue;
    const DataFile& before = files_[source++];
    if (!unreadable_[i].empty()) continue;
    Problems problems;
    DataFile now;
    bool same = true;
    std::int64_t stored = starts_[i];
    read_file(*files[i], i, vocabulary, problems, now,
              [&](std::size_t, std::span<const std::int32_t> numbers, std::string_view, std::size_t) {
                if (!is_stream()) numbers = kept_of(numbers);
                stored += std::ssize(numbers);
                same = same && stored <= starts_[i + 1];
                for (const std::int32_t number : numbers) {
                  same = same && number < std::ssize(ids);
                  if (!same) return;
                  const auto id = ids[static_cast<std::size_t>(number)];
                  if (narrow)
                    narrow_.push_back(static_cast<std::uint8_t>(id));
                  else
                    wide_.push_back(static_cast<std::uint16_t>(id));
                }
              });
    require<DataError>(same && now.hash == before.hash,
                       "{}: changed while it was read; run the command again", files[i]->name);
  }
}

void Corpus::order_documents(bool trained) {
  const auto found = ordered(input_hashes_, "document",
                             longer_ > 0 ? ", or take the text as one: task.documents=stream" : "", trained);
  has_windows_ = longer_ > 0;
  disjoint_ = !has_windows_ && is_spelled(text_.tokens) && unknown_ == kIgnore && given_[1].name.empty() &&
              given_[2].name.empty();
  const bool several = longer_ > 0 && text_.longer == LongDocuments::several;
  std::int64_t all = 0;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto index = static_cast<std::size_t>(split);
    for (std::size_t i = 1, first = 0; i < found[index].size(); ++i) {
      if (input_hashes_[found[index][i]] != input_hashes_[found[index][first]])
        first = i;
      else if (repeated_++ == 0 || found[index][i] < repeats_[1])
        repeats_ = {found[index][first], found[index][i]};
    }
    for (const std::uint32_t i : found[index]) {
      const std::int64_t rows = row_count(used(document(i).size()), split);
      splits_[index] += rows;
      all += rows;
      if (several) rows_.push_back(static_cast<std::uint32_t>(all));
    }
    order_.insert(order_.end(), found[index].begin(), found[index].end());
  }
}

void Corpus::divide_stream(bool trained) {
  const std::vector<double> shares = parse_split(text_.split.empty() ? "0.8,0.1,0.1" : text_.split);
  const bool own[] = {false, !given_[1].name.empty(), !given_[2].name.empty()};
  const bool shared = shares.size() == 2;  // validation and test are the same part
  const double train =
      shares[0] + ((own[1] && (own[2] || !shared) ? shares[1] : 0) + (own[2] && !shared ? shares[2] : 0));
  const std::int64_t n = starts_[1];
  const auto end_of = [&](double share) {
    return std::min(n, static_cast<std::int64_t>(share * static_cast<double>(n)));
  };
  const std::int64_t middle = end_of(train + shares[1]);
  parts_[0] = {0, end_of(train)};
  parts_[1] = own[1] ? Range{starts_[1], starts_[2]} : Range{parts_[0].end, shared || own[2] ? n : middle};
  parts_[2] = own[2] ? Range{starts_[2], starts_[3]} : Range{shared || own[1] ? parts_[0].end : middle, n};
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto index = static_cast<std::size_t>(split);
    const std::int64_t size = parts_[index].size(), needed = split == Split::train ? length_ + 1 : 2;
    splits_[index] = size < needed ? 0 : row_count(size - 1, split);
    if (size < needed)
      set_missing(
          split, own[index] ? index : 0,
          fmt::format("the {} split has {}, and needs {}; add text{}", split_name(split),
                      counted(size, "token"), needed, split == Split::train ? ", or lower task.length" : ""),
          trained);
  }
}

}  // namespace thimble
