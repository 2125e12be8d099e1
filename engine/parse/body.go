package parse

import (
	"encoding/hex"
	"strconv"

	"github.com/heddle-live/heddle/engine/value"
)

const hintFloatRange = "floats reach to 1.7976931348623157e308"

var zero = value.OfInt(0)

// place tells where an atom stands, which decides what its arguments may be
// and how a fault is worded.
type place uint8

const (
	inHead place = iota
	inBody
	inGoal
	inFact
	inWrite // the head of a statement that writes
)

// ruleStatement parses `head <- body`, and tells apart what else may begin
// with a name.
func (p *parser) ruleStatement(f *File) {
	start := p.peek()
	if p.peekAt(1).kind == tokenOpen && !p.arrowInStatement() {
		p.notARule(start)
		return
	}
	r := Rule{Head: p.atom(inHead)}
	switch tok := p.peek(); {
	case p.failed || tok.kind == tokenArrow:
	case tok.kind == tokenTurnstile:
		p.fail(tok, "write <-", "a rule is written with `<-`, not `:-`")
	default:
		p.fail(tok, "", "expected `<-` after the head of the rule, found %s", p.describe(tok))
	}
	p.accept(tokenArrow)
	r.Body = p.body(0)
	p.endOfBody()
	if !p.failed {
		f.Rules = append(f.Rules, r)
	}
}

// notARule words the error of `name(...)` without an arrow.
func (p *parser) notARule(start token) {
	p.at++
	isSchema := p.looksLikeSchema()
	p.at--
	relation := p.text(start)
	for _, tok := range p.tokens[p.at:p.end] {
		switch {
		case tok.kind == tokenAssign:
			p.fail(tok, "write <- for a rule; a view is written view "+relation+"($p: int) := ?...",
				"`:=` belongs to views")
			return
		case tok.kind == tokenEq && !isSchema && p.tokens[p.at].kind == tokenName:
			p.fail(tok, "write <-", "a rule is written with `<-`, not `=`")
			return
		case tok.kind == tokenClose:
			if following := p.followingAtom(tok); following.kind != tokenEnd {
				p.fail(following, "", "expected `<-` after the head of the rule, found %s",
					p.describe(following))
				return
			}
		}
	}
	if isSchema {
		p.fail(start, "write +"+relation+"(...)", "a schema begins with `+`")
		return
	}
	p.fail(start, "write "+relation+"(...) <- and a body for a rule, or seed +"+relation+
		"(...) for a fact of a new graph",
		"this is neither a rule, which has `<-`, nor a fact, which begins with `+`")
}

// followingAtom returns the name after the closing parenthesis tok, where
// another atom begins there.
func (p *parser) followingAtom(tok token) token {
	for i, t := range p.tokens[p.at:p.end] {
		if t.start == tok.start && p.kindAt(p.at+i+1) == tokenName && p.at+i+1 < p.end {
			return p.tokens[p.at+i+1]
		}
	}
	return token{}
}

// query parses `?goal, conditions`.
func (p *parser) query() QueryTree {
	tok := p.peek()
	q := QueryTree{Pos: position(tok)}
	if tok.kind != tokenQuestion {
		hint := ""
		if tok.kind == tokenName && p.peekAt(1).kind == tokenOpen {
			hint = "write ?" + p.text(tok) + "(...)"
		}
		p.fail(tok, hint, "a query begins with `?`, found %s", p.describe(tok))
		return q
	}
	p.next()
	if bang := p.peek(); bang.kind == tokenBang || p.is(bang, "not") {
		p.fail(bang, "", "the goal of a query cannot be negated")
	}
	if goal := p.peek(); !p.failed && goal.kind != tokenName && p.peekAt(1).kind != tokenOpen {
		p.fail(goal, "for instance: ?r(X), X > 5",
			"the goal of a query is a relation with arguments, found %s", p.describe(goal))
	}
	q.Goal = p.atom(inGoal)
	if tok := p.peek(); tok.kind == tokenArrow || tok.kind == tokenTurnstile {
		p.fail(tok, "join the conditions of a query with commas: ?r(X, Y), Y > 7",
			"a query has no `%s`", p.text(tok))
	}
	if p.peek().kind == tokenComma && !p.partAhead(1) {
		p.next()
		q.Body = p.body(1)
	}
	p.orderAndLimit(&q)
	return q
}

