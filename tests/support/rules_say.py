"""What a program can say, read from its source: the texts that reach a place where something is said.

Every function is followed with what its names may be: texts, or values that only a running program knows. A text given
to a function that says it is what its caller says. What cannot be followed stands as a value, `{...}`: who reads the
list sees it, nothing is left out in silence.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

Texts: TypeAlias = frozenset[str]
Value: TypeAlias = frozenset[str] | tuple[Any, ...]
Names: TypeAlias = dict[str, Value]
Function: TypeAlias = ast.FunctionDef

# Where something is said: the call, and which of its arguments by place and name is what.
CALLS: Final[Mapping[str, Mapping[int | str, str]]] = {
    "Irregularity": {0: "code", 1: "text"},
    "Suspended": {1: "reason", 2: "remedy"},
    "Void": {0: "reason"},
    "SpinVoided": {0: "reason"},
    "Note": {0: "code", 1: "text"},
    "Doubt": {0: "reason", 1: "remedy"},
    "Null": {0: "reason"},
}
# Values that carry a text to where it is said: what they hold was said where they were made.
CARRIED: Final = ("note", "doubt", "null", "missing", "never_ended", "_moved_unseen")
# Fields in which a reason waits to be said.
KEPT: Final = ("suspended", "doubt")
# Fields of an effect that the engine says.
EFFECT: Final[Mapping[str | None, str]] = {
    "suspend": "reason",
    "next_doubt": "reason",
    "void": "reason",
    "remedy": "remedy",
}
NONE: Final[Texts] = frozenset()


class Said(NamedTuple):
    """One text: its values are `{...}`. `code` stands beside that of an irregularity."""

    kind: str
    text: str
    code: str = ""


def everything(files: Iterable[Path]) -> set[Said]:
    """What these modules can say; a function of one may be called in another."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    shared = {
        node.name: node
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    constants = {name: value for tree in trees for name, value in _texts_of(tree)}
    called = {name for tree in trees for node in ast.walk(tree) if (name := _callee(node))}
    return {one for tree in trees for one in _Module(tree, shared, constants).said(called)}


def filled(text: str) -> str:
    """The text with something in place of each of its values, another one for each."""
    numbers = iter(range(7, 100))
    return re.sub(r"\{[^{}]*\}", lambda _: str(next(numbers)), text)


