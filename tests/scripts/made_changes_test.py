"""The changes that scripts/made_changes.py makes of a text: these, and no others.
Usage: made_changes_test.py THIMBLE_BINARY SOURCE_DIR"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "scripts"))
from made_changes import made_changes  # noqa: E402

UNTOUCHED = R'''
#include <vector>  // a < b
#define MORE(x) \
  ((x) + 1)
/* if (a - b) c(); */
namespace thimble {
using Table = std::map<int, std::vector<double>>;
static_assert(sizeof(int) + 1 > 1);
constexpr double kStep = 1 - 0.5;
struct Shape : Base<1> {
  virtual double size() const = 0;
  Shape(int width);
  bool operator<(const Shape& other) const;
  std::array<int, 1> sizes;
};
template <typename T, int N = 0>
std::vector<T> read(const char* text) {
  const std::vector<T> found(text, -text->size());
  auto* p = static_cast<std::pair<int, T>*>(found.at(10));
  throw Error("a + b, if (x < 1)", '\'', R"(x - 1;)", 1.5, 0x1, 1e-1, p->first, *p, a1, 1'000);
}
}
'''
# What a line of a function becomes.
CHANGED = {
    "if (empty(a)) b = c;": ["if (false) b = c;", "if (true) b = c;", "if (!(empty(a))) b = c;", "if (empty(a)) ;"],
    "if (const auto* p = find(a)) return;": [],
    "if constexpr (f(1) < N - 1) return;": [],
    "while (!done()) step(\"+ 1\");  // a + b": [
        "while (false) step(\"+ 1\");  // a + b", "while (done()) step(\"+ 1\");  // a + b", "while (!done()) ;  // a + b"],
    "for (int i = f(a); i < n; ++i) ++p[i];": [
        "for (int i = f(a); false; ++i) ++p[i];", "for (int i = f(a); !(i < n); ++i) ++p[i];",
        "for (int i = f(a); i <= n; ++i) ++p[i];", "for (int i = f(a); i < n; ++i) ;"],
    "const T x = is<T>(a) ? b + c : d;": [
        "const T x = false ? b + c : d;", "const T x = true ? b + c : d;", "const T x = !(is<T>(a)) ? b + c : d;",
        "const T x = is<T>(a) ? b - c : d;"],
    "const bool x = a == b;": ["const bool x = false;", "const bool x = true;", "const bool x = a != b;"],
    "f(a && b);": [";", "f(false);", "f(true);", "f(!(a && b));", "f(true && b);", "f(a && true);", "f(a || b);"],
    "f(a || g);": [";", "f(false);", "f(true);", "f(!(a || g));", "f(false || g);", "f(a || false);", "f(a && g);"],
    "a.b[i] += c;": [";", "a.b[i] -= c;"],
    "x *= std::max(a, b) / 2;": [
        ";", "x /= std::max(a, b) / 2;", "x *= std::min(a, b) / 2;", "x *= std::max(a, b) * 2;"],
    "const auto g = [&](int x) { return x; };": [],
    "f([](int x) { h(); });": [";", "f([](int x) { ; });"],
    "text = \"a\" + name;": [";"],
    "const int x = v[0] * 1.0;": ["const int x = v[1] * 1.0;", "const int x = v[0] / 1.0;", "const int x = v[0] * 0.0;"],
    "return big(a);": ["return false;", "return true;", "return !(big(a));"],
}

assert made_changes(UNTOUCHED) == [], made_changes(UNTOUCHED)
for line, expected in CHANGED.items():
    text = f"template <class T>\nbool f(int n) {{\n  {line}\n}}\n"
    found = [(text[:begin] + new + text[end:]).splitlines()[2].strip() for _, begin, end, new, _ in made_changes(text)]
    assert sorted(found) == sorted(expected), f"{line}\nmade: {sorted(found)}\nexpected: {sorted(expected)}"
print(f"{len(CHANGED)} lines changed as expected")