// partAhead reports whether the part of a view begins n tokens ahead: `name: ?`.
func (p *parser) partAhead(n int) bool {
	name := p.peekAt(n).kind
	return (name == tokenName || name == tokenVariable) && p.peekAt(n+1).kind == tokenColon &&
		p.peekAt(n+2).kind == tokenQuestion
}

// body parses conditions joined by commas, atoms of which stand before them.
func (p *parser) body(atoms int) []Literal {
	var body []Literal
	comparisons := 0
	for !p.failed {
		tok := p.peek()
		l := p.literal()
		if l.Atom != nil {
			atoms++
		} else {
			comparisons++
		}
		if atoms > AtomsMax {
			p.fail(tok, "split the rule into several",
				"the body has more than the %d atoms allowed",
				AtomsMax)
		}
		if comparisons > ComparisonsMax {
			p.fail(tok, "", "the body has more than the %d comparisons allowed", ComparisonsMax)
		}
		body = append(body, l)
		if p.failed || p.peek().kind != tokenComma || p.partAhead(1) {
			break
		}
		p.next()
	}
	return body
}

// endOfBody fails unless the statement ends here, after a condition.
func (p *parser) endOfBody() {
	if tok := p.peek(); tok.kind != tokenEnd {
		p.badSeparator(tok)
	}
}

// badSeparator fails for what stands where a comma or the end should.
func (p *parser) badSeparator(tok token) {
	switch {
	case p.is(tok, "and"):
		p.fail(tok, "write , instead", "conditions are joined by a comma")
	case p.is(tok, "or"):
		p.fail(tok, "write one rule for each alternative", "there is no \"or\" in a body")
	case p.is(tok, "limit") || p.is(tok, "order") || p.is(tok, "offset"):
		p.fail(tok, "for instance: ?r(X, Y), Y > 1 order by Y desc limit 10 offset 20",
			"%s cannot stand here", p.text(tok))
	case tok.kind == tokenSemicolon:
		p.fail(tok, "conditions are joined by a comma, "+
			"and a statement ends with its line or with a point",
			"`;` stands between the statements of an action only")
	case p.is(tok, "where") || p.is(tok, "if"):
		p.fail(tok, "write , instead", "there is no word %s; conditions are joined by a comma",
			p.text(tok))
	case tok.kind == tokenArrow && isNumber(p.peekAt(1)):
		p.fail(tok, "write < -"+p.text(p.peekAt(1))+" with a blank between",
			"`<-` is the arrow of a rule")
	case tok.kind == tokenArrow:
		p.fail(tok, "does the line before end with a comma too many?",
			"a rule has one `<-`, and this is the second")
	case tok.first || p.endHint(tok) != "" && tok.kind != tokenName:
		p.expectEnd()
	case tok.kind == tokenName || tok.kind == tokenVariable || tok.kind == tokenBang ||
		tok.kind == tokenParameter:
		p.fail(tok, "", "expected `,` between two conditions, found %s", p.describe(tok))
	case isArithmetic(tok.kind):
		p.fail(tok, "compare the result, for instance: len(X) + 1 > 5",
			"a computed value is no condition")
	default:
		p.fail(tok, "", "expected `,` or the end of the statement, found %s", p.describe(tok))
	}
}

func isNumber(tok token) bool { return tok.kind == tokenInt || tok.kind == tokenFloat }

func isComparison(kind tokenKind) bool { return kind >= tokenEq && kind <= tokenGe }

func isArithmetic(kind tokenKind) bool { return kind >= tokenPlus && kind <= tokenPercent }

// literal parses one condition.
func (p *parser) literal() Literal {
	tok, after := p.peek(), p.peekAt(1)
	isAtom := tok.kind == tokenName && after.kind == tokenOpen
	switch {
	case tok.kind == tokenBang:
		return p.negation()
	case p.is(tok, "not") && after.kind == tokenName:
		p.fail(tok, "write !"+p.text(after)+"(...)", "negation is written `!`")
	case tok.kind == tokenVariable && after.kind == tokenOpen:
		p.capitalName(tok, "relation")
	case tok.kind == tokenQuestion:
		hint := "leave the ? out"
		if p.within == inParts {
			hint = "give each query of the view a name: name: ?..."
		}
		p.fail(tok, hint, "only a query begins with `?`, conditions do not")
	case (tok.kind == tokenPlus || tok.kind == tokenMinus) && after.kind == tokenName:
		hint := "leave the " + p.text(tok) + " out"
		if p.within == inAction {
			hint = "the statements of an action are separated by `;`"
		}
		p.fail(tok, hint, "a condition has no sign")
	case isAtom && !p.comparesCall():
		atom := p.atom(inBody)
		return Literal{Atom: &atom}
	case tok.kind == tokenName && !isAtom && !isComparison(after.kind) &&
		!isArithmetic(after.kind) && !p.isWordValue(tok):
		p.fail(tok, "for instance: "+p.text(tok)+"(X)",
			"expected `(` and the arguments of %s, found %s", p.text(tok), p.describe(after))
	case tok.kind == tokenEnd:
		hint := ""
		if p.tokens[p.end-1].kind == tokenComma {
			hint = "leave out the comma before, or add a condition"
		}
		p.fail(tok, hint, "expected a condition, found the end of the statement")
	default:
		return Literal{Comparison: p.comparison()}
	}
	return Literal{}
}

