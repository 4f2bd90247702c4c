// Runs a model on a batch, a few sequences at a time.
#include "inspect/arrays/model_arrays.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/kernels/cross_entropy.h"
#include "inspect/arrays/site_hooks.h"
#include "thimble/engine/error.h"
#include "thimble/train/run.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace {

constexpr DType kType = sizeof(Real) == 4 ? DType::f32 : DType::f64;

// The arrays of a few sequences.
struct Part {
  std::int64_t first = 0, last = 0;
  std::vector<std::pair<std::string, Shape>> names{};
  std::vector<std::vector<Real>> values{};
  std::vector<double> losses{};
  Shape losses_shape{};
};

Batch rows_of(const Batch& all, std::int64_t first, std::int64_t count) {
  Batch out;
  out.sequences = count;
  out.length = all.length;
  out.source_length = all.source_length;
  const auto take = [&](const std::vector<std::int32_t>& from, std::vector<std::int32_t>& to) {
    const auto width = std::ssize(from) / all.sequences;
    to.assign(from.begin() + first * width, from.begin() + (first + count) * width);
  };
  take(all.tokens, out.tokens);
  take(all.lengths, out.lengths);
  take(all.sources, out.sources);
  take(all.source_lengths, out.source_lengths);
  take(all.labels, out.labels);
  return out;
}

// Overwrites what is beyond the lengths of rows, if there are any.
void clear_padding(std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& lengths,
                   std::int64_t width, std::int32_t with) {
  for (std::size_t b = 0; b < lengths.size() && !rows.empty(); ++b) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(b) * width;
    std::fill(row + lengths[b], row + width, with);
  }
}

class Arrays : public ModelArrays {
 public:
  Arrays(const ModelSource& source, bool trained) : evaluator_(source.config, *source.open()) {
    if (!trained) evaluator_.model().init(source.config.train.seed);
    evaluator_.pack_for_all();
    sites_ = array_sites(source.config.model, evaluator_.model().outputs());
    for (const ArraySite& site : sites_) names_.push_back(site.name);
    gradients_ = names_;
    for (const auto& [name, shape] : parameters()) gradients_.push_back(name);
  }

  const Dataset& dataset() const override { return evaluator_.dataset(); }
  std::int64_t longest() const override { return evaluator_.model().max_length(); }
  std::int64_t longest_source() const override { return evaluator_.model().max_source_length(); }

  std::vector<std::pair<std::string, Shape>> parameters() const override {
    std::vector<std::pair<std::string, Shape>> out;
    for (const auto& entry : evaluator_.model().parameters().entries())
      out.emplace_back(entry.name, entry.shape);
    return out;
  }

  void forward(const ArrayRequest& request, const Visit& f) override {
    check(request.batch);
    Batch batch = request.batch;
    clear_padding(batch.tokens, batch.lengths, batch.length, 0);
    clear_padding(batch.sources, batch.source_lengths, batch.source_length, 0);
    if (!sites_.back().per_sequence) clear_padding(batch.labels, batch.lengths, batch.length, kIgnore);
    const Plan plan = resolved(request, batch);
    const ParameterStore& store = evaluator_.model().parameters();
    const std::int64_t all = request.batch.sequences, size = evaluator_.chunk_size();
    const auto threads = static_cast<std::int64_t>(evaluator_.threads());
    std::vector<AlignedVector<Real>> gradients(static_cast<std::size_t>(plan.trains ? threads : 0));
    AlignedVector<Real> sum(plan.parameters.empty() ? 0 : store.size());
    std::vector<Part> parts;  // their memory serves again
    for (std::int64_t start = 0; start < all; start += threads * size) {
      parts.resize(static_cast<std::size_t>(std::min(threads, (all - start + size - 1) / size)));
      evaluator_.each(
          parts.size(),
          [&](std::size_t i, Tape& tape) {
            const std::int64_t first = start + static_cast<std::int64_t>(i) * size,
                               count = std::min(size, all - first);
            if (plan.trains) {
              gradients[i].assign(store.size(), Real{0});
              tape.bind(store, gradients[i], &evaluator_.packed_weights());
            }
            parts[i] = run(plan, rows_of(batch, first, count), first, tape, std::move(parts[i].values));
          },
          plan.trains ? Tape::Mode::training : Tape::Mode::inference);
      for (std::size_t i = 0; i < parts.size() && !sum.empty(); ++i)
        for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += gradients[i][p];
      for (const Part& part : parts) reply(plan, part, part.last == all, sum, f);
    }
  }

