#include "thimble/engine/tensor.h"

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Tensor::Tensor(Shape shape, std::span<const Real> values)
    : shape_(shape), elements_(values.begin(), values.end()) {
  require<ShapeError>(static_cast<std::int64_t>(values.size()) == shape.elements(),
                      "tensor: {} values for shape {}, which holds {}", values.size(), shape,
                      shape.elements());
}

Tensor::Tensor(Shape shape, std::initializer_list<Real> values)
    : Tensor(shape, std::span<const Real>(values.begin(), values.size())) {}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