// negation parses `!relation(term, ...)`.
func (p *parser) negation() Literal {
	p.next()
	switch tok := p.peek(); {
	case tok.kind == tokenName && p.peekAt(1).kind == tokenOpen && !p.comparesCall():
	case tok.kind == tokenVariable && p.peekAt(1).kind == tokenOpen:
		p.capitalName(tok, "relation")
	case tok.kind == tokenBang:
		p.fail(tok, "leave both out", "a negation cannot be negated")
	default:
		p.fail(tok, "for instance: !r(X); two values differ if X != Y",
			"expected the relation that is negated, found %s", p.describe(tok))
	}
	atom := p.atom(inBody)
	return Literal{Atom: &atom, Negated: true}
}

func (p *parser) comparison() Comparison {
	leftTok := p.peek()
	left := p.expression(inBody)
	op := p.peek()
	switch {
	case p.failed:
	case op.kind == tokenAssign:
		p.fail(op, "write =", "a comparison is written with `=`, not `:=`")
	case op.kind == tokenArrow && (isNumber(p.peekAt(1)) || p.peekAt(1).kind == tokenVariable):
		p.fail(op, "write < -"+p.text(p.peekAt(1))+" with a blank between",
			"`<-` is the arrow of a rule")
	case !isComparison(op.kind):
		p.fail(op, "", "expected a comparison (= != < <= > >=) after %s, found %s",
			p.describe(leftTok), p.describe(op))
	}
	p.next()
	rightTok := p.peek()
	right := p.expression(inBody)
	if again := p.peek(); !p.failed && isComparison(again.kind) {
		p.fail(again, "write two comparisons joined by a comma", "comparisons cannot be chained")
	}
	for i, term := range [2]Term{left, right} {
		if !p.failed && term.Kind == Wildcard {
			p.fail([2]token{leftTok, rightTok}[i], "name the variable: X instead of _",
				"`_` stands for any value and cannot be compared")
		}
	}
	return Comparison{Op: Operator(op.kind - tokenEq), Left: left, Right: right, Pos: position(op)}
}

// atom parses `relation(term, ...)`.
func (p *parser) atom(where place) Atom {
	a := Atom{Relation: p.name("relation")}
	if tok := p.peek(); !p.failed && tok.kind != tokenOpen {
		p.fail(tok, "for instance: "+a.Relation.Text+"(X, Y)",
			"expected `(` and the arguments of %s, found %s", a.Relation.Text, p.describe(tok))
	}
	a.Terms = p.arguments(where, a.Relation.Text)
	return a
}

// arguments parses `(term, ...)`.
func (p *parser) arguments(where place, relation string) []Term {
	var terms []Term
	p.accept(tokenOpen)
	for !p.failed {
		tok := p.peek()
		if tok.kind == tokenClose && len(terms) == 0 {
			p.fail(tok, "", "%s needs at least one argument", relation)
			break
		}
		if len(terms) == ColumnsMax {
			p.fail(tok, "", "there are more than the %d columns allowed", ColumnsMax)
			break
		}
		terms = append(terms, p.argument(where))
		if p.failed || p.accept(tokenClose) {
			break
		}
		p.expect(tokenComma, "`,` or `)`")
	}
	return terms
}