 private:
  Part run(const Plan& plan, const Batch& batch, std::int64_t first, Tape& tape,
           std::vector<std::vector<Real>> memory) const {
    SiteHooks hooks(plan, first, batch, std::move(memory));
    const Var z = evaluator_.model()(tape, model_input(batch), {.hooks = &hooks});
    const MatrixView logits = z.value();
    Part part{.first = first, .last = first + batch.sequences};
    const auto add = [&](const std::string& name, Cells cells, std::vector<Real> values, Real padding) {
      pad(cells, batch, padding, values);
      select(cells, plan.positions, values);
      part.names.emplace_back(name, cells.shape(batch.sequences));
      part.values.push_back(std::move(values));
    };
    for (const ArraySite* site : plan.sites)
      add(site->name, hooks.cells(*site), std::move(hooks.values.at(site)),
          std::numeric_limits<Real>::quiet_NaN());
    if (plan.loss) {
      AlignedVector<Real> ignored(static_cast<std::size_t>(logits.cols));
      for (std::int64_t row = 0; row < std::ssize(batch.labels); ++row) {
        const auto label = std::span(batch.labels).subspan(static_cast<std::size_t>(row), 1);
        const double loss = kernels::cross_entropy_forward({ignored.data(), 1, logits.cols, logits.cols},
                                                           logits.row_block(row, 1), label, 0, 1);
        part.losses.push_back(label[0] == kIgnore ? std::numeric_limits<double>::quiet_NaN() : loss);
      }
      part.losses_shape =
          sites_.back().per_sequence ? Shape{batch.sequences} : Shape{batch.sequences, batch.length};
    }
    if (!plan.trains) return part;
    MatrixView seed = tape.scratch(logits.rows, logits.cols);
    if (plan.cotangent.empty())
      kernels::cross_entropy_forward(seed, logits, batch.labels, 0, 1 / static_cast<Real>(plan.labels));
    else
      std::copy_n(plan.cotangent.begin() + first * (seed.elements() / batch.sequences), seed.elements(),
                  seed.data);
    tape.backward(z, seed);
    for (const ArraySite* site : plan.gradients)
      add("gradient." + site->name, hooks.cells(*site), hooks.gradient(*site, sites_), Real{0});
    return part;
  }

  // Calls f with the arrays of a part; with the last one, gradients of parameters follow.
  void reply(const Plan& plan, const Part& part, bool is_last, std::span<const Real> sum,
             const Visit& f) const {
    ArrayReply out{part.first, part.last, is_last, {}};
    for (std::size_t i = 0; i < part.names.size(); ++i)
      out.arrays.push_back(
          {part.names[i].first, kType, part.names[i].second, std::as_bytes(std::span(part.values[i]))});
    if (plan.loss)
      out.arrays.push_back({"loss", DType::f64, part.losses_shape, std::as_bytes(std::span(part.losses))});
    const auto& entries = evaluator_.model().parameters().entries();
    out.whole = is_last ? plan.parameters.size() : 0;
    for (const std::size_t p : is_last ? plan.parameters : std::vector<std::size_t>())
      out.arrays.push_back({"gradient." + entries[p].name, kType, entries[p].shape,
                            std::as_bytes(sum.subspan(entries[p].offset, entries[p].size()))});
    f(out);
  }

  // Returns whether a site can be replaced and has a gradient. Throws DataError for another one that is named by itself.
  static bool may_change(const ArraySite& site, const std::string& pattern) {
    require<DataError>(!site.scale || pattern.find('*') != pattern.npos,
                       "{}: follows from what the norm reads, and is neither replaced nor differentiated",
                       site.name);
    return !site.scale;
  }

