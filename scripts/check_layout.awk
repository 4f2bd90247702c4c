# The rules of check_layout.sh, in POSIX awk. Input: the C++ sources and scripts, as paths relative to the root.

# Variables: `design`, the page with the picture of which room includes which; `complete`, whether every arrow of it must
# be used; `floors`, the floors with their limits and rooms; `words`, the list of retired words.

BEGIN {
  read_picture()
  read_floors()
  read_words()

  # Folders of a room, each of which may include itself and those before it.
  split("scores effects patching circuits trace timeline report", folders, " ")
  for (i in folders) folder_rank["inspect/" folders[i]] = i + 0

  # Which files may include a library: include path, then file path, both as regular expressions.
  home["^(cblas|openblas)"] = "^src/engine/kernels/products/backend\\.cpp$"
  home["^lapack"] = "^src/inspect/circuits/spectral\\.cpp$"
  home["^hwy/"] = "^(src/engine|tests)/kernels/"
  home["^yaml-cpp/"] = "^src/config/yaml_parser\\.cpp$"
  home["^CLI/"] = "^src/cli/command_line\\.cpp$"
  home["^mpi\\.h$"] = "^src/distributed/mpi\\.cpp$"
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
  list("src/engine/ops src/data/tasks", unlimited)
  list("src/engine/ops src/data/tasks src/lab src/cli/commands src/cli/main.cpp src/cli/blas_threads.cpp src/cli/environment.cpp src/cli/out_of_memory.cpp", unnamed)
}

function list(words, set,    part, i) {
  split(words, part, " ")
  for (i in part) set[part[i]] = 1
}