// term parses one argument or one side of a comparison.
func (p *parser) term(where place) Term {
	tok := p.next()
	t := Term{Kind: Constant, Pos: position(tok)}
	switch {
	case p.failed:
		return t
	case tok.kind == tokenVariable:
		t.Kind, t.Name = Variable, p.text(tok)
	case tok.kind == tokenParameter:
		t.Kind, t.Name = Parameter, p.text(tok)[1:]
	case tok.kind == tokenWildcard:
		t.Kind = Wildcard
	case tok.kind == tokenString:
		t.Value = value.OfString(unquote(p.text(tok)))
	case isNumber(tok):
		t.Value = p.number(tok, "")
	case tok.kind == tokenMinus && isNumber(p.peek()):
		t.Value = p.number(p.next(), "-")
	case tok.kind == tokenBytes:
		decoded, _ := hex.DecodeString(p.quoted(tok))
		t.Value = value.OfBytes(string(decoded))
	case tok.kind == tokenTimestamp:
		ms, _ := value.ParseTime(p.quoted(tok))
		t.Value = value.OfTimestamp(ms)
	case p.is(tok, "null"):
		t.Value = value.OfNull()
	case p.isBool(tok):
		t.Value = value.OfBool(p.text(tok) == "true")
	default:
		p.badTerm(tok, where)
	}
	return t
}

// quoted returns the inside of a literal like x"00ff".
func (p *parser) quoted(tok token) string { return p.src[tok.start+2 : tok.end-1] }

// isWordValue reports whether tok is a value that is spelt like a name.
func (p *parser) isWordValue(tok token) bool { return p.isBool(tok) || p.is(tok, "null") }

func (p *parser) isBool(tok token) bool { return p.is(tok, "true") || p.is(tok, "false") }

// number returns the value of a number token.
func (p *parser) number(tok token, sign string) value.Value {
	text := sign + p.text(tok)
	if tok.kind == tokenInt {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			p.fail(tok, "an int lies between -9223372036854775808 and 9223372036854775807; "+
				"write "+p.text(tok)+".0 for a float", "%s does not fit an int", text)
		}
		return value.OfInt(i)
	}
	f, err := strconv.ParseFloat(text, 64)
	v, ok := value.OfFloat(f)
	if err != nil || !ok {
		p.fail(tok, hintFloatRange, "%s does not fit a float", text)
	}
	return v
}

// badTerm words the error of a token that begins no term.
func (p *parser) badTerm(tok token, where place) {
	text, after := p.text(tok), p.peek()
	switch {
	case where == inFact && tok.kind == tokenName && after.kind == tokenOpen:
		p.fail(tok, "", "a fact has values only, and nothing is computed here")
	case p.isAggregate(tok):
		p.fail(tok, hintAggregateRule, "aggregates stand in the head of a rule only")
	case p.is(tok, "nil") || p.is(tok, "none"):
		p.fail(tok, "write null", "there is no %s", text)
	case tok.kind == tokenDuration:
		p.fail(tok, "", "%s is not a number", text)
	case tok.kind == tokenName && after.kind == tokenColon && where != inFact:
		p.fail(tok, "columns have types in the schema of the relation only; write a variable here",
			"%s is neither a variable nor a value", text)
	case tok.kind == tokenName && where == inFact:
		p.fail(tok, "a string needs quotes: \""+text+"\"", "%s is not a value", text)
	case tok.kind == tokenName:
		upper := string(text[0]-'a'+'A') + text[1:]
		p.fail(tok, "a variable begins with an upper-case letter: "+upper+
			"; a string needs quotes: \""+text+"\"",
			"%s is neither a variable nor a value", text)
	case tok.kind == tokenClose:
		p.fail(tok, "leave out the comma before it, or add a value",
			"expected a variable or a value, found `)`")
	case tok.kind == tokenOpenBracket:
		p.fail(tok, "", "lists are not supported yet")
	case tok.kind == tokenStar && after.kind == tokenGt:
		p.fail(tok, "count<1> counts all", "`*` stands between two values")
	case tok.kind == tokenBang:
		p.fail(tok, "make the negation a condition of its own", "a negation cannot stand here")
	default:
		p.fail(tok, "", "expected a variable or a value, found %s", p.describe(tok))
	}
}

// afterTerm fails for what cannot follow an argument.
func (p *parser) afterTerm(where place, t Term) {
	tok, after := p.peek(), p.peekAt(1)
	switch {
	case p.failed:
	case isArithmetic(tok.kind) && where == inFact:
		p.fail(tok, "write the result", "a fact has values only, and nothing is computed here")
	case tok.kind == tokenColon && (p.is(after, "asc") || p.is(after, "desc")):
		p.orderedTerm(where, tok, t)
	case tok.kind == tokenColon:
		p.fail(tok, "types stand in schemas and behind the parameters of views only",
			"a type cannot stand here")
	}
}