  Plan resolved(const ArrayRequest& request, const Batch& batch) {
    Plan plan{.positions = request.positions, .loss = request.loss, .trains = !request.gradients.empty()};
    const auto site_of = [&](const std::string& name) {
      return &sites_[static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin())];
    };
    const auto add = [](auto& list, const auto& one) {
      if (std::ranges::find(list, one) == list.end()) list.push_back(one);
    };
    for (const std::string& pattern : request.sites)
      for (const std::string& name : matching(names_, pattern)) add(plan.sites, site_of(name));
    for (const std::string& pattern : request.gradients)
      for (const std::string& name : matching(gradients_, pattern))
        if (const auto p = std::ranges::find(gradients_, name) - gradients_.begin() - std::ssize(names_);
            p >= 0)
          add(plan.parameters, static_cast<std::size_t>(p));
        else if (may_change(*site_of(name), pattern))
          add(plan.gradients, site_of(name));
    for (const Replacement& one : request.replace)
      for (const std::string& name : matching(names_, one.site))
        if (may_change(*site_of(name), one.site))
          plan.substitutions.push_back(substitution_of(one, site_of(name), request));
    plan.labels = std::ssize(batch.labels) - std::ranges::count(batch.labels, kIgnore);
    require<DataError>(!request.loss || !batch.labels.empty(), "loss: needs labels");
    if (!plan.trains) return plan;
    if (request.cotangent.empty()) {
      require<DataError>(plan.labels > 0,
                         "gradients: of the mean loss need labels; or give a cotangent of the logits");
    } else {
      const Cells logits(sites_.back(), batch.sequences, batch.length, batch.source_length);
      plan.cotangent =
          values_of(request, request.cotangent, logits.shape(batch.sequences), logits.shape(batch.sequences));
      pad(logits, batch, Real{0}, plan.cotangent);
      const auto bad =
          std::ranges::find_if(plan.cotangent, [](Real x) { return std::isnan(x); }) - plan.cotangent.begin();
      require<DataError>(bad == std::ssize(plan.cotangent),
                         "cotangent: NaN for row {} at position {}; put 0 where a logit does not count",
                         bad / (logits.n[1] * logits.n[3]), bad / logits.n[3] % logits.n[1]);
    }
    return plan;
  }

  void check(const Batch& batch) const {
    const auto check = [&](const char* what, const std::vector<std::int32_t>& ids,
                           const std::vector<std::int32_t>& lengths, std::int64_t length,
                           std::int64_t longest) {
      require<DataError>(length >= 1 && length <= longest, "{}: {} tokens; this model accepts 1 to {}", what,
                         length, longest);
      for (std::size_t b = 0; b < lengths.size(); ++b) {
        require<DataError>(lengths[b] >= 1 && lengths[b] <= length,
                           "{}: sequence {} has length {}; it must be from 1 to {}", what, b, lengths[b],
                           length);
        for (std::int64_t t = 0; t < lengths[b]; ++t)
          if (const std::int32_t id = ids[b * static_cast<std::size_t>(length) + static_cast<std::size_t>(t)];
              id < 0 || id >= evaluator_.model().vocabulary())
            throw DataError(fmt::format("{}: token {} at ({}, {}); the vocabulary has 0 to {}", what, id, b,
                                        t, evaluator_.model().vocabulary() - 1));
      }
    };
    require<DataError>(batch.sequences >= 1, "ids: no sequence; give at least 1");
    check("ids", batch.tokens, batch.lengths, batch.length, longest());
    require<DataError>(longest_source() > 0 || batch.source_length == 0,
                       "sources: this model reads none; leave them out");
    if (longest_source() > 0)
      check("sources", batch.sources, batch.source_lengths, batch.source_length, longest_source());
    const std::int64_t labels = batch.sequences * (sites_.back().per_sequence ? 1 : batch.length);
    require<DataError>(batch.labels.empty() || std::ssize(batch.labels) == labels,
                       "labels: {}; this model has {} outputs for the batch", batch.labels.size(), labels);
    for (const std::int32_t label : batch.labels)
      require<DataError>(label >= kIgnore && label < evaluator_.model().outputs(),
                         "labels: {}; outputs are 0 to {}, and -1 is none", label,
                         evaluator_.model().outputs() - 1);
  }

  // Returns the values of an array of the request, which must have one of two shapes.
  static std::vector<Real> values_of(const ArrayRequest& request, const std::string& name, const Shape& shape,
                                     const Shape& of_one) {
    check_shape(request, name, shape, of_one);
    return request.arrays->values<Real>(name);
  }

  static void check_shape(const ArrayRequest& request, const std::string& name, const Shape& shape,
                          const Shape& of_one) {
    require<DataError>(request.arrays != nullptr && request.arrays->entries().contains(name),
                       "there is no array {}", name);
    const Shape& given = request.arrays->entry(name).shape;
    require<DataError>(given == shape || given == of_one, "array {}: shape {}; it must be {}{}", name, given,
                       shape, shape == of_one ? "" : fmt::format(", or {} for all sequences", of_one));
  }

  // Returns the mean of a site over the first test sequences, as `ablate` has it: by position, of those that have it.
  const std::vector<Real>& mean_of(const ArraySite& site, std::int64_t sequences) {
    require<DataError>(!site.is_map() && sequences > 0,
                       "replace {}: a mean is that of at least 1 sequence, and not of attention; give values",
                       site.name);
    const std::int64_t count = std::min(sequences, dataset().size(Split::test));
    dataset().require_rows(Split::test);
    require<DataError>(
        count > 0, "replace {}: there are no test sequences to take the mean of; set data.test", site.name);
    std::vector<Real>& means = means_[{site.name, count}];
    if (!means.empty()) return means;
    ArrayRequest data{.batch = {}, .sites = {site.name}};
    dataset().fill(Split::test, 0, count, data.batch);
    std::vector<double> sums, counts;
    forward(data, [&](const ArrayReply& part) {
      const auto* values = reinterpret_cast<const Real*>(part.arrays.front().bytes.data());
      const auto all = static_cast<std::int64_t>(part.arrays.front().bytes.size() / sizeof(Real)),
                 of_sequence = all / (part.last - part.first);
      sums.resize(static_cast<std::size_t>(of_sequence));
      counts.resize(sums.size());
      for (std::int64_t i = 0; i < all; ++i) {
        if (std::isnan(values[i])) continue;  // beyond the sequence's length
        sums[static_cast<std::size_t>(i % of_sequence)] += static_cast<double>(values[i]);
        ++counts[static_cast<std::size_t>(i % of_sequence)];
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i)
      means.push_back(static_cast<Real>(sums[i] / std::max(1.0, counts[i])));
    return means;
  }

  Substitution substitution_of(const Replacement& wanted, const ArraySite* site,
                               const ArrayRequest& request) {
    require<DataError>(!wanted.mean || wanted.values.empty(),
                       "replace {}: by values or by the mean; leave one out", site->name);
    const Cells cells(*site, request.batch.sequences, request.batch.length, request.batch.source_length);
    const Shape shape = cells.shape(request.batch.sequences), of_one = cells.shape(1);
    Substitution out{.site = site};
    if (wanted.mean) {
      out.values = mean_of(*site, *wanted.mean);
      const auto count = static_cast<std::size_t>(of_one.elements());
      require<DataError>(count <= out.values.size(),
                         "replace {}: the mean has {} positions, and the batch {}; give shorter sequences",
                         site->name, std::ssize(out.values) * cells.n[1] / of_one.elements(), cells.n[1]);
      out.values.resize(count);
    }
    if (!wanted.values.empty()) {
      out.values = values_of(request, wanted.values, shape, of_one);
      out.values_differ = request.arrays->entry(wanted.values).shape == shape;
    }
    if (!wanted.mask.empty()) {
      check_shape(request, wanted.mask, shape, of_one);
      out.mask = request.arrays->values<std::uint8_t>(wanted.mask);
      out.mask_differs = request.arrays->entry(wanted.mask).shape == shape;
    }
    const auto mark = [&](const auto& chosen, std::int64_t count, const char* what,
                          std::vector<bool>& marks) {
      if (!chosen) return;
      marks.resize(static_cast<std::size_t>(count));
      for (const std::int64_t i : *chosen) {
        require<DataError>(i >= 0 && i < count, "replace {}: {} {}; there are 0 to {}", site->name, what, i,
                           count - 1);
        marks[static_cast<std::size_t>(i)] = true;
      }
    };
    require<DataError>(!wanted.heads || site->heads > 0, "replace {}: has no heads; leave them out",
                       site->name);
    mark(wanted.heads, cells.n[cells.head_axis()], "head", out.heads);
    mark(wanted.positions, cells.n[cells.position_axis()], "position", out.positions);
    return out;
  }

  Evaluator evaluator_;
  std::vector<std::string> names_, gradients_;           // that a request may name
  using MeanKey = std::pair<std::string, std::int64_t>;  // site, number of sequences
  std::map<MeanKey, std::vector<Real>> means_;
};

}  // namespace
}  // namespace THIMBLE_PRECISION

template <>
std::unique_ptr<ModelArrays> make_arrays<Real>(const ModelSource& model, bool trained) {
  return std::make_unique<Arrays>(model, trained);
}

}  // namespace thimble
