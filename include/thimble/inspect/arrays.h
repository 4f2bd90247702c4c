// Arrays of a forward pass, for questions of one's own: values of sites by name, replaced values and gradients, of any
// batch. B sequences, T tokens, S tokens of a source, H heads, D columns of a head, C d_model, F d_ff, V outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thimble/inspect/array_sites.h"
#include "thimble/train/batch.h"
#include "thimble/train/dataset.h"
#include "thimble/train/safetensors.h"

namespace thimble {

struct ModelSource;

// What is put in place of a site's value. Names are those of arrays in ArrayRequest::arrays, in the shape of the site's
// array, or with 1 for B.
struct Replacement {
  std::string site;
  std::string values{};                // "": zeros, or the mean
  std::optional<std::int64_t> mean{};  // of the first so many test sequences, by position
  std::string mask{};                  // BOOL; "": everywhere
  std::optional<std::vector<std::int64_t>> heads{}, positions{};  // where; nothing: everywhere
};

struct ArrayRequest {
  Batch batch;                            // without `rows`; labels may be empty
  std::vector<std::string> sites;         // names, with * for any characters
  std::vector<std::int64_t> positions{};  // of the arrays of sites; none: all
  std::vector<Replacement> replace{};     // one after another
  std::vector<std::string> gradients{};   // of sites and parameters, likewise
  std::string cotangent{};                // the array that the logits are multiplied with; "": the mean loss
  bool loss = false;                      // the cross entropy of each label
  const SafetensorsFile* arrays = nullptr;
};

// Arrays of sequences `first` to `last` - 1, in the order that was asked for: sites, "loss", and "gradient." before names.
// Beyond a sequence's length they are NaN, gradients 0. The last `whole` arrays, gradients of parameters, are of all sequences.
struct ArrayReply {
  std::int64_t first, last;
  bool is_last;
  std::vector<NamedBytes> arrays;
  std::size_t whole = 0;
};

// A model that is asked for arrays.
class ModelArrays {
 public:
  virtual ~ModelArrays() = default;
  virtual const Dataset& dataset() const = 0;
  virtual std::int64_t longest() const = 0;  // sequence that the model accepts
  virtual std::int64_t longest_source() const = 0;
  virtual std::vector<std::pair<std::string, Shape>> parameters() const = 0;
  const std::vector<ArraySite>& sites() const { return sites_; }

  // Runs the model on the batch, a few sequences at a time, and calls f with each reply, in order. Gradients are those of
  // the mean loss over all labels of the batch. Throws DataError for a name, token, length, label or shape that does not
  // fit the model.
  using Visit = std::function<void(const ArrayReply&)>;
  virtual void forward(const ArrayRequest&, const Visit& f) = 0;

 protected:
  std::vector<ArraySite> sites_;
};

// Opens a model in the precision of its config, trained or as its training began. Throws as Evaluator does.
std::unique_ptr<ModelArrays> open_arrays(const ModelSource&, bool trained = true);

// Returns the batch of texts as their user types them, with the labels that follow from targets, one for each text, or
// from the text itself; no labels otherwise. T is the longest. Throws DataError with the number of the text.
Batch batch_of_texts(const ModelSource&, const Dataset&, std::span<const std::string> texts,
                     std::span<const std::string> targets);

}  // namespace thimble
