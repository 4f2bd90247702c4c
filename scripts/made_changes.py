"""Makes small wrong changes to C++ by rule, for mutate.py. It reads the text only, laid out as clang-format does it here:
binary operators have white space on both sides, brackets of templates have not. What types do not allow is made too.

A condition of if, while and ?:, and an expression with comparisons, && or ||, becomes true, false and its negation; an
operand of && becomes true, of ||, false; a statement that is a call or an assignment is dropped. + and -, * and /, < and <=,
> and >=, == and !=, && and ||, min and max, 0 and 1 become each other, and so do += and -=, *= and /=."""
import re

UNREAD = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
                    r"|^[ \t]*#(?:\\\n|[^\n])*|\bstatic_assert\([^;]*;|\bconstexpr [^;(){}]+ = [^;]*;"
                    r"|\bif constexpr \([^;{]*?\)(?=\s[\w{])", re.S | re.M)
TOKEN = re.compile(r"""(?P<open>[(\[{]|(?<=template\ )<|(?<=[\w\]])(?<!operator)<(?![<=])
                             |(?<=operator\(\))<)
                     | (?P<close>[)\]}]|(?<![-\s])>)
                     | (?P<operator>(?<=\s)(?:[-+*/]|[<>]=?|[=!]=|&&|\|\|)(?=\s)|(?<=[:f])(?:min|max)(?=[(<]))
                     | (?P<end>[,;?]|(?<!:):(?!:)|(?<=\s)(?:[-+*/%&|^]|<<|>>)?=(?=\s)
                             |(?<![\w.])(?:return|throw|case|else|do)\b)
                     | (?P<literal>(?<![\w.])(?<!\de[-+])(?<!\)\ =\ )(?<!const\ =\ )[01](?:\.0)?(?![\w.']))""", re.VERBOSE)
OTHER = {"+": "-", "-": "+", "*": "/", "/": "*", "min": "max", "max": "min", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
         "==": "!=", "!=": "==", "&&": "||", "||": "&&", "0": "1", "1": "0", "0.0": "1.0", "1.0": "0.0"}
LOGIC = {"<", "<=", ">", ">=", "==", "!=", "&&", "||"}
NO_CALL = re.compile(r"(?:return|throw|using|delete|goto|break|continue|static_cast<void>)\b|[A-Z_]{4,}\(|~")
CALL = re.compile(r"[^\s=]+ (?:[-+*/%&|^]|<<|>>)?= |[^\s]*(?:\(\)|\+\+|--)[^\s]*$|[\w.:()]+ << ")
FUNCTION = re.compile(r"\s*(?:template <[^()]*?>\s+)?(?:(?:\[\[nodiscard\]\]|static|inline|virtual|constexpr) )*"
                      r"(\w[\w:<>, ]*[&*]*) [\w:]+\(")
TYPE = re.compile(r"\s*(template <[^()]*?>\s+)?(inline )?(namespace|struct|class|enum|union)\b")


class Frame:
    """An open bracket. An expression begins at `begin`, after `before`; a statement at `statement`."""
    def __init__(self, bracket, at, head="", is_type=False, gives_bool=False):
        self.bracket, self.at, self.head, self.is_type, self.gives_bool = bracket, at, head, is_type, gives_bool
        self.restart(at + 1, bracket)
        self.statement, self.step = at + 1, -1

    def restart(self, begin, before):
        self.begin, self.before, self.operators = begin, before, []


def code_of(source):
    """The source with white space for comments, preprocessor lines and constants; what is in quotes becomes quotes."""
    return UNREAD.sub(lambda m: '"' * len(m[0]) if m[0][0] in "\"'R" else re.sub(r"\S", " ", m[0]), source)


def flat(text):
    """The text with () for brackets and what is in them."""
    for pattern, new in ((r"[(\[{][^()\[\]{}]*[)\]}]", "\0\0"), (r"(?<=\w)<[^<>\s]+(?:, [^<>\s]+)*>", "")):
        while text != (text := re.sub(pattern, new, text)):
            pass
    return text.replace("\0\0", "()").strip()


def is_lambda(before):
    return re.search(r"\]\s*(\([^()]*(\([^()]*\)[^()]*)*\))?( mutable)?( -> [^()]*)?\s*$", before)


def trimmed(code, begin, end):
    text = code[begin:end]
    return begin + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))


