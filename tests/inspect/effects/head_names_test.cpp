// Names of heads on the command line and in reports.
#include "inspect/effects/head_names.h"

#include "catch.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

std::vector<AttentionLayer> encoder_only() {
  ModelConfig config;
  config.heads = 2;
  config.layers = 2;
  return attention_layers(config);
}

std::vector<AttentionLayer> translator() {
  ModelConfig config;
  config.kind = ModelKind::encoder_decoder;
  config.heads = 3;
  config.layers = 1;
  return attention_layers(config);
}

}  // namespace

TEST_CASE("a set of heads is a list of names", "[inspect]") {
  CHECK((parse_heads("1.0,0.1", encoder_only()) == std::vector<HeadId>{{0, 1}, {1, 0}}));
  CHECK((parse_heads("encoder.1.1", encoder_only()) == std::vector<HeadId>{{1, 1}}));
  CHECK((parse_heads("1.*", encoder_only()) == std::vector<HeadId>{{1, 0}, {1, 1}}));
  CHECK((parse_heads("*.1", encoder_only()) == std::vector<HeadId>{{0, 1}, {1, 1}}));
  CHECK((parse_heads("cross.*", translator()) == std::vector<HeadId>{{2, 0}, {2, 1}, {2, 2}}));
  CHECK(parse_heads("*", translator()).size() == 9);
  CHECK((parse_heads("cross.0.1, decoder.0.2", translator()) == std::vector<HeadId>{{1, 2}, {2, 1}}));
  CHECK(head_name(encoder_only(), {1, 0}) == "1.0");
  CHECK(head_name(translator(), {2, 1}) == "cross.0.1");
}

TEST_CASE("an unknown or repeated head is an error that lists the heads", "[inspect]") {
  for (const char* list : {"2.0", "0.2", "0.1,", "", "0", "0.1.1", "-1.0", "0.1;1.0", "0 .1", "2.*"})
    CHECK_THROWS_WITH(parse_heads(list, encoder_only()),
                      StartsWith("there is no head \"") && EndsWith("the model has 0.0 to 0.1, 1.0 to 1.1"));
  CHECK_THROWS_WITH(
      parse_heads("0.1", translator()),
      "there is no head \"0.1\"; the model has encoder.0.0 to encoder.0.2, decoder.0.0 to decoder.0.2, cross.0.0 to cross.0.2");
  CHECK_THROWS_WITH(parse_heads("0.1,1.0,0.1", encoder_only()),
                    "head 0.1 is given twice; name each head once");
  CHECK_THROWS_WITH(parse_heads("1.*,*.0", encoder_only()), StartsWith("head 1.0 is given twice"));
  CHECK_THROWS_AS(parse_heads("0.1,encoder.0.1", encoder_only()), ConfigError);
}
