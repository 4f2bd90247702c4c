// Values of fields as text: reading them by the rule of the field, and writing them.
#pragma once

#include <string>
#include <string_view>

#include "config/fields.h"

namespace thimble::config {

// Sets the variable of a field that is no section, if the text is a value that its rule allows. Text that
// stood in quotes is a name, never a number.
bool assign(const Field& field, std::string_view text, bool quoted);

// What the rule of a field asks for, to follow "must be": "an integer from 1 to 8".
std::string expectation(const Field& field);

// Texts from which `assign` reads the same value. Not for sections.
std::string value_text(const Field& field);

}  // namespace thimble::config
