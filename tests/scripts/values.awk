# Prints each value of a JSON text: its pointer, a tab, and the value without spaces.
{
  while (match($0, /"([^"\\]|\\.)*"|[][{},:]|[^][{},:" \t\r]+/)) {
    token[++count] = substr($0, RSTART, RLENGTH)
    $0 = substr($0, RSTART + RLENGTH)
  }
}
END {
  while (at < count) value("")
}

function value(path,    out, key, i) {
  out = token[++at]
  if (out == "{" || out == "[") {
    for (i = 0; at < count && token[at + 1] !~ /^[]}]$/; ++i) {
      if (i > 0) out = out token[++at]
      key = i
      if (substr(out, 1, 1) == "{") {
        key = substr(token[++at], 2, length(token[at]) - 2)
        out = out token[at++] ":"
      }
      out = out value(path "/" key)
    }
    out = out token[++at]
  }
  print path "\t" out
  return out
}
