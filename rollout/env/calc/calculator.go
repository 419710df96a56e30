package calc

import (
	"math/big"
	"strconv"
)

// Limits of the calculator's input. Sums and products of at most MaxExpression bytes have at most about as many
// digits, so they also bound the result.
const (
	MaxExpression = 256
	maxDepth      = 32
)

// Evaluate is the calculator: it returns the value of an integer expression in decimal, or a text that starts with
// "error: " and says what is wrong and at which byte. Its grammar, with spaces allowed between symbols:
//
//	expression = term { ( "+" | "-" ) term }
//	term       = factor { "*" factor }
//	factor     = number | "(" expression ")" | "-" factor
//	number     = digit { digit }
func Evaluate(expression string) string {
	if len(expression) > MaxExpression {
		return "error: more than " + strconv.Itoa(MaxExpression) + " characters"
	}
	p := parser{text: expression}
	value := p.expression(0)
	if p.problem == "" && p.peek() != 0 {
		p.fail("unexpected character")
	}
	if p.problem != "" {
		return "error: " + p.problem
	}
	return value.String()
}

// parser is a recursive descent over text. After the first problem its methods return at once.
type parser struct {
	text    string
	at      int
	problem string
}

func (p *parser) fail(problem string) *big.Int {
	if p.problem == "" {
		p.problem = problem + " at " + strconv.Itoa(p.at)
	}
	return new(big.Int)
}

// peek returns the next character that is not a space, 0 at the end and after a problem. A zero byte in the text is
// no symbol of the grammar, so it must not look like the end.
func (p *parser) peek() byte {
	if p.problem != "" {
		return 0
	}
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return max(p.text[p.at], 1)
}

func (p *parser) expression(depth int) *big.Int {
	value := p.term(depth)
	for {
		switch p.peek() {
		case '+':
			p.at++
			value.Add(value, p.term(depth))
		case '-':
			p.at++
			value.Sub(value, p.term(depth))
		default:
			return value
		}
	}
}

func (p *parser) term(depth int) *big.Int {
	value := p.factor(depth)
	for p.peek() == '*' {
		p.at++
		value.Mul(value, p.factor(depth))
	}
	return value
}

func (p *parser) factor(depth int) *big.Int {
	if depth == maxDepth {
		return p.fail("nested too deeply")
	}
	switch c := p.peek(); {
	case c == '(':
		p.at++
		value := p.expression(depth + 1)
		if p.peek() != ')' {
			return p.fail("expected )")
		}
		p.at++
		return value
	case c == '-':
		p.at++
		value := p.factor(depth + 1)
		return value.Neg(value)
	case isDigit(c):
		start := p.at
		for p.at < len(p.text) && isDigit(p.text[p.at]) {
			p.at++
		}
		value, _ := new(big.Int).SetString(p.text[start:p.at], 10)
		return value
	default:
		return p.fail("expected a number")
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
