# The rules of check_layout.sh, in POSIX awk. Input: the C++ sources and scripts, as paths relative to the root.

BEGIN {
  split("core tensor kernels autograd ops nn model optim data config train inspect reproduce cli", rooms, " ")
  for (i in rooms) rank[rooms[i]] = i + 0

  # A room may include itself and the rooms before it, but these may include only what is listed.
  only["optim"] = " core tensor kernels autograd optim "
  only["data"] = " core data "
  only["config"] = " core data config model/model_config.h optim/optim_config.h "

  # Which files may include a library: include path, then file path, both as regular expressions.
  home["^(cblas|openblas)"] = "^src/kernels/gemm\\.cpp$"
  home["^lapack"] = "^src/kernels/spectral\\.cpp$"
  home["^hwy/"] = "^src/kernels/"
  home["^yaml-cpp/"] = "^src/config/"
  home["^CLI/"] = "^src/cli/command_line\\.cpp$"
  home["^Random123/"] = "^src/core/random\\.cpp$"
  home["^catch2/"] = "^tests/"

  kTerminal = "(^|[^A-Za-z0-9_])(v?f?printf|f?puts|putchar|perror|stdout|stderr|(fmt|std)::v?print(ln)?|" \
              "std::w?(cout|cerr|clog))([^A-Za-z0-9_]|$)"
  kLapack = "(^|[^A-Za-z0-9_])(LAPACKE?_[a-z]+|[sdcz](ge|sy|he|po|or|un|tr|hs)" \
            "(ev|es|sv|sd|ls|qr|lq|qp|tr|hr|br|eq|con|gq|gl|mq|ml|mtr)[a-z0-9]*_)[ ]*\\("
  kLoop = "(^|[^A-Za-z0-9_])((for|while)[ ]*\\(|do[ ]*\\{)"
  kLongest = 400
  kLong = 300
}

function violation(line, rule) {
  printf "%s:%d: %s\n", file, line, rule
  violations++
}

# The room of a source file or of the target of an include; "" when it is in none.
function room_of(path) {
  sub(/^(include\/thimble|src|thimble)\//, "", path)
  return match(path, /^[a-z_]+\//) ? substr(path, 1, RLENGTH - 1) : ""
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
  if (path ~ /^(thimble|src)\// || target in rank) {
    if (!(target in rank)) violation(FNR, "include \"" path "\": not in a room")
    else if (target == "cli" && room != "cli") violation(FNR, "include \"" path "\": only src/cli includes src/cli")
    else if (product && !may_include(target, path))
      violation(FNR, "include \"" path "\": room " room " may not include room " target)
    else if (product && path !~ /^thimble\// && target != room)
      violation(FNR, "include \"" path "\": a private header of room " target)
  }
}

function may_include(target, path) {
  sub(/^(thimble|src)\//, "", path)
  if (room in only) return index(only[room], " " target " ") || index(only[room], " " path " ")
  return rank[target] <= rank[room]
}

function readable(expression) {
  gsub(/[\^$\\]/, "", expression)
  return expression
}

function end_file() {
  if (file == "") return
  if (file ~ /^include\/.*\.h$/ && !guarded) violation(1, "no #pragma once")
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
  if (product && !(room in rank)) violation(1, "not in a room")
}

{ lines = FNR }

/TO[D]O|FIX[M]E/ { violation(FNR, "TO" "DO or FIX" "ME: finish it, or open an issue") }

!cpp { next }

until == "" && /^[ \t]*#[ \t]*include[ \t]*["<]/ {
  split($0, part, /["<>]/)
  check_include(part[2])
}

/^#pragma once/ { guarded = 1 }

# A gradcheck case starts with the name of its op.
file ~ /^src\/ops\/[^\/]*\.cpp$/ {
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
  if (product && file != "src/cli/print.cpp" && text ~ kTerminal)
    violation(FNR, "only src/cli/print.cpp writes to the terminal")
  if (text ~ /(^|[^A-Za-z0-9_])(cblas|openblas)_[a-z]/ && file != "src/kernels/gemm.cpp" &&
      !(file == "src/kernels/spectral.cpp" && text ~ /openblas_set_num_threads/) &&
      !(file == "src/cli/blas_threads.cpp" && text ~ /openblas_num_threads_env/))
    violation(FNR, "BLAS is called only in src/kernels/gemm.cpp")
  if (text ~ kLapack && file != "src/kernels/spectral.cpp")
    violation(FNR, "LAPACK is called only in src/kernels/spectral.cpp")
  if (text ~ /(^|[^A-Za-z0-9_])YAML::/ && file !~ /^src\/config\//) violation(FNR, "yaml-cpp is used only in src/config/")
  if (file ~ /^src\/ops\// && file !~ /\/gradcheck_inputs\.h$/ && text ~ kLoop)
    violation(FNR, "a loop in an op: loops over elements belong to src/kernels")

  # An op is a function at namespace scope that takes or returns a Var.
  if (file ~ /^include\/thimble\/ops\// && text ~ /^[^ \t#]/ && text !~ /^(using|friend) / &&
      text ~ /(^|[^A-Za-z0-9_])Var([^A-Za-z0-9_]|$)/ && match(text, /[a-z][a-z0-9_]*\(/)) {
    op = substr(text, RSTART, RLENGTH - 1)
    ops[++op_count] = op
    declared[op_count] = file ":" FNR
  }
}

END {
  end_file()
  for (i = 1; i <= op_count; i++)
    if (!(ops[i] in proven)) {
      printf "%s: op %s has no case \"%s\" in src/ops/*.cpp\n", declared[i], ops[i], ops[i]
      violations++
    }
  if (violations) {
    printf "layout: %d violations\n", violations
    exit 1
  }
  printf "layout: ok (%d files)\n", files
}
