"""The tool of the agents in this folder: integer arithmetic."""

import ast
import operator

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.USub: operator.neg}
LONGEST = 256


def calculate(expression: str) -> str:
    """The value of a sum or product of whole numbers, or what is wrong with it."""
    try:
        if len(expression) > LONGEST:
            raise ValueError("too long")
        return str(value(ast.parse(expression.strip(), mode="eval").body))
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError):
        return "error: not an expression of whole numbers"


def value(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp():
            return OPERATORS[type(node.op)](value(node.operand))
        case ast.BinOp():
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
    raise ValueError("not arithmetic")
