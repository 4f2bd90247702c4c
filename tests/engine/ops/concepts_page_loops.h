// The examples of docs/concepts.md in plain loops over the formulas, computed from the inputs on the page.
#pragma once

#include "engine/ops/page.h"

namespace thimble::tests {

using Matrix = std::vector<std::vector<double>>;

// Puts matrices of `rows` rows side by side.
inline std::vector<double> beside(const std::vector<std::vector<double>>& parts, std::size_t rows) {
  std::vector<double> all;
  for (std::size_t r = 0; r < rows; ++r) {
    for (const auto& part : parts) {
      const std::size_t columns = part.size() / rows;
      for (std::size_t c = 0; c < columns; ++c) all.push_back(part[r * columns + c]);
    }
  }
  return all;
}
inline std::vector<double> below(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Returns `count` columns of the page's table of keys (6, 3) and values (6, 2), from column `first` on.
inline std::vector<double> memory_columns(const Page& page, std::size_t first, std::size_t count) {
  const std::vector<double> memory = page.numbers("dog.memory");
  std::vector<double> columns;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (i % 5 >= first && i % 5 < first + count) columns.push_back(memory[i]);
  }
  return columns;
}
inline Matrix matrix(const std::vector<double>& numbers, std::size_t first, std::size_t rows,
                     std::size_t columns) {
  Matrix m(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) m[r].push_back(numbers.at(first + r * columns + c));
  }
  return m;
}

// Returns x w^T.
inline Matrix times_transposed(const Matrix& x, const Matrix& w) {
  Matrix y(x.size(), std::vector<double>(w.size(), 0));
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t o = 0; o < w.size(); ++o) {
      for (std::size_t c = 0; c < x[i].size(); ++c) y[i][o] += x[i][c] * w[o][c];
    }
  }
  return y;
}

inline Matrix softmax_of(Matrix scores) {
  for (auto& row : scores) {
    double sum = 0;
    for (double& x : row) sum += x = std::exp(x);
    for (double& x : row) x /= sum;
  }
  return scores;
}

inline Matrix mix(const Matrix& weights, const Matrix& values) {
  Matrix y(weights.size(), std::vector<double>(values[0].size(), 0));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      for (std::size_t c = 0; c < values[j].size(); ++c) y[i][c] += weights[i][j] * values[j][c];
    }
  }
  return y;
}

inline Matrix divided_by(Matrix x, double divisor) {
  for (auto& row : x) {
    for (double& value : row) value /= divisor;
  }
  return x;
}

inline Results cat_by_loops(const Page& page) {
  const auto given = page.numbers("cat.projections");
  const Matrix x = matrix(page.numbers("cat.words"), 0, 6, 2);
  const Matrix q = times_transposed(x, matrix(given, 0, 2, 2)),
               k = times_transposed(x, matrix(given, 4, 2, 2)),
               v = times_transposed(x, matrix(given, 8, 2, 2));
  const Matrix scores = times_transposed(q, k), scaled = divided_by(scores, std::sqrt(2)),
               weights = softmax_of(scaled);
  return {{"cat.projected", beside({below(q), below(k), below(v)}, 6)},
          {"cat.scores", below(scores)},
          {"cat.scale", {2, std::sqrt(2)}},
          {"cat.scaled", below(scaled)},
          {"cat.weights", below(weights)},
          {"cat.output", below(mix(weights, v))}};
}

inline Results same_by_loops(const Page& page) {
  const Matrix x = matrix(page.numbers("same.words"), 0, 6, 2),
               weights = softmax_of(divided_by(times_transposed(x, x), std::sqrt(2))),
               scores = matrix(page.numbers("same.softmax"), 0, 1, 6);
  return {{"same.weights", below(weights)},
          {"same.output", below(mix(weights, x))},
          {"same.softmax", below({scores[0], softmax_of(scores)[0]})}};
}

inline Results dog_by_loops(const Page& page) {
  const Matrix keys = matrix(memory_columns(page, 0, 3), 0, 6, 3),
               values = matrix(memory_columns(page, 3, 2), 0, 6, 2);
  const std::vector<double> q = page.numbers("dog.query"), parameters = page.numbers("dog.parameters");
  Matrix scores(4), weights(4);
  for (const auto& key : keys) {
    double dot = 0, general = 0, additive = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      dot += q[i] * key[i];
      for (std::size_t j = 0; j < 3; ++j) general += q[i] * parameters[3 * i + j] * key[j];
      additive += parameters[9 + i] * std::tanh(key[i] - q[i]);
    }
    scores[0].push_back(dot);
    scores[1].push_back(dot / std::sqrt(3));
    scores[2].push_back(general);
    scores[3].push_back(additive);
  }
  weights = softmax_of(scores);
  return {{"dog.alignment", beside({scores[0], weights[0]}, 6)},
          {"dog.context", below(mix({weights[0]}, values))},
          {"dog.scores", beside(scores, 6)},
          {"dog.alignments", beside(weights, 6)}};
}

inline Results cross_by_loops(const Page& page) {
  const auto given = page.numbers("cross.projections");
  const Matrix visitors = matrix(page.numbers("cross.visitors"), 0, 2, 4),
               films = matrix(page.numbers("cross.films"), 0, 3, 6), wq = matrix(given, 0, 5, 4),
               wk = matrix(given, 20, 5, 6), wv = matrix(given, 50, 2, 6);
  const Matrix q = times_transposed(visitors, wq), k = times_transposed(films, wk),
               v = times_transposed(films, wv), scores = times_transposed(q, k),
               weights = softmax_of(divided_by(scores, std::sqrt(5))), output = mix(weights, v);
  std::vector<double> shapes;
  for (const Matrix& x : {visitors, wq, q, films, wk, k, wv, v, scores, output}) {
    shapes.push_back(static_cast<double>(x.size()));
    shapes.push_back(static_cast<double>(x[0].size()));
  }
  return {{"cross.shapes", shapes},           {"cross.projected", below({below(q), below(k), below(v)})},
          {"cross.scale", {5, std::sqrt(5)}}, {"cross.scores", below(scores)},
          {"cross.weights", below(weights)},  {"cross.output", below(output)}};
}

inline Results heads_by_loops() {
  const double c = 512, root = 8;
  std::vector<double> table;
  for (const double score : {root, 1.0}) {
    const std::vector<double> weights = softmax_of({{score, 0, -score}})[0];
    table.insert(table.end(), {score, 0, -score});
    table.insert(table.end(), weights.begin(), weights.end());
    for (const double w : weights) table.push_back(w * (1 - w));
  }
  const double all = 4 * c * c + 4 * c;
  return {{"heads.sizes", {c, c / 64, root * root, root}},
          {"heads.parameters", {3 * c, c, 3 * c * c, 3 * c, 1, 3 * c, c, c, c * c, c, 1, c, all, all}},
          {"heads.softmax", table}};
}

inline Results by_loops(const Page& page) {
  Results all = heads_by_loops();
  for (const auto& section : {cat_by_loops, same_by_loops, dog_by_loops, cross_by_loops})
    all.merge(section(page));
  return all;
}

}  // namespace thimble::tests