def made_changes(source):
    """Changes as (at, begin, end, new, is_condition): new takes the place of source[begin:end], all of an expression or a
    statement; `at` is what has changed in it."""
    code, changes = code_of(source), []
    stack = [Frame("{", -1, is_type=True)]

    def expression(frame, end, after):
        begin, end = trimmed(code, frame.begin, end)
        operators = [(at, sign) for at, sign in frame.operators if begin < at < end]
        if begin >= end or frame.bracket == "<" or code[begin] == "[" or frame.is_type and frame.before not in "=?:":
            return
        text = source[begin:end]
        is_logic = any(sign in LOGIC for _, sign in operators)
        heads = frame.head in ("if", "while") and after == ")" and frame.before in "(;"
        if heads or after == "?" or is_logic or after == ";" and frame.before == "return" and frame.gives_bool:
            endless = frame.head in ("while", "for")
            changes.extend((begin, begin, end, new, True) for new in ["false"] + ["true"] * (not endless))
            if [sign for _, sign in operators] not in (["=="], ["!="]):
                new = text[1:] if re.fullmatch(r"![\w.:]+(\(\))?", text) else f"!({text})"
                changes.append((begin, begin, end, new, True))
        edges = [(begin, begin, "")] + [(at, at + 2, sign) for at, sign in operators if sign in ("&&", "||")] + [(end, end, "")]
        for (_, first, left), (last, _, right) in zip(edges, edges[1:]):
            if left or right:
                first, last = trimmed(code, first, last)
                new = "true" if "&&" in (left, right) else "false"
                changes.append((first, begin, end, source[begin:first] + new + source[last:end], False))
        for at, sign in operators:
            if not (sign == "+" and '"' in flat(code[begin:end])):
                new = source[begin:at] + OTHER[sign] + source[at + len(sign):end]
                changes.append((at, begin, end, new, False))

    def statement(frame, end):
        begin, end = trimmed(code, frame.statement, end)
        text = flat(code[begin:end])
        if frame.bracket == "{" and not frame.is_type and not NO_CALL.match(text) and CALL.match(text):
            changes.append((begin, begin, end + 1, ";", False))
            if frame.step > begin:
                new = source[begin:frame.step] + OTHER[code[frame.step]] + source[frame.step + 1:end + 1]
                changes.append((frame.step, begin, end + 1, new, False))

    for token in TOKEN.finditer(code):
        frame, at, text = stack[-1], token.start(), token.group()
        if token["open"]:
            before = code[frame.statement:at]
            head = re.search(r"(\w+) $", before) if text == "(" else None
            is_type = text == "{" and TYPE.match(before)
            is_bool = FUNCTION.match(before) if text == "{" else None
            stack.append(Frame(text, at, head[1] if head else "", bool(is_type),
                               is_bool[1] == "bool" if is_bool else frame.gives_bool and not is_lambda(before)))
        elif token["close"]:
            if text != ">":
                while len(stack) > 1 and stack[-1].bracket == "<":
                    stack.pop()
            elif frame.bracket != "<":
                continue
            if len(stack) == 1:
                continue
            frame = stack.pop()
            expression(frame, at, text)
            outer = stack[-1]
            is_head = text == ")" and frame.head in ("if", "while", "for", "switch", "catch")
            before = code[outer.statement:frame.at].rstrip()
            is_block = text == "}" and outer.bracket == "{" and (
                frame.is_type or not before or re.search(r"([;{}]|\b(else|do|try|const|noexcept|override))$", before)
                or before.endswith(")") and not is_lambda(before))
            if is_head or is_block:
                outer.restart(at + 1, "")
                outer.statement = at + 1
        elif token["operator"]:
            frame.operators.append((at, text))
        elif token["end"]:
            if text in ";" and frame.bracket == "<":
                stack.pop()
                frame = stack[-1]
            expression(frame, at, text)
            if text == ";":
                statement(frame, at)
            elif text[0] in "+-*/":
                frame.step = at
            is_label = text == ":" and re.match(r"\s*(case|default|public|private|protected)\b", code[frame.statement:at])
            if text in (";", "else", "do") or is_label:
                frame.statement = token.end()
            frame.restart(token.end(), text)
        elif all(frame.bracket != "<" for frame in stack):
            changes.append((at, at, token.end(), OTHER[text], False))
    return sorted(set(changes))
