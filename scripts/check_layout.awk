# The rules of check_layout.sh, in POSIX awk. Input: the C++ sources and scripts, as paths relative to the root.

# Variables: `floors`, the floors with their limits, rooms and public headers; `words`, the list of retired words.

BEGIN {
  read_floors()
  read_words()

  # Which files may include a library: include path, then file path, both as regular expressions.
  home["^(cblas|openblas)"] = "^src/engine/kernels/products/backend\\.cpp$"
  home["^Eigen/"] = "^src/inspect/circuits/spectral\\.cpp$"
  home["^hwy/"] = "^(src|tests)/engine/kernels/"
  home["^yaml-cpp/"] = "^src/train/config/yaml_parser\\.cpp$"
  home["^CLI/"] = "^src/program/cli/(command_line|completion|help)\\.cpp$"
  home["^mpi\\.h$"] = "^src/addons/cluster/mpi\\.cpp$"
  home["^Random123/"] = "^src/engine/core/random\\.cpp$"
  home["^catch2/"] = "^tests/"

  kTerminal = "(^|[^A-Za-z0-9_])(v?f?printf|f?puts|putchar|perror|stdout|stderr|(fmt|std)::v?print(ln)?|" \
              "std::w?(cout|cerr|clog))([^A-Za-z0-9_]|$)"
  kLapack = "(^|[^A-Za-z0-9_])(LAPACKE?_[a-z]+|[sdcz](ge|sy|he|po|or|un|tr|hs)" \
            "(ev|es|sv|sd|ls|qr|lq|qp|tr|hr|br|eq|con|gq|gl|mq|ml|mtr)[a-z0-9]*_)[ ]*\\("
  kLoop = "(^|[^A-Za-z0-9_])((for|while)[ ]*\\(|do[ ]*\\{)"
  kLongest = 400
  kLong = 300
  kFolder = 15
  # Folders that may have more sources, and folders and files where sources are not named after headers: an op, a task or
  # a command each, what main() needs, and what the lab has in place of sources of other rooms.
  list("src/engine/ops src/train/data/tasks", unlimited)
  list("src/engine/ops src/train/data/tasks src/addons/lab src/addons/cluster/mpi_cluster.cpp src/addons/cluster/cluster_queue.cpp src/program/cli/commands src/program/cli/main.cpp src/program/cli/blas_threads.cpp src/program/cli/environment.cpp src/program/cli/out_of_memory.cpp", unnamed)
}

function list(words, set,    part, i) {
  split(words, part, " ")
  for (i in part) set[part[i]] = 1
}

# Reads the floors: the `limit` of each, the `rank` of a room "FLOOR/ROOM" among all of them, and the `home_room` of a
# public header "FLOOR/NAME".
function read_floors(    line, part, n, i, floor) {
  while ((getline line < floors) > 0) {
    floors_line++
    n = split(line, part, " ")
    if (n == 0 || line ~ /^#/ || part[1] == "build") continue
    if (part[1] == "floor") {
      floor = order[++floor_count] = part[2]
      limit[floor] = part[3]
      limit_line[floor] = floors_line
      continue
    }
    if (part[1] == "whole") {
      most = part[2]
      whole_line = floors_line
      continue
    }
    rank[floor "/" part[1]] = ++rooms
    top[floor] = rooms + 0.5
    for (i = 2; i <= n; i++) home_room[floor "/" part[i]] = floor "/" part[1]
  }
}

# Reads the retired words: names into `retired`, phrases into `phrase`, each with what replaces it.
function read_words(    line, part) {
  while ((getline line < words) > 0) {
    if (split(line, part, "\t") != 3) continue
    if (part[1] == "name") retired["^(" part[2] ")$"] = part[3]
    if (part[1] == "text") phrase[part[2]] = part[3]
    if (part[1] == "term") terms[part[3], part[2]] = terms["docs/glossary.md", part[2]] = 1
  }
  for (line in retired) any_name = any_name (any_name == "" ? "" : "|") line
  for (line in phrase) any_phrase = any_phrase (any_phrase == "" ? "" : "|") line
}

# Reports the retired names among the identifiers of a line of code, each once for a line.
function check_names(text,    i, n, part, expression) {
  n = split(text, part, /[^A-Za-z0-9_]+/)
  for (i = 1; i <= n; i++)
    if (part[i] ~ any_name)
      for (expression in retired)
        if (part[i] ~ expression) violation(FNR, part[i] ": a retired name; use " retired[expression])
}

function check_phrases(    expression) {
  if ($0 ~ any_phrase)
    for (expression in phrase)
      if ($0 ~ expression) violation(FNR, "\"" expression "\": retired words; use " phrase[expression])
}

# Strikes off the terms that this line of a page has, or this line and the one before it.
# Checks that the scripts and tests that a line names are there.
function find_paths(    rest, path, text) {
  rest = $0
  while (match(rest, /(^|[^A-Za-z0-9_.\/}-])(\.\.\/)?(tests|scripts)\/[a-z0-9_.\/-]+\.(awk|cpp|h|json|mjs|py|sh|txt)/)) {
    path = substr(rest, RSTART, RLENGTH)
    rest = substr(rest, RSTART + RLENGTH)
    sub(/^.*(\.\.\/|[^a-z0-9_.\/-])/, "", path)
    if ((getline text < path) < 0) violation(FNR, path ": no such file")
    close(path)
  }
}