# Reads the arrows "A --> B" and "A -- HEADER --> B" of the picture.
function read_picture(    line, part, n, i, inside, from, to) {
  file = design
  known["engine"] = rooms = 1
  while ((getline line < design) > 0) {
    design_line++
    if (line ~ /^```/) inside = line == "```mermaid"
    if (!inside || line !~ /-->/) continue
    n = split(line, part, " ")
    from = part[1]
    to = part[n]
    if (!(from in known)) known[from] = ++rooms
    if (!(to in known) || known[to] >= known[from])
      violation(design_line, from " --> " to ": an arrow must point to a room above it")
    arrow_line[from, to] = design_line
    if (n > 3) {
      permitted[from, to "/" part[3]] = 1
      continue
    }
    reaches[from, to] = 1
    for (i in known)
      if ((to, i) in reaches) reaches[from, i] = 1
  }
  if (rooms == 1) violation(1, "no picture of rooms")
  file = ""
}

# Reads the floors: `floor_of` a room, `limit` of a floor, and for the engine the rank of a folder and the `home_room` of
# a public header.
function read_floors(    line, part, n, i, floor) {
  while ((getline line < floors) > 0) {
    floors_line++
    n = split(line, part, " ")
    if (n == 0 || line ~ /^#/) continue
    if (part[1] == "floor") {
      floor = order[++floor_count] = part[2]
      limit[floor] = part[3]
      limit_line[floor] = floors_line
    } else if (floor == "engine") {
      folder_rank["engine/" part[1]] = ++engine_rooms
      for (i = 2; i <= n; i++) home_room[part[i]] = part[1]
    } else {
      floor_of[part[1]] = floor
    }
  }
  floor_of["engine"] = "engine"
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
function find_terms(    both, key, part) {
  both = tolower(line_before " " $0)
  gsub(/ +/, " ", both)
  line_before = $0
  for (key in terms) {
    split(key, part, SUBSEP)
    if (part[1] == file && index(both, part[2])) delete terms[key]
  }
}

function violation(line, rule) {
  printf "%s:%d: %s\n", file, line, rule
  violations++
}

# The room of a source file or of the target of an include; "" when it is in none.
function room_of(path) {
  sub(/^(include\/thimble|src|thimble)\//, "", path)
  if (path ~ /^[a-z_]+\.h$/) sub(/\.h$/, "/", path) # the umbrella of a floor
  return match(path, /^[a-z_]+\//) ? substr(path, 1, RLENGTH - 1) : ""
}

# The room and folder of such a path, "inspect/scores".
function folder_of(path) {
  sub(/^(include\/thimble|src|thimble)\//, "", path)
  if (path ~ /^engine\/[a-z_]+\.h$/) {
    sub(/\.h$/, "", path)
    sub(/^engine\//, "", path)
    return path in home_room ? "engine/" home_room[path] : ""
  }
  return match(path, /^[a-z_]+\/[a-z_]+\//) ? substr(path, 1, RLENGTH - 1) : ""
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
  if (path == "iostream" && product) violation(FNR, "<iostream>: src/cli/print.h writes to the terminal")

  target = room_of(path)
  if (path ~ /^(thimble|src)\// || target in known) {
    if (!(target in known)) violation(FNR, "include \"" path "\": not in a room")
    else if (target == "cli" && room != "cli" && file !~ /^tests\/cli\//) violation(FNR, "include \"" path "\": only src/cli includes src/cli")
    else if (product && !may_include(target, path))
      violation(FNR, "include \"" path "\": room " room " may not include room " target)
    else if (file ~ /^include\// && path !~ /^thimble\//)
      violation(FNR, "include \"" path "\": a public header includes public ones")
    else if (product && path !~ /^thimble\// && target != room && target != "engine" && room != "lab")  # which has sources of other rooms
      violation(FNR, "include \"" path "\": a private header of room " target)
    else if (product && target == room && file != "include/thimble/engine.h" && folder_rank[folder_of(path)] > folder_rank[folder_of(file)])
      violation(FNR, "include \"" path "\": folder " folder_of(file) " may not include folder " folder_of(path))
  }
}

function may_include(target, path) {
  sub(/^thimble\//, "", path)
  used[room, target] = 1
  return target == room || (room, target) in reaches || (room, path) in permitted
}

function readable(expression) {
  gsub(/[\^$\\]/, "", expression)
  return expression
}

function end_file() {
  if (file == "") return
  if (file ~ /^include\/.*\.h$/ && !guarded) violation(1, "no #pragma once")
  if (file ~ /\.(md|ya?ml|js|html|css|json)$/) return
  if (product) floor_lines[floor_of[room]] += lines
  if (lines > kLongest) violation(lines, lines " lines: at most " kLongest ", better under " kLong)
  else if (lines > kLong) printf "warning: %s: %d lines, better under %d\n", file, lines, kLong
}

FNR == 1 {
  end_file()
  file = FILENAME
  files++
  lines = guarded = 0
  until = ""
  cpp = file ~ /\.(h|cpp)$/
  product = cpp && file ~ /^(include|src)\//
  room = product ? room_of(file) : ""
  if (product && !(room in known)) violation(1, "not in a room")
  if (file ~ /^(include\/thimble|src)\/engine\/.*\.(h|cpp)$/ && !(folder_of(file) in folder_rank))
    violation(1, "in no room of the engine; name it in scripts/floors.txt")
  folder = name = file
  sub(/\/[^\/]*$/, "", folder)
  sub(/.*\//, "", name)
  if (product && name ~ /\.h$/) header[room "/" substr(name, 1, length(name) - 2)] = 1
  if (file ~ /^src\/.*\.cpp$/) {
    if (++sources[folder] == kFolder + 1 && !(folder in unlimited)) violation(1, folder " has more than " kFolder " sources")
    if (!(folder in unnamed) && !(file in unnamed)) {
      sub(/\.cpp$/, "", name)
      expected[file] = room "/" name
    }
  }
}

{ lines = FNR }

file !~ /^(scripts\/check_layout|tests\/scripts\/layout_test|src\/config\/suggest)/ { check_phrases() }

file == "docs/glossary.md" { glossary = 1 }
file ~ /\.md$/ { find_terms() }

/TO[D]O|FIX[M]E/ { violation(FNR, "TO" "DO or FIX" "ME: finish it, or open an issue") }

# Registries differ from machine to machine.
file ~ /package-lock\.json$/ && /"resolved"/ {
  violation(FNR, "a lock file names a registry; make it with npm install --package-lock-only --omit-lockfile-registry-resolved")
}

# "About N lines of C++": without tests, blank lines and comments.
file == "README.md" && match($0, /[0-9,]+ lines of C\+\+/) {
  stated = substr($0, RSTART, RLENGTH)
  gsub(/[^0-9]/, "", stated)
  stated_at = FNR
}

file == "src/engine/README.md" && match($0, /[0-9,]+ lines/) {
  engine_stated = substr($0, RSTART, RLENGTH)
  gsub(/[^0-9]/, "", engine_stated)
  engine_stated_at = FNR
}

!cpp { next }

product && !/^[ \t]*(\/\/.*)?$/ { code_lines++ }

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
  if (product && file != "src/cli/print.cpp" && text ~ kTerminal)
    violation(FNR, "only src/cli/print.cpp writes to the terminal")
  if (text ~ /(^|[^A-Za-z0-9_])(cblas|openblas)_[a-z]/ && file != "src/engine/kernels/products/backend.cpp" &&
      !(file == "src/inspect/circuits/spectral.cpp" && text ~ /openblas_set_num_threads/) &&
      !(file == "src/cli/blas_threads.cpp" && text ~ /openblas_num_threads_env/))
    violation(FNR, "BLAS is called only in src/engine/kernels/products/backend.cpp")
  if (text ~ kLapack && file != "src/inspect/circuits/spectral.cpp")
    violation(FNR, "LAPACK is called only in src/inspect/circuits/spectral.cpp")
  if (text ~ /(^|[^A-Za-z0-9_])YAML::/ && file != "src/config/yaml_parser.cpp")
    violation(FNR, "yaml-cpp is used only in src/config/yaml_parser.cpp")
  if (file ~ /^src\/engine\/ops\// && file !~ /\/gradcheck_inputs\.h$/ && text ~ kLoop)
    violation(FNR, "a loop in an op: loops over elements belong to src/engine/kernels")

  # An op is a function at namespace scope that takes or returns a Var.
  if (file ~ /^include\// && folder_of(file) == "engine/ops" && text ~ /^[^ \t#]/ && text !~ /^(using|friend) / &&
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
  for (file in expected)
    if (!has_header(expected[file])) violation(1, "no header of its room has its name")
  if (glossary)
    for (key in terms) {
      split(key, part, SUBSEP)
      file = part[1]
      violation(1, "does not say \"" part[2] "\", which people search for")
    }
  file = "README.md"
  if (stated_at && (stated - code_lines > 1000 || code_lines - stated > 1000))
    violation(stated_at, stated " lines of C++: there are " code_lines)
  file = design
  if (complete)
    for (arrow in arrow_line) {
      split(arrow, part, SUBSEP)
      if (!(arrow in used)) violation(arrow_line[arrow], part[1] " --> " part[2] ": nothing includes it")
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
  if (engine_stated_at && (engine_stated - floor_lines["engine"] > 50 || floor_lines["engine"] - engine_stated > 50)) {
    file = "src/engine/README.md"
    violation(engine_stated_at, engine_stated " lines: there are " floor_lines["engine"])
  }
  if (violations) {
    printf "layout: %d violations\n", violations
    exit 1
  }
  printf "layout: ok (%d files)\n", files
}
