// Sections of the HTML page for the results of patching, static: they need no script.
#pragma once

#include <string>

#include "thimble/engine/model_config.h"
#include "thimble/inspect/edges.h"
#include "thimble/inspect/patching_report.h"

namespace thimble {

// Return a <section> whose classes page.css styles: a heat map of heads and positions for each attention
// layer, and the graph of edges with its circuit.
std::string patching_section(const PatchingReport& report, const ModelConfig& model);
std::string edges_section(const EdgesReport& report);

}  // namespace thimble
