#include "thimble/engine/make_model.h"

#include "engine/model/encoder_decoder.h"
#include "engine/model/recurrent.h"
#include "engine/model/transformer.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelSizes& sizes, Storage storage) {
  switch (config.kind) {
    case ModelKind::encoder:
      return std::make_unique<Transformer>(config, sizes, storage);
    case ModelKind::encoder_decoder:
      return std::make_unique<EncoderDecoder>(config, sizes, storage);
    case ModelKind::recurrent:
      return std::make_unique<Recurrent>(config, sizes, storage);
  }
  throw Error("model: unknown kind");
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