function find_terms(    both, key, part) {
  both = tolower(line_before " " $0)
  gsub(/ +/, " ", both)
  line_before = $0
  for (key in terms) {
    split(key, part, SUBSEP)
    if (part[1] == file && index(both, part[2])) delete terms[key]
  }
}

function floor_of_page(    part) {
  split(file, part, "/")
  return part[2]
}

function state(floor, text) {
  gsub(/[^0-9]/, "", text)
  stated[file, floor] = text
  stated_at[file, floor] = FNR
}

function violation(line, rule) {
  printf "%s:%d: %s\n", file, line, rule
  violations++
}

# The room, as FLOOR/ROOM, of a source file or of the target of an include; the floor itself for its umbrella, and "" for
# what is in no floor.
function room_of(path,    is_public, part) {
  is_public = path ~ /^(include\/)?thimble\//
  sub(/^((include\/)?thimble|src)\//, "", path)
  if (is_public && path ~ /^[a-z_]+\.h$/) {
    sub(/\.h$/, "", path)
    return path in limit ? path : ""
  }
  split(path, part, "/")
  if (!(part[1] in limit)) return ""
  if (!is_public) return part[1] "/" part[2]
  sub(/\.h$/, "", path)
  return path in home_room ? home_room[path] : part[1] "/?"
}

# The line without comments and without what is inside literals. `until` is what ends a literal or comment that
# the line before left open.
function code(line,    out, token, delimiter) {
  out = ""
  while (line != "") {
    if (until != "") {
      if (!index(line, until)) return out
      line = substr(line, index(line, until) + length(until))
      until = ""
      continue
    }
    if (!match(line, /\/\/|\/\*|R"[A-Za-z_]*\(|"([^"\\]|\\.)*"|'([^'\\]|\\.)'/)) return out line
    token = substr(line, RSTART, RLENGTH)
    out = out substr(line, 1, RSTART - 1)
    line = substr(line, RSTART + RLENGTH)
    if (token == "//") return out
    if (token == "/*") until = "*/"
    else if (token ~ /^R/) until = ")" substr(token, 3, length(token) - 3) "\""
    else out = out "\"\""
  }
  return out
}

function check_include(path,    target, library) {
  if (path ~ /(^|\/)\.\.(\/|$)/) violation(FNR, "include <" path ">: no .. in include paths")
  for (library in home)
    if (path ~ library && file !~ home[library])
      violation(FNR, "include <" path ">: allowed only in " readable(home[library]))
  if (path == "iostream" && product) violation(FNR, "<iostream>: src/program/cli/print.h writes to the terminal")

  target = room_of(path)
  if (target == "") {
    if (path ~ /^(thimble|src)\//) violation(FNR, "include \"" path "\": in no floor")
  } else if (product) {
    if (!(target in rank) && !(target in limit))
      violation(FNR, "include \"" path "\": in no room")
    else if (file ~ /^include\// && path !~ /^thimble\//)
      violation(FNR, "include \"" path "\": a public header includes public ones")
    else if (rank_of(target) > rank_of(room))
      violation(FNR, "include \"" path "\": " room " may not include " target)
  }
}

# A header of a whole floor is above the rooms of the floor, and below the next floor.
function rank_of(room) { return room in rank ? rank[room] : top[room] }

function readable(expression) {
  gsub(/[\^$\\]/, "", expression)
  return expression
}

function end_file() {
  if (file == "") return
  if (file ~ /^include\/.*\.h$/ && !guarded) violation(1, "no #pragma once")
  if (file ~ /\.(md|ya?ml|js|html|css|json)$/) return
  if (product) {
    floor_lines[floor] += code_lines
    whole += code_lines
  }
  if (lines > kLongest) violation(lines, lines " lines: at most " kLongest ", better under " kLong)
  else if (lines > kLong) printf "warning: %s: %d lines, better under %d\n", file, lines, kLong
}

FNR == 1 {
  end_file()
  file = FILENAME
  files++
  lines = code_lines = guarded = 0
  until = ""
  cpp = file ~ /\.(h|cpp)$/
  product = cpp && file ~ /^(include|src)\//
  room = product ? room_of(file) : ""
  if (product && !(room in rank) && !(room in limit)) violation(1, "in no room; name it in scripts/floors.txt")
  floor = room
  sub(/\/.*/, "", floor)
  folder = name = file
  sub(/\/[^\/]*$/, "", folder)
  sub(/.*\//, "", name)
  if (product && name ~ /\.h$/) {
    header[room "/" substr(name, 1, length(name) - 2)] = 1
    if (file ~ /^src\//) beside[file] = room "/" substr(name, 1, length(name) - 2)
  }
  if (file ~ /^src\/.*\.cpp$/) {
    source_folder[room "/" substr(name, 1, length(name) - 4)] = folder
    if (++sources[folder] == kFolder + 1 && !(folder in unlimited)) violation(1, folder " has more than " kFolder " sources")
    if (!(folder in unnamed) && !(file in unnamed)) {
      sub(/\.cpp$/, "", name)
      expected[file] = room "/" name
    }
  }
}

{ lines = FNR }
product && $0 !~ /^[ \t]*(\/\/|$)/ { code_lines++ } # a comment costs nothing

file !~ /^(scripts\/check_layout|tests\/scripts\/layout_test)/ { check_phrases() }

file !~ /^tests\/(CMakeLists\.txt|scripts\/layout_test)/ { find_paths() }

file == "docs/glossary.md" { glossary = 1 }
file ~ /\.md$/ { find_terms() }

/TO[D]O|FIX[M]E/ { violation(FNR, "TO" "DO or FIX" "ME: finish it, or open an issue") }

# Registries differ from machine to machine.
file ~ /package-lock\.json$/ && /"resolved"/ {
  violation(FNR, "a lock file names a registry; make it with npm install --package-lock-only --omit-lockfile-registry-resolved")
}

# The lines of a floor are stated by its own page, first of all, and by README.md after a link to that page.
file ~ /^src\/[a-z]+\/README\.md$/ && !((file, floor_of_page()) in stated) && match($0, /[0-9,]+ lines/) {
  state(floor_of_page(), substr($0, RSTART, RLENGTH))
}

file == "README.md" {
  rest = $0
  while (match(rest, /\(src\/[a-z]+\/README\.md\) [0-9][0-9,]*/)) {
    link = substr(rest, RSTART, RLENGTH)
    rest = substr(rest, RSTART + RLENGTH)
    split(link, part, "/")
    sub(/.*\) /, "", link)
    state(part[2], link)
  }
}

!cpp { next }

until == "" && /^[ \t]*#[ \t]*include[ \t]*["<]/ {
  split($0, part, /["<>]/)
  check_include(part[2])
}

/^#pragma once/ { guarded = 1 }

# A gradcheck case starts with the name of its op.
file ~ /^src\/engine\/ops\/[^\/]*\.cpp$/ {
  rest = $0
  while (match(rest, /(\{|unary\()"[a-z][a-z0-9_]*", /)) {
    name = substr(rest, RSTART, RLENGTH)
    sub(/^[^"]*"/, "", name)
    sub(/".*/, "", name)
    proven[name] = 1
    rest = substr(rest, RSTART + RLENGTH)
  }
}

{
  text = code($0)
  check_names(text)
  if (product && file != "src/program/cli/print.cpp" && text ~ kTerminal)
    violation(FNR, "only src/program/cli/print.cpp writes to the terminal")
  if (text ~ /(^|[^A-Za-z0-9_])(cblas|openblas)_[a-z]/ && file != "src/engine/kernels/products/backend.cpp" &&
      !(file == "src/program/cli/blas_threads.cpp" && text ~ /openblas_num_threads_env/))
    violation(FNR, "BLAS is called only in src/engine/kernels/products/backend.cpp")
  if (text ~ /(^|[^A-Za-z0-9_])Eigen::/ && file != "src/inspect/circuits/spectral.cpp")
    violation(FNR, "Eigen is used only in src/inspect/circuits/spectral.cpp")
  if (text ~ kLapack || text ~ /#include <lapack/)
    violation(FNR, "LAPACK is not called: a static program has none; use Eigen")
  if (text ~ /(^|[^A-Za-z0-9_])YAML::/ && file != "src/train/config/yaml_parser.cpp")
    violation(FNR, "yaml-cpp is used only in src/train/config/yaml_parser.cpp")
  if (text ~ /(^|[^A-Za-z0-9_])Catch::([^A]|A[^p])/ && file != "tests/catch.h")
    violation(FNR, "versions of Catch2 differ in names with Catch::; use those of tests/catch.h, such as ContainsSubstring")
  if (file ~ /^src\/engine\/ops\// && file !~ /\/gradcheck_inputs\.h$/ && text ~ kLoop)
    violation(FNR, "a loop in an op: loops over elements belong to src/engine/kernels")

  # An op is a function at namespace scope that takes or returns a Var.
  if (file ~ /^include\// && room == "engine/ops" && text ~ /^[^ \t#]/ && text !~ /^(using|friend) / &&
      text ~ /(^|[^A-Za-z0-9_])Var([^A-Za-z0-9_]|$)/ && match(text, /[a-z][a-z0-9_]*\(/)) {
    op = substr(text, RSTART, RLENGTH - 1)
    ops[++op_count] = op
    declared[op_count] = file ":" FNR
  }
}

# Whether there is a header of that name, x.h for x.cpp or for x_part.cpp.
function has_header(name) {
  while (!(name in header))
    if (!sub(/_[^_\/]*$/, "", name)) return 0
  return 1
}

END {
  end_file()
  for (file in beside) {
    folder = file
    sub(/\/[^\/]*$/, "", folder)
    if (beside[file] in source_folder && source_folder[beside[file]] != folder)
      violation(1, "lies beside its source, in " source_folder[beside[file]])
  }
  for (file in expected)
    if (!has_header(expected[file])) violation(1, "no header of its room has its name")
  if (glossary)
    for (key in terms) {
      split(key, part, SUBSEP)
      file = part[1]
      violation(1, "does not say \"" part[2] "\", which people search for")
    }
  for (i = 1; i <= op_count; i++)
    if (!(ops[i] in proven)) {
      printf "%s: op %s has no case \"%s\" in src/engine/ops/*.cpp\n", declared[i], ops[i], ops[i]
      violations++
    }
  file = floors
  for (i = 1; i <= floor_count; i++) {
    floor = order[i]
    if (floor_lines[floor] > limit[floor])
      violation(limit_line[floor], "floor " floor " has " floor_lines[floor] " lines, at most " limit[floor] ": look for what the new lines can replace")
    printf "floor %-8s %6d lines, at most %6d\n", floor, floor_lines[floor], limit[floor]
  }
  if (most && whole > most)
    violation(whole_line, "all floors have " whole " lines, at most " most ": look for what the new lines can replace")
  if (most) printf "all floors     %6d lines, at most %6d\n", whole, most
  for (page in stated) {
    split(page, part, SUBSEP)
    file = part[1]
    difference = stated[page] - floor_lines[part[2]]
    if (difference > 50 || difference < -50)
      violation(stated_at[page], "floor " part[2] ": " stated[page] " lines, there are " (0 + floor_lines[part[2]]))
  }
  if (violations) {
    printf "layout: %d violations\n", violations
    exit 1
  }
  printf "layout: ok (%d files)\n", files
}
