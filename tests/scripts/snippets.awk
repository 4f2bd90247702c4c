# Writes each ```cpp block of a Markdown page as a program, DIR/NAME_N.cpp, and its expected output, the ```text block
# that follows, as DIR/NAME_N.txt. Usage: awk -v out=DIR/NAME -f snippets.awk PAGE

function fail(message) {
  printf "%s:%d: %s\n", FILENAME, FNR, message > "/dev/stderr"
  failed = 1
  exit 1
}

/^```/ && file != "" {
  close(file)
  file = ""
  next
}
file != "" {
  print > file
  next
}
/^```cpp$/ {
  if (silent) fail("the program above has no ```text block with its output")
  silent = 1
  file = out "_" ++programs ".cpp"
  printf "#line %d \"%s\"\n", FNR + 1, FILENAME > file
}
/^```text$/ && silent {
  silent = 0
  file = out "_" programs ".txt"
}

END {
  if (failed) exit 1
  if (silent) fail("the last program has no ```text block with its output")
  if (!programs) fail("no program")
}
