"""Expressions as `ruff format` prints them, without ruff."""

from __future__ import annotations

import ast

_PRECEDENCE: dict[type, int] = {
    ast.Add: 1,
    ast.Sub: 1,
    ast.Mult: 2,
    ast.Div: 2,
    ast.MatMult: 2,
    ast.USub: 3,
    ast.Pow: 4,
}
_SIGNS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.MatMult: "@",
}


def printed(node: ast.expr, above: int = 0) -> str:  # noqa: PLR0911 -- a case each
    """Returns the expression as `ruff format` prints it in one line.

    Args:
        node: An expression that `analyse` accepts.
        above: The precedence of what it stands in; weaker ones get parentheses.

    Raises:
        TypeError: For another expression.
    """
    if isinstance(node, ast.Constant):
        return f'"{node.value}"' if isinstance(node.value, str) else repr(node.value)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{printed(node.value)}.{node.attr}"
    if isinstance(node, (ast.List, ast.Tuple)):
        items = ", ".join(printed(item) for item in node.elts)
        if isinstance(node, ast.List):
            return f"[{items}]"
        return f"({items},)" if len(node.elts) == 1 else f"({items})"
    if isinstance(node, ast.Call):
        arguments = [printed(argument) for argument in node.args]
        arguments += [f"{item.arg}={printed(item.value)}" for item in node.keywords]
        return f"{printed(node.func)}({', '.join(arguments)})"
    if isinstance(node, ast.UnaryOp):
        strength = _PRECEDENCE[type(node.op)]
        # A power stands in parentheses, though it binds more strongly.
        power = isinstance(node.operand, ast.BinOp)
        text = f"-{printed(node.operand, strength + 2 * power)}"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        strength = _PRECEDENCE[ast.Pow]
        base = printed(node.left, strength + 1)
        # Simple operands hug the operator.
        hug = "" if isinstance(node.left, (ast.Name, ast.Constant)) else " "
        text = f"{base}{hug}**{hug}{printed(node.right, strength)}"
    elif isinstance(node, ast.BinOp):
        strength = _PRECEDENCE[type(node.op)]
        left = _apart(node, node.left) or printed(node.left, strength)
        right = _apart(node, node.right) or printed(node.right, strength + 1)
        text = f"{left} {_SIGNS[type(node.op)]} {right}"
    else:
        raise TypeError(type(node).__name__)
    return f"({text})" if strength < above else text


def _apart(node: ast.BinOp, part: ast.expr) -> str:
    """Returns a product in parentheses where `@` stands beside `*` or `/`."""
    products = (ast.Mult, ast.Div, ast.MatMult)
    if not (
        isinstance(part, ast.BinOp)
        and isinstance(node.op, products)
        and isinstance(part.op, products)
        and isinstance(node.op, ast.MatMult) != isinstance(part.op, ast.MatMult)
    ):
        return ""
    return f"({printed(part)})"