def _callee(node: ast.AST) -> str:
    """The name of the function of a module, or of `self`, that is called here."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name)):
            return name
        case _:
            return ""


def _texts_of(tree: ast.Module) -> Iterator[tuple[str, Value]]:
    """The constants of a module that are texts: another module may import them."""
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str()) as value):
                yield name, _constant(value)


def _functions(tree: ast.Module) -> dict[str, Function]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _unknown(node: ast.AST) -> Texts:
    """A value that only the running program knows."""
    match node:
        case ast.Name() | ast.Attribute():
            return frozenset((f"{{{ast.unparse(node)}}}",))
        case _:
            return frozenset(("{}",))


def _parameter(name: str) -> str:
    return f"\0{name}\0"


def _there(text: str) -> str:
    """The text, but for nothing: a parameter counts here where it is given more than that."""
    return f"{text[:-1]}!\0" if re.fullmatch("\0[^\0!]*\0", text) else text


def _texts(value: Value) -> Texts:
    return value if isinstance(value, frozenset) else NONE


def _joined(one: Value | None, other: Value | None) -> Value:
    if not one or not other:
        return one or other or NONE
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(_joined(a, b) for a, b in zip(one, other, strict=True))
    return _texts(one) | _texts(other)


class _Module:
    """One module: `shared` are the functions of all, `constants` their texts; its own come before them."""

    def __init__(self, tree: ast.Module, shared: Mapping[str, Function], constants: Names) -> None:
        self._functions = {**shared, **_functions(tree)}
        self._own = list(_functions(tree).values())
        self._constants: Names = dict(constants)
        self._says: dict[str, frozenset[Said]] = {}
        self._returns: dict[str, Value] = {}
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._constants[name] = _constant(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._constants[name] = _constant(value)

    def said(self, called: set[str]) -> set[Said]:
        """By all its functions; what is given to one that is `called` its callers say."""
        before: object = None
        while (now := (self._says.copy(), self._returns.copy())) != before:  # until no function knows more of another
            before = now
            for function in self._functions.values():
                body = _Body(self, function)
                self._says[function.name], self._returns[function.name] = frozenset(body.said), body.returned or NONE
        found = set()
        for function in self._own:
            for one in self._says[function.name]:
                whole = Said(one.kind, *(re.sub("\0(.*?)!?\0", r"{\1}", text) for text in one[1:]))
                if one.text and (one == whole or function.name not in called):
                    found.add(whole)
        return found

    def says(self, function: Function) -> frozenset[Said]:
        """What a function says; texts that it was given are marked by the name of their parameter."""
        return self._says.get(function.name, frozenset())

    def returned(self, function: Function) -> Value:
        """What a function returns."""
        return self._returns.get(function.name, NONE)

    def function(self, call: ast.Call) -> Function | None:
        return self._functions.get(_callee(call))

    def constant(self, name: str) -> Value | None:
        return self._constants.get(name)


def _constant(node: ast.expr) -> Value:
    return (
        frozenset((node.value,)) if isinstance(node, ast.Constant) and isinstance(node.value, str) else _unknown(node)
    )


class _Body:
    """The body of one function, followed with what its names may be."""

    def __init__(self, module: _Module, function: Function) -> None:
        self._module = module
        self._function = function
        self.said: set[Said] = set()
        self.returned: Value | None = None
        given = [*function.args.args, *function.args.kwonlyargs]
        names: Names = {one.arg: frozenset((_parameter(one.arg),)) for one in given}
        self._block(function.body, names)

    # ---- statements

    def _block(self, body: Iterable[ast.stmt], names: Names) -> Names | None:
        """What the names may be behind these statements; None where nothing comes behind them."""
        now: Names | None = names
        for statement in body:
            if now is None:
                return None
            now = self._statement(statement, now)
        return now

    def _statement(self, node: ast.stmt, names: Names) -> Names | None:
        match node:
            case ast.Return(value=end):
                if end is not None:
                    self.returned = _joined(self.returned, self._look(end, names))
                return None
            case ast.Raise() | ast.Continue() | ast.Break():
                return None
            case ast.Assign(targets=[target], value=value):
                return {**names, **dict(_bound(target, self._look(value, names)))}
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return {**names, **dict(_bound(target, self._look(value, names)))}
            case ast.If(test=test, body=body, orelse=orelse):
                names = {**names, **self._walrus(test, names)}
                self._look(test, names)
                return _either([self._block(body, names), self._block(orelse, names)])
            case ast.Match(subject=subject, cases=cases):
                self._look(subject, names)
                ends: list[Names | None] = [names]
                for case in cases:
                    inner = dict(names)
                    captured: Names = {}
                    for name, bound in _captured(case.pattern):
                        captured[name] = _joined(captured.get(name), bound)
                    inner |= captured
                    if case.guard is not None:
                        inner |= self._walrus(case.guard, inner)
                    ends.append(self._block(case.body, inner))
                return _either(ends)
            case ast.For(target=target, iter=over, body=body, orelse=orelse):
                self._look(over, names)
                inner = {**names, **{one: _unknown(ast.Name(one)) for one in _names(target)}}
                return _either([names, self._block([*body, *orelse], inner)])
            case ast.While(test=test, body=body):
                self._look(test, names)
                return _either([names, self._block(body, names)])
            case _:
                for inner_node in ast.iter_child_nodes(node):
                    if isinstance(inner_node, ast.expr):
                        self._look(inner_node, names)
                return names

    def _walrus(self, node: ast.expr, names: Names) -> Names:
        return {
            one.target.id: self._value(one.value, names) for one in ast.walk(node) if isinstance(one, ast.NamedExpr)
        }

    # ---- expressions

    def _look(self, node: ast.expr, names: Names) -> Value:
        """What the expression may be, and what is said in it."""
        for call in ast.walk(node):
            if isinstance(call, ast.Call):
                self._call(call, names)
        return self._value(node, names)

    def _call(self, call: ast.Call, names: Names) -> None:
        for keyword in call.keywords:
            if keyword.arg in KEPT:
                self._say("reason", self._value(keyword.value, names))
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        for keyword in call.keywords if name == "Effect" else ():
            self._say(EFFECT.get(keyword.arg, ""), self._value(keyword.value, names))
        if (places := CALLS.get(name)) is not None:
            given = {places[n]: self._value(one, names) for n, one in enumerate(call.args) if n in places}
            if "text" in given:
                for code, text in product(_texts(given["code"]), _texts(given["text"])):
                    self.said.add(Said("irregularity", text, code))
            for kind in ("reason", "remedy"):
                self._say(kind, given.get(kind, NONE))
        elif (function := self._module.function(call)) is not None:
            given_by_name = self._given(function, call, names)
            for kind, text, code in self._module.says(function):
                chosen = product(_filled(text, given_by_name), _filled(code, given_by_name))
                self.said |= {Said(kind, one, other) for one, other in chosen}

    def _say(self, kind: str, value: Value) -> None:
        if kind:
            self.said |= {Said(kind, text) for text in _texts(value)}

    def _given(self, function: Function, call: ast.Call, names: Names) -> Names:
        """The arguments of a call by the names of the function's parameters, defaults too."""
        arguments = function.args
        parameters = [one.arg for one in arguments.args]
        defaults = parameters[len(parameters) - len(arguments.defaults) :]
        found: Names = {name: self._value(one, {}) for name, one in zip(defaults, arguments.defaults, strict=True)}
        if parameters[:1] == ["self"]:
            parameters = parameters[1:]
        found |= {name: self._value(one, names) for name, one in zip(parameters, call.args, strict=False)}
        return found | {one.arg: self._value(one.value, names) for one in call.keywords if one.arg}

    def _value(self, node: ast.expr, names: Names) -> Value:
        match node:
            case ast.Constant(value=None | bool()):
                return NONE
            case ast.Constant(value=value):
                return frozenset((value,)) if isinstance(value, str) else _unknown(node)
            case ast.Name(id=name):
                known = names.get(name, self._module.constant(name))
                return _unknown(node) if known is None else known
            case ast.NamedExpr(value=value):
                return self._value(value, names)
            case ast.Attribute(attr=attr) if attr in (*KEPT, *EFFECT):
                return NONE  # said where it was put there
            case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CARRIED:
                return NONE
            case ast.JoinedStr(values=parts):
                pieces = [sorted(self._part(part, names)) for part in parts]
                return frozenset("".join(one) for one in product(*pieces))
            case ast.BoolOp(op=ast.Or(), values=values):
                *before, last = [_texts(self._value(one, names)) for one in values]
                return last.union(*({_there(text) for text in one} - {""} for one in before))
            case ast.IfExp(body=one, orelse=other):
                return _joined(self._value(one, names), self._value(other, names))
            case ast.Tuple(elts=parts):
                return tuple(self._value(one, names) for one in parts)
            case ast.Call(func=ast.Attribute(attr="get"), args=[_, ast.Constant(value=str(other))]):
                return _unknown(node) | {other}
            case ast.Call() if (function := self._module.function(node)) not in (None, self._function):
                given = self._given(function, node, names)
                return _with(self._module.returned(function), lambda text: _filled(text, given))
            case _:
                return _unknown(node)

    def _part(self, node: ast.expr, names: Names) -> Texts:
        if not isinstance(node, ast.FormattedValue):
            return _texts(self._value(node, names))
        return _texts(self._value(node.value, names)) or _unknown(node.value)


