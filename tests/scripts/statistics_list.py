"""The list of every number in the JSON of every command, statistics.txt, and reports that are checked against it."""

import pathlib
import re


def read_list():
    """The lines (path, kind, n, least, proof, undefined) of each section, with those of the sections that it includes."""
    sections = {}
    for line in pathlib.Path(__file__).with_name("statistics.txt").read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0].startswith("["):
            lines = sections[words[0][1:-1]] = []
        elif words[0] == "as":
            prefix = "" if words[1] == "." else words[1] + "/"
            lines += [(prefix + path, kind, n and prefix + n, *rest) for path, kind, n, *rest in sections[words[2]]]
        elif words[1] == "of":
            least = int(words[words.index("from") + 1]) if "from" in words else 1
            lines.append((words[0], "of", words[2], least, words[3], "undefined" in words))
        else:
            lines.append((words[0], words[1], None, 0, None, False))
    return sections


def leaves(value, path=()):
    if isinstance(value, (dict, list)):
        for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inside, (*path, str(key)))
    elif value is None or type(value) in (int, float):
        yield path, value


def fits(pattern, path):
    words = pattern.split("/")
    if words[-1] == "**":
        words, path = words[:-1], path[:len(words) - 1]
    return len(words) == len(path) and all(w == "*" or re.fullmatch(w, p) for w, p in zip(words, path))


def at(value, path):
    for key in path:
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def number_of(report, pattern, path, n):
    """The number at n that belongs to the leaf at the path."""
    words, common, keys = pattern.split("/"), True, []
    for k, word in enumerate(n.split("/")):
        common = common and k < len(words) and words[k] == word
        from_end = k - n.count("/") - 1
        keys.append(path[k] if common else path[from_end] if word == "*" else str(-1 - int(path[from_end])) if word == "-"
                    else str(at(report, path[:2])["layer"]) if word == "@layer" else word)
    return at(report, keys)


class Report:
    """The JSON of a command, all of whose numbers must be in a section of the list."""

    lists, compared, used = read_list(), set(), set()

    def __init__(self, section, report):
        self.section, self.json = section, report
        for path, value in leaves(report):
            line = self.line_of(path)
            self.used.add((section, line[0], line[4]))
            kind, where = line[1], f"{section}: {'/'.join(path)}"
            if kind == "of":
                n = number_of(report, line[0], path, line[2])
                assert type(n) is int, f"{where}: {line[2]} is {n}, not the number it is a statistic of"
                assert (value is None) == (n < line[3]) or line[5] and value is None, f"{where} is {value}, a statistic of {n}"
            assert kind != "count" or type(value) is int and value >= 0, f"{where} is {value}, not a count"
            assert kind != "null" or value is None, f"{where} is {value}, not null"

    def line_of(self, path):
        for line in self.lists[self.section]:
            if fits(line[0], path):
                return line
        raise AssertionError(f"{self.section}: {'/'.join(path)} is not in statistics.txt: what is it a number of?")

    def same(self, path, expected, tolerance=2e-6):
        """Compares a number, or each of a list or an object, with what NumPy found; None: not measured."""
        if isinstance(expected, (dict, list)):
            for key, one in expected.items() if isinstance(expected, dict) else enumerate(expected):
                self.same(f"{path}/{key}", one, tolerance)
            return
        keys = tuple(path.strip("/").split("/"))
        value, where = at(self.json, keys), f"{self.section}: {path}"
        if expected is None:
            assert value is None, f"{where} is {value}, not null"
            return
        assert value is not None and abs(value - expected) <= tolerance * max(1, abs(expected)), (
            f"{where} is {value}, in NumPy {expected}")
        self.compared.add((self.section, self.line_of(keys)[0]))
