package parse

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// parser walks the tokens of one statement at a time. After the first fault of
// a statement it stands at the statement's end, so that everything above
// returns without looking further; the next statement begins afresh.
type parser struct {
	src    string
	tokens []token
	bad    map[int32]*Error
	errs   Errors

	at, end int  // tokens of the statement
	failed  bool // the statement has its error

	calls  int // in the statement
	within construct
	depth  int     // of the expression
	order  []Order // of the goal that is being parsed
}

// construct is what the statement is, where an error depends on it.
type construct uint8

const (
	inOther construct = iota
	inAction
	inParts // of a view
)

// newParser cuts src into tokens. The error is of type Errors.
func newParser(src string) (*parser, error) {
	if len(src) > SourceBytesMax {
		return nil, tooLarge(src)
	}
	if at := invalidUTF8(src); at >= 0 {
		line := 1 + strings.Count(src[:at], "\n")
		start := strings.LastIndexByte(src[:at], '\n') + 1
		pos := Position{Line: line, Column: 1 + utf8.RuneCountInString(src[start:at])}
		return nil, Errors{newError(strings.ToValidUTF8(src[start:at], "?"), pos, 1,
			"save the text as UTF-8", "the text is not UTF-8")}
	}
	l := newLexer(src)
	l.run()
	return &parser{src: src, tokens: l.tokens, bad: l.bad}, nil
}

func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

// eachStatement calls parse with the parser at the start of each statement,
// until the text ends or holds too many errors.
func (p *parser) eachStatement(parse func()) {
	for from, count := 0, 0; from < len(p.tokens); count++ {
		end, next, unclosed := p.statementEnd(from)
		p.at, p.end, p.failed = from, end, false
		p.calls, p.depth, p.order, p.within = 0, 0, nil, inOther
		switch bad := p.firstBad(); {
		case count == StatementsMax:
			p.fail(p.peek(), "send the rest in another text",
				"the text has more than the %d statements allowed", StatementsMax)
			return
		case bad != nil:
			p.failed = true
			p.errs.Add(bad)
		case p.failed: // a bad token without an error of its own
		case unclosed >= 0:
			open := p.tokens[unclosed]
			p.fail(open, "close it with "+closing[open.kind], "this %s is never closed",
				p.text(open))
		default:
			parse()
		}
		if p.errs.Full() {
			return
		}
		from = next
	}
	p.at, p.end, p.failed = len(p.tokens), len(p.tokens), false
}

// closing is what ends each bracket.
var closing = map[tokenKind]string{tokenOpen: ")", tokenOpenBracket: "]"}

// firstBad returns the error of the statement's first bad token.
func (p *parser) firstBad() *Error {
	for _, tok := range p.tokens[p.at:p.end] {
		if tok.kind == tokenBad {
			p.failed = true
			return p.bad[tok.start]
		}
	}
	return nil
}

// statementEnd returns where the statement that begins at token from ends,
// where the next begins, and the last bracket in it that is never closed, or
// -1. A statement ends at a point, and before a line whose column 1 is not
// white space, unless a bracket is open or the line before asks for more.
func (p *parser) statementEnd(from int) (end, next, unclosed int) {
	var open []int
	for i := from; i < len(p.tokens); i++ {
		tok := p.tokens[i]
		if i > from && tok.column1 && p.endsBefore(i, len(open) > 0) {
			return i, i, lastOr(open, -1)
		}
		switch tok.kind {
		case tokenOpen, tokenOpenBracket:
			open = append(open, i)
		case tokenClose, tokenCloseBracket:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case tokenDot:
			if len(open) == 0 && i > from {
				return i, i + 1, -1
			}
		}
	}
	return len(p.tokens), len(p.tokens), lastOr(open, -1)
}

// endsBefore reports whether the token i, which stands in column 1, begins a
// statement.
func (p *parser) endsBefore(i int, bracketOpen bool) bool {
	switch before := p.tokens[i-1].kind; {
	case before == tokenArrow || before == tokenAssign || before == tokenSemicolon:
		return false
	case bracketOpen:
		// What cannot stand inside brackets shows that one was forgotten.
		return p.beginsSigned(i) ||
			p.kindAt(i) <= tokenVariable && p.kindAt(i+1) == tokenOpen
	case before == tokenComma:
		return p.beginsSigned(i)
	}
	return true
}

