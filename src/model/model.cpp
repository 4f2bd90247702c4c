#include "thimble/model/model.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/model/decoding.h"
#include "thimble/model/encoder_decoder.h"
#include "thimble/model/recurrent.h"
#include "thimble/model/transformer.h"

namespace thimble::inline THIMBLE_PRECISION {

Model::Model(const ModelConfig& config, const ModelSizes& sizes) : config_(config), sizes_(sizes) {
  sizes_.length = std::max(sizes.length, config.trained_length);
  sizes_.source_length = std::max(sizes.source_length, config.trained_source_length);
  if (config.max_length == 0) return;
  sizes_.length = config.max_length;
  if (sizes_.source_length > 0) sizes_.source_length = config.max_length;
}

std::unique_ptr<Decoding> Model::decode(const ModelInput&) const {
  throw Error("model: an encoder writes no answers; needs model.kind encoder_decoder or recurrent");
}

std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelSizes& sizes) {
  switch (config.kind) {
    case ModelKind::encoder:
      return std::make_unique<Transformer>(config, sizes);
    case ModelKind::encoder_decoder:
      return std::make_unique<EncoderDecoder>(config, sizes);
    case ModelKind::recurrent:
      return std::make_unique<Recurrent>(config, sizes);
  }
  throw Error("model: unknown kind");
}

}  // namespace thimble::inline THIMBLE_PRECISION
