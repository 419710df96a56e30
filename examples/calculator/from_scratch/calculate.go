package main

import (
	"errors"
	"math/big"
	"regexp"
)

// longest bounds an expression, in bytes.
const longest = 256

var symbol = regexp.MustCompile(`[0-9]+|\S`)

// calculate is the value of a sum or product of whole numbers, or what is wrong with it.
func calculate(expression string) string {
	if len(expression) <= longest {
		p := parser{symbol.FindAllString(expression, -1)}
		if value, err := p.sum(); err == nil && len(p.left) == 0 {
			return value.String()
		}
	}
	return "error: not an expression of whole numbers"
}

// parser reads symbols by recursive descent.
type parser struct{ left []string }

func (p *parser) next() string {
	if len(p.left) == 0 {
		return ""
	}
	return p.left[0]
}

func (p *parser) take() string {
	s := p.next()
	p.left = p.left[min(1, len(p.left)):]
	return s
}

func (p *parser) sum() (*big.Int, error) {
	value, err := p.product()
	for err == nil && (p.next() == "+" || p.next() == "-") {
		sign := p.take()
		var term *big.Int
		if term, err = p.product(); err == nil && sign == "+" {
			value = value.Add(value, term)
		} else if err == nil {
			value = value.Sub(value, term)
		}
	}
	return value, err
}

func (p *parser) product() (*big.Int, error) {
	value, err := p.factor()
	for err == nil && p.next() == "*" {
		p.take()
		var factor *big.Int
		if factor, err = p.factor(); err == nil {
			value = value.Mul(value, factor)
		}
	}
	return value, err
}

func (p *parser) factor() (*big.Int, error) {
	switch s := p.take(); s {
	case "-":
		value, err := p.factor()
		if err != nil {
			return nil, err
		}
		return value.Neg(value), nil
	case "(":
		value, err := p.sum()
		if err == nil && p.take() != ")" {
			err = errors.New("a parenthesis is not closed")
		}
		return value, err
	default:
		value, ok := new(big.Int).SetString(s, 10)
		if !ok {
			return nil, errors.New("not a number")
		}
		return value, nil
	}
}
