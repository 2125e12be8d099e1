package parse

import (
	"slices"
	"strings"
)

// argument parses one argument of an atom.
func (p *parser) argument(where place) Term {
	tok, after := p.peek(), p.peekAt(1)
	var t Term
	_, isAggregate := aggregateForms[p.text(tok)]
	switch {
	case where != inHead || tok.kind != tokenName:
		t = p.expression(where)
	case after.kind == tokenLt:
		t = p.aggregate()
	case after.kind == tokenArrow && isAggregate:
		p.fail(after, "write < -"+p.text(p.peekAt(2))+" with a blank between",
			"`<-` is the arrow of a rule")
	default:
		t = p.expression(where)
	}
	p.afterTerm(where, t)
	return t
}

// expression parses terms joined by operators.
func (p *parser) expression(where place) Term { return p.binary(where, 1) }

// binary parses operators of one precedence and what binds tighter.
func (p *parser) binary(where place, level int) Term {
	if level > 2 {
		return p.operand(where)
	}
	leftTok := p.peek()
	left := p.binary(where, level+1)
	for !p.failed {
		op := p.peek()
		if !isArithmetic(op.kind) || precedence(p.text(op)) != level {
			break
		}
		p.next()
		rightTok := p.peek()
		right := p.binary(where, level+1)
		p.noWildcard(leftTok, left)
		p.noWildcard(rightTok, right)
		left = p.call(op, p.text(op), left, right)
	}
	return left
}

// operand parses a term, a function, something in parentheses or with a sign.
func (p *parser) operand(where place) Term {
	tok, after := p.peek(), p.peekAt(1)
	p.depth++
	defer func() { p.depth-- }()
	switch {
	case p.failed:
	case p.depth > NestingMax:
		p.fail(tok, "compute in steps: A = ..., B = A + ...",
			"the expression is nested deeper than the %d levels allowed", NestingMax)
	case tok.kind == tokenMinus && !isNumber(after):
		p.next()
		inner := p.operand(where)
		p.noWildcard(after, inner)
		return p.call(tok, "-", Term{Kind: Constant, Value: zero, Pos: position(tok)}, inner)
	case tok.kind == tokenOpen:
		p.next()
		inner := p.expression(where)
		p.noWildcard(after, inner)
		p.expect(tokenClose, "an operator or `)`")
		return inner
	case tok.kind == tokenName && after.kind == tokenOpen && !p.isWordValue(tok):
		return p.function(where)
	default:
		return p.term(where)
	}
	return Term{}
}

// function parses `name(argument, ...)`.
func (p *parser) function(where place) Term {
	name := p.next()
	p.next()
	var args []Term
	for !p.failed && !(len(args) == 0 && p.accept(tokenClose)) {
		tok := p.peek()
		if len(args) == ColumnsMax {
			p.fail(tok, "", "there are more than the %d arguments allowed", ColumnsMax)
			break
		}
		args = append(args, p.expression(where))
		p.noWildcard(tok, args[len(args)-1])
		p.afterTerm(inBody, args[len(args)-1])
		if p.failed || p.accept(tokenClose) {
			break
		}
		p.expect(tokenComma, "`,` or `)`")
	}
	return p.call(name, p.text(name), args...)
}

// call makes a call written at tok.
func (p *parser) call(tok token, name string, args ...Term) Term {
	if p.calls++; p.calls > CallsMax {
		p.fail(tok, "split the rule into several",
			"the statement has more than the %d functions and operators allowed", CallsMax)
	}
	return Term{
		Kind: Expression, Pos: position(tok), Call: &Call{Name: name, Args: slices.Clone(args)},
	}
}

func (p *parser) noWildcard(tok token, t Term) {
	if t.Kind == Wildcard {
		p.fail(tok, "name the variable: X instead of _",
			"`_` stands for any value, and nothing can be computed from it")
	}
}

// aggregateForms are the aggregates with their arguments: V is an expression, C a
// constant.
var aggregateForms = map[string]string{
	"count": "V", "count_distinct": "V", "sum": "V", "avg": "V", "min": "V", "max": "V",
	"top_k": "CV", "top_k_threshold": "CCV", "within_radius": "CV",
}

const (
	hintAggregates = "the aggregates are count, count_distinct, sum, avg, min, max, top_k, " +
		"top_k_threshold and within_radius"
	hintAggregateRule = "give it a rule of its own: total(G, sum<V>) <- r(G, V)"
)

var aggregateExamples = map[string]string{
	"top_k": "top_k<3, V> or top_k<3, V, desc>", "within_radius": "within_radius<10.0, D>",
	"top_k_threshold": "top_k_threshold<3, 10, V> or top_k_threshold<3, 10, V, desc>",
}

// aggregate parses `name<argument, ...>`.
func (p *parser) aggregate() Term {
	name := p.next()
	text := p.text(name)
	form, ok := aggregateForms[text]
	if !ok {
		p.fail(name, hintAggregates, "there is no aggregate %s", text)
		return Term{}
	}
	example := aggregateExamples[text]
	if example == "" {
		example = text + "<X>"
	}
	p.next()
	c := &Call{Name: text}
	for i := 0; i < len(form) && !p.failed; i++ {
		if i > 0 && p.peek().kind != tokenComma {
			p.fail(p.peek(), "for instance: "+example, "%s needs %d arguments", text, len(form))
			break
		}
		if i > 0 {
			p.next()
		}
		tok := p.peek()
		t := p.expression(inBody)
		switch {
		case p.failed:
		case t.Kind == Wildcard:
			p.fail(tok, "name a variable of the body; count<1> counts all",
				"`_` stands for any value and cannot be aggregated")
		case form[i] == 'C' && t.Kind != Constant:
			p.fail(tok, "for instance: "+example, "the value here is written into the rule")
		}
		c.Args = append(c.Args, t)
	}
	if strings.HasPrefix(text, "top_k") && p.peek().kind == tokenComma &&
		(p.is(p.peekAt(1), "desc") || p.is(p.peekAt(1), "asc")) {
		p.next()
		c.Descending = p.is(p.next(), "desc")
	}
	if tok := p.peek(); tok.kind != tokenGt {
		p.fail(tok, "for instance: "+example, "expected `>` after the argument of %s, found %s",
			text, p.describe(tok))
	}
	p.next()
	return Term{Kind: Aggregated, Call: c, Pos: position(name)}
}

// isAggregate reports whether an aggregate begins here.
func (p *parser) isAggregate(tok token) bool {
	_, ok := aggregateForms[p.text(tok)]
	return ok && tok.kind == tokenName && p.peek().kind == tokenLt
}

// comparesCall reports whether the name and parenthesis that come next begin a
// comparison, as in `len(X) + 1 > 5`, rather than an atom.
func (p *parser) comparesCall() bool {
	depth, closed := 0, false
	for _, tok := range p.tokens[p.at+1 : p.end] {
		switch kind := tok.kind; {
		case kind == tokenOpen:
			depth++
		case kind == tokenClose:
			depth--
			closed = closed || depth == 0
			continue
		}
		switch kind := tok.kind; {
		case depth < 0 || depth == 0 && (kind == tokenComma || kind == tokenSemicolon):
			return false
		case depth == 0 && isComparison(kind):
			return true
		case closed && !isArithmetic(kind):
			return false
		}
		closed = false
	}
	return false
}