def _filled(text: str, given: Names) -> Texts:
    """The text with what its parameters were given; what was not given is a value."""
    names = re.findall("\0(.*?)\0", text)
    choices = [_choices(name.removesuffix("!"), given, there=name.endswith("!")) for name in names]
    found = set()
    for chosen in product(*choices):
        rest = iter(chosen)
        found.add(re.sub("\0.*?\0", lambda _, rest=rest: next(rest), text))  # type: ignore[misc]
    return frozenset(found)


def _choices(name: str, given: Names, *, there: bool) -> list[str]:
    if name not in given:
        return [f"{{{name}}}"]
    texts = _texts(given[name])
    return sorted({_there(one) for one in texts} - {""} if there else texts)


def _with(value: Value, change: Callable[[str], Texts]) -> Value:
    if isinstance(value, tuple):
        return tuple(_with(one, change) for one in value)
    return frozenset(one for text in value for one in change(text))


def _bound(target: ast.expr, value: Value) -> Iterator[tuple[str, Value]]:
    match target:
        case ast.Name(id=name):
            yield name, value
        case ast.Tuple(elts=parts):
            known = isinstance(value, tuple) and len(value) == len(parts)
            for n, part in enumerate(parts):
                yield from _bound(part, value[n] if known and isinstance(value, tuple) else _unknown(part))
        case _:
            pass


def _captured(pattern: ast.pattern) -> Iterator[tuple[str, Value]]:
    """The names that a pattern binds; a field of an event is a value named after both."""
    for one in ast.walk(pattern):
        match one:
            case ast.MatchClass(cls=kind, kwd_attrs=fields, kwd_patterns=patterns):
                for field, inner in zip(fields, patterns, strict=True):
                    if isinstance(inner, ast.MatchAs) and inner.name is not None:
                        yield inner.name, frozenset((f"{{{ast.unparse(kind)}.{field}}}",))
            case ast.MatchAs(name=str(name)) if one is pattern or one.pattern is not None:
                yield name, _unknown(ast.Name(name))
            case _:
                pass


def _names(target: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}


def _either(ends: Iterable[Names | None]) -> Names | None:
    """What the names may be where several ways meet."""
    met: Names | None = None
    for one in ends:
        if one is not None:
            met = (
                one
                if met is None
                else {name: _joined(met.get(name), one.get(name)) for name in met.keys() | one.keys()}
            )
    return met