// beginsSigned reports whether token i begins a statement whatever comes
// before it: a fact, a schema, a view or a query.
func (p *parser) beginsSigned(i int) bool {
	name := p.kindAt(i+1) == tokenName || p.kindAt(i+1) == tokenVariable
	switch p.kindAt(i) {
	case tokenQuestion:
		return true
	case tokenPlus, tokenMinus:
		return name && (p.kindAt(i+2) == tokenOpen || p.kindAt(i+2) == tokenOpenBracket)
	case tokenName:
		text := p.text(p.tokens[i])
		return text == "clock" && p.kindAt(i+1) == tokenName ||
			(text == "view" || text == "action") && name ||
			text == "seed" && (p.kindAt(i+1) == tokenPlus || p.kindAt(i+1) == tokenMinus)
	}
	return false
}

func (p *parser) kindAt(i int) tokenKind {
	if i >= len(p.tokens) {
		return tokenEnd
	}
	return p.tokens[i].kind
}

func lastOr(s []int, otherwise int) int {
	if len(s) == 0 {
		return otherwise
	}
	return s[len(s)-1]
}

// peek returns the next token without taking it; at the statement's end a
// token of kind tokenEnd just behind its last.
func (p *parser) peek() token { return p.peekAt(0) }

func (p *parser) peekAt(n int) token {
	if p.at+n < p.end {
		return p.tokens[p.at+n]
	}
	if p.end == 0 {
		return token{line: 1, col: 1}
	}
	last := p.tokens[p.end-1]
	if p.end < len(p.tokens) && p.tokens[p.end].kind == tokenDot {
		last = p.tokens[p.end]
		return token{start: last.start, end: last.start, line: last.line, col: last.col}
	}
	width := utf8.RuneCountInString(p.text(last))
	return token{start: last.end, end: last.end, line: last.line, col: last.col + int32(width)}
}

// next takes the next token.
func (p *parser) next() token {
	tok := p.peek()
	if p.at < p.end {
		p.at++
	}
	return tok
}

// accept takes the next token if it is of the kind.
func (p *parser) accept(kind tokenKind) bool {
	if p.peek().kind != kind {
		return false
	}
	p.at++
	return true
}

func (p *parser) text(tok token) string { return p.src[tok.start:tok.end] }

// is reports whether tok is the word text.
func (p *parser) is(tok token, text string) bool {
	return tok.kind == tokenName && p.text(tok) == text
}

func position(tok token) Position {
	return Position{Line: int(tok.line), Column: int(tok.col)}
}

// fail reports the statement's error, at tok, unless it has one, and moves to
// the statement's end.
func (p *parser) fail(tok token, hint, format string, args ...any) {
	if !p.failed {
		width := utf8.RuneCountInString(p.text(tok))
		p.errs.Add(newError(lineOf(p.src, int(tok.line)), position(tok), width, hint,
			fmt.Sprintf(format, args...)))
	}
	p.failed, p.at = true, p.end
}

// expect takes a token of the kind, or fails with what was expected.
func (p *parser) expect(kind tokenKind, expected string) token {
	tok := p.peek()
	if tok.kind != kind {
		p.fail(tok, "", "expected %s, found %s", expected, p.describe(tok))
		return tok
	}
	return p.next()
}

// expectEnd fails unless the statement ends here.
func (p *parser) expectEnd() {
	if tok := p.peek(); tok.kind != tokenEnd && !p.failed {
		p.fail(tok, p.endHint(tok), "expected the end of the statement, found %s",
			p.describe(tok))
	}
}

// endHint explains why a statement goes on where its writer thought it ended.
func (p *parser) endHint(tok token) string {
	switch {
	case tok.first && !tok.column1:
		return "a line that begins with white space continues the statement before it; " +
			"begin a new statement in the first column"
	case tok.kind == tokenSemicolon || tok.kind == tokenComma ||
		p.beginsSigned(p.at) || tok.kind == tokenName && p.peekAt(1).kind == tokenOpen:
		return "begin each statement on a line of its own, or end the one before with a point"
	}
	return ""
}

// describe names a token in an error.
func (p *parser) describe(tok token) string {
	text := p.text(tok)
	if utf8.RuneCountInString(text) > 40 {
		text = string([]rune(text)[:40]) + "…"
	}
	switch tok.kind {
	case tokenEnd:
		return "the end of the statement"
	case tokenName:
		return "the name " + text
	case tokenVariable:
		return "the variable " + text
	case tokenParameter:
		return "the parameter " + text
	case tokenString:
		return "the string " + text
	case tokenInt, tokenFloat, tokenWildcard, tokenBytes, tokenTimestamp, tokenDuration:
		return text
	}
	return "`" + text + "`"
}
