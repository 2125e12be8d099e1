package parse

import (
	"strconv"
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

// programStatement parses one statement of a program.
func (p *parser) programStatement(f *File) {
	tok, after := p.peek(), p.peekAt(1)
	switch {
	case tok.kind == tokenPlus:
		p.plusStatement(f)
	case p.is(tok, "seed") && after.kind != tokenOpen:
		p.next()
		p.seedStatement(f)
	case p.is(tok, "view") && after.kind != tokenOpen:
		if v := p.view(); !p.failed {
			f.Views = append(f.Views, v)
		}
	case p.is(tok, "action") && after.kind != tokenOpen:
		if act := p.action(); !p.failed {
			f.Actions = append(f.Actions, act)
		}
	case p.is(tok, "clock") && after.kind != tokenOpen:
		p.clock(f)
	case tok.kind == tokenName && !p.refusedKeyword(tok, after):
		p.ruleStatement(f)
	case tok.kind == tokenMinus:
		p.fail(tok, "what the program leaves out is dropped when it is applied; "+
			"facts are deleted by a transaction (heddle write)",
			"a program deletes nothing")
	case tok.kind == tokenQuestion:
		p.fail(tok, "name it as a view: view name($p: int) := ?...; or ask it with heddle query",
			"a program holds no queries")
	case tok.kind == tokenDot:
		p.fail(tok, "", "there are no commands that begin with a point")
	case tok.kind == tokenVariable && after.kind == tokenOpen:
		p.capitalName(tok, "relation")
	case tok.kind == tokenBang:
		p.fail(tok, "a rule is written r(X) <- e(X), !f(X)",
			"a statement cannot begin with a negation")
	default:
		p.fail(tok, "a program has schemas (+edge(src: int, dst: int)), "+
			"rules (r(X) <- edge(X, _)), "+
			"views (view v($p: int) := ?r($p)), actions (action a($p: int) := +edge($p, 1)) "+
			"and seed facts (seed +edge(1, 2))",
			"expected a statement, found %s", p.describe(tok))
	}
}

// refusedKeyword fails for statements of the language that come later.
func (p *parser) refusedKeyword(tok, after token) bool {
	if after.kind != tokenName && after.kind != tokenVariable {
		return false
	}
	switch p.text(tok) {
	case "type":
		p.fail(tok, hintTypes, "there are no names for types")
	case "rule", "relation", "def", "let", "insert", "delete", "drop", "create", "select":
		p.fail(tok, "a rule is written r(X) <- edge(X, _), a schema +edge(src: int, dst: int)",
			"there is no statement %s", p.text(tok))
	default:
		return false
	}
	return true
}

// plusStatement parses a schema, and tells apart what else may begin with +.
func (p *parser) plusStatement(f *File) {
	plus := p.next()
	relation := p.name("relation")
	open := p.peek()
	switch {
	case p.failed:
		return
	case p.arrowAfterAtom():
		p.fail(plus, "write "+p.shortText(p.at-1),
			"`+head <- body` writes facts, in a transaction or an action; write the rule without +")
		return
	case open.kind == tokenOpenBracket || open.kind == tokenOpen && !p.looksLikeSchema():
		p.fail(plus, "write seed "+p.shortText(p.at-2)+" for the facts of a new graph, "+
			"or send facts with heddle write",
			"a program holds no facts but those under seed")
		return
	}
	p.expect(tokenOpen, "`(` and the columns of "+relation.Text)
	s := Schema{Relation: relation, Pos: position(plus)}
	s.Columns = p.typedNames("column", tokenName)
	if tok := p.peek(); tok.kind == tokenName && p.text(tok) == "was" {
		p.next()
		s.Was = p.name("relation")
	}
	p.expectEnd()
	if !p.failed {
		f.Schemas = append(f.Schemas, s)
	}
}

// shortText returns the statement from a token on as it was written, its middle
// left out if it is long.
func (p *parser) shortText(from int) string {
	text := p.src[p.tokens[from].start:p.tokens[p.end-1].end]
	if len(text) <= 60 && !strings.ContainsAny(text, "\r\n") {
		return text
	}
	for i := from; ; i++ {
		if kind := p.tokens[i].kind; kind == tokenOpen || kind == tokenOpenBracket {
			return p.src[p.tokens[from].start:p.tokens[i].end] + "..."
		}
	}
}

// arrowAfterAtom reports whether `<-` or `:-` follows the parenthesis that
// comes next.
func (p *parser) arrowAfterAtom() bool {
	depth := 0
	for i, tok := range p.tokens[p.at:p.end] {
		switch tok.kind {
		case tokenOpen:
			depth++
		case tokenClose:
			depth--
		}
		if depth == 0 {
			after := p.peekAt(i + 1).kind
			return after == tokenArrow || after == tokenTurnstile
		}
	}
	return false
}

// arrowInStatement reports whether the rest of the statement has `<-` or `:-`.
func (p *parser) arrowInStatement() bool {
	for _, tok := range p.tokens[p.at:p.end] {
		if tok.kind == tokenArrow || tok.kind == tokenTurnstile {
			return true
		}
	}
	return false
}

// looksLikeSchema reports whether the parenthesis that comes next holds columns
// rather than values: a colon, or nothing but words.
func (p *parser) looksLikeSchema() bool {
	words := true
	for _, tok := range p.tokens[p.at+1 : p.end] {
		switch tok.kind {
		case tokenColon:
			return true
		case tokenName:
			words = words && p.text(tok) != "true" && p.text(tok) != "false"
		case tokenComma, tokenClose:
		default:
			words = false
		}
	}
	return words
}

// seedStatement parses the facts after the word seed.
func (p *parser) seedStatement(f *File) {
	switch tok := p.peek(); {
	case tok.kind == tokenMinus:
		p.fail(tok, "the graph is new, so there is nothing to delete", "seed facts are inserts")
		return
	case tok.kind != tokenPlus:
		p.fail(tok, "for instance: seed +edge(1, 2)", "expected `+` and a fact, found %s",
			p.describe(tok))
		return
	}
	if facts := p.facts(); !p.failed {
		f.Seeds = append(f.Seeds, facts)
	}
}

// view parses `view name($p: type, ...) := ?query`.
func (p *parser) view() View {
	v := View{Pos: position(p.next())}
	v.Name = p.name("view")
	p.opens("the view", "view "+v.Name.Text+"($key: int) := ?...")
	v.Parameters = p.typedNames("parameter", tokenParameter)
	p.assigns("a view", "the query of the view", "view hot($head: int) := ?r1($head, Y)")
	if p.peekAt(1).kind == tokenColon {
		p.parts(&v)
	} else {
		v.Parts = []Part{{Query: p.query()}}
		if comma := p.peek(); comma.kind == tokenComma {
			p.fail(comma, "write the first as "+v.Name.Text+": ?..., for instance",
				"either all queries of a view have names or there is just one")
		}
	}
	p.expectEnd()
	return v
}

// parts parses `name: ?query, name: ?query`.
func (p *parser) parts(v *View) {
	p.within = inParts
	for !p.failed {
		tok := p.peek()
		if len(v.Parts) == PartsMax {
			p.fail(tok, "make it two views",
				"the view has more than the %d parts allowed", PartsMax)
			return
		}
		part := Part{Name: p.name("part")}
		p.expect(tokenColon, "`:` and the query of the part")
		part.Query = p.query()
		v.Parts = append(v.Parts, part)
		if !p.accept(tokenComma) {
			return
		}
	}
}

// clock parses `clock every 10s`.
func (p *parser) clock(f *File) {
	tok := p.next()
	const hint = "for instance: clock every 10s; the units are ms, s, m and h"
	if every := p.peek(); !p.is(every, "every") {
		p.fail(every, hint, "expected every and the interval of the clock, found %s",
			p.describe(every))
		return
	}
	p.next()
	interval := p.next()
	if interval.kind != tokenDuration {
		p.fail(interval, hint, "expected the interval of the clock, found %s", p.describe(interval))
		return
	}
	text := p.text(interval)
	digits := digitsEnd(text, 0)
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	unit := durationUnits[text[digits:]]
	if err != nil || n > clockMillisMax/unit || n*unit < clockMillisMin {
		p.fail(interval, "", "the interval of a clock lies between 1s and 24h")
		return
	}
	p.expectEnd()
	if f.Clock != nil {
		p.fail(tok, "", "the clock stands in line %d already", f.Clock.Pos.Line)
	}
	f.Clock = &Clock{Millis: n * unit, Pos: position(tok)}
}

const (
	clockMillisMin = 1000
	clockMillisMax = 24 * 3_600_000
)

// opens takes the parenthesis that begins the parameters of a declaration.
func (p *parser) opens(what, example string) {
	if tok := p.peek(); !p.failed && tok.kind != tokenOpen {
		p.fail(tok, "for instance: "+example,
			"expected `(` and the parameters of %s, found %s", what, p.describe(tok))
	}
	p.accept(tokenOpen)
}

// assigns takes the := between a declaration and its content.
func (p *parser) assigns(what, content, example string) {
	switch tok := p.peek(); {
	case p.failed || tok.kind == tokenAssign:
		p.accept(tokenAssign)
	case tok.kind == tokenEq || tok.kind == tokenArrow || tok.kind == tokenTurnstile:
		p.fail(tok, "write :=", "%s is declared with `:=`, not `%s`", what, p.text(tok))
	default:
		p.fail(tok, "for instance: "+example,
			"expected `:=` and %s, found %s", content, p.describe(tok))
	}
}

// action parses `action name($p: type, ...) := statement; statement`.
func (p *parser) action() Action {
	a := Action{Pos: position(p.next())}
	a.Name = p.name("action")
	p.opens("the action", "action "+a.Name.Text+"($key: int) := +edge($key, 1)")
	if !p.accept(tokenClose) {
		a.Parameters = p.typedNames("parameter", tokenParameter)
	}
	p.assigns("an action", "what the action writes",
		"action link($from: int, $to: int) := +edge($from, $to)")
	p.within = inAction
	for !p.failed {
		tok := p.peek()
		if len(a.Statements) == WritesMax {
			p.fail(tok, "", "the action has more than the %d statements allowed", WritesMax)
			break
		}
		a.Statements = append(a.Statements, p.writes())
		if !p.accept(tokenSemicolon) || p.peek().kind == tokenEnd {
			break
		}
	}
	p.expectEnd()
	return a
}

// typedNames parses `name: type, ...)`, the columns of a schema or, with `$`,
// the parameters of a view.
func (p *parser) typedNames(what string, kind tokenKind) []TypedName {
	var names []TypedName
	for !p.failed {
		tok := p.peek()
		if tok.kind == tokenClose && len(names) == 0 {
			p.fail(tok, "", "at least one %s is needed", what)
			break
		}
		if len(names) == ColumnsMax {
			p.fail(tok, "", "there are more than the %d %ss allowed", ColumnsMax, what)
			break
		}
		names = append(names, p.typedName(what, kind))
		if p.failed || p.accept(tokenClose) {
			break
		}
		p.expect(tokenComma, "`,` or `)` after the "+what)
	}
	return names
}

func (p *parser) typedName(what string, kind tokenKind) TypedName {
	tok := p.next()
	text := p.text(tok)
	switch {
	case p.failed:
		return TypedName{}
	case tok.kind == kind:
		text = strings.TrimPrefix(text, "$")
	case kind == tokenParameter && (tok.kind == tokenName || tok.kind == tokenVariable):
		p.fail(tok, "write $"+text, "a parameter begins with $")
	case kind == tokenName && tok.kind == tokenVariable:
		p.capitalName(tok, "column")
	case kind == tokenName && tok.kind == tokenParameter:
		p.fail(tok, "write "+text[1:], "only views have parameters; a column has no $")
	default:
		p.fail(tok, "", "expected a %s, found %s", what, p.describe(tok))
	}
	if colon := p.peek(); !p.failed && colon.kind != tokenColon {
		p.fail(tok, "for instance: "+p.text(tok)+": int; "+hintTypes,
			"the %s %s has no type", what, p.text(tok))
	}
	p.accept(tokenColon)
	n := TypedName{Name: Name{Text: text, Pos: position(tok)}, Type: p.typeName()}
	if question := p.peek(); !p.failed && question.kind == tokenQuestion {
		n.Nullable = true
		p.next()
		if kind == tokenParameter {
			p.fail(question, "leave the ? out", "a parameter is never null")
		}
	}
	return n
}

const hintTypes = "the types are int, float, string, bool, bytes and timestamp"

// otherTypeNames are what other systems call our types.
var otherTypeNames = map[string]string{
	"integer": "int", "int64": "int", "int32": "int", "i64": "int", "i32": "int", "long": "int",
	"bigint": "int", "uint": "int", "id": "int", "number": "int",
	"time": "timestamp", "datetime": "timestamp", "date": "timestamp",
	"blob": "bytes", "binary": "bytes",
	"double": "float", "float64": "float", "f64": "float", "real": "float", "decimal": "float",
	"str": "string", "text": "string", "symbol": "string", "varchar": "string", "char": "string",
	"uuid": "string", "boolean": "bool",
}

func (p *parser) typeName() value.Kind {
	tok := p.next()
	if p.failed {
		return value.Invalid
	}
	text := p.text(tok)
	if kind, ok := value.KindOf(text); ok {
		return kind
	}
	hint := hintTypes
	lower := strings.ToLower(text)
	if _, ok := value.KindOf(lower); ok {
		hint = "write " + lower
	} else if other := otherTypeNames[lower]; other != "" {
		hint = "write " + other
	}
	if tok.kind == tokenName || tok.kind == tokenVariable {
		p.fail(tok, hint, "there is no type %s", text)
	} else {
		p.fail(tok, hint, "expected a type, found %s", p.describe(tok))
	}
	return value.Invalid
}

// name takes the name of a relation or view.
func (p *parser) name(what string) Name {
	tok := p.next()
	switch {
	case p.failed:
	case tok.kind == tokenVariable:
		p.capitalName(tok, what)
	case tok.kind != tokenName:
		p.fail(tok, "", "expected the name of %s, found %s", withArticle(what), p.describe(tok))
	case p.isWordValue(tok):
		p.fail(tok, "", "%s is a value and cannot name %s", p.text(tok), withArticle(what))
	}
	return Name{Text: p.text(tok), Pos: position(tok)}
}

func withArticle(noun string) string {
	if noun[0] == 'a' {
		return "an " + noun
	}
	return "a " + noun
}

// capitalName fails for a name of a relation, view or column that is spelt like
// a variable.
func (p *parser) capitalName(tok token, what string) {
	text := strings.TrimLeft(p.text(tok), "_0123456789")
	hint := ""
	if text != "" {
		hint = "write " + strings.ToLower(text[:1]) + text[1:]
	}
	p.fail(tok, hint, "the name of %s begins with a lower-case letter; %s is a variable",
		withArticle(what), p.text(tok))
}
