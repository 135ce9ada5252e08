"""JSON schemas of Python functions for a chat template's tools, as transformers.utils.get_json_schema makes them: names and
types from the type hints, descriptions from a docstring in Google's format."""
import enum
import inspect
import json
import re
import types
import typing

SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
BARE = {**{t: {"type": name} for t, name in SCALARS.items()}, list: {"type": "array"}, tuple: {"type": "array"}, dict: {"type": "object"},
        typing.Any: {}}
SECTION = r"[\n\s]*(?:Args:|Returns:|Raises:|\Z)"


def of_values(values):
    wrong = [v for v in values if type(v) not in SCALARS]
    if wrong or not values:
        raise TypeError("the values %r are no numbers, texts, booleans or None" % (values,))
    names = list(dict.fromkeys(SCALARS[type(v)] for v in values))
    return {"type": names[0] if len(names) == 1 else names, "enum": list(values)}


def of_union(hints):
    parts = [of_hint(h) for h in hints if h is not type(None)]
    if len(parts) == 1:
        schema = parts[0]
    elif all(set(p) == {"type"} and isinstance(p["type"], str) for p in parts):
        names = sorted({p["type"] for p in parts})
        schema = {"type": names[0] if len(names) == 1 else names}
    else:
        schema = {"anyOf": parts}
    return {**schema, "nullable": True} if type(None) in hints else schema


def of_hint(hint):
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return of_values([member.value for member in hint])
        if hint not in BARE:
            raise TypeError("no JSON type for the hint %r" % (hint,))
        return dict(BARE[hint])
    if origin is typing.Union or origin is types.UnionType:
        return of_union(inner)
    if origin is typing.Literal:
        return of_values(list(inner))
    if origin is list:
        return {"type": "array", **({"items": of_hint(inner[0])} if inner else {})}
    if origin is tuple:
        if len(inner) == 1 or ... in inner:
            raise TypeError("%r: write list[...] for any number of values" % (hint,))
        return {"type": "array", "prefixItems": [of_hint(h) for h in inner]}
    if origin is dict:
        return {"type": "object", **({"additionalProperties": of_hint(inner[1])} if len(inner) == 2 else {})}
    raise TypeError("no JSON type for the hint %r" % (hint,))


def described(doc):
    """Returns the description, {argument: description}, and that of the value returned (None: none)."""
    head = re.search(r"^(.*?)" + SECTION, doc, re.DOTALL).group(1).strip()
    block = re.search(r"\n\s*Args:\n(.*?)[\n\s]*(?:Returns:|Raises:|\Z)", doc, re.DOTALL)
    returned = re.search(r"\n\s*Returns:\n\s*(.*?)[\n\s]*(?:Raises:|\Z)", doc, re.DOTALL)
    arguments, indent, name = {}, 0, None
    for line in block.group(1).split("\n") if block else ():
        begin = re.match(r"([ \t]*)(\w+)(?:[ \t]*\([^()\n]*\))?:\s*(.*)$", line)
        if begin and (name is None or len(begin.group(1)) <= indent):
            indent, name = len(begin.group(1)), begin.group(2)
            arguments[name] = begin.group(3).strip()
        elif name and line.strip():
            arguments[name] = (arguments[name] + " " + line.strip()).strip()
    return head, arguments, returned.group(1).strip() if returned else None


def schema_of(function):
    doc = inspect.getdoc(function)
    if not doc:
        raise TypeError("%s has no docstring; a tool's tells the model what it does" % function.__name__)
    head, texts, returned = described(doc.strip())
    hints, properties, required = typing.get_type_hints(function), {}, []
    for name, p in inspect.signature(function).parameters.items():
        if name not in hints:
            raise TypeError("argument %s of %s has no type hint" % (name, function.__name__))
        if name not in texts:
            raise TypeError("the docstring of %s says nothing of argument %s under Args:" % (function.__name__, name))
        properties[name] = of_hint(hints[name])
        choices = re.search(r"\(choices:\s*(.*?)\)\s*$", texts[name], re.IGNORECASE)
        if choices:
            properties[name]["enum"] = [c.strip() if isinstance(c, str) else c for c in json.loads(choices.group(1))]
        properties[name]["description"] = texts[name][:choices.start()].strip() if choices else texts[name]
        if p.default is p.empty:
            required.append(name)
    parameters = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    out = {"name": function.__name__, "description": head, "parameters": parameters}
    try:
        if "return" in hints:
            out["return"] = {**of_hint(hints["return"]), **({"description": returned} if returned is not None else {})}
    except TypeError:
        pass  # the model never writes it
    return {"type": "function", "function": out}
